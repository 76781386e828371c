from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROLE_UNSPECIFIED: _ClassVar[Role]
    ROLE_READ: _ClassVar[Role]
    ROLE_WRITE: _ClassVar[Role]
    ROLE_ADMIN: _ClassVar[Role]
    ROLE_ANY: _ClassVar[Role]
ROLE_UNSPECIFIED: Role
ROLE_READ: Role
ROLE_WRITE: Role
ROLE_ADMIN: Role
ROLE_ANY: Role
ROLE_FIELD_NUMBER: _ClassVar[int]
role: _descriptor.FieldDescriptor
