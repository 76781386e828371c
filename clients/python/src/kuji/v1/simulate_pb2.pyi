from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SimulateRequest(_message.Message):
    __slots__ = ("realm", "yaml", "pool", "players", "draws", "count", "pay", "seed", "until", "rate", "independent", "codes", "progress")
    class CodesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    REALM_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    PAY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    INDEPENDENT_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    realm: str
    yaml: bytes
    pool: str
    players: int
    draws: int
    count: int
    pay: str
    seed: int
    until: str
    rate: float
    independent: bool
    codes: _containers.ScalarMap[str, int]
    progress: _containers.RepeatedCompositeFieldContainer[SimulatedProgress]
    def __init__(self, realm: _Optional[str] = ..., yaml: _Optional[bytes] = ..., pool: _Optional[str] = ..., players: _Optional[int] = ..., draws: _Optional[int] = ..., count: _Optional[int] = ..., pay: _Optional[str] = ..., seed: _Optional[int] = ..., until: _Optional[str] = ..., rate: _Optional[float] = ..., independent: bool = ..., codes: _Optional[_Mapping[str, int]] = ..., progress: _Optional[_Iterable[_Union[SimulatedProgress, _Mapping]]] = ...) -> None: ...

class SimulatedProgress(_message.Message):
    __slots__ = ("event", "n", "per_draw", "keys")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    PER_DRAW_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    event: str
    n: float
    per_draw: bool
    keys: int
    def __init__(self, event: _Optional[str] = ..., n: _Optional[float] = ..., per_draw: bool = ..., keys: _Optional[int] = ...) -> None: ...

