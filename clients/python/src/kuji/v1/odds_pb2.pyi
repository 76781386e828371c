from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetOddsRequest(_message.Message):
    __slots__ = ("realm", "pool", "player", "stale", "count")
    REALM_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    pool: str
    player: str
    stale: bool
    count: int
    def __init__(self, realm: _Optional[str] = ..., pool: _Optional[str] = ..., player: _Optional[str] = ..., stale: bool = ..., count: _Optional[int] = ...) -> None: ...

class GetOddsResponse(_message.Message):
    __slots__ = ("odds",)
    ODDS_FIELD_NUMBER: _ClassVar[int]
    odds: Odds
    def __init__(self, odds: _Optional[_Union[Odds, _Mapping]] = ...) -> None: ...

class Odds(_message.Message):
    __slots__ = ("status", "subject", "outcomes", "items", "pity", "catalog_version", "position", "count")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    PITY_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    status: _result_pb2.Status
    subject: str
    outcomes: _containers.RepeatedCompositeFieldContainer[OutcomeOdds]
    items: _containers.RepeatedCompositeFieldContainer[ItemOdds]
    pity: _containers.RepeatedCompositeFieldContainer[TrackOdds]
    catalog_version: int
    position: int
    count: int
    def __init__(self, status: _Optional[_Union[_result_pb2.Status, str]] = ..., subject: _Optional[str] = ..., outcomes: _Optional[_Iterable[_Union[OutcomeOdds, _Mapping]]] = ..., items: _Optional[_Iterable[_Union[ItemOdds, _Mapping]]] = ..., pity: _Optional[_Iterable[_Union[TrackOdds, _Mapping]]] = ..., catalog_version: _Optional[int] = ..., position: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class OutcomeOdds(_message.Message):
    __slots__ = ("pool", "entry", "chance", "expected")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    CHANCE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    pool: str
    entry: str
    chance: Fraction
    expected: Fraction
    def __init__(self, pool: _Optional[str] = ..., entry: _Optional[str] = ..., chance: _Optional[_Union[Fraction, _Mapping]] = ..., expected: _Optional[_Union[Fraction, _Mapping]] = ...) -> None: ...

class ItemOdds(_message.Message):
    __slots__ = ("item", "expected")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    item: str
    expected: Fraction
    def __init__(self, item: _Optional[str] = ..., expected: _Optional[_Union[Fraction, _Mapping]] = ...) -> None: ...

class TrackOdds(_message.Message):
    __slots__ = ("pool", "track", "draws", "certain_in", "unless")
    POOL_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_IN_FIELD_NUMBER: _ClassVar[int]
    UNLESS_FIELD_NUMBER: _ClassVar[int]
    pool: str
    track: str
    draws: int
    certain_in: int
    unless: str
    def __init__(self, pool: _Optional[str] = ..., track: _Optional[str] = ..., draws: _Optional[int] = ..., certain_in: _Optional[int] = ..., unless: _Optional[str] = ...) -> None: ...

class Fraction(_message.Message):
    __slots__ = ("exact", "value")
    EXACT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    exact: str
    value: float
    def __init__(self, exact: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
