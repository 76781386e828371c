"""The blocking client."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from kuji import v1
from kuji._calls import Calls
from kuji._cancel import Cancel
from kuji._errors import KujiError
from kuji._ids import identify, identify_draws
from kuji._rules import CHANNEL_OPTIONS, DEFAULT_SILENCE, DEFAULT_TIMEOUT, MAX_AHEAD, Fault, Place, Servers, Tries

_Response = TypeVar("_Response", bound=Message)
_EVENTS = "/kuji.v1.RewardService/StreamEvents"
_DRAWS = "/kuji.v1.RewardService/StreamDraws"


class Client(Calls):
    """Calls the servers of one cluster, or a single one. Several threads may use it. Close it in the end.

    urls are http://HOST:PORT or https://HOST:PORT. key is an API key or a player's token. timeout, in seconds, bounds
    a call with its repeats, and how long a feed or a stream goes without an answer; None: for ever. attempt bounds
    one attempt. silence is how long a feed may bring nothing before it is asked for again; servers send something
    every 10 seconds. credentials are for https; None: the certificates that gRPC trusts.

    A command without a request id gets one, which stays in the request.
    """

    def __init__(self, urls: str | Sequence[str], *, key: str = "", timeout: float | None = DEFAULT_TIMEOUT, attempt: float | None = None,
                 silence: float = DEFAULT_SILENCE, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._servers = Servers(urls)
        self._metadata = (("authorization", f"Bearer {key}"),) if key else ()
        self._timeout, self._attempt, self._silence = timeout, attempt, silence
        self._credentials = credentials
        self._channels = [self._open(at) for at in range(len(self._servers.targets))]
        self._silent: list[grpc.Channel] = []  # were replaced

    def _open(self, at: int) -> grpc.Channel:
        target, secure = self._servers.targets[at % len(self._servers.targets)]
        if secure:
            return grpc.secure_channel(target, self._credentials or grpc.ssl_channel_credentials(), options=CHANNEL_OPTIONS)
        return grpc.insecure_channel(target, options=CHANNEL_OPTIONS)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections, and ends what goes on over them."""
        for channel in self._channels + self._silent:
            channel.close()

    def _call(self, path: str, request: Message, response: type[_Response], effects: bool, timeout: float | None, cancel: Cancel | None) -> _Response:
        ids = identify(request) if effects else []
        tries = Tries(self._servers, timeout if timeout is not None else self._timeout, self._attempt)
        while True:
            bound = tries.begin()
            channel = self._channel(tries.at)
            unary = channel.unary_unary(path, type(request).SerializeToString, response.FromString)
            call = unary.future(request, timeout=bound, metadata=self._metadata)
            try:
                with _ends(cancel, call.cancel):
                    answer: _Response = call.result()
                return answer
            except (grpc.RpcError, grpc.FutureCancelledError) as e:
                fault = Fault.of(e) if isinstance(e, grpc.RpcError) else Fault(_cancelled())
            if fault.silent:
                self._renew(tries.at, channel)
            self._again(tries, fault, ids, effects, cancel)

    def _channel(self, at: int) -> grpc.Channel:
        return self._channels[at % len(self._channels)]

    def _renew(self, at: int, silent: grpc.Channel) -> None:
        """Takes another connection: a call on a new stream of the old one would wait as long."""
        at %= len(self._channels)
        if self._channels[at] is silent:
            self._channels[at] = self._open(at)
            self._silent = [*self._silent[-3:], silent]  # calls that go on over older ones keep them

    def _again(self, tries: Tries, fault: Fault, ids: Sequence[str], effects: bool, cancel: Cancel | None) -> None:
        """Waits before the next attempt, or raises the error to end with."""
        pause = tries.failed(fault)
        if cancel is not None and cancel.cancelled:
            raise tries.over(_cancelled(), ids, effects)
        if pause is None:
            raise tries.over(fault.error, ids, effects)
        if cancel is None:
            time.sleep(pause)
        elif cancel.wait(pause):
            raise tries.over(_cancelled(), ids, effects)
        left = tries.left()
        if left is not None and left <= 0:
            raise tries.over(fault.error, ids, effects)

    def events(self, request: v1.StreamEventsRequest, *, cancel: Cancel | None = None) -> Iterator[v1.StreamEventsResponse]:
        """Yields each event that request asks for once, in order, as they come, and goes on after a break.

        A message without events says how far the feed has come. It ends with an error when the server refuses the
        feed, or cannot be reached for the client's timeout.
        """
        place = Place(request)
        tries: Tries | None = None
        while True:
            tries = tries or Tries(self._servers, self._timeout, None)
            tries.begin()
            at = tries.at
            channel = self._channel(at)
            stream = channel.unary_stream(_EVENTS, v1.StreamEventsRequest.SerializeToString, v1.StreamEventsResponse.FromString)
            call = stream(place.request, metadata=self._metadata)
            try:
                with _ends(cancel, call.cancel), _Watch(self._silence, call.cancel) as watch:
                    for message in call:
                        with watch.paused():
                            tries = None
                            place.took(message)
                            yield message
                fault = Fault(KujiError("unavailable", "the server ended the feed"))
            except grpc.RpcError as e:
                fault = Fault.of(e)
            finally:
                call.cancel()
            if watch.barked:
                fault = Fault(_nothing())
                self._renew(at, channel)
            tries = tries or Tries(self._servers, self._timeout, None)
            self._again(tries, fault, [], False, cancel)

    def draws(self, batches: Iterable[v1.StreamDrawsRequest], *, cancel: Cancel | None = None) -> Iterator[v1.StreamDrawsResponse]:
        """Sends batches of draws over a stream and yields an answer for each, in order. It goes on after a break.

        batches is read in another thread, at most 16 ahead of the answers. Draws without a request id get one. It
        ends with an error when the server refuses a batch, or no answer came for the client's timeout.
        """
        return _Draws(self, batches, cancel).answers()


