from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListSlowRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListSlowResponse(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[SlowCall]
    def __init__(self, calls: _Optional[_Iterable[_Union[SlowCall, _Mapping]]] = ...) -> None: ...

class SlowCall(_message.Message):
    __slots__ = ("method", "realm", "key", "time_unix_ms", "took_us", "code", "request_bytes")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REALM_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    TOOK_US_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_BYTES_FIELD_NUMBER: _ClassVar[int]
    method: str
    realm: str
    key: str
    time_unix_ms: int
    took_us: int
    code: str
    request_bytes: int
    def __init__(self, method: _Optional[str] = ..., realm: _Optional[str] = ..., key: _Optional[str] = ..., time_unix_ms: _Optional[int] = ..., took_us: _Optional[int] = ..., code: _Optional[str] = ..., request_bytes: _Optional[int] = ...) -> None: ...
