from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import shown_pb2 as _shown_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Spread(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPREAD_UNSPECIFIED: _ClassVar[Spread]
    SPREAD_EVEN: _ClassVar[Spread]
    SPREAD_SLOTS: _ClassVar[Spread]
    SPREAD_RANDOM: _ClassVar[Spread]

class PoolMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POOL_MODE_UNSPECIFIED: _ClassVar[PoolMode]
    POOL_MODE_WEIGHTED: _ClassVar[PoolMode]
    POOL_MODE_RAFFLE: _ClassVar[PoolMode]
    POOL_MODE_EACH: _ClassVar[PoolMode]
SPREAD_UNSPECIFIED: Spread
SPREAD_EVEN: Spread
SPREAD_SLOTS: Spread
SPREAD_RANDOM: Spread
POOL_MODE_UNSPECIFIED: PoolMode
POOL_MODE_WEIGHTED: PoolMode
POOL_MODE_RAFFLE: PoolMode
POOL_MODE_EACH: PoolMode

class GetPoolRequest(_message.Message):
    __slots__ = ("realm", "pool", "stale", "entry_offset", "entry_limit", "player", "names", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    ENTRY_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENTRY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    pool: str
    stale: bool
    entry_offset: int
    entry_limit: int
    player: str
    names: bool
    language: str
    def __init__(self, realm: _Optional[str] = ..., pool: _Optional[str] = ..., stale: bool = ..., entry_offset: _Optional[int] = ..., entry_limit: _Optional[int] = ..., player: _Optional[str] = ..., names: bool = ..., language: _Optional[str] = ...) -> None: ...

class GetPoolResponse(_message.Message):
    __slots__ = ("pool", "player_limits", "player_free", "items")
    POOL_FIELD_NUMBER: _ClassVar[int]
    PLAYER_LIMITS_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FREE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    pool: Pool
    player_limits: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Limit]
    player_free: _limit_pb2.Limit
    items: _containers.RepeatedCompositeFieldContainer[_catalog_pb2.Item]
    def __init__(self, pool: _Optional[_Union[Pool, _Mapping]] = ..., player_limits: _Optional[_Iterable[_Union[_limit_pb2.Limit, _Mapping]]] = ..., player_free: _Optional[_Union[_limit_pb2.Limit, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_catalog_pb2.Item, _Mapping]]] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("id", "name", "mode", "prices", "starts_unix_ms", "ends_unix_ms", "max_count", "limits", "entries", "entry_count", "weight_scale", "total_weight", "catalog_version", "position", "bundles", "free", "internal", "memoryless", "when", "rolls", "pity", "guarantees", "last", "refill", "budgets", "redeem", "price_by", "display")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    STARTS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    ENDS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_COUNT_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    ENTRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_SCALE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    BUNDLES_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_FIELD_NUMBER: _ClassVar[int]
    MEMORYLESS_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    ROLLS_FIELD_NUMBER: _ClassVar[int]
    PITY_FIELD_NUMBER: _ClassVar[int]
    GUARANTEES_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    REFILL_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    REDEEM_FIELD_NUMBER: _ClassVar[int]
    PRICE_BY_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    mode: PoolMode
    prices: _containers.RepeatedCompositeFieldContainer[Price]
    starts_unix_ms: int
    ends_unix_ms: int
    max_count: int
    limits: _containers.RepeatedCompositeFieldContainer[PlayerLimit]
    entries: _containers.RepeatedCompositeFieldContainer[Entry]
    entry_count: int
    weight_scale: int
    total_weight: int
    catalog_version: int
    position: int
    bundles: _containers.RepeatedCompositeFieldContainer[Bundle]
    free: PlayerLimit
    internal: bool
    memoryless: bool
    when: Condition
    rolls: Rolls
    pity: _containers.RepeatedCompositeFieldContainer[Track]
    guarantees: _containers.RepeatedCompositeFieldContainer[Guarantee]
    last: Reward
    refill: int
    budgets: _containers.RepeatedCompositeFieldContainer[Budget]
    redeem: _containers.RepeatedCompositeFieldContainer[RedeemTerms]
    price_by: PriceBy
    display: _shown_pb2.Display
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., mode: _Optional[_Union[PoolMode, str]] = ..., prices: _Optional[_Iterable[_Union[Price, _Mapping]]] = ..., starts_unix_ms: _Optional[int] = ..., ends_unix_ms: _Optional[int] = ..., max_count: _Optional[int] = ..., limits: _Optional[_Iterable[_Union[PlayerLimit, _Mapping]]] = ..., entries: _Optional[_Iterable[_Union[Entry, _Mapping]]] = ..., entry_count: _Optional[int] = ..., weight_scale: _Optional[int] = ..., total_weight: _Optional[int] = ..., catalog_version: _Optional[int] = ..., position: _Optional[int] = ..., bundles: _Optional[_Iterable[_Union[Bundle, _Mapping]]] = ..., free: _Optional[_Union[PlayerLimit, _Mapping]] = ..., internal: bool = ..., memoryless: bool = ..., when: _Optional[_Union[Condition, _Mapping]] = ..., rolls: _Optional[_Union[Rolls, _Mapping]] = ..., pity: _Optional[_Iterable[_Union[Track, _Mapping]]] = ..., guarantees: _Optional[_Iterable[_Union[Guarantee, _Mapping]]] = ..., last: _Optional[_Union[Reward, _Mapping]] = ..., refill: _Optional[int] = ..., budgets: _Optional[_Iterable[_Union[Budget, _Mapping]]] = ..., redeem: _Optional[_Iterable[_Union[RedeemTerms, _Mapping]]] = ..., price_by: _Optional[_Union[PriceBy, _Mapping]] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ...) -> None: ...