def _cancelled() -> KujiError:
    return KujiError("canceled", "the caller has ended the call")


def _nothing() -> KujiError:
    return KujiError("deadline_exceeded", "nothing came in time")


class _ends:
    """While it is entered, a Cancel ends a call."""

    def __init__(self, cancel: Cancel | None, how: Callable[[], object]) -> None:
        self._cancel, self._how = cancel, how

    def __enter__(self) -> None:
        if self._cancel is not None:
            self._cancel.on(self._how)

    def __exit__(self, *_: object) -> None:
        if self._cancel is not None:
            self._cancel.off(self._how)


class _Watch:
    """Ends a call on which nothing came for some time, while it is entered. None: never."""

    def __init__(self, seconds: float | None, bark: Callable[[], object]) -> None:
        self._seconds, self._bark = seconds, bark
        self._changed = threading.Condition()
        self._until: float | None = None  # None: it does not count
        self._over = False
        self.barked = False

    def __enter__(self) -> _Watch:
        if self._seconds is not None:
            self._until = time.monotonic() + self._seconds
            threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def paused(self) -> _Pause:
        return _Pause(self)

    def count(self, on: bool) -> None:
        """Begins to count anew, or stops."""
        if self._seconds is not None:
            self._until = time.monotonic() + self._seconds if on else None  # the thread looks at it in time

    def _run(self) -> None:
        assert self._seconds is not None
        with self._changed:
            while not self._over:
                until = self._until
                left = self._seconds if until is None else until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, self._seconds / 4))
            if self._over:
                return
            self.barked = True
        self._bark()


