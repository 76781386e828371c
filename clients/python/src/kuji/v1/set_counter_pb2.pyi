from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SetCounter(_message.Message):
    __slots__ = ("player", "counter", "value")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    player: str
    counter: str
    value: int
    def __init__(self, player: _Optional[str] = ..., counter: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...

class SetCounterRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "counter", "value", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    counter: str
    value: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., counter: _Optional[str] = ..., value: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class SetCounterResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