class RedeemTerms(_message.Message):
    __slots__ = ("list", "times", "uses", "until_unix_ms")
    LIST_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    UNTIL_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    list: str
    times: int
    uses: int
    until_unix_ms: int
    def __init__(self, list: _Optional[str] = ..., times: _Optional[int] = ..., uses: _Optional[int] = ..., until_unix_ms: _Optional[int] = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("per", "share", "item", "limit", "spent", "left", "resets_unix_ms")
    PER_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RESETS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    per: _limit_pb2.LimitPeriod
    share: str
    item: str
    limit: int
    spent: int
    left: int
    resets_unix_ms: int
    def __init__(self, per: _Optional[_Union[_limit_pb2.LimitPeriod, str]] = ..., share: _Optional[str] = ..., item: _Optional[str] = ..., limit: _Optional[int] = ..., spent: _Optional[int] = ..., left: _Optional[int] = ..., resets_unix_ms: _Optional[int] = ...) -> None: ...

class Moments(_message.Message):
    __slots__ = ("count", "spread", "weights", "come", "waiting", "next_unix_ms")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    PASS_FIELD_NUMBER: _ClassVar[int]
    COME_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    NEXT_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    count: int
    spread: Spread
    weights: _containers.RepeatedCompositeFieldContainer[TimeWeight]
    come: int
    waiting: int
    next_unix_ms: int
    def __init__(self, count: _Optional[int] = ..., spread: _Optional[_Union[Spread, str]] = ..., weights: _Optional[_Iterable[_Union[TimeWeight, _Mapping]]] = ..., come: _Optional[int] = ..., waiting: _Optional[int] = ..., next_unix_ms: _Optional[int] = ..., **kwargs) -> None: ...

class TimeWeight(_message.Message):
    __slots__ = ("when", "weight")
    WHEN_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    when: str
    weight: int
    def __init__(self, when: _Optional[str] = ..., weight: _Optional[int] = ...) -> None: ...

class Price(_message.Message):
    __slots__ = ("items",)
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class Bundle(_message.Message):
    __slots__ = ("draws", "items")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    draws: int
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, draws: _Optional[int] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class PriceBy(_message.Message):
    __slots__ = ("counter", "steps")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    counter: str
    steps: _containers.RepeatedCompositeFieldContainer[PriceStep]
    def __init__(self, counter: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[PriceStep, _Mapping]]] = ...) -> None: ...

class PriceStep(_message.Message):
    __slots__ = ("items",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., **kwargs) -> None: ...

class Rolls(_message.Message):
    __slots__ = ("min", "max", "distinct")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    DISTINCT_FIELD_NUMBER: _ClassVar[int]
    min: int
    max: int
    distinct: bool
    def __init__(self, min: _Optional[int] = ..., max: _Optional[int] = ..., distinct: bool = ...) -> None: ...

