from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ImportCodesRequest(_message.Message):
    __slots__ = ("realm", "list", "codes")
    REALM_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    realm: str
    list: str
    codes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, realm: _Optional[str] = ..., list: _Optional[str] = ..., codes: _Optional[_Iterable[str]] = ...) -> None: ...

class ImportCodesResponse(_message.Message):
    __slots__ = ("added", "list")
    ADDED_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    added: int
    list: CodeList
    def __init__(self, added: _Optional[int] = ..., list: _Optional[_Union[CodeList, _Mapping]] = ...) -> None: ...

class GetCodesRequest(_message.Message):
    __slots__ = ("realm", "list")
    REALM_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    realm: str
    list: str
    def __init__(self, realm: _Optional[str] = ..., list: _Optional[str] = ...) -> None: ...

class GetCodesResponse(_message.Message):
    __slots__ = ("list",)
    LIST_FIELD_NUMBER: _ClassVar[int]
    list: CodeList
    def __init__(self, list: _Optional[_Union[CodeList, _Mapping]] = ...) -> None: ...

class ExportCodesRequest(_message.Message):
    __slots__ = ("realm", "list", "offset", "limit", "redeemed")
    REALM_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    REDEEMED_FIELD_NUMBER: _ClassVar[int]
    realm: str
    list: str
    offset: int
    limit: int
    redeemed: bool
    def __init__(self, realm: _Optional[str] = ..., list: _Optional[str] = ..., offset: _Optional[int] = ..., limit: _Optional[int] = ..., redeemed: bool = ...) -> None: ...

class ExportCodesResponse(_message.Message):
    __slots__ = ("list", "codes")
    LIST_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    list: CodeList
    codes: _containers.RepeatedCompositeFieldContainer[GivenCode]
    def __init__(self, list: _Optional[_Union[CodeList, _Mapping]] = ..., codes: _Optional[_Iterable[_Union[GivenCode, _Mapping]]] = ...) -> None: ...

class CodeList(_message.Message):
    __slots__ = ("list", "codes", "given", "position", "redeemed", "uses")
    LIST_FIELD_NUMBER: _ClassVar[int]
    CODES_FIELD_NUMBER: _ClassVar[int]
    GIVEN_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    REDEEMED_FIELD_NUMBER: _ClassVar[int]
    USES_FIELD_NUMBER: _ClassVar[int]
    list: str
    codes: int
    given: int
    position: int
    redeemed: int
    uses: int
    def __init__(self, list: _Optional[str] = ..., codes: _Optional[int] = ..., given: _Optional[int] = ..., position: _Optional[int] = ..., redeemed: _Optional[int] = ..., uses: _Optional[int] = ...) -> None: ...

class GivenCode(_message.Message):
    __slots__ = ("code", "number", "player", "position", "time_unix_ms")
    CODE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    code: str
    number: int
    player: str
    position: int
    time_unix_ms: int
    def __init__(self, code: _Optional[str] = ..., number: _Optional[int] = ..., player: _Optional[str] = ..., position: _Optional[int] = ..., time_unix_ms: _Optional[int] = ...) -> None: ...
