from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Seen(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEEN_UNSPECIFIED: _ClassVar[Seen]
    SEEN_NOT_SEEN: _ClassVar[Seen]
    SEEN_ANSWERED: _ClassVar[Seen]
    SEEN_MAYBE_FORGOTTEN: _ClassVar[Seen]
SEEN_UNSPECIFIED: Seen
SEEN_NOT_SEEN: Seen
SEEN_ANSWERED: Seen
SEEN_MAYBE_FORGOTTEN: Seen

class GetResultRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "stale")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    stale: bool
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., stale: bool = ...) -> None: ...

class GetResultResponse(_message.Message):
    __slots__ = ("seen", "result", "player", "forgotten_before_unix_ms")
    SEEN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_BEFORE_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    seen: Seen
    result: _result_pb2.Result
    player: str
    forgotten_before_unix_ms: int
    def __init__(self, seen: _Optional[_Union[Seen, str]] = ..., result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ..., player: _Optional[str] = ..., forgotten_before_unix_ms: _Optional[int] = ...) -> None: ...
