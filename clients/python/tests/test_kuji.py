"""What needs no server: the conformance suite has the rest."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import grpc
import kuji
import pytest
from kuji import _rules, _sync, v1
from kuji._errors import KujiError
from kuji._ids import identify, identify_draws


def test_ids_are_ulids_in_the_order_of_time() -> None:
    ids = [kuji.new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(len(i) == 26 and set(i) <= set("0123456789ABCDEFGHJKMNPQRSTVWXYZ") for i in ids)
    ms = 0
    for c in ids[0][:10]:
        ms = ms * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(c)
    assert abs(ms / 1000 - time.time()) < 60
    assert ids[0][:10] <= ids[-1][:10]


def test_missing_ids_are_made_and_given_ones_stay() -> None:
    draw = v1.DrawRequest(player="ann")
    made = identify(draw)
    assert made == [draw.request_id] and made == identify(draw)
    batch = v1.BatchRequest(commands=[v1.Command(), v1.Command(request_id="mine")])
    ids = identify(batch)
    assert ids[1] == "mine" and len(ids[0]) == 26 and batch.commands[0].request_id == ids[0]
    assert identify(v1.ApplyCatalogRequest()) == []
    stream = v1.StreamDrawsRequest(players=["ann"], player_indexes=[0, 0], request_ids=["mine", ""])
    identify_draws(stream)
    assert stream.request_ids[0] == "mine" and len(stream.request_ids[1]) == 26


@pytest.mark.parametrize("reason", v1.Reason.values())
@pytest.mark.parametrize("servers", [1, 2])
def test_judge_by_reason(reason: int, servers: int) -> None:
    again = {"OVERLOADED", "HISTORY", "CLOSED", "CANCELED", "UNKNOWN_OUTCOME"} | ({"FAILED"} if servers > 1 else set())
    name = v1.Reason.Name(reason).removeprefix("REASON_")
    verdict = _rules.judge(KujiError("failed_precondition", "", v1.ErrorDetail(reason=reason)), servers)  # type: ignore[arg-type]
    assert verdict.again == (name in again)
    assert verdict.maybe == (name in {"UNKNOWN_OUTCOME", "INTERNAL"})


@pytest.mark.parametrize("code", [c.name.lower().replace("cancelled", "canceled") for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
def test_judge_without_a_reason(code: str) -> None:
    broken = code in {"unavailable", "deadline_exceeded", "canceled", "unknown", "internal", "aborted", "data_loss"}
    verdict = _rules.judge(KujiError(code, ""), 1)
    assert (verdict.again, verdict.maybe) == (broken, broken)


def test_a_reason_of_a_newer_server() -> None:
    error = KujiError("unavailable", "", v1.ErrorDetail(reason=9999))  # type: ignore[arg-type]
    assert error.reason == "9999" and _rules.judge(error, 1).again
    assert not _rules.judge(KujiError("not_found", "", error.detail), 1).again


def test_retry_after() -> None:
    assert _rules._retry_after("3") == 3
    assert _rules._retry_after("") == _rules._retry_after("soon") == _rules._retry_after("-1") == 0
    assert 3000 < _rules._retry_after(time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 3600))) <= 3600


@pytest.mark.parametrize("url", [[], "", "localhost:7700", "ftp://x", ["http://good", "http://"], "http://h/path"])
def test_bad_urls(url: str | list[str]) -> None:
    with pytest.raises(ValueError):
        kuji.Client(url)


def test_ports() -> None:
    assert _rules.Servers(["http://a", "https://b/", "http://[::1]:7700"]).targets == [("a:80", False), ("b:443", True), ("[::1]:7700", False)]


def test_nobody_there() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # and nobody listens
        url = f"http://127.0.0.1:{s.getsockname()[1]}"
        with kuji.Client(url, timeout=0.3) as client, pytest.raises(kuji.UnreachableError):
            client.draw(v1.DrawRequest(player="ann", pool="p"))

        async def draw() -> None:
            async with kuji.AsyncClient(url, timeout=0.3) as client:
                await client.draw(v1.DrawRequest(player="ann", pool="p"))

        with pytest.raises(kuji.UnreachableError):
            asyncio.run(draw())


def test_cancel_ends_pauses_too() -> None:
    cancel = kuji.Cancel()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        with kuji.Client(f"http://127.0.0.1:{s.getsockname()[1]}", timeout=None) as client:
            threading.Timer(0.2, cancel.cancel).start()
            with pytest.raises(kuji.KujiError) as e:
                client.draw(v1.DrawRequest(player="ann", pool="p"), cancel=cancel)
    assert e.value.code == "canceled"


def test_batches_that_raise() -> None:
    def batches() -> object:
        raise KeyError("of the caller's own")
        yield

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        with kuji.Client(f"http://127.0.0.1:{s.getsockname()[1]}", timeout=1) as client, pytest.raises(KeyError):
            list(client.draws(batches()))  # type: ignore[arg-type]


def test_the_place_in_a_feed() -> None:
    place = _rules.Place(v1.StreamEventsRequest())
    message = v1.StreamEventsResponse(events=[v1.Event(position=p, index=i) for p, i in ((1, 0), (2, 0), (2, 1))], next=2)
    place.took(message)
    assert len(message.events) == 3 and getattr(place.request, "from") == 2
    message = v1.StreamEventsResponse(events=[v1.Event(position=p, index=i) for p, i in ((2, 0), (2, 1), (2, 2))], next=3)
    place.took(message)
    assert [(e.position, e.index) for e in message.events] == [(2, 2)]


def test_a_watch_barks_only_in_silence() -> None:
    barked = threading.Event()
    with _sync._Watch(0.1, barked.set) as watch:
        with watch.paused():
            assert not barked.wait(0.3)
        assert barked.wait(5)
    assert watch.barked
