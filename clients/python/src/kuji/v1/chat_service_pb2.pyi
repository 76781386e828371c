from kuji.v1 import error_pb2 as _error_pb2
from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import role_pb2 as _role_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TriggerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRIGGER_STATE_UNSPECIFIED: _ClassVar[TriggerState]
    TRIGGER_STATE_STARTED: _ClassVar[TriggerState]
    TRIGGER_STATE_COOLING: _ClassVar[TriggerState]
    TRIGGER_STATE_UNCLEAR: _ClassVar[TriggerState]
TRIGGER_STATE_UNSPECIFIED: TriggerState
TRIGGER_STATE_STARTED: TriggerState
TRIGGER_STATE_COOLING: TriggerState
TRIGGER_STATE_UNCLEAR: TriggerState

class HandleMessageRequest(_message.Message):
    __slots__ = ("realm", "platform", "user", "name", "text", "message_id", "sent_unix_ms")
    REALM_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SENT_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    realm: str
    platform: str
    user: str
    name: str
    text: str
    message_id: str
    sent_unix_ms: int
    def __init__(self, realm: _Optional[str] = ..., platform: _Optional[str] = ..., user: _Optional[str] = ..., name: _Optional[str] = ..., text: _Optional[str] = ..., message_id: _Optional[str] = ..., sent_unix_ms: _Optional[int] = ...) -> None: ...

class HandleMessageResponse(_message.Message):
    __slots__ = ("player", "found")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    FOUND_FIELD_NUMBER: _ClassVar[int]
    player: str
    found: _containers.RepeatedCompositeFieldContainer[FoundTrigger]
    def __init__(self, player: _Optional[str] = ..., found: _Optional[_Iterable[_Union[FoundTrigger, _Mapping]]] = ...) -> None: ...

class FoundTrigger(_message.Message):
    __slots__ = ("trigger", "phrase", "state", "ready_unix_ms", "word", "results")
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    PHRASE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    READY_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    WORD_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    trigger: str
    phrase: str
    state: TriggerState
    ready_unix_ms: int
    word: str
    results: _containers.RepeatedCompositeFieldContainer[TriggerResult]
    def __init__(self, trigger: _Optional[str] = ..., phrase: _Optional[str] = ..., state: _Optional[_Union[TriggerState, str]] = ..., ready_unix_ms: _Optional[int] = ..., word: _Optional[str] = ..., results: _Optional[_Iterable[_Union[TriggerResult, _Mapping]]] = ...) -> None: ...

class TriggerResult(_message.Message):
    __slots__ = ("result", "error")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    error: _error_pb2.ErrorDetail
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ..., error: _Optional[_Union[_error_pb2.ErrorDetail, _Mapping]] = ...) -> None: ...
