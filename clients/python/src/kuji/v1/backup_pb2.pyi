from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackupRequest(_message.Message):
    __slots__ = ("realm", "from_cursor")
    REALM_FIELD_NUMBER: _ClassVar[int]
    FROM_CURSOR_FIELD_NUMBER: _ClassVar[int]
    realm: str
    from_cursor: int
    def __init__(self, realm: _Optional[str] = ..., from_cursor: _Optional[int] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("begin", "file", "data")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    begin: BackupBegin
    file: str
    data: bytes
    def __init__(self, begin: _Optional[_Union[BackupBegin, _Mapping]] = ..., file: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class BackupBegin(_message.Message):
    __slots__ = ("first", "through", "files")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    THROUGH_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    first: int
    through: int
    files: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, first: _Optional[int] = ..., through: _Optional[int] = ..., files: _Optional[_Iterable[str]] = ...) -> None: ...
