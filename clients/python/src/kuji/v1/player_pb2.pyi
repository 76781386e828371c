from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import limit_pb2 as _limit_pb2
from kuji.v1 import quest_pb2 as _quest_pb2
from kuji.v1 import result_pb2 as _result_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetPlayerRequest(_message.Message):
    __slots__ = ("realm", "player", "stale", "names", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    player: str
    stale: bool
    names: bool
    language: str
    def __init__(self, realm: _Optional[str] = ..., player: _Optional[str] = ..., stale: bool = ..., names: bool = ..., language: _Optional[str] = ...) -> None: ...

class GetPlayerResponse(_message.Message):
    __slots__ = ("player", "items")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    player: Player
    items: _containers.RepeatedCompositeFieldContainer[_catalog_pb2.Item]
    def __init__(self, player: _Optional[_Union[Player, _Mapping]] = ..., items: _Optional[_Iterable[_Union[_catalog_pb2.Item, _Mapping]]] = ...) -> None: ...

class Player(_message.Message):
    __slots__ = ("id", "items", "position", "pity", "limits", "free", "counters", "quests", "lots", "mail", "held", "aliases", "blocked")
    ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PITY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_FIELD_NUMBER: _ClassVar[int]
    QUESTS_FIELD_NUMBER: _ClassVar[int]
    LOTS_FIELD_NUMBER: _ClassVar[int]
    MAIL_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    id: str
    items: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    position: int
    pity: _containers.RepeatedCompositeFieldContainer[PlayerTrack]
    limits: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Limit]
    free: _containers.RepeatedCompositeFieldContainer[_limit_pb2.Limit]
    counters: _containers.RepeatedCompositeFieldContainer[_quest_pb2.PlayerCounter]
    quests: _containers.RepeatedCompositeFieldContainer[_quest_pb2.PlayerQuest]
    lots: _containers.RepeatedCompositeFieldContainer[Lot]
    mail: _containers.RepeatedCompositeFieldContainer[Lot]
    held: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    aliases: _containers.RepeatedCompositeFieldContainer[Alias]
    blocked: str
    def __init__(self, id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., position: _Optional[int] = ..., pity: _Optional[_Iterable[_Union[PlayerTrack, _Mapping]]] = ..., limits: _Optional[_Iterable[_Union[_limit_pb2.Limit, _Mapping]]] = ..., free: _Optional[_Iterable[_Union[_limit_pb2.Limit, _Mapping]]] = ..., counters: _Optional[_Iterable[_Union[_quest_pb2.PlayerCounter, _Mapping]]] = ..., quests: _Optional[_Iterable[_Union[_quest_pb2.PlayerQuest, _Mapping]]] = ..., lots: _Optional[_Iterable[_Union[Lot, _Mapping]]] = ..., mail: _Optional[_Iterable[_Union[Lot, _Mapping]]] = ..., held: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., aliases: _Optional[_Iterable[_Union[Alias, _Mapping]]] = ..., blocked: _Optional[str] = ...) -> None: ...

class Alias(_message.Message):
    __slots__ = ("name", "merged")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MERGED_FIELD_NUMBER: _ClassVar[int]
    name: str
    merged: bool
    def __init__(self, name: _Optional[str] = ..., merged: bool = ...) -> None: ...

class Lot(_message.Message):
    __slots__ = ("item", "quantity", "until_unix_ms")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    QUANTITY_FIELD_NUMBER: _ClassVar[int]
    UNTIL_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    item: str
    quantity: int
    until_unix_ms: int
    def __init__(self, item: _Optional[str] = ..., quantity: _Optional[int] = ..., until_unix_ms: _Optional[int] = ...) -> None: ...

class PlayerTrack(_message.Message):
    __slots__ = ("track", "draws", "certain_in", "pool", "unless")
    TRACK_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_IN_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    UNLESS_FIELD_NUMBER: _ClassVar[int]
    track: str
    draws: int
    certain_in: int
    pool: str
    unless: str
    def __init__(self, track: _Optional[str] = ..., draws: _Optional[int] = ..., certain_in: _Optional[int] = ..., pool: _Optional[str] = ..., unless: _Optional[str] = ...) -> None: ...
