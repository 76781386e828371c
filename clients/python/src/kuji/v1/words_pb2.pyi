from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor
WORDS_FIELD_NUMBER: _ClassVar[int]
words: _descriptor.FieldDescriptor
RANGE_FIELD_NUMBER: _ClassVar[int]
range: _descriptor.FieldDescriptor

class Words(_message.Message):
    __slots__ = ("usage", "summary")
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    usage: str
    summary: str
    def __init__(self, usage: _Optional[str] = ..., summary: _Optional[str] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("least", "most")
    LEAST_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    least: int
    most: int
    def __init__(self, least: _Optional[int] = ..., most: _Optional[int] = ...) -> None: ...
