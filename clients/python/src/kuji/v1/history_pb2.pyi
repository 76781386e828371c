from kuji.v1 import events_pb2 as _events_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetHistoryRequest(_message.Message):
    __slots__ = ("realm", "player", "pool", "item", "before", "limit", "fresh")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    realm: str
    player: str
    pool: str
    item: str
    before: EventPlace
    limit: int
    fresh: bool
    def __init__(self, realm: _Optional[str] = ..., player: _Optional[str] = ..., pool: _Optional[str] = ..., item: _Optional[str] = ..., before: _Optional[_Union[EventPlace, _Mapping]] = ..., limit: _Optional[int] = ..., fresh: bool = ...) -> None: ...

class GetHistoryResponse(_message.Message):
    __slots__ = ("events", "before", "state")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_events_pb2.Event]
    before: EventPlace
    state: HistoryState
    def __init__(self, events: _Optional[_Iterable[_Union[_events_pb2.Event, _Mapping]]] = ..., before: _Optional[_Union[EventPlace, _Mapping]] = ..., state: _Optional[_Union[HistoryState, _Mapping]] = ...) -> None: ...

class EventPlace(_message.Message):
    __slots__ = ("position", "index")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    position: int
    index: int
    def __init__(self, position: _Optional[int] = ..., index: _Optional[int] = ...) -> None: ...

class HistoryState(_message.Message):
    __slots__ = ("position", "lag", "complete_from", "kept_from", "kept_from_unix_ms", "proven_from")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FROM_FIELD_NUMBER: _ClassVar[int]
    KEPT_FROM_FIELD_NUMBER: _ClassVar[int]
    KEPT_FROM_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    PROVEN_FROM_FIELD_NUMBER: _ClassVar[int]
    position: int
    lag: int
    complete_from: int
    kept_from: int
    kept_from_unix_ms: int
    proven_from: int
    def __init__(self, position: _Optional[int] = ..., lag: _Optional[int] = ..., complete_from: _Optional[int] = ..., kept_from: _Optional[int] = ..., kept_from_unix_ms: _Optional[int] = ..., proven_from: _Optional[int] = ...) -> None: ...

class ListPlayersRequest(_message.Message):
    __slots__ = ("realm", "after", "limit", "fresh")
    REALM_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    realm: str
    after: str
    limit: int
    fresh: bool
    def __init__(self, realm: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., fresh: bool = ...) -> None: ...

class ListPlayersResponse(_message.Message):
    __slots__ = ("players", "more", "state")
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    players: _containers.RepeatedScalarFieldContainer[str]
    more: bool
    state: HistoryState
    def __init__(self, players: _Optional[_Iterable[str]] = ..., more: bool = ..., state: _Optional[_Union[HistoryState, _Mapping]] = ...) -> None: ...

class ListHoldersRequest(_message.Message):
    __slots__ = ("realm", "item", "after", "limit", "fresh")
    REALM_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    FRESH_FIELD_NUMBER: _ClassVar[int]
    realm: str
    item: str
    after: str
    limit: int
    fresh: bool
    def __init__(self, realm: _Optional[str] = ..., item: _Optional[str] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ..., fresh: bool = ...) -> None: ...

class ListHoldersResponse(_message.Message):
    __slots__ = ("holders", "more", "state")
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    holders: _containers.RepeatedCompositeFieldContainer[Holder]
    more: bool
    state: HistoryState
    def __init__(self, holders: _Optional[_Iterable[_Union[Holder, _Mapping]]] = ..., more: bool = ..., state: _Optional[_Union[HistoryState, _Mapping]] = ...) -> None: ...

class Holder(_message.Message):
    __slots__ = ("player", "quantity")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    player: str
    quantity: int
    def __init__(self, player: _Optional[str] = ..., quantity: _Optional[int] = ...) -> None: ...
