from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListRanksRequest(_message.Message):
    __slots__ = ("realm", "counter", "stale", "ended", "around", "rank_from", "rank_limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    AROUND_FIELD_NUMBER: _ClassVar[int]
    RANK_FROM_FIELD_NUMBER: _ClassVar[int]
    RANK_LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    counter: str
    stale: bool
    ended: bool
    around: str
    rank_from: int
    rank_limit: int
    def __init__(self, realm: _Optional[str] = ..., counter: _Optional[str] = ..., stale: bool = ..., ended: bool = ..., around: _Optional[str] = ..., rank_from: _Optional[int] = ..., rank_limit: _Optional[int] = ...) -> None: ...

class ListRanksResponse(_message.Message):
    __slots__ = ("ranks", "rank_count", "ends_unix_ms", "position")
    RANKS_FIELD_NUMBER: _ClassVar[int]
    RANK_COUNT_FIELD_NUMBER: _ClassVar[int]
    ENDS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ranks: _containers.RepeatedCompositeFieldContainer[Rank]
    rank_count: int
    ends_unix_ms: int
    position: int
    def __init__(self, ranks: _Optional[_Iterable[_Union[Rank, _Mapping]]] = ..., rank_count: _Optional[int] = ..., ends_unix_ms: _Optional[int] = ..., position: _Optional[int] = ...) -> None: ...

class Rank(_message.Message):
    __slots__ = ("rank", "player", "value")
    RANK_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    rank: int
    player: str
    value: int
    def __init__(self, rank: _Optional[int] = ..., player: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
