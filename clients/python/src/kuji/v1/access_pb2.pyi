from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetAccessRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetAccessResponse(_message.Message):
    __slots__ = ("access", "version", "features")
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    access: Access
    version: str
    features: Features
    def __init__(self, access: _Optional[_Union[Access, _Mapping]] = ..., version: _Optional[str] = ..., features: _Optional[_Union[Features, _Mapping]] = ...) -> None: ...

class Access(_message.Message):
    __slots__ = ("name", "commands", "realms", "pools", "player", "rate", "grants", "ids_optional", "expires_unix_ms", "issuer")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    REALMS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    IDS_OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    ISSUER_FIELD_NUMBER: _ClassVar[int]
    name: str
    commands: _containers.RepeatedScalarFieldContainer[str]
    realms: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    player: str
    rate: int
    grants: _containers.RepeatedCompositeFieldContainer[GrantCap]
    ids_optional: bool
    expires_unix_ms: int
    issuer: bool
    def __init__(self, name: _Optional[str] = ..., commands: _Optional[_Iterable[str]] = ..., realms: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ..., player: _Optional[str] = ..., rate: _Optional[int] = ..., grants: _Optional[_Iterable[_Union[GrantCap, _Mapping]]] = ..., ids_optional: bool = ..., expires_unix_ms: _Optional[int] = ..., issuer: bool = ...) -> None: ...

class GrantCap(_message.Message):
    __slots__ = ("item", "request", "day")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    DAY_FIELD_NUMBER: _ClassVar[int]
    item: str
    request: int
    day: int
    def __init__(self, item: _Optional[str] = ..., request: _Optional[int] = ..., day: _Optional[int] = ...) -> None: ...

class Features(_message.Message):
    __slots__ = ("history", "cluster", "chat", "simulate", "test_clock")
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    SIMULATE_FIELD_NUMBER: _ClassVar[int]
    TEST_CLOCK_FIELD_NUMBER: _ClassVar[int]
    history: bool
    cluster: bool
    chat: bool
    simulate: bool
    test_clock: bool
    def __init__(self, history: bool = ..., cluster: bool = ..., chat: bool = ..., simulate: bool = ..., test_clock: bool = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[Access]
    def __init__(self, keys: _Optional[_Iterable[_Union[Access, _Mapping]]] = ...) -> None: ...
