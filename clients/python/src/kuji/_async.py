"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from kuji import v1
from kuji._async_calls import AsyncCalls
from kuji._errors import KujiError
from kuji._ids import identify, identify_draws
from kuji._rules import CHANNEL_OPTIONS, DEFAULT_SILENCE, DEFAULT_TIMEOUT, MAX_AHEAD, Fault, Place, Servers, Tries

_Response = TypeVar("_Response", bound=Message)
_EVENTS = "/kuji.v1.RewardService/StreamEvents"
_DRAWS = "/kuji.v1.RewardService/StreamDraws"


class AsyncClient(AsyncCalls):
    """Client for asyncio, with the same calls and the same options. It belongs to the event loop that first uses it.

    A task that is cancelled ends with CancelledError, as every task does. If the outcome of a command is unknown
    then, the error's __cause__ is an UnknownError with the request ids.
    """

    def __init__(self, urls: str | Sequence[str], *, key: str = "", timeout: float | None = DEFAULT_TIMEOUT, attempt: float | None = None,
                 silence: float = DEFAULT_SILENCE, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._servers = Servers(urls)
        self._metadata = (("authorization", f"Bearer {key}"),) if key else ()
        self._timeout, self._attempt, self._silence, self._credentials = timeout, attempt, silence, credentials
        self._channels: dict[int, grpc.aio.Channel] = {}
        self._silent: list[grpc.aio.Channel] = []  # were replaced

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections, and ends what goes on over them."""
        for channel in [*self._channels.values(), *self._silent]:
            await channel.close()

    def _channel(self, at: int) -> grpc.aio.Channel:
        at %= len(self._servers.targets)
        if at not in self._channels:  # a channel belongs to the loop that makes it
            target, secure = self._servers.targets[at]
            self._channels[at] = (
                grpc.aio.secure_channel(target, self._credentials or grpc.ssl_channel_credentials(), options=CHANNEL_OPTIONS)
                if secure else grpc.aio.insecure_channel(target, options=CHANNEL_OPTIONS)
            )
        return self._channels[at]

    def _renew(self, at: int, silent: grpc.aio.Channel) -> None:
        """Takes another connection: a call on a new stream of the old one would wait as long."""
        at %= len(self._servers.targets)
        if self._channels.get(at) is silent:
            del self._channels[at]
            self._silent = [*self._silent[-3:], silent]  # calls that go on over older ones keep them

    async def _call(self, path: str, request: Message, response: type[_Response], effects: bool, timeout: float | None) -> _Response:
        ids = identify(request) if effects else []
        tries = Tries(self._servers, timeout if timeout is not None else self._timeout, self._attempt)
        try:
            while True:
                bound = tries.begin()
                tries.maybe, before = True, tries.maybe  # if the task is cancelled now
                channel = self._channel(tries.at)
                unary = channel.unary_unary(path, type(request).SerializeToString, response.FromString)
                try:
                    answer: _Response = await unary(request, timeout=bound, metadata=self._metadata)
                    return answer
                except grpc.aio.AioRpcError as e:
                    tries.maybe, fault = before, Fault.of(e)
                    if fault.silent:
                        self._renew(tries.at, channel)
                    await self._again(tries, fault, ids, effects)
        except asyncio.CancelledError as e:
            raise e from tries.over(KujiError("canceled", "the task was cancelled"), ids, effects)

    async def _again(self, tries: Tries, fault: Fault, ids: Sequence[str], effects: bool) -> None:
        """Waits before the next attempt, or raises the error to end with."""
        pause = tries.failed(fault)
        if pause is None:
            raise tries.over(fault.error, ids, effects)
        await asyncio.sleep(pause)
        left = tries.left()
        if left is not None and left <= 0:
            raise tries.over(fault.error, ids, effects)

    async def events(self, request: v1.StreamEventsRequest) -> AsyncIterator[v1.StreamEventsResponse]:
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
            fault = Fault(KujiError("unavailable", "the server ended the feed"))
            try:
                while isinstance(message := await asyncio.wait_for(call.read(), self._silence), v1.StreamEventsResponse):
                    tries = None
                    place.took(message)
                    yield message
            except grpc.aio.AioRpcError as e:
                fault = Fault.of(e)
            except asyncio.TimeoutError:
                fault = Fault(KujiError("deadline_exceeded", "nothing came in time"))
                self._renew(at, channel)
            finally:
                call.cancel()
            await self._again(tries or Tries(self._servers, self._timeout, None), fault, [], False)

    def draws(self, batches: Iterable[v1.StreamDrawsRequest] | AsyncIterable[v1.StreamDrawsRequest]) -> AsyncIterator[v1.StreamDrawsResponse]:
        """Sends batches of draws over a stream and yields an answer for each, in order. It goes on after a break.

        batches is read at most 16 ahead of the answers. Draws without a request id get one. It ends with an error
        when the server refuses a batch, or no answer came for the client's timeout.
        """
        return _Draws(self, batches).answers()


class _Draws:
    """A stream of draws through all its connections."""

    def __init__(self, client: AsyncClient, batches: Iterable[v1.StreamDrawsRequest] | AsyncIterable[v1.StreamDrawsRequest]) -> None:
        self._client, self._batches = client, batches
        self._changed = asyncio.Condition()
        self._open: deque[v1.StreamDrawsRequest] = deque()  # without an answer, the oldest first
        self._answered = 0  # how many before them
        self._ended = False  # no more come
        self._broken: Exception | None = None  # what batches has raised

    async def answers(self) -> AsyncIterator[v1.StreamDrawsResponse]:
        client = self._client
        reader = asyncio.ensure_future(self._read())
        call: Any = None
        sender: asyncio.Future[None] | None = None
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._open or self._ended)
                if not self._open:
                    if self._broken is not None:
                        raise self._broken
                    return
                tries = Tries(client._servers, client._timeout, client._attempt)
                answer = None
                while answer is None:
                    bound = tries.begin()
                    if call is None:
                        stream = client._channel(tries.at).stream_stream(_DRAWS, v1.StreamDrawsRequest.SerializeToString, v1.StreamDrawsResponse.FromString)
                        call = stream(metadata=client._metadata)
                        sender = asyncio.ensure_future(self._send(call))
                    fault = Fault(KujiError("unavailable", "the server ended the stream"))
                    try:
                        read = await asyncio.wait_for(call.read(), bound)
                        answer = read if read is not grpc.aio.EOF else None
                    except grpc.aio.AioRpcError as e:
                        fault = Fault.of(e)
                    except asyncio.TimeoutError:
                        fault = Fault(KujiError("deadline_exceeded", "nothing came in time"))
                        client._renew(tries.at, client._channel(tries.at))
                    if answer is None:
                        call, sender = self._end(call, sender)
                        ids = [i for batch in self._open for i in batch.request_ids]
                        await client._again(tries, fault, ids, True)
                async with self._changed:
                    self._open.popleft()
                    self._answered += 1
                    self._changed.notify_all()
                yield answer
        finally:
            reader.cancel()
            self._end(call, sender)

    @staticmethod
    def _end(call: Any, sender: asyncio.Future[None] | None) -> tuple[None, None]:
        if call is not None:
            call.cancel()
        if sender is not None:
            sender.cancel()
        return None, None

    async def _read(self) -> None:
        """Reads the batches, as long as there is room."""
        try:
            if isinstance(self._batches, AsyncIterable):
                async for batch in self._batches:
                    await self._add(batch)
            else:
                for batch in self._batches:
                    await self._add(batch)
        except Exception as e:  # of the caller's own, for the caller
            self._broken = e
        async with self._changed:
            self._ended = True
            self._changed.notify_all()

    async def _add(self, batch: v1.StreamDrawsRequest) -> None:
        identify_draws(batch)
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._open) < MAX_AHEAD)
            self._open.append(batch)
            self._changed.notify_all()

    async def _send(self, call: Any) -> None:
        """Sends all that has no answer over a connection, and what comes after it."""
        at = self._answered
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: at - self._answered < len(self._open) or self._ended)
                    if at - self._answered >= len(self._open):
                        break
                    batch = self._open[at - self._answered]
                await call.write(batch)
                at += 1
            await call.done_writing()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return  # whoever reads the answers learns why
