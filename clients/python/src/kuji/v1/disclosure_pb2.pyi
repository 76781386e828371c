from kuji.v1 import odds_pb2 as _odds_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetDisclosureRequest(_message.Message):
    __slots__ = ("realm", "pool", "version", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    pool: str
    version: int
    language: str
    def __init__(self, realm: _Optional[str] = ..., pool: _Optional[str] = ..., version: _Optional[int] = ..., language: _Optional[str] = ...) -> None: ...

class GetDisclosureResponse(_message.Message):
    __slots__ = ("version", "hash", "html", "name", "language", "pools")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    HTML_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    version: int
    hash: bytes
    html: str
    name: str
    language: str
    pools: _containers.RepeatedCompositeFieldContainer[DisclosedPool]
    def __init__(self, version: _Optional[int] = ..., hash: _Optional[bytes] = ..., html: _Optional[str] = ..., name: _Optional[str] = ..., language: _Optional[str] = ..., pools: _Optional[_Iterable[_Union[DisclosedPool, _Mapping]]] = ...) -> None: ...

class DisclosedPool(_message.Message):
    __slots__ = ("id", "name", "prices", "rules", "error", "long_run_unknown", "outcomes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LONG_RUN_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    prices: _containers.RepeatedScalarFieldContainer[str]
    rules: _containers.RepeatedScalarFieldContainer[str]
    error: str
    long_run_unknown: str
    outcomes: _containers.RepeatedCompositeFieldContainer[DisclosedOutcome]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., prices: _Optional[_Iterable[str]] = ..., rules: _Optional[_Iterable[str]] = ..., error: _Optional[str] = ..., long_run_unknown: _Optional[str] = ..., outcomes: _Optional[_Iterable[_Union[DisclosedOutcome, _Mapping]]] = ...) -> None: ...

class DisclosedOutcome(_message.Message):
    __slots__ = ("pool", "entry", "name", "rarity", "rarity_name", "icon", "leads", "chance", "expected", "long_run", "requests")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RARITY_FIELD_NUMBER: _ClassVar[int]
    RARITY_NAME_FIELD_NUMBER: _ClassVar[int]
    ICON_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    CHANCE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    LONG_RUN_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    pool: str
    entry: str
    name: str
    rarity: str
    rarity_name: str
    icon: str
    leads: bool
    chance: _odds_pb2.Fraction
    expected: float
    long_run: float
    requests: _containers.RepeatedCompositeFieldContainer[DisclosedRequest]
    def __init__(self, pool: _Optional[str] = ..., entry: _Optional[str] = ..., name: _Optional[str] = ..., rarity: _Optional[str] = ..., rarity_name: _Optional[str] = ..., icon: _Optional[str] = ..., leads: bool = ..., chance: _Optional[_Union[_odds_pb2.Fraction, _Mapping]] = ..., expected: _Optional[float] = ..., long_run: _Optional[float] = ..., requests: _Optional[_Iterable[_Union[DisclosedRequest, _Mapping]]] = ...) -> None: ...

class DisclosedRequest(_message.Message):
    __slots__ = ("draws", "expected")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    draws: int
    expected: float
    def __init__(self, draws: _Optional[int] = ..., expected: _Optional[float] = ...) -> None: ...
