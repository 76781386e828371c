from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamEventsRequest(_message.Message):
    __slots__ = ("realm", "player", "pool")
    REALM_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    realm: str
    player: str
    pool: str
    def __init__(self, realm: _Optional[str] = ..., player: _Optional[str] = ..., pool: _Optional[str] = ..., **kwargs) -> None: ...

class StreamEventsResponse(_message.Message):
    __slots__ = ("events", "next")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[Event]
    next: int
    def __init__(self, events: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., next: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("position", "index", "time_unix_ms", "kind", "request_id", "status", "subject", "limit", "lacks", "catalog_version", "player", "to", "pool", "count", "list", "number", "pay", "items", "outcomes", "paid", "track", "draws", "by", "reason", "metadata", "members", "clock", "bytes", "last", "changes", "new_catalog_version", "level", "event", "key", "counter", "value", "quest", "claims", "beyond", "round", "entrants", "due", "hold", "given", "freed", "reversed", "names", "proposal", "proposed_by", "proposed_reason")
    POSITION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PAY_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    NEW_CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    QUEST_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ENTRANTS_FIELD_NUMBER: _ClassVar[int]
    DUE_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    FREED_FIELD_NUMBER: _ClassVar[int]
    REVERSED_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_BY_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_REASON_FIELD_NUMBER: _ClassVar[int]
    position: int
    index: int
    time_unix_ms: int
    kind: str
    request_id: str
    status: _result_pb2.Status
    subject: str
    limit: _limit_pb2.Limit
    lacks: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Lack]
    catalog_version: int
    player: str
    to: str
    pool: str
    count: int
    list: str
    number: int
    pay: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    outcomes: _containers.RepeatedCompositeFieldContainer[_result_pb2.Outcome]
    paid: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    track: str
    draws: int
    by: str
    reason: str
    metadata: str
    members: _containers.RepeatedCompositeFieldContainer[Event]
    clock: EventClock
    bytes: int
    last: bool
    changes: _containers.RepeatedCompositeFieldContainer[BalanceChange]
    new_catalog_version: int
    level: int
    event: str
    key: str
    counter: str
    value: int
    quest: str
    claims: _containers.RepeatedCompositeFieldContainer[_result_pb2.Claimed]
    beyond: _containers.RepeatedCompositeFieldContainer[_result_pb2.Beyond]
    round: _result_pb2.Round
    entrants: _containers.RepeatedScalarFieldContainer[str]
    due: EventDue
    hold: _result_pb2.Hold
    given: _result_pb2.Given
    freed: _containers.RepeatedCompositeFieldContainer[Freed]
    reversed: str
    names: _containers.RepeatedScalarFieldContainer[str]
    proposal: int
    proposed_by: str
    proposed_reason: str
    def __init__(self, position: _Optional[int] = ..., index: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., kind: _Optional[str] = ..., request_id: _Optional[str] = ..., status: _Optional[_Union[_result_pb2.Status, str]] = ..., subject: _Optional[str] = ..., limit: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., lacks: _Optional[_Iterable[_Union[_limit_pb2.Lack, _Mapping]]] = ..., catalog_version: _Optional[int] = ..., player: _Optional[str] = ..., to: _Optional[str] = ..., pool: _Optional[str] = ..., count: _Optional[int] = ..., list: _Optional[str] = ..., number: _Optional[int] = ..., pay: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[_result_pb2.Outcome, _Mapping]]] = ..., paid: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., track: _Optional[str] = ..., draws: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ..., members: _Optional[_Iterable[_Union[Event, _Mapping]]] = ..., clock: _Optional[_Union[EventClock, _Mapping]] = ..., bytes: _Optional[int] = ..., last: bool = ..., changes: _Optional[_Iterable[_Union[BalanceChange, _Mapping]]] = ..., new_catalog_version: _Optional[int] = ..., level: _Optional[int] = ..., event: _Optional[str] = ..., key: _Optional[str] = ..., counter: _Optional[str] = ..., value: _Optional[int] = ..., quest: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[_result_pb2.Claimed, _Mapping]]] = ..., beyond: _Optional[_Iterable[_Union[_result_pb2.Beyond, _Mapping]]] = ..., round: _Optional[_Union[_result_pb2.Round, _Mapping]] = ..., entrants: _Optional[_Iterable[str]] = ..., due: _Optional[_Union[EventDue, _Mapping]] = ..., hold: _Optional[_Union[_result_pb2.Hold, _Mapping]] = ..., given: _Optional[_Union[_result_pb2.Given, _Mapping]] = ..., freed: _Optional[_Iterable[_Union[Freed, _Mapping]]] = ..., reversed: _Optional[str] = ..., names: _Optional[_Iterable[str]] = ..., proposal: _Optional[int] = ..., proposed_by: _Optional[str] = ..., proposed_reason: _Optional[str] = ...) -> None: ...

class EventDue(_message.Message):
    __slots__ = ("swept", "players", "counter", "period", "rank_from", "rank_count", "round", "holds")
    SWEPT_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    RANK_FROM_FIELD_NUMBER: _ClassVar[int]
    RANK_COUNT_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    swept: bool
    players: _containers.RepeatedScalarFieldContainer[str]
    counter: str
    period: int
    rank_from: int
    rank_count: int
    round: int
    holds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, swept: bool = ..., players: _Optional[_Iterable[str]] = ..., counter: _Optional[str] = ..., period: _Optional[int] = ..., rank_from: _Optional[int] = ..., rank_count: _Optional[int] = ..., round: _Optional[int] = ..., holds: _Optional[_Iterable[str]] = ...) -> None: ...

class Freed(_message.Message):
    __slots__ = ("player", "hold")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    player: str
    hold: str
    def __init__(self, player: _Optional[str] = ..., hold: _Optional[str] = ...) -> None: ...

class BalanceChange(_message.Message):
    __slots__ = ("player", "item", "delta", "balance")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    player: str
    item: str
    delta: int
    balance: int
    def __init__(self, player: _Optional[str] = ..., item: _Optional[str] = ..., delta: _Optional[int] = ..., balance: _Optional[int] = ...) -> None: ...

class EventClock(_message.Message):
    __slots__ = ("to_unix_ms", "by", "reason")
    TO_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    to_unix_ms: int
    by: str
    reason: str
    def __init__(self, to_unix_ms: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...
