from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Display(_message.Message):
    __slots__ = ("name", "description", "rarity", "icon", "metadata")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RARITY_FIELD_NUMBER: _ClassVar[int]
    ICON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    rarity: str
    icon: str
    metadata: _containers.RepeatedCompositeFieldContainer[Meta]
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., rarity: _Optional[str] = ..., icon: _Optional[str] = ..., metadata: _Optional[_Iterable[_Union[Meta, _Mapping]]] = ...) -> None: ...

class Meta(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
