from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetEpochRequest(_message.Message):
    __slots__ = ("realm", "epoch")
    REALM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    realm: str
    epoch: int
    def __init__(self, realm: _Optional[str] = ..., epoch: _Optional[int] = ...) -> None: ...

class GetEpochResponse(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: Epoch
    def __init__(self, epoch: _Optional[_Union[Epoch, _Mapping]] = ...) -> None: ...

class Epoch(_message.Message):
    __slots__ = ("epoch", "position", "time_unix_ms", "commitment", "seed", "revealed_position", "current")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    REVEALED_POSITION_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    position: int
    time_unix_ms: int
    commitment: bytes
    seed: bytes
    revealed_position: int
    current: bool
    def __init__(self, epoch: _Optional[int] = ..., position: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., commitment: _Optional[bytes] = ..., seed: _Optional[bytes] = ..., revealed_position: _Optional[int] = ..., current: bool = ...) -> None: ...
