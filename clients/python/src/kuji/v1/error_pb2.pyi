from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_INVALID: _ClassVar[Reason]
    REASON_NOT_FOUND: _ClassVar[Reason]
    REASON_ID_REUSED: _ClassVar[Reason]
    REASON_CONFLICT: _ClassVar[Reason]
    REASON_OVERLOADED: _ClassVar[Reason]
    REASON_UNKNOWN_OUTCOME: _ClassVar[Reason]
    REASON_FAILED: _ClassVar[Reason]
    REASON_CLOSED: _ClassVar[Reason]
    REASON_CORRUPT: _ClassVar[Reason]
    REASON_CANCELED: _ClassVar[Reason]
    REASON_UNAUTHENTICATED: _ClassVar[Reason]
    REASON_FORBIDDEN: _ClassVar[Reason]
    REASON_INTERNAL: _ClassVar[Reason]
    REASON_TOO_OLD: _ClassVar[Reason]
    REASON_HISTORY: _ClassVar[Reason]
    REASON_FORMAT: _ClassVar[Reason]
REASON_UNSPECIFIED: Reason
REASON_INVALID: Reason
REASON_NOT_FOUND: Reason
REASON_ID_REUSED: Reason
REASON_CONFLICT: Reason
REASON_OVERLOADED: Reason
REASON_UNKNOWN_OUTCOME: Reason
REASON_FAILED: Reason
REASON_CLOSED: Reason
REASON_CORRUPT: Reason
REASON_CANCELED: Reason
REASON_UNAUTHENTICATED: Reason
REASON_FORBIDDEN: Reason
REASON_INTERNAL: Reason
REASON_TOO_OLD: Reason
REASON_HISTORY: Reason
REASON_FORMAT: Reason

class ErrorDetail(_message.Message):
    __slots__ = ("reason", "violations", "first_position")
    REASON_FIELD_NUMBER: _ClassVar[int]
    VIOLATIONS_FIELD_NUMBER: _ClassVar[int]
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    violations: _containers.RepeatedCompositeFieldContainer[Violation]
    first_position: int
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ..., violations: _Optional[_Iterable[_Union[Violation, _Mapping]]] = ..., first_position: _Optional[int] = ...) -> None: ...

class Violation(_message.Message):
    __slots__ = ("field", "description", "line", "column")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    field: str
    description: str
    line: int
    column: int
    def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ..., line: _Optional[int] = ..., column: _Optional[int] = ...) -> None: ...
