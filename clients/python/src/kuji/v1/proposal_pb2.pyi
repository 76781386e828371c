from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProposeCatalogRequest(_message.Message):
    __slots__ = ("realm", "yaml", "expected_version", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    yaml: bytes
    expected_version: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., yaml: _Optional[bytes] = ..., expected_version: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class ProposeCatalogResponse(_message.Message):
    __slots__ = ("proposal", "plan")
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    proposal: Proposal
    plan: _catalog_pb2.Plan
    def __init__(self, proposal: _Optional[_Union[Proposal, _Mapping]] = ..., plan: _Optional[_Union[_catalog_pb2.Plan, _Mapping]] = ...) -> None: ...

class Proposal(_message.Message):
    __slots__ = ("number", "over_version", "hash", "name", "position", "time_unix_ms", "by", "reason", "metadata", "bytes")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    number: int
    over_version: int
    hash: bytes
    name: str
    position: int
    time_unix_ms: int
    by: str
    reason: str
    metadata: str
    bytes: int
    def __init__(self, number: _Optional[int] = ..., over_version: _Optional[int] = ..., hash: _Optional[bytes] = ..., name: _Optional[str] = ..., position: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...

class ListProposalsRequest(_message.Message):
    __slots__ = ("realm",)
    REALM_FIELD_NUMBER: _ClassVar[int]
    realm: str
    def __init__(self, realm: _Optional[str] = ...) -> None: ...

class ListProposalsResponse(_message.Message):
    __slots__ = ("proposals",)
    PROPOSALS_FIELD_NUMBER: _ClassVar[int]
    proposals: _containers.RepeatedCompositeFieldContainer[Proposal]
    def __init__(self, proposals: _Optional[_Iterable[_Union[Proposal, _Mapping]]] = ...) -> None: ...

class GetProposalRequest(_message.Message):
    __slots__ = ("realm", "number")
    REALM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    realm: str
    number: int
    def __init__(self, realm: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class GetProposalResponse(_message.Message):
    __slots__ = ("proposal", "yaml", "plan")
    PROPOSAL_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    proposal: Proposal
    yaml: bytes
    plan: _catalog_pb2.Plan
    def __init__(self, proposal: _Optional[_Union[Proposal, _Mapping]] = ..., yaml: _Optional[bytes] = ..., plan: _Optional[_Union[_catalog_pb2.Plan, _Mapping]] = ...) -> None: ...

class WithdrawProposalRequest(_message.Message):
    __slots__ = ("realm", "number", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    number: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., number: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class WithdrawProposalResponse(_message.Message):
    __slots__ = ("withdrawn",)
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    withdrawn: bool
    def __init__(self, withdrawn: bool = ...) -> None: ...

class ApproveCatalogRequest(_message.Message):
    __slots__ = ("realm", "number", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    number: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., number: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class ApproveCatalogResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...
