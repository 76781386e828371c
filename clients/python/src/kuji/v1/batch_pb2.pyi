from kuji.v1 import atomic_pb2 as _atomic_pb2
from kuji.v1 import claim_pb2 as _claim_pb2
from kuji.v1 import collect_pb2 as _collect_pb2
from kuji.v1 import draw_pb2 as _draw_pb2
from kuji.v1 import error_pb2 as _error_pb2
from kuji.v1 import grant_pb2 as _grant_pb2
from kuji.v1 import hold_pb2 as _hold_pb2
from kuji.v1 import identity_pb2 as _identity_pb2
from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import progress_pb2 as _progress_pb2
from kuji.v1 import redeem_pb2 as _redeem_pb2
from kuji.v1 import register_pb2 as _register_pb2
from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import reverse_pb2 as _reverse_pb2
from kuji.v1 import round_pb2 as _round_pb2
from kuji.v1 import set_counter_pb2 as _set_counter_pb2
from kuji.v1 import set_limit_pb2 as _set_limit_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Command(_message.Message):
    __slots__ = ("request_id", "draw", "grant", "consume", "transfer", "atomic", "redeem", "register", "set_limit", "progress", "claim", "set_counter", "collect", "open_round", "join", "settle", "reroll", "cancel_round", "confirm", "cancel", "link_code", "link", "unlink", "merge", "forget", "block", "reverse", "reason", "metadata")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DRAW_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    CONSUME_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_FIELD_NUMBER: _ClassVar[int]
    ATOMIC_FIELD_NUMBER: _ClassVar[int]
    REDEEM_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    SET_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CLAIM_FIELD_NUMBER: _ClassVar[int]
    SET_COUNTER_FIELD_NUMBER: _ClassVar[int]
    COLLECT_FIELD_NUMBER: _ClassVar[int]
    OPEN_ROUND_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    SETTLE_FIELD_NUMBER: _ClassVar[int]
    REROLL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_ROUND_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    LINK_CODE_FIELD_NUMBER: _ClassVar[int]
    LINK_FIELD_NUMBER: _ClassVar[int]
    UNLINK_FIELD_NUMBER: _ClassVar[int]
    MERGE_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    BLOCK_FIELD_NUMBER: _ClassVar[int]
    REVERSE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    draw: _draw_pb2.Draw
    grant: _grant_pb2.Grant
    consume: _grant_pb2.Consume
    transfer: _grant_pb2.Transfer
    atomic: _atomic_pb2.Atomic
    redeem: _redeem_pb2.Redeem
    register: _register_pb2.Register
    set_limit: _set_limit_pb2.SetLimit
    progress: _progress_pb2.Progress
    claim: _claim_pb2.Claim
    set_counter: _set_counter_pb2.SetCounter
    collect: _collect_pb2.Collect
    open_round: _round_pb2.OpenRound
    join: _round_pb2.Join
    settle: _round_pb2.Settle
    reroll: _round_pb2.Reroll
    cancel_round: _round_pb2.CancelRound
    confirm: _hold_pb2.Confirm
    cancel: _hold_pb2.Cancel
    link_code: _identity_pb2.LinkCode
    link: _identity_pb2.Link
    unlink: _identity_pb2.Unlink
    merge: _identity_pb2.Merge
    forget: _identity_pb2.Forget
    block: _identity_pb2.Block
    reverse: _reverse_pb2.Reverse
    reason: str
    metadata: str
    def __init__(self, request_id: _Optional[str] = ..., draw: _Optional[_Union[_draw_pb2.Draw, _Mapping]] = ..., grant: _Optional[_Union[_grant_pb2.Grant, _Mapping]] = ..., consume: _Optional[_Union[_grant_pb2.Consume, _Mapping]] = ..., transfer: _Optional[_Union[_grant_pb2.Transfer, _Mapping]] = ..., atomic: _Optional[_Union[_atomic_pb2.Atomic, _Mapping]] = ..., redeem: _Optional[_Union[_redeem_pb2.Redeem, _Mapping]] = ..., register: _Optional[_Union[_register_pb2.Register, _Mapping]] = ..., set_limit: _Optional[_Union[_set_limit_pb2.SetLimit, _Mapping]] = ..., progress: _Optional[_Union[_progress_pb2.Progress, _Mapping]] = ..., claim: _Optional[_Union[_claim_pb2.Claim, _Mapping]] = ..., set_counter: _Optional[_Union[_set_counter_pb2.SetCounter, _Mapping]] = ..., collect: _Optional[_Union[_collect_pb2.Collect, _Mapping]] = ..., open_round: _Optional[_Union[_round_pb2.OpenRound, _Mapping]] = ..., join: _Optional[_Union[_round_pb2.Join, _Mapping]] = ..., settle: _Optional[_Union[_round_pb2.Settle, _Mapping]] = ..., reroll: _Optional[_Union[_round_pb2.Reroll, _Mapping]] = ..., cancel_round: _Optional[_Union[_round_pb2.CancelRound, _Mapping]] = ..., confirm: _Optional[_Union[_hold_pb2.Confirm, _Mapping]] = ..., cancel: _Optional[_Union[_hold_pb2.Cancel, _Mapping]] = ..., link_code: _Optional[_Union[_identity_pb2.LinkCode, _Mapping]] = ..., link: _Optional[_Union[_identity_pb2.Link, _Mapping]] = ..., unlink: _Optional[_Union[_identity_pb2.Unlink, _Mapping]] = ..., merge: _Optional[_Union[_identity_pb2.Merge, _Mapping]] = ..., forget: _Optional[_Union[_identity_pb2.Forget, _Mapping]] = ..., block: _Optional[_Union[_identity_pb2.Block, _Mapping]] = ..., reverse: _Optional[_Union[_reverse_pb2.Reverse, _Mapping]] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class BatchRequest(_message.Message):
    __slots__ = ("realm", "commands")
    REALM_FIELD_NUMBER: _ClassVar[int]
    COMMANDS_FIELD_NUMBER: _ClassVar[int]
    realm: str
    commands: _containers.RepeatedCompositeFieldContainer[Command]
    def __init__(self, realm: _Optional[str] = ..., commands: _Optional[_Iterable[_Union[Command, _Mapping]]] = ...) -> None: ...

class BatchResponse(_message.Message):
    __slots__ = ("results", "receipts", "outcomes")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[BatchResult]
    receipts: _containers.RepeatedCompositeFieldContainer[_result_pb2.Receipt]
    outcomes: _containers.RepeatedCompositeFieldContainer[_result_pb2.Outcome]
    def __init__(self, results: _Optional[_Iterable[_Union[BatchResult, _Mapping]]] = ..., receipts: _Optional[_Iterable[_Union[_result_pb2.Receipt, _Mapping]]] = ..., outcomes: _Optional[_Iterable[_Union[_result_pb2.Outcome, _Mapping]]] = ...) -> None: ...

class BatchResult(_message.Message):
    __slots__ = ("status", "subject", "outcomes", "members", "replayed", "receipt", "index", "error", "outcome_draws", "paid", "redeemed", "claims", "beyond", "collected", "round", "hold", "given", "limit", "lacks")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_DRAWS_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    REDEEMED_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    status: _result_pb2.Status
    subject: str
    outcomes: _containers.RepeatedScalarFieldContainer[int]
    members: _containers.RepeatedCompositeFieldContainer[_result_pb2.Result]
    replayed: bool
    receipt: int
    index: int
    error: _error_pb2.ErrorDetail
    outcome_draws: _containers.RepeatedScalarFieldContainer[int]
    paid: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    redeemed: str
    claims: _containers.RepeatedCompositeFieldContainer[_result_pb2.Claimed]
    beyond: _containers.RepeatedCompositeFieldContainer[_result_pb2.Beyond]
    collected: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    round: _result_pb2.Round
    hold: _result_pb2.Hold
    given: _result_pb2.Given
    limit: _limit_pb2.Limit
    lacks: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Lack]
    def __init__(self, status: _Optional[_Union[_result_pb2.Status, str]] = ..., subject: _Optional[str] = ..., outcomes: _Optional[_Iterable[int]] = ..., members: _Optional[_Iterable[_Union[_result_pb2.Result, _Mapping]]] = ..., replayed: bool = ..., receipt: _Optional[int] = ..., index: _Optional[int] = ..., error: _Optional[_Union[_error_pb2.ErrorDetail, _Mapping]] = ..., outcome_draws: _Optional[_Iterable[int]] = ..., paid: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., redeemed: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[_result_pb2.Claimed, _Mapping]]] = ..., beyond: _Optional[_Iterable[_Union[_result_pb2.Beyond, _Mapping]]] = ..., collected: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., round: _Optional[_Union[_result_pb2.Round, _Mapping]] = ..., hold: _Optional[_Union[_result_pb2.Hold, _Mapping]] = ..., given: _Optional[_Union[_result_pb2.Given, _Mapping]] = ..., limit: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., lacks: _Optional[_Iterable[_Union[_limit_pb2.Lack, _Mapping]]] = ...) -> None: ...
