from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SetLimit(_message.Message):
    __slots__ = ("player", "pool", "per", "window_ms", "used")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    player: str
    pool: str
    per: _limit_pb2.LimitPeriod
    window_ms: int
    used: int
    def __init__(self, player: _Optional[str] = ..., pool: _Optional[str] = ..., per: _Optional[_Union[_limit_pb2.LimitPeriod, str]] = ..., window_ms: _Optional[int] = ..., used: _Optional[int] = ...) -> None: ...

class SetLimitRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "pool", "per", "window_ms", "used", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    pool: str
    per: _limit_pb2.LimitPeriod
    window_ms: int
    used: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., pool: _Optional[str] = ..., per: _Optional[_Union[_limit_pb2.LimitPeriod, str]] = ..., window_ms: _Optional[int] = ..., used: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class SetLimitResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