class SimulateResponse(_message.Message):
    __slots__ = ("requests", "draws", "refused", "paid", "given", "odds", "odds_change", "no_long_run", "costs", "stock", "codes", "quests", "ranks", "grown", "beyond", "players", "draws_each", "count")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    PAID_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    ODDS_FIELD_NUMBER: _ClassVar[int]
    ODDS_CHANGE_FIELD_NUMBER: _ClassVar[int]
    NO_LONG_RUN_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    STOCK_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    QUESTS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    GROWN_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_EACH_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    requests: int
    draws: int
    refused: _containers.RepeatedCompositeFieldContainer[SimulatedRefusal]
    paid: _containers.RepeatedCompositeFieldContainer[SimulatedAmount]
    given: _containers.RepeatedCompositeFieldContainer[SimulatedAmount]
    odds: _containers.RepeatedCompositeFieldContainer[SimulatedOdds]
    odds_change: bool
    no_long_run: str
    costs: SimulatedCosts
    stock: SimulatedStock
    codes: _containers.RepeatedCompositeFieldContainer[SimulatedCodes]
    quests: _containers.RepeatedCompositeFieldContainer[SimulatedQuest]
    ranks: _containers.RepeatedCompositeFieldContainer[SimulatedRanks]
    grown: _containers.RepeatedCompositeFieldContainer[SimulatedAmount]
    beyond: _containers.RepeatedCompositeFieldContainer[SimulatedBeyond]
    players: int
    draws_each: int
    count: int
    def __init__(self, requests: _Optional[int] = ..., draws: _Optional[int] = ..., refused: _Optional[_Iterable[_Union[SimulatedRefusal, _Mapping]]] = ..., paid: _Optional[_Iterable[_Union[SimulatedAmount, _Mapping]]] = ..., given: _Optional[_Iterable[_Union[SimulatedAmount, _Mapping]]] = ..., odds: _Optional[_Iterable[_Union[SimulatedOdds, _Mapping]]] = ..., odds_change: bool = ..., no_long_run: _Optional[str] = ..., costs: _Optional[_Union[SimulatedCosts, _Mapping]] = ..., stock: _Optional[_Union[SimulatedStock, _Mapping]] = ..., codes: _Optional[_Iterable[_Union[SimulatedCodes, _Mapping]]] = ..., quests: _Optional[_Iterable[_Union[SimulatedQuest, _Mapping]]] = ..., ranks: _Optional[_Iterable[_Union[SimulatedRanks, _Mapping]]] = ..., grown: _Optional[_Iterable[_Union[SimulatedAmount, _Mapping]]] = ..., beyond: _Optional[_Iterable[_Union[SimulatedBeyond, _Mapping]]] = ..., players: _Optional[int] = ..., draws_each: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class SimulatedRefusal(_message.Message):
    __slots__ = ("status", "requests", "stopped")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    STOPPED_FIELD_NUMBER: _ClassVar[int]
    status: str
    requests: int
    stopped: int
    def __init__(self, status: _Optional[str] = ..., requests: _Optional[int] = ..., stopped: _Optional[int] = ...) -> None: ...

class SimulatedAmount(_message.Message):
    __slots__ = ("item", "total", "each")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    EACH_FIELD_NUMBER: _ClassVar[int]
    item: str
    total: int
    each: float
    def __init__(self, item: _Optional[str] = ..., total: _Optional[int] = ..., each: _Optional[float] = ...) -> None: ...

class SimulatedOdds(_message.Message):
    __slots__ = ("pool", "entry", "wanted", "long_run", "seen", "low", "high", "taken")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    LONG_RUN_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    pool: str
    entry: str
    wanted: float
    long_run: float
    seen: float
    low: float
    high: float
    taken: int
    def __init__(self, pool: _Optional[str] = ..., entry: _Optional[str] = ..., wanted: _Optional[float] = ..., long_run: _Optional[float] = ..., seen: _Optional[float] = ..., low: _Optional[float] = ..., high: _Optional[float] = ..., taken: _Optional[int] = ...) -> None: ...

class SimulatedCosts(_message.Message):
    __slots__ = ("item", "players_with_it", "costs", "distribution")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_WITH_IT_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    item: str
    players_with_it: int
    costs: _containers.RepeatedCompositeFieldContainer[SimulatedCost]
    distribution: _containers.RepeatedCompositeFieldContainer[SimulatedStep]
    def __init__(self, item: _Optional[str] = ..., players_with_it: _Optional[int] = ..., costs: _Optional[_Iterable[_Union[SimulatedCost, _Mapping]]] = ..., distribution: _Optional[_Iterable[_Union[SimulatedStep, _Mapping]]] = ...) -> None: ...

class SimulatedCost(_message.Message):
    __slots__ = ("item", "mean", "mean_error", "median", "p90", "p99", "worst")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    MEAN_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_FIELD_NUMBER: _ClassVar[int]
    P90_FIELD_NUMBER: _ClassVar[int]
    P99_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    item: str
    mean: float
    mean_error: float
    median: int
    p90: int
    p99: int
    worst: int
    def __init__(self, item: _Optional[str] = ..., mean: _Optional[float] = ..., mean_error: _Optional[float] = ..., median: _Optional[int] = ..., p90: _Optional[int] = ..., p99: _Optional[int] = ..., worst: _Optional[int] = ...) -> None: ...

class SimulatedStep(_message.Message):
    __slots__ = ("draws", "players")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    draws: int
    players: int
    def __init__(self, draws: _Optional[int] = ..., players: _Optional[int] = ...) -> None: ...

class SimulatedStock(_message.Message):
    __slots__ = ("sold_out", "entries", "sampled_entries", "samples", "budgets")
    SOLD_OUT_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SAMPLED_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    sold_out: SimulatedMoment
    entries: _containers.RepeatedCompositeFieldContainer[SimulatedEntry]
    sampled_entries: int
    samples: _containers.RepeatedCompositeFieldContainer[SimulatedSample]
    budgets: _containers.RepeatedCompositeFieldContainer[SimulatedBudget]
    def __init__(self, sold_out: _Optional[_Union[SimulatedMoment, _Mapping]] = ..., entries: _Optional[_Iterable[_Union[SimulatedEntry, _Mapping]]] = ..., sampled_entries: _Optional[int] = ..., samples: _Optional[_Iterable[_Union[SimulatedSample, _Mapping]]] = ..., budgets: _Optional[_Iterable[_Union[SimulatedBudget, _Mapping]]] = ...) -> None: ...

class SimulatedMoment(_message.Message):
    __slots__ = ("draws", "days")
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    DAYS_FIELD_NUMBER: _ClassVar[int]
    draws: int
    days: float
    def __init__(self, draws: _Optional[int] = ..., days: _Optional[float] = ...) -> None: ...

class SimulatedEntry(_message.Message):
    __slots__ = ("pool", "entry", "stock", "left", "sold_out")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    STOCK_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    SOLD_OUT_FIELD_NUMBER: _ClassVar[int]
    pool: str
    entry: str
    stock: int
    left: int
    sold_out: SimulatedMoment
    def __init__(self, pool: _Optional[str] = ..., entry: _Optional[str] = ..., stock: _Optional[int] = ..., left: _Optional[int] = ..., sold_out: _Optional[_Union[SimulatedMoment, _Mapping]] = ...) -> None: ...

class SimulatedSample(_message.Message):
    __slots__ = ("at", "left")
    AT_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    at: SimulatedMoment
    left: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, at: _Optional[_Union[SimulatedMoment, _Mapping]] = ..., left: _Optional[_Iterable[int]] = ...) -> None: ...

