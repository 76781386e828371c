from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Confirm(_message.Message):
    __slots__ = ("hold",)
    HOLD_FIELD_NUMBER: _ClassVar[int]
    hold: str
    def __init__(self, hold: _Optional[str] = ...) -> None: ...

class ConfirmRequest(_message.Message):
    __slots__ = ("realm", "request_id", "hold", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    hold: str
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., hold: _Optional[str] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class ConfirmResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class Cancel(_message.Message):
    __slots__ = ("hold",)
    HOLD_FIELD_NUMBER: _ClassVar[int]
    hold: str
    def __init__(self, hold: _Optional[str] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("realm", "request_id", "hold", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    hold: str
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., hold: _Optional[str] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class GetHoldRequest(_message.Message):
    __slots__ = ("realm", "hold", "stale")
    REALM_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    hold: str
    stale: bool
    def __init__(self, realm: _Optional[str] = ..., hold: _Optional[str] = ..., stale: bool = ...) -> None: ...

class GetHoldResponse(_message.Message):
    __slots__ = ("hold",)
    HOLD_FIELD_NUMBER: _ClassVar[int]
    hold: _result_pb2.Hold
    def __init__(self, hold: _Optional[_Union[_result_pb2.Hold, _Mapping]] = ...) -> None: ...

class ListHoldsRequest(_message.Message):
    __slots__ = ("realm", "player", "stale", "after_unix_ms", "after", "limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    AFTER_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    player: str
    stale: bool
    after_unix_ms: int
    after: str
    limit: int
    def __init__(self, realm: _Optional[str] = ..., player: _Optional[str] = ..., stale: bool = ..., after_unix_ms: _Optional[int] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListHoldsResponse(_message.Message):
    __slots__ = ("holds", "more")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[_result_pb2.Hold]
    more: bool
    def __init__(self, holds: _Optional[_Iterable[_Union[_result_pb2.Hold, _Mapping]]] = ..., more: bool = ...) -> None: ...
