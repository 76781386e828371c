from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import shown_pb2 as _shown_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DisplayKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISPLAY_KIND_UNSPECIFIED: _ClassVar[DisplayKind]
    DISPLAY_KIND_ITEM: _ClassVar[DisplayKind]
    DISPLAY_KIND_POOL: _ClassVar[DisplayKind]
    DISPLAY_KIND_COUNTER: _ClassVar[DisplayKind]
    DISPLAY_KIND_QUEST: _ClassVar[DisplayKind]
    DISPLAY_KIND_ROUND: _ClassVar[DisplayKind]
DISPLAY_KIND_UNSPECIFIED: DisplayKind
DISPLAY_KIND_ITEM: DisplayKind
DISPLAY_KIND_POOL: DisplayKind
DISPLAY_KIND_COUNTER: DisplayKind
DISPLAY_KIND_QUEST: DisplayKind
DISPLAY_KIND_ROUND: DisplayKind

class ListDisplaysRequest(_message.Message):
    __slots__ = ("realm", "language", "kinds", "offset", "limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    language: str
    kinds: _containers.RepeatedScalarFieldContainer[DisplayKind]
    offset: int
    limit: int
    def __init__(self, realm: _Optional[str] = ..., language: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[DisplayKind, str]]] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class ListDisplaysResponse(_message.Message):
    __slots__ = ("catalog_version", "name", "languages", "rarities", "displays", "display_count", "next_offset")
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    RARITIES_FIELD_NUMBER: _ClassVar[int]
    DISPLAYS_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_COUNT_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    catalog_version: int
    name: str
    languages: _containers.RepeatedScalarFieldContainer[str]
    rarities: _containers.RepeatedCompositeFieldContainer[Rarity]
    displays: _containers.RepeatedCompositeFieldContainer[Displayed]
    display_count: int
    next_offset: int
    def __init__(self, catalog_version: _Optional[int] = ..., name: _Optional[str] = ..., languages: _Optional[_Iterable[str]] = ..., rarities: _Optional[_Iterable[_Union[Rarity, _Mapping]]] = ..., displays: _Optional[_Iterable[_Union[Displayed, _Mapping]]] = ..., display_count: _Optional[int] = ..., next_offset: _Optional[int] = ...) -> None: ...

class Rarity(_message.Message):
    __slots__ = ("id", "name")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class Displayed(_message.Message):
    __slots__ = ("kind", "id", "display", "item_kind", "internal")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_FIELD_NUMBER: _ClassVar[int]
    ITEM_KIND_FIELD_NUMBER: _ClassVar[int]
    INTERNAL_FIELD_NUMBER: _ClassVar[int]
    kind: DisplayKind
    id: str
    display: _shown_pb2.Display
    item_kind: _catalog_pb2.ItemKind
    internal: bool
    def __init__(self, kind: _Optional[_Union[DisplayKind, str]] = ..., id: _Optional[str] = ..., display: _Optional[_Union[_shown_pb2.Display, _Mapping]] = ..., item_kind: _Optional[_Union[_catalog_pb2.ItemKind, str]] = ..., internal: bool = ...) -> None: ...
