"""The client as the conformance suite drives it: see clients/conformance/doc.go. With --async it is AsyncClient."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

try:
    import kuji
except ImportError:  # not installed: as it stands beside this file
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    import kuji

from google.protobuf import json_format
from google.protobuf.message import Message

writing = threading.Lock()


def write(**line: Any) -> None:
    with writing:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def message(kind: type[Message], value: Any) -> Any:
    return json_format.ParseDict(value or {}, kind())


def describe(error: BaseException) -> dict[str, Any]:
    """What a caller can see of an error."""
    if isinstance(error, asyncio.CancelledError):
        error = error.__cause__ or error
    if not isinstance(error, kuji.KujiError):
        return {"kind": "server", "code": type(error).__name__, "message": repr(error)}
    kind = "unknown" if isinstance(error, kuji.UnknownError) else "unreachable" if isinstance(error, kuji.UnreachableError) else "server"
    return {"kind": kind, "code": error.code, "reason": error.reason, "message": str(error),
            "requestIds": error.request_ids if isinstance(error, kuji.UnknownError) else [], "fields": [v.field for v in error.violations]}


def options(task: dict[str, Any]) -> dict[str, Any]:
    seconds = {name: task[name + "Ms"] / 1000 for name in ("timeout", "attempt", "silence")}
    return {"key": task["key"], "timeout": seconds["timeout"] if seconds["timeout"] >= 0 else None, "attempt": seconds["attempt"] or None,
            **({"silence": seconds["silence"]} if seconds["silence"] else {})}


def method(client: Any, name: str) -> Any:
    return getattr(client, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower())


def blocking() -> None:
    clients: dict[str, kuji.Client] = {}
    cancels: dict[int, kuji.Cancel] = {}

    def run(task: dict[str, Any], cancel: kuji.Cancel) -> None:
        n = task["n"]
        try:
            result: dict[str, Any] = {}
            client = clients[task["client"]]
            if task["op"] == "call":
                answer = method(client, task["method"])(message(getattr(kuji.v1, task["method"] + "Request"), task["request"]), cancel=cancel)
                result = json_format.MessageToDict(answer)
            elif task["op"] == "draws":
                for item in client.draws((message(kuji.v1.StreamDrawsRequest, b) for b in task["batches"]), cancel=cancel):
                    write(n=n, item=json_format.MessageToDict(item))
            else:
                came = 0
                for m in client.events(message(kuji.v1.StreamEventsRequest, task["request"]), cancel=cancel):
                    write(n=n, item=json_format.MessageToDict(m))
                    came += len(m.events)
                    if came >= task["events"]:
                        break
            write(n=n, result=result)
        except Exception as e:
            write(n=n, error=describe(e))

    for text in sys.stdin:
        task = json.loads(text)
        op, n = task["op"], task["n"]
        if op == "open":
            clients[task["client"]] = kuji.Client(task["urls"], **options(task))
            write(n=n, result={})
        elif op == "id":
            write(n=n, result={"id": kuji.new_id()})
        elif op == "cancel":
            cancels[task["of"]].cancel()
            write(n=n, result={})
        else:
            cancels[n] = kuji.Cancel()
            threading.Thread(target=run, args=(task, cancels[n]), daemon=True).start()


async def asynchronous() -> None:
    clients: dict[str, kuji.AsyncClient] = {}
    tasks: dict[int, asyncio.Task[None]] = {}

    async def batches(task: dict[str, Any]) -> AsyncIterator[kuji.v1.StreamDrawsRequest]:
        for b in task["batches"]:
            yield message(kuji.v1.StreamDrawsRequest, b)

    async def run(task: dict[str, Any]) -> None:
        n = task["n"]
        try:
            result: dict[str, Any] = {}
            client = clients[task["client"]]
            if task["op"] == "call":
                answer = await method(client, task["method"])(message(getattr(kuji.v1, task["method"] + "Request"), task["request"]))
                result = json_format.MessageToDict(answer)
            elif task["op"] == "draws":
                async for item in client.draws(batches(task)):
                    write(n=n, item=json_format.MessageToDict(item))
            else:
                came = 0
                async for m in client.events(message(kuji.v1.StreamEventsRequest, task["request"])):
                    write(n=n, item=json_format.MessageToDict(m))
                    came += len(m.events)
                    if came >= task["events"]:
                        break
            write(n=n, result=result)
        except (Exception, asyncio.CancelledError) as e:
            write(n=n, error=describe(e))

    loop = asyncio.get_running_loop()
    while text := await loop.run_in_executor(None, sys.stdin.readline):
        task = json.loads(text)
        op, n = task["op"], task["n"]
        if op == "open":
            clients[task["client"]] = kuji.AsyncClient(task["urls"], **options(task))
            write(n=n, result={})
        elif op == "id":
            write(n=n, result={"id": kuji.new_id()})
        elif op == "cancel":
            tasks[task["of"]].cancel()
            write(n=n, result={})
        else:
            tasks[n] = asyncio.ensure_future(run(task))
    for client in clients.values():
        await client.close()


if __name__ == "__main__":
    if "--async" in sys.argv:
        asyncio.run(asynchronous())
    else:
        blocking()
