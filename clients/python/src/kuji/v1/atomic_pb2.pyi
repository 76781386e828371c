from kuji.v1 import claim_pb2 as _claim_pb2
from kuji.v1 import draw_pb2 as _draw_pb2
from kuji.v1 import grant_pb2 as _grant_pb2
from kuji.v1 import progress_pb2 as _progress_pb2
from kuji.v1 import register_pb2 as _register_pb2
from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Atomic(_message.Message):
    __slots__ = ("members", "hold_ms", "refund")
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[Member]
    hold_ms: int
    refund: bool
    def __init__(self, members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("draw", "grant", "consume", "transfer", "register", "progress", "claim")
    DRAW_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    CONSUME_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    draw: _draw_pb2.Draw
    grant: _grant_pb2.Grant
    consume: _grant_pb2.Consume
    transfer: _grant_pb2.Transfer
    register: _register_pb2.Register
    progress: _progress_pb2.Progress
    claim: _claim_pb2.Claim
    def __init__(self, draw: _Optional[_Union[_draw_pb2.Draw, _Mapping]] = ..., grant: _Optional[_Union[_grant_pb2.Grant, _Mapping]] = ..., consume: _Optional[_Union[_grant_pb2.Consume, _Mapping]] = ..., transfer: _Optional[_Union[_grant_pb2.Transfer, _Mapping]] = ..., register: _Optional[_Union[_register_pb2.Register, _Mapping]] = ..., progress: _Optional[_Union[_progress_pb2.Progress, _Mapping]] = ..., claim: _Optional[_Union[_claim_pb2.Claim, _Mapping]] = ...) -> None: ...

class AtomicRequest(_message.Message):
    __slots__ = ("realm", "request_id", "members", "hold_ms", "refund", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    HOLD_MS_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    members: _containers.RepeatedCompositeFieldContainer[Member]
    hold_ms: int
    refund: bool
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., hold_ms: _Optional[int] = ..., refund: bool = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class AtomicResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
