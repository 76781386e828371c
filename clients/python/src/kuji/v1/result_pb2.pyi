from kuji.v1 import limit_pb2 as _limit_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STATUS_UNSPECIFIED: _ClassVar[Status]
    STATUS_OK: _ClassVar[Status]
    STATUS_SOLD_OUT: _ClassVar[Status]
    STATUS_LIMIT_REACHED: _ClassVar[Status]
    STATUS_INSUFFICIENT_ITEMS: _ClassVar[Status]
    STATUS_NOT_STARTED: _ClassVar[Status]
    STATUS_ENDED: _ClassVar[Status]
    STATUS_COUNT_TOO_LARGE: _ClassVar[Status]
    STATUS_BALANCE_OVERFLOW: _ClassVar[Status]
    STATUS_ABORTED: _ClassVar[Status]
    STATUS_NOT_ELIGIBLE: _ClassVar[Status]
    STATUS_PRICE_NOT_OFFERED: _ClassVar[Status]
    STATUS_UNKNOWN_CODE: _ClassVar[Status]
    STATUS_CODE_EXPIRED: _ClassVar[Status]
    STATUS_CODE_USED_UP: _ClassVar[Status]
    STATUS_CODE_REDEEMED: _ClassVar[Status]
    STATUS_TOO_MANY_GUESSES: _ClassVar[Status]
    STATUS_CODE_REQUIRED: _ClassVar[Status]
    STATUS_NOT_REACHED: _ClassVar[Status]
    STATUS_ALREADY_CLAIMED: _ClassVar[Status]
    STATUS_REWARD_UNAVAILABLE: _ClassVar[Status]
    STATUS_TOO_MANY_LOTS: _ClassVar[Status]
    STATUS_MOST_REACHED: _ClassVar[Status]
    STATUS_MAILBOX_FULL: _ClassVar[Status]
    STATUS_NOTHING_TO_COLLECT: _ClassVar[Status]
    STATUS_UNKNOWN_ROUND: _ClassVar[Status]
    STATUS_ROUND_CLOSED: _ClassVar[Status]
    STATUS_ALREADY_JOINED: _ClassVar[Status]
    STATUS_ROUND_FULL: _ClassVar[Status]
    STATUS_WRONG_STAKE: _ClassVar[Status]
    STATUS_ALREADY_OPEN: _ClassVar[Status]
    STATUS_TOO_MANY_ROUNDS: _ClassVar[Status]
    STATUS_NOBODY_LEFT: _ClassVar[Status]
    STATUS_UNKNOWN_HOLD: _ClassVar[Status]
    STATUS_HOLD_ENDED: _ClassVar[Status]
    STATUS_TOO_MANY_HOLDS: _ClassVar[Status]
    STATUS_UNKNOWN_REQUEST: _ClassVar[Status]
    STATUS_NOT_REVERSIBLE: _ClassVar[Status]
    STATUS_ALREADY_REVERSED: _ClassVar[Status]
    STATUS_BLOCKED: _ClassVar[Status]
    STATUS_UNKNOWN_PLAYER: _ClassVar[Status]
    STATUS_ALREADY_LINKED: _ClassVar[Status]
    STATUS_UNKNOWN_LINK_CODE: _ClassVar[Status]
    STATUS_NOT_LINKED: _ClassVar[Status]
    STATUS_MERGE_NEEDED: _ClassVar[Status]
    STATUS_TOO_MANY_ALIASES: _ClassVar[Status]
    STATUS_LINK_CODE_TAKEN: _ClassVar[Status]
    STATUS_FORGOTTEN: _ClassVar[Status]
    STATUS_REFUSED: _ClassVar[Status]

class RoundState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROUND_STATE_UNSPECIFIED: _ClassVar[RoundState]
    ROUND_STATE_OPEN: _ClassVar[RoundState]
    ROUND_STATE_SETTLED: _ClassVar[RoundState]
    ROUND_STATE_RETURNED: _ClassVar[RoundState]

class HoldState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOLD_STATE_UNSPECIFIED: _ClassVar[HoldState]
    HOLD_STATE_OPEN: _ClassVar[HoldState]
    HOLD_STATE_CONFIRMED: _ClassVar[HoldState]
    HOLD_STATE_CANCELLED: _ClassVar[HoldState]
    HOLD_STATE_EXPIRED: _ClassVar[HoldState]