class SimulatedBudget(_message.Message):
    __slots__ = ("pool", "per", "share", "item", "limit", "spent", "spans", "most", "full")
    POOL_FIELD_NUMBER: _ClassVar[int]
    PER_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    pool: str
    per: str
    share: str
    item: str
    limit: int
    spent: int
    spans: int
    most: int
    full: int
    def __init__(self, pool: _Optional[str] = ..., per: _Optional[str] = ..., share: _Optional[str] = ..., item: _Optional[str] = ..., limit: _Optional[int] = ..., spent: _Optional[int] = ..., spans: _Optional[int] = ..., most: _Optional[int] = ..., full: _Optional[int] = ...) -> None: ...

class SimulatedCodes(_message.Message):
    __slots__ = ("list", "given", "of", "used_up")
    LIST_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    USED_UP_FIELD_NUMBER: _ClassVar[int]
    list: str
    given: int
    of: int
    used_up: SimulatedMoment
    def __init__(self, list: _Optional[str] = ..., given: _Optional[int] = ..., of: _Optional[int] = ..., used_up: _Optional[_Union[SimulatedMoment, _Mapping]] = ...) -> None: ...

class SimulatedQuest(_message.Message):
    __slots__ = ("quest", "claims", "tiers", "given")
    QUEST_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    quest: str
    claims: int
    tiers: _containers.RepeatedScalarFieldContainer[int]
    given: _containers.RepeatedCompositeFieldContainer[SimulatedAmount]
    def __init__(self, quest: _Optional[str] = ..., claims: _Optional[int] = ..., tiers: _Optional[_Iterable[int]] = ..., given: _Optional[_Iterable[_Union[SimulatedAmount, _Mapping]]] = ...) -> None: ...

class SimulatedRanks(_message.Message):
    __slots__ = ("counter", "periods_ended", "ranks_paid", "ranks_missed", "given")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    PERIODS_ENDED_FIELD_NUMBER: _ClassVar[int]
    RANKS_PAID_FIELD_NUMBER: _ClassVar[int]
    RANKS_MISSED_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    counter: str
    periods_ended: int
    ranks_paid: int
    ranks_missed: int
    given: _containers.RepeatedCompositeFieldContainer[SimulatedAmount]
    def __init__(self, counter: _Optional[str] = ..., periods_ended: _Optional[int] = ..., ranks_paid: _Optional[int] = ..., ranks_missed: _Optional[int] = ..., given: _Optional[_Iterable[_Union[SimulatedAmount, _Mapping]]] = ...) -> None: ...

class SimulatedBeyond(_message.Message):
    __slots__ = ("item", "cut", "mailed", "collected", "gone")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    MAILED_FIELD_NUMBER: _ClassVar[int]
    COLLECTED_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    item: str
    cut: int
    mailed: int
    collected: int
    gone: int
    def __init__(self, item: _Optional[str] = ..., cut: _Optional[int] = ..., mailed: _Optional[int] = ..., collected: _Optional[int] = ..., gone: _Optional[int] = ...) -> None: ...
