from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import pool_pb2 as _pool_pb2
from kuji.v1 import shown_pb2 as _shown_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListQuestsRequest(_message.Message):
    __slots__ = ("realm", "player", "stale", "quest_offset", "quest_limit", "names", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    QUEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    QUEST_LIMIT_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    player: str
    stale: bool
    quest_offset: int
    quest_limit: int
    names: bool
    language: str
    def __init__(self, realm: _Optional[str] = ..., player: _Optional[str] = ..., stale: bool = ..., quest_offset: _Optional[int] = ..., quest_limit: _Optional[int] = ..., names: bool = ..., language: _Optional[str] = ...) -> None: ...

class ListQuestsResponse(_message.Message):
    __slots__ = ("quests", "quest_count", "counters", "free", "catalog_version", "position", "items")
    QUESTS_FIELD_NUMBER: _ClassVar[int]
    QUEST_COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    quests: _containers.RepeatedCompositeFieldContainer[Quest]
    quest_count: int
    counters: _containers.RepeatedCompositeFieldContainer[PlayerCounter]
    free: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Limit]
    catalog_version: int
    position: int
    items: _containers.RepeatedCompositeFieldContainer[_catalog_pb2.Item]
    def __init__(self, quests: _Optional[_Iterable[_Union[Quest, _Mapping]]] = ..., quest_count: _Optional[int] = ..., counters: _Optional[_Iterable[_Union[PlayerCounter, _Mapping]]] = ..., free: _Optional[_Iterable[_Union[_limit_pb2.Limit, _Mapping]]] = ..., catalog_version: _Optional[int] = ..., position: _Optional[int] = ..., items: _Optional[_Iterable[_Union[_catalog_pb2.Item, _Mapping]]] = ...) -> None: ...

class Quest(_message.Message):
    __slots__ = ("id", "name", "automatic", "when", "tiers", "player", "display")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    AUTOMATIC_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    automatic: bool
    when: _pool_pb2.Condition
    tiers: _containers.RepeatedCompositeFieldContainer[QuestTier]
    player: PlayerQuest
    display: _shown_pb2.Display
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., automatic: bool = ..., when: _Optional[_Union[_pool_pb2.Condition, _Mapping]] = ..., tiers: _Optional[_Iterable[_Union[QuestTier, _Mapping]]] = ..., player: _Optional[_Union[PlayerQuest, _Mapping]] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ...) -> None: ...

class QuestTier(_message.Message):
    __slots__ = ("needs", "reward")
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    needs: _containers.RepeatedCompositeFieldContainer[Need]
    reward: _pool_pb2.Reward
    def __init__(self, needs: _Optional[_Iterable[_Union[Need, _Mapping]]] = ..., reward: _Optional[_Union[_pool_pb2.Reward, _Mapping]] = ...) -> None: ...

class Need(_message.Message):
    __slots__ = ("counter", "value", "min", "max")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    counter: str
    value: int
    min: int
    max: int
    def __init__(self, counter: _Optional[str] = ..., value: _Optional[int] = ..., min: _Optional[int] = ..., max: _Optional[int] = ...) -> None: ...

class PlayerQuest(_message.Message):
    __slots__ = ("quest", "open", "tiers", "claimed", "claimable", "needs", "resets_unix_ms")
    QUEST_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    TIERS_FIELD_NUMBER: _ClassVar[int]
    CLAIMED_FIELD_NUMBER: _ClassVar[int]
    CLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    RESETS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    quest: str
    open: bool
    tiers: int
    claimed: int
    claimable: int
    needs: _containers.RepeatedCompositeFieldContainer[Need]
    resets_unix_ms: int
    def __init__(self, quest: _Optional[str] = ..., open: bool = ..., tiers: _Optional[int] = ..., claimed: _Optional[int] = ..., claimable: _Optional[int] = ..., needs: _Optional[_Iterable[_Union[Need, _Mapping]]] = ..., resets_unix_ms: _Optional[int] = ...) -> None: ...

class PlayerCounter(_message.Message):
    __slots__ = ("counter", "value", "realm", "resets_unix_ms", "rank", "display")
    COUNTER_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    REALM_FIELD_NUMBER: _ClassVar[int]
    RESETS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    counter: str
    value: int
    realm: bool
    resets_unix_ms: int
    rank: int
    display: _shown_pb2.Display
    def __init__(self, counter: _Optional[str] = ..., value: _Optional[int] = ..., realm: bool = ..., resets_unix_ms: _Optional[int] = ..., rank: _Optional[int] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ...) -> None: ...