STATUS_UNSPECIFIED: Status
STATUS_OK: Status
STATUS_SOLD_OUT: Status
STATUS_LIMIT_REACHED: Status
STATUS_INSUFFICIENT_ITEMS: Status
STATUS_NOT_STARTED: Status
STATUS_ENDED: Status
STATUS_COUNT_TOO_LARGE: Status
STATUS_BALANCE_OVERFLOW: Status
STATUS_ABORTED: Status
STATUS_NOT_ELIGIBLE: Status
STATUS_PRICE_NOT_OFFERED: Status
STATUS_UNKNOWN_CODE: Status
STATUS_CODE_EXPIRED: Status
STATUS_CODE_USED_UP: Status
STATUS_CODE_REDEEMED: Status
STATUS_TOO_MANY_GUESSES: Status
STATUS_CODE_REQUIRED: Status
STATUS_NOT_REACHED: Status
STATUS_ALREADY_CLAIMED: Status
STATUS_REWARD_UNAVAILABLE: Status
STATUS_TOO_MANY_LOTS: Status
STATUS_MOST_REACHED: Status
STATUS_MAILBOX_FULL: Status
STATUS_NOTHING_TO_COLLECT: Status
STATUS_UNKNOWN_ROUND: Status
STATUS_ROUND_CLOSED: Status
STATUS_ALREADY_JOINED: Status
STATUS_ROUND_FULL: Status
STATUS_WRONG_STAKE: Status
STATUS_ALREADY_OPEN: Status
STATUS_TOO_MANY_ROUNDS: Status
STATUS_NOBODY_LEFT: Status
STATUS_UNKNOWN_HOLD: Status
STATUS_HOLD_ENDED: Status
STATUS_TOO_MANY_HOLDS: Status
STATUS_UNKNOWN_REQUEST: Status
STATUS_NOT_REVERSIBLE: Status
STATUS_ALREADY_REVERSED: Status
STATUS_BLOCKED: Status
STATUS_UNKNOWN_PLAYER: Status
STATUS_ALREADY_LINKED: Status
STATUS_UNKNOWN_LINK_CODE: Status
STATUS_NOT_LINKED: Status
STATUS_MERGE_NEEDED: Status
STATUS_TOO_MANY_ALIASES: Status
STATUS_LINK_CODE_TAKEN: Status
STATUS_FORGOTTEN: Status
STATUS_REFUSED: Status
ROUND_STATE_UNSPECIFIED: RoundState
ROUND_STATE_OPEN: RoundState
ROUND_STATE_SETTLED: RoundState
ROUND_STATE_RETURNED: RoundState
HOLD_STATE_UNSPECIFIED: HoldState
HOLD_STATE_OPEN: HoldState
HOLD_STATE_CONFIRMED: HoldState
HOLD_STATE_CANCELLED: HoldState
HOLD_STATE_EXPIRED: HoldState

class Stack(_message.Message):
    __slots__ = ("item", "quantity")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    item: str
    quantity: int
    def __init__(self, item: _Optional[str] = ..., quantity: _Optional[int] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("entry", "items", "via", "draw", "codes")
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    DRAW_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    entry: str
    items: _containers.RepeatedCompositeFieldContainer[Stack]
    via: _containers.RepeatedScalarFieldContainer[str]
    draw: int
    codes: _containers.RepeatedCompositeFieldContainer[RewardCode]
    def __init__(self, entry: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., via: _Optional[_Iterable[str]] = ..., draw: _Optional[int] = ..., codes: _Optional[_Iterable[_Union[RewardCode, _Mapping]]] = ...) -> None: ...

class RewardCode(_message.Message):
    __slots__ = ("list", "number", "code")
    LIST_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    list: str
    number: int
    code: str
    def __init__(self, list: _Optional[str] = ..., number: _Optional[int] = ..., code: _Optional[str] = ...) -> None: ...

class Beyond(_message.Message):
    __slots__ = ("item", "quantity", "how", "player")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    HOW_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    item: str
    quantity: int
    how: str
    player: str
    def __init__(self, item: _Optional[str] = ..., quantity: _Optional[int] = ..., how: _Optional[str] = ..., player: _Optional[str] = ...) -> None: ...

class Claimed(_message.Message):
    __slots__ = ("quest", "tier", "player", "items", "via", "codes", "counter", "rank", "missed", "place", "value")
    QUEST_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    VIA_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    quest: str
    tier: int
    player: str
    items: _containers.RepeatedCompositeFieldContainer[Stack]
    via: _containers.RepeatedScalarFieldContainer[str]
    codes: _containers.RepeatedCompositeFieldContainer[RewardCode]
    counter: str
    rank: int
    missed: bool
    place: int
    value: int
    def __init__(self, quest: _Optional[str] = ..., tier: _Optional[int] = ..., player: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., via: _Optional[_Iterable[str]] = ..., codes: _Optional[_Iterable[_Union[RewardCode, _Mapping]]] = ..., counter: _Optional[str] = ..., rank: _Optional[int] = ..., missed: bool = ..., place: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...

class Receipt(_message.Message):
    __slots__ = ("realm", "position", "index", "time_unix_ms", "catalog_version", "epoch", "commitment")
    REALM_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    position: int
    index: int
    time_unix_ms: int
    catalog_version: int
    epoch: int
    commitment: bytes
    def __init__(self, realm: _Optional[str] = ..., position: _Optional[int] = ..., index: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., catalog_version: _Optional[int] = ..., epoch: _Optional[int] = ..., commitment: _Optional[bytes] = ...) -> None: ...

class Round(_message.Message):
    __slots__ = ("round", "number", "state", "entrants", "tickets", "winners", "opener", "opened_unix_ms", "until_unix_ms")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ENTRANTS_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    WINNERS_FIELD_NUMBER: _ClassVar[int]
    OPENER_FIELD_NUMBER: _ClassVar[int]
    OPENED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    round: str
    number: int
    state: RoundState
    entrants: int
    tickets: int
    winners: _containers.RepeatedCompositeFieldContainer[Winner]
    opener: str
    opened_unix_ms: int
    until_unix_ms: int
    def __init__(self, round: _Optional[str] = ..., number: _Optional[int] = ..., state: _Optional[_Union[RoundState, str]] = ..., entrants: _Optional[int] = ..., tickets: _Optional[int] = ..., winners: _Optional[_Iterable[_Union[Winner, _Mapping]]] = ..., opener: _Optional[str] = ..., opened_unix_ms: _Optional[int] = ..., until_unix_ms: _Optional[int] = ...) -> None: ...

class Winner(_message.Message):
    __slots__ = ("player", "missed")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    player: str
    missed: bool
    def __init__(self, player: _Optional[str] = ..., missed: bool = ...) -> None: ...

class Hold(_message.Message):
    __slots__ = ("hold", "state", "refund", "asked_unix_ms", "until_unix_ms", "ended_unix_ms", "by", "parts")
    HOLD_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REFUND_FIELD_NUMBER: _ClassVar[int]
    ASKED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    hold: str
    state: HoldState
    refund: bool
    asked_unix_ms: int
    until_unix_ms: int
    ended_unix_ms: int
    by: str
    parts: _containers.RepeatedCompositeFieldContainer[HeldPart]
    def __init__(self, hold: _Optional[str] = ..., state: _Optional[_Union[HoldState, str]] = ..., refund: bool = ..., asked_unix_ms: _Optional[int] = ..., until_unix_ms: _Optional[int] = ..., ended_unix_ms: _Optional[int] = ..., by: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[HeldPart, _Mapping]]] = ...) -> None: ...

