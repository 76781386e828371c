from kuji.v1 import error_pb2 as _error_pb2
from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamDrawsRequest(_message.Message):
    __slots__ = ("realm", "players", "player_indexes", "pools", "pool_indexes", "counts", "request_ids", "pay")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    PLAYER_INDEXES_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    POOL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_IDS_FIELD_NUMBER: _ClassVar[int]
    PAY_FIELD_NUMBER: _ClassVar[int]
    realm: str
    players: _containers.RepeatedScalarFieldContainer[str]
    player_indexes: _containers.RepeatedScalarFieldContainer[int]
    pools: _containers.RepeatedScalarFieldContainer[str]
    pool_indexes: _containers.RepeatedScalarFieldContainer[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    request_ids: _containers.RepeatedScalarFieldContainer[str]
    pay: str
    def __init__(self, realm: _Optional[str] = ..., players: _Optional[_Iterable[str]] = ..., player_indexes: _Optional[_Iterable[int]] = ..., pools: _Optional[_Iterable[str]] = ..., pool_indexes: _Optional[_Iterable[int]] = ..., counts: _Optional[_Iterable[int]] = ..., request_ids: _Optional[_Iterable[str]] = ..., pay: _Optional[str] = ...) -> None: ...

class StreamDrawsResponse(_message.Message):
    __slots__ = ("runs", "outcome_indexes", "outcomes", "receipts", "outcome_counts", "outcome_draws", "claims")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_INDEXES_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_COUNTS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_DRAWS_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[DrawRun]
    outcome_indexes: _containers.RepeatedScalarFieldContainer[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[_result_pb2.Outcome]
    receipts: _containers.RepeatedCompositeFieldContainer[_result_pb2.Receipt]
    outcome_counts: _containers.RepeatedScalarFieldContainer[int]
    outcome_draws: _containers.RepeatedScalarFieldContainer[int]
    claims: _containers.RepeatedCompositeFieldContainer[DrawClaim]
    def __init__(self, runs: _Optional[_Iterable[_Union[DrawRun, _Mapping]]] = ..., outcome_indexes: _Optional[_Iterable[int]] = ..., outcomes: _Optional[_Iterable[_Union[_result_pb2.Outcome, _Mapping]]] = ..., receipts: _Optional[_Iterable[_Union[_result_pb2.Receipt, _Mapping]]] = ..., outcome_counts: _Optional[_Iterable[int]] = ..., outcome_draws: _Optional[_Iterable[int]] = ..., claims: _Optional[_Iterable[_Union[DrawClaim, _Mapping]]] = ...) -> None: ...

class DrawClaim(_message.Message):
    __slots__ = ("draw", "claimed")
    DRAW_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    draw: int
    claimed: _result_pb2.Claimed
    def __init__(self, draw: _Optional[int] = ..., claimed: _Optional[_Union[_result_pb2.Claimed, _Mapping]] = ...) -> None: ...

class DrawRun(_message.Message):
    __slots__ = ("draws", "status", "subject", "replayed", "receipt", "index", "error", "paid", "beyond", "limit", "lacks")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    draws: int
    status: _result_pb2.Status
    subject: str
    replayed: bool
    receipt: int
    index: int
    error: _error_pb2.ErrorDetail
    paid: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    beyond: _containers.RepeatedCompositeFieldContainer[_result_pb2.Beyond]
    limit: _limit_pb2.Limit
    lacks: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Lack]
    def __init__(self, draws: _Optional[int] = ..., status: _Optional[_Union[_result_pb2.Status, str]] = ..., subject: _Optional[str] = ..., replayed: bool = ..., receipt: _Optional[int] = ..., index: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.ErrorDetail, _Mapping]] = ..., paid: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., beyond: _Optional[_Iterable[_Union[_result_pb2.Beyond, _Mapping]]] = ..., limit: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., lacks: _Optional[_Iterable[_Union[_limit_pb2.Lack, _Mapping]]] = ...) -> None: ...
