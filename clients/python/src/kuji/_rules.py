"""The rule: what is sent again, when, and where. See docs/clients.md, "What is sent again"."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2  # type: ignore[import-untyped]

from kuji import v1
from kuji._errors import KujiError, UnknownError, UnreachableError

DEFAULT_TIMEOUT = 10.0
DEFAULT_SILENCE = 25.0
MAX_AHEAD = 16  # batches of a stream without an answer
MAX_ANSWER = 64 << 20  # bytes
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 1.0  # seconds

# A channel connects again as soon as the rule wants to, and never sends a call again by itself.
CHANNEL_OPTIONS: Sequence[tuple[str, int]] = (
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.max_receive_message_length", MAX_ANSWER),
    ("grpc.use_local_subchannel_pool", 1),  # a new channel is a new connection
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
)


@dataclass
class Fault:
    """How an attempt failed."""

    error: KujiError
    sent: bool = True  # there was a connection, as far as one can tell
    retry_after: float = 0.0  # seconds that the server wants

    @property
    def silent(self) -> bool:
        """Nothing came in time: the other end of the connection may be gone without a word."""
        return self.error.code == "deadline_exceeded" and self.error.detail is None

    @staticmethod
    def of(e: grpc.RpcError | grpc.aio.AioRpcError) -> Fault:
        """Reads what gRPC says."""
        code = e.code().name.lower().replace("cancelled", "canceled")
        details = e.details() or ""
        trailers: dict[str, str | bytes] = {key: value for key, value in cast("tuple[tuple[str, str | bytes], ...]", e.trailing_metadata() or ())}
        detail = None
        try:
            status = status_pb2.Status.FromString(_bytes(trailers.get("grpc-status-details-bin", b"")))
            for each in status.details:
                if each.Is(v1.ErrorDetail.DESCRIPTOR):
                    detail = v1.ErrorDetail()
                    each.Unpack(detail)
        except DecodeError:
            detail = None  # nobody that we know has said that
        # gRPC tells it by these words alone. If they change, more counts as sent, which is the safe side.
        sent = not ("failed to connect to all addresses" in details or "DNS resolution failed" in details)
        return Fault(KujiError(code, details, detail), sent, _retry_after(str(trailers.get("retry-after", ""))))


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value


def _retry_after(header: str) -> float:
    """Reads a header Retry-After: seconds, or a date."""
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, IndexError):
        return 0.0


@dataclass
class Verdict:
    """What follows from a failed attempt."""

    again: bool = False
    maybe: bool = False  # if it was sent, it may have happened
    elsewhere: bool = False


_BY_REASON = {
    v1.Reason.REASON_OVERLOADED: Verdict(again=True),
    v1.Reason.REASON_HISTORY: Verdict(again=True),
    v1.Reason.REASON_CLOSED: Verdict(again=True, elsewhere=True),
    v1.Reason.REASON_CANCELED: Verdict(again=True, elsewhere=True),
    v1.Reason.REASON_UNKNOWN_OUTCOME: Verdict(again=True, maybe=True, elsewhere=True),
    v1.Reason.REASON_INTERNAL: Verdict(maybe=True),
}


def judge(error: KujiError, servers: int) -> Verdict:
    """The table of docs/clients.md."""
    reason = error.detail.reason if error.detail is not None else v1.Reason.REASON_UNSPECIFIED
    if reason == v1.Reason.REASON_FAILED:
        return Verdict(again=servers > 1, elsewhere=True)
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    if reason != v1.Reason.REASON_UNSPECIFIED and reason in v1.Reason.values():
        return Verdict()
    if error.code in ("unavailable", "deadline_exceeded"):
        return Verdict(again=True, maybe=True, elsewhere=True)
    if error.code in ("canceled", "unknown", "internal", "aborted", "data_loss"):
        return Verdict(again=error.detail is None, maybe=True, elsewhere=True)
    return Verdict()


class Servers:
    """The addresses of a client, and the one in use."""

    def __init__(self, urls: str | Sequence[str]) -> None:
        self.targets: list[tuple[str, bool]] = []  # host:port, with TLS
        for url in [urls] if isinstance(urls, str) else urls:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
                raise ValueError(f"{url!r} is not a server: expected http://HOST:PORT or https://HOST:PORT")
            port = parts.port or (443 if parts.scheme == "https" else 80)
            self.targets.append((f"{parts.netloc.rpartition('@')[2].removesuffix(f':{port}')}:{port}", parts.scheme == "https"))
        if not self.targets:
            raise ValueError("no URL: expected that of a server")
        self.at = 0  # only grows; calls that fail together go on by one

    def leave(self, at: int) -> None:
        """Goes on to the next server, unless another call has done so."""
        if self.at == at:
            self.at = at + 1


class Tries:
    """The attempts at one thing: a call, or what a stream brings next."""

    def __init__(self, servers: Servers, timeout: float | None, attempt: float | None) -> None:
        self.servers = servers
        self.attempt = attempt
        self.end = None if timeout is None else time.monotonic() + timeout
        self.at = servers.at
        self.pause = 0.0
        self.maybe = False
        self.reached = False

    def begin(self) -> float | None:
        """Begins an attempt. Returns how long it may take, in seconds; None: for ever."""
        self.at = self.servers.at
        bounds = [b for b in (self.left(), self.attempt) if b is not None]
        return max(0.001, min(bounds)) if bounds else None

    def left(self) -> float | None:
        """How long is left, in seconds."""
        return None if self.end is None else self.end - time.monotonic()

    def failed(self, fault: Fault) -> float | None:
        """Notes a failed attempt. Returns the pause before the next, in seconds; None: it is the last."""
        verdict = judge(fault.error, len(self.servers.targets))
        self.maybe = self.maybe or fault.sent and verdict.maybe
        self.reached = self.reached or fault.sent
        left = self.left()
        if not verdict.again or left is not None and left <= 0:
            return None
        if verdict.elsewhere:
            self.servers.leave(self.at)
        if left is not None and left < fault.retry_after:
            return None
        self.pause = min(max(2 * self.pause, _FIRST_PAUSE), _LAST_PAUSE)
        pause = max(fault.retry_after, self.pause * random.uniform(0.5, 1))
        return pause if left is None else max(0.0, min(pause, left))

    def over(self, error: KujiError, request_ids: Sequence[str], effects: bool) -> KujiError:
        """Returns the error that a caller gets in the end."""
        if self.maybe and effects and error.reason != "REASON_ID_REUSED":  # that one settles it
            return UnknownError(error, request_ids)
        if not self.reached and error.code in ("unavailable", "deadline_exceeded") and error.detail is None:
            return UnreachableError(error)
        return error


class Place:
    """Where the reader of a feed is."""

    def __init__(self, request: v1.StreamEventsRequest) -> None:
        self.request = v1.StreamEventsRequest()
        self.request.CopyFrom(request)
        self._last = (0, -1)

    def took(self, message: v1.StreamEventsResponse) -> None:
        """Drops the events that the reader has, and notes where to go on."""
        new = [e for e in message.events if (e.position, e.index) > self._last]
        if len(new) < len(message.events):
            del message.events[:]
            message.events.extend(new)
        if new:
            self._last = (new[-1].position, new[-1].index)
        setattr(self.request, "from", message.next)