class HeldPart(_message.Message):
    __slots__ = ("kind", "player", "to", "pool", "draws", "takes", "gives", "codes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    TAKES_FIELD_NUMBER: _ClassVar[int]
    GIVES_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    player: str
    to: str
    pool: str
    draws: int
    takes: _containers.RepeatedCompositeFieldContainer[Stack]
    gives: _containers.RepeatedCompositeFieldContainer[Stack]
    codes: int
    def __init__(self, kind: _Optional[str] = ..., player: _Optional[str] = ..., to: _Optional[str] = ..., pool: _Optional[str] = ..., draws: _Optional[int] = ..., takes: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., gives: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., codes: _Optional[int] = ...) -> None: ...

class Given(_message.Message):
    __slots__ = ("items", "codes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Stack]
    codes: _containers.RepeatedCompositeFieldContainer[RewardCode]
    def __init__(self, items: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., codes: _Optional[_Iterable[_Union[RewardCode, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("status", "subject", "outcomes", "members", "replayed", "receipt", "paid", "redeemed", "claims", "beyond", "collected", "round", "hold", "given", "limit", "lacks")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
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
    status: Status
    subject: str
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    members: _containers.RepeatedCompositeFieldContainer[Result]
    replayed: bool
    receipt: Receipt
    paid: _containers.RepeatedCompositeFieldContainer[Stack]
    redeemed: str
    claims: _containers.RepeatedCompositeFieldContainer[Claimed]
    beyond: _containers.RepeatedCompositeFieldContainer[Beyond]
    collected: _containers.RepeatedCompositeFieldContainer[Stack]
    round: Round
    hold: Hold
    given: Given
    limit: _limit_pb2.Limit
    lacks: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Lack]
    def __init__(self, status: _Optional[_Union[Status, str]] = ..., subject: _Optional[str] = ..., outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ..., members: _Optional[_Iterable[_Union[Result, _Mapping]]] = ..., replayed: bool = ..., receipt: _Optional[_Union[Receipt, _Mapping]] = ..., paid: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., redeemed: _Optional[str] = ..., claims: _Optional[_Iterable[_Union[Claimed, _Mapping]]] = ..., beyond: _Optional[_Iterable[_Union[Beyond, _Mapping]]] = ..., collected: _Optional[_Iterable[_Union[Stack, _Mapping]]] = ..., round: _Optional[_Union[Round, _Mapping]] = ..., hold: _Optional[_Union[Hold, _Mapping]] = ..., given: _Optional[_Union[Given, _Mapping]] = ..., limit: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., lacks: _Optional[_Iterable[_Union[_limit_pb2.Lack, _Mapping]]] = ...) -> None: ...