class Condition(_message.Message):
    __slots__ = ("holds", "lacks", "pity", "counters", "quests")
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    PITY_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    QUESTS_FIELD_NUMBER: _ClassVar[int]
    holds: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    lacks: _containers.RepeatedScalarFieldContainer[str]
    pity: _containers.RepeatedCompositeFieldContainer[TrackCount]
    counters: _containers.RepeatedCompositeFieldContainer[CounterRange]
    quests: _containers.RepeatedCompositeFieldContainer[QuestCount]
    def __init__(self, holds: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., lacks: _Optional[_Iterable[str]] = ..., pity: _Optional[_Iterable[_Union[TrackCount, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[CounterRange, _Mapping]]] = ..., quests: _Optional[_Iterable[_Union[QuestCount, _Mapping]]] = ...) -> None: ...

class CounterRange(_message.Message):
    __slots__ = ("counter", "min", "max")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    counter: str
    min: int
    max: int
    def __init__(self, counter: _Optional[str] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class QuestCount(_message.Message):
    __slots__ = ("quest", "tiers")
    QUEST_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    quest: str
    tiers: int
    def __init__(self, quest: _Optional[str] = ..., tiers: _Optional[int] = ...) -> None: ...

class TrackCount(_message.Message):
    __slots__ = ("track", "draws")
    TRACK_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    track: str
    draws: int
    def __init__(self, track: _Optional[str] = ..., draws: _Optional[int] = ...) -> None: ...

class Track(_message.Message):
    __slots__ = ("name", "of", "certain", "rising_from", "rising_by", "rising_table", "rising_scale", "share")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_FIELD_NUMBER: _ClassVar[int]
    RISING_FROM_FIELD_NUMBER: _ClassVar[int]
    RISING_BY_FIELD_NUMBER: _ClassVar[int]
    RISING_TABLE_FIELD_NUMBER: _ClassVar[int]
    RISING_SCALE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    name: str
    of: _containers.RepeatedScalarFieldContainer[str]
    certain: int
    rising_from: int
    rising_by: _containers.RepeatedScalarFieldContainer[int]
    rising_table: bool
    rising_scale: int
    share: str
    def __init__(self, name: _Optional[str] = ..., of: _Optional[_Iterable[str]] = ..., certain: _Optional[int] = ..., rising_from: _Optional[int] = ..., rising_by: _Optional[_Iterable[int]] = ..., rising_table: bool = ..., rising_scale: _Optional[int] = ..., share: _Optional[str] = ...) -> None: ...

class Guarantee(_message.Message):
    __slots__ = ("draws", "at_least", "of")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    AT_LEAST_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    draws: int
    at_least: int
    of: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, draws: _Optional[int] = ..., at_least: _Optional[int] = ..., of: _Optional[_Iterable[str]] = ...) -> None: ...

class PlayerLimit(_message.Message):
    __slots__ = ("per", "window_ms", "draws")
    PER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    per: _limit_pb2.LimitPeriod
    window_ms: int
    draws: int
    def __init__(self, per: _Optional[_Union[_limit_pb2.LimitPeriod, str]] = ..., window_ms: _Optional[int] = ..., draws: _Optional[int] = ...) -> None: ...

class Entry(_message.Message):
    __slots__ = ("id", "weight", "catalog_weight", "left", "drawn", "reward", "group", "when", "unique", "luck", "available", "over_budget", "moments")
    ID_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CATALOG_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    LUCK_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    OVER_BUDGET_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    id: str
    weight: int
    catalog_weight: int
    left: int
    drawn: int
    reward: Reward
    group: str
    when: Condition
    unique: bool
    luck: Luck
    available: bool
    over_budget: bool
    moments: Moments
    def __init__(self, id: _Optional[str] = ..., weight: _Optional[int] = ..., catalog_weight: _Optional[int] = ..., left: _Optional[int] = ..., drawn: _Optional[int] = ..., reward: _Optional[_Union[Reward, _Mapping]] = ..., group: _Optional[str] = ..., when: _Optional[_Union[Condition, _Mapping]] = ..., unique: bool = ..., luck: _Optional[_Union[Luck, _Mapping]] = ..., available: bool = ..., over_budget: bool = ..., moments: _Optional[_Union[Moments, _Mapping]] = ...) -> None: ...

class Luck(_message.Message):
    __slots__ = ("item", "track", "steps", "counter")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    item: str
    track: str
    steps: _containers.RepeatedCompositeFieldContainer[LuckStep]
    counter: str
    def __init__(self, item: _Optional[str] = ..., track: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[LuckStep, _Mapping]]] = ..., counter: _Optional[str] = ...) -> None: ...

class LuckStep(_message.Message):
    __slots__ = ("weight",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    weight: int
    def __init__(self, weight: _Optional[int] = ..., **kwargs) -> None: ...

class Reward(_message.Message):
    __slots__ = ("items", "draws", "codes")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[RewardItem]
    draws: _containers.RepeatedCompositeFieldContainer[InnerDraws]
    codes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, items: _Optional[_Iterable[_Union[RewardItem, _Mapping]]] = ..., draws: _Optional[_Iterable[_Union[InnerDraws, _Mapping]]] = ..., codes: _Optional[_Iterable[str]] = ...) -> None: ...

class InnerDraws(_message.Message):
    __slots__ = ("pool", "min", "max")
    POOL_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    pool: str
    min: int
    max: int
    def __init__(self, pool: _Optional[str] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class RewardItem(_message.Message):
    __slots__ = ("item", "min", "max")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    item: str
    min: int
    max: int
    def __init__(self, item: _Optional[str] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...
