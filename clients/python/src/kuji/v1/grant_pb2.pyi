from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Grant(_message.Message):
    __slots__ = ("player", "items")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    player: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, player: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class Consume(_message.Message):
    __slots__ = ("player", "items", "hold_ms", "refund")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    player: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    hold_ms: int
    refund: bool
    def __init__(self, player: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ...) -> None: ...

class Transfer(_message.Message):
    __slots__ = ("to", "items", "hold_ms", "refund")
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    to: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    hold_ms: int
    refund: bool
    def __init__(self, to: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ..., **kwargs) -> None: ...

class GrantRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "items", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class GrantResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class ConsumeRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "items", "hold_ms", "refund", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    hold_ms: int
    refund: bool
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class ConsumeResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class TransferRequest(_message.Message):
    __slots__ = ("realm", "request_id", "to", "items", "hold_ms", "refund", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    to: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    hold_ms: int
    refund: bool
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., to: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ..., **kwargs) -> None: ...

class TransferResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
