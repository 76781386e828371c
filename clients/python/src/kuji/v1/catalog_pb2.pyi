from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import shown_pb2 as _shown_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ItemBeyond(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_BEYOND_UNSPECIFIED: _ClassVar[ItemBeyond]
    ITEM_BEYOND_REFUSE: _ClassVar[ItemBeyond]
    ITEM_BEYOND_CUT: _ClassVar[ItemBeyond]
    ITEM_BEYOND_MAIL: _ClassVar[ItemBeyond]

class ItemKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITEM_KIND_UNSPECIFIED: _ClassVar[ItemKind]
    ITEM_KIND_ITEM: _ClassVar[ItemKind]
    ITEM_KIND_CURRENCY: _ClassVar[ItemKind]

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_UNSPECIFIED: _ClassVar[ChangeKind]
    CHANGE_KIND_ITEM_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_ITEM_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_ITEM_REMOVED: _ClassVar[ChangeKind]
    CHANGE_KIND_POOL_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_POOL_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_POOL_REMOVED: _ClassVar[ChangeKind]
    CHANGE_KIND_ENTRY_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_ENTRY_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_ENTRY_REMOVED: _ClassVar[ChangeKind]
    CHANGE_KIND_REALM_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_NOTICE: _ClassVar[ChangeKind]
    CHANGE_KIND_COUNTER_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_COUNTER_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_COUNTER_REMOVED: _ClassVar[ChangeKind]
    CHANGE_KIND_QUEST_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_QUEST_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_QUEST_REMOVED: _ClassVar[ChangeKind]
ITEM_BEYOND_UNSPECIFIED: ItemBeyond
ITEM_BEYOND_REFUSE: ItemBeyond
ITEM_BEYOND_CUT: ItemBeyond
ITEM_BEYOND_MAIL: ItemBeyond
ITEM_KIND_UNSPECIFIED: ItemKind
ITEM_KIND_ITEM: ItemKind
ITEM_KIND_CURRENCY: ItemKind
CHANGE_KIND_UNSPECIFIED: ChangeKind
CHANGE_KIND_ITEM_ADDED: ChangeKind
CHANGE_KIND_ITEM_CHANGED: ChangeKind
CHANGE_KIND_ITEM_REMOVED: ChangeKind
CHANGE_KIND_POOL_ADDED: ChangeKind
CHANGE_KIND_POOL_CHANGED: ChangeKind
CHANGE_KIND_POOL_REMOVED: ChangeKind
CHANGE_KIND_ENTRY_ADDED: ChangeKind
CHANGE_KIND_ENTRY_CHANGED: ChangeKind
CHANGE_KIND_ENTRY_REMOVED: ChangeKind
CHANGE_KIND_REALM_CHANGED: ChangeKind
CHANGE_KIND_NOTICE: ChangeKind
CHANGE_KIND_COUNTER_ADDED: ChangeKind
CHANGE_KIND_COUNTER_CHANGED: ChangeKind
CHANGE_KIND_COUNTER_REMOVED: ChangeKind
CHANGE_KIND_QUEST_ADDED: ChangeKind
CHANGE_KIND_QUEST_CHANGED: ChangeKind
CHANGE_KIND_QUEST_REMOVED: ChangeKind

class GetCatalogRequest(_message.Message):
    __slots__ = ("realm", "item_offset", "item_limit", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    ITEM_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ITEM_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    item_offset: int
    item_limit: int
    language: str
    def __init__(self, realm: _Optional[str] = ..., item_offset: _Optional[int] = ..., item_limit: _Optional[int] = ..., language: _Optional[str] = ...) -> None: ...

class GetCatalogResponse(_message.Message):
    __slots__ = ("version", "hash", "position", "name", "items", "item_count", "pools", "start", "idempotency")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    ITEM_COUNT_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_FIELD_NUMBER: _ClassVar[int]
    version: int
    hash: bytes
    position: int
    name: str
    items: _containers.RepeatedCompositeFieldContainer[Item]
    item_count: int
    pools: _containers.RepeatedScalarFieldContainer[str]
    start: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    idempotency: Idempotency
    def __init__(self, version: _Optional[int] = ..., hash: _Optional[bytes] = ..., position: _Optional[int] = ..., name: _Optional[str] = ..., items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., item_count: _Optional[int] = ..., pools: _Optional[_Iterable[str]] = ..., start: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., idempotency: _Optional[_Union[Idempotency, _Mapping]] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("id", "kind", "name", "lasts_ms", "extend", "grows", "family", "most", "beyond", "mail_ms", "display")
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LASTS_MS_FIELD_NUMBER: _ClassVar[int]
    EXTEND_FIELD_NUMBER: _ClassVar[int]
    GROWS_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    BEYOND_FIELD_NUMBER: _ClassVar[int]
    MAIL_MS_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: ItemKind
    name: str
    lasts_ms: int
    extend: bool
    grows: Growth
    family: str
    most: int
    beyond: ItemBeyond
    mail_ms: int
    display: _shown_pb2.Display
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[_Union[ItemKind, str]] = ..., name: _Optional[str] = ..., lasts_ms: _Optional[int] = ..., extend: bool = ..., grows: _Optional[_Union[Growth, _Mapping]] = ..., family: _Optional[str] = ..., most: _Optional[int] = ..., beyond: _Optional[_Union[ItemBeyond, str]] = ..., mail_ms: _Optional[int] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ...) -> None: ...

class Growth(_message.Message):
    __slots__ = ("every_ms", "by", "to")
    EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    every_ms: int
    by: int
    to: int
    def __init__(self, every_ms: _Optional[int] = ..., by: _Optional[int] = ..., to: _Optional[int] = ...) -> None: ...

class Idempotency(_message.Message):
    __slots__ = ("count", "age_ms", "time_ordered", "ahead_ms")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AGE_MS_FIELD_NUMBER: _ClassVar[int]
    TIME_ORDERED_FIELD_NUMBER: _ClassVar[int]
    AHEAD_MS_FIELD_NUMBER: _ClassVar[int]
    count: int
    age_ms: int
    time_ordered: bool
    ahead_ms: int
    def __init__(self, count: _Optional[int] = ..., age_ms: _Optional[int] = ..., time_ordered: bool = ..., ahead_ms: _Optional[int] = ...) -> None: ...

class ExportCatalogRequest(_message.Message):
    __slots__ = ("realm", "version")
    REALM_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    realm: str
    version: int
    def __init__(self, realm: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class ExportCatalogResponse(_message.Message):
    __slots__ = ("version", "hash", "yaml")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    version: int
    hash: bytes
    yaml: bytes
    def __init__(self, version: _Optional[int] = ..., hash: _Optional[bytes] = ..., yaml: _Optional[bytes] = ...) -> None: ...

class ListCatalogsRequest(_message.Message):
    __slots__ = ("realm", "before", "limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    before: int
    limit: int
    def __init__(self, realm: _Optional[str] = ..., before: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListCatalogsResponse(_message.Message):
    __slots__ = ("catalogs", "oldest")
    CATALOGS_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    catalogs: _containers.RepeatedCompositeFieldContainer[CatalogVersion]
    oldest: int
    def __init__(self, catalogs: _Optional[_Iterable[_Union[CatalogVersion, _Mapping]]] = ..., oldest: _Optional[int] = ...) -> None: ...

class CatalogVersion(_message.Message):
    __slots__ = ("version", "hash", "position", "time_unix_ms", "name", "items", "pools", "by", "reason", "metadata")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    version: int
    hash: bytes
    position: int
    time_unix_ms: int
    name: str
    items: int
    pools: int
    by: str
    reason: str
    metadata: str
    def __init__(self, version: _Optional[int] = ..., hash: _Optional[bytes] = ..., position: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., name: _Optional[str] = ..., items: _Optional[int] = ..., pools: _Optional[int] = ..., by: _Optional[str] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class ApplyCatalogRequest(_message.Message):
    __slots__ = ("realm", "yaml", "dry_run", "expected_version", "reason", "metadata", "language")
    REALM_FIELD_NUMBER: _ClassVar[int]
    YAML_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    realm: str
    yaml: bytes
    dry_run: bool
    expected_version: int
    reason: str
    metadata: str
    language: str
    def __init__(self, realm: _Optional[str] = ..., yaml: _Optional[bytes] = ..., dry_run: bool = ..., expected_version: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ..., language: _Optional[str] = ...) -> None: ...

class ApplyCatalogResponse(_message.Message):
    __slots__ = ("plan", "result", "outline")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    OUTLINE_FIELD_NUMBER: _ClassVar[int]
    plan: Plan
    result: _result_pb2.Result
    outline: CatalogOutline
    def __init__(self, plan: _Optional[_Union[Plan, _Mapping]] = ..., result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ..., outline: _Optional[_Union[CatalogOutline, _Mapping]] = ...) -> None: ...

class CatalogOutline(_message.Message):
    __slots__ = ("items", "pools", "start")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Item]
    pools: _containers.RepeatedCompositeFieldContainer[PoolOutline]
    start: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, items: _Optional[_Iterable[_Union[Item, _Mapping]]] = ..., pools: _Optional[_Iterable[_Union[PoolOutline, _Mapping]]] = ..., start: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class PoolOutline(_message.Message):
    __slots__ = ("id", "display", "internal")
    ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_FIELD_NUMBER: _ClassVar[int]
    id: str
    display: _shown_pb2.Display
    internal: bool
    def __init__(self, id: _Optional[str] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ..., internal: bool = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("unchanged", "version", "changes", "kept")
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    unchanged: bool
    version: int
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    kept: int
    def __init__(self, unchanged: bool = ..., version: _Optional[int] = ..., changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., kept: _Optional[int] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("kind", "id", "entry", "drawn", "before", "after", "warning", "text", "settings")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    DRAWN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    kind: ChangeKind
    id: str
    entry: str
    drawn: int
    before: EntryStock
    after: EntryStock
    warning: str
    text: str
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    def __init__(self, kind: _Optional[_Union[ChangeKind, str]] = ..., id: _Optional[str] = ..., entry: _Optional[str] = ..., drawn: _Optional[int] = ..., before: _Optional[_Union[EntryStock, _Mapping]] = ..., after: _Optional[_Union[EntryStock, _Mapping]] = ..., warning: _Optional[str] = ..., text: _Optional[str] = ..., settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ("name", "before", "after")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    before: str
    after: str
    def __init__(self, name: _Optional[str] = ..., before: _Optional[str] = ..., after: _Optional[str] = ...) -> None: ...

class EntryStock(_message.Message):
    __slots__ = ("unlimited", "stock", "left")
    UNLIMITED_FIELD_NUMBER: _ClassVar[int]
    STOCK_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    unlimited: bool
    stock: int
    left: int
    def __init__(self, unlimited: bool = ..., stock: _Optional[int] = ..., left: _Optional[int] = ...) -> None: ...