class _Pause:
    def __init__(self, watch: _Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._watch.count(False)

    def __exit__(self, *_: object) -> None:
        self._watch.count(True)


class _Draws:
    """A stream of draws through all its connections."""

    def __init__(self, client: Client, batches: Iterable[v1.StreamDrawsRequest], cancel: Cancel | None) -> None:
        self._client, self._batches, self._cancel = client, iter(batches), cancel
        self._changed = threading.Condition()
        self._open: deque[v1.StreamDrawsRequest] = deque()  # without an answer, the oldest first
        self._answered = 0  # how many before them
        self._reading = False  # a thread asks batches for the next
        self._ended = False  # no more come
        self._broken: BaseException | None = None  # what batches has raised
        self._current: object = None  # the connection

    def answers(self) -> Iterator[v1.StreamDrawsResponse]:
        client, call = self._client, None
        try:
            while True:
                call = call or self._connect(client._servers.at)
                if not self._wait(call):
                    return
                tries = Tries(client._servers, client._timeout, client._attempt)
                answer = None
                while answer is None:
                    bound = tries.begin()
                    call = call or self._connect(tries.at)
                    try:
                        with _ends(self._cancel, call.cancel), _Watch(bound, call.cancel) as watch:
                            answer = next(call)
                    except StopIteration:
                        fault = Fault(KujiError("unavailable", "the server ended the stream"))
                    except grpc.RpcError as e:
                        fault = Fault.of(e)
                    if answer is None:
                        call = None
                        if watch.barked:
                            fault = Fault(_nothing())
                            client._renew(tries.at, client._channel(tries.at))
                        self._fail(tries, fault)
                with self._changed:
                    self._open.popleft()
                    self._answered += 1
                    self._changed.notify_all()
                yield answer
        finally:
            with self._changed:
                self._current = None
                self._changed.notify_all()
            if call is not None:
                call.cancel()

    def _wait(self, call: Any) -> bool:
        """Waits until a batch has no answer, or the connection has ended. Returns False after the last answer."""
        with _ends(self._cancel, call.cancel), self._changed:
            self._changed.wait_for(lambda: self._open or self._ended or not call.is_active())
            if self._broken is not None and not self._open:
                raise self._broken
            return not (self._ended and not self._open)

    def _fail(self, tries: Tries, fault: Fault) -> None:
        """Waits before the next connection, or raises the error to end with."""
        with self._changed:
            ids = [i for batch in self._open for i in batch.request_ids]
        if self._broken is not None and not ids:
            raise self._broken
        self._client._again(tries, fault, ids, bool(ids), self._cancel)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _connect(self, at: int) -> Any:
        """Opens a stream, which sends all that has no answer, and what comes after it."""
        stream = self._client._channel(at).stream_stream(_DRAWS, v1.StreamDrawsRequest.SerializeToString, v1.StreamDrawsResponse.FromString)
        with self._changed:
            self._current = connection = object()
            self._changed.notify_all()
        call = stream(self._send(connection), metadata=self._client._metadata)
        if not call.add_callback(self._wake):
            self._wake()
        return call

    def _send(self, connection: object) -> Iterator[v1.StreamDrawsRequest]:
        with self._changed:
            at = self._answered
        while True:
            with self._changed:
                batch = None
                while batch is None:
                    if self._current is not connection:
                        return
                    if at - self._answered < len(self._open):
                        batch = self._open[at - self._answered]
                        at += 1
                    elif self._ended:
                        return
                    elif self._reading or len(self._open) >= MAX_AHEAD:
                        self._changed.wait()
                    else:
                        self._reading = True
                        break
            if batch is not None:
                yield batch
            else:
                self._read()

    def _read(self) -> None:
        """Asks for the next batch, outside of the lock: that can take long."""
        batch = None
        try:
            batch = next(self._batches, None)
            if batch is not None:
                identify_draws(batch)
        except BaseException as e:  # of the caller's own, for the caller
            self._broken = e
        with self._changed:
            self._reading = False
            if batch is not None and self._broken is None:
                self._open.append(batch)
            else:
                self._ended = True
            self._changed.notify_all()
