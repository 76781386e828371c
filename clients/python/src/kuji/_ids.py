"""Request ids."""

from __future__ import annotations

import secrets
import time

from google.protobuf.message import Message

from kuji import v1

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id() -> str:
    """Returns a new request id, a ULID: its time and 80 random bits. Keep it to be able to ask later what came of
    the command."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    return "".join(_DIGITS[number >> shift & 31] for shift in range(125, -1, -5))


def identify(request: Message) -> list[str]:
    """Returns the request ids of a command or of a batch, and makes those that are missing."""
    if isinstance(request, v1.BatchRequest):
        for command in request.commands:
            command.request_id = command.request_id or new_id()
        return [command.request_id for command in request.commands]
    if "request_id" not in request.DESCRIPTOR.fields_by_name:
        return []
    made: str = getattr(request, "request_id") or new_id()
    setattr(request, "request_id", made)
    return [made]


def identify_draws(batch: v1.StreamDrawsRequest) -> None:
    """Makes the request ids that are missing in a batch of a stream."""
    draws = len(batch.player_indexes) or len(batch.players)
    ids = list(batch.request_ids) or [""] * draws
    del batch.request_ids[:]
    batch.request_ids.extend(i or new_id() for i in ids)
