from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Draw(_message.Message):
    __slots__ = ("player", "pool", "count", "pay", "hold_ms", "refund")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PAY_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    player: str
    pool: str
    count: int
    pay: str
    hold_ms: int
    refund: bool
    def __init__(self, player: _Optional[str] = ..., pool: _Optional[str] = ..., count: _Optional[int] = ..., pay: _Optional[str] = ..., hold_ms: _Optional[int] = ..., refund: bool = ...) -> None: ...

class DrawRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "pool", "count", "pay", "hold_ms", "refund")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PAY_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    pool: str
    count: int
    pay: str
    hold_ms: int
    refund: bool
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., pool: _Optional[str] = ..., count: _Optional[int] = ..., pay: _Optional[str] = ..., hold_ms: _Optional[int] = ..., refund: bool = ...) -> None: ...

class DrawResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
