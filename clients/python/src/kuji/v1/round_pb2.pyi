from kuji.v1 import result_pb2 as _result_pb2
from kuji.v1 import words_pb2 as _words_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpenRound(_message.Message):
    __slots__ = ("round", "player", "tickets", "stake")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    STAKE_FIELD_NUMBER: _ClassVar[int]
    round: str
    player: str
    tickets: int
    stake: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, round: _Optional[str] = ..., player: _Optional[str] = ..., tickets: _Optional[int] = ..., stake: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class OpenRoundRequest(_message.Message):
    __slots__ = ("realm", "request_id", "round", "player", "tickets", "stake", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    STAKE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    round: str
    player: str
    tickets: int
    stake: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., round: _Optional[str] = ..., player: _Optional[str] = ..., tickets: _Optional[int] = ..., stake: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class OpenRoundResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class Join(_message.Message):
    __slots__ = ("player", "round", "number", "tickets", "stake")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    STAKE_FIELD_NUMBER: _ClassVar[int]
    player: str
    round: str
    number: int
    tickets: int
    stake: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, player: _Optional[str] = ..., round: _Optional[str] = ..., number: _Optional[int] = ..., tickets: _Optional[int] = ..., stake: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("realm", "request_id", "player", "round", "number", "tickets", "stake", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    STAKE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    player: str
    round: str
    number: int
    tickets: int
    stake: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., player: _Optional[str] = ..., round: _Optional[str] = ..., number: _Optional[int] = ..., tickets: _Optional[int] = ..., stake: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class Settle(_message.Message):
    __slots__ = ("round", "number")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    round: str
    number: int
    def __init__(self, round: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class SettleRequest(_message.Message):
    __slots__ = ("realm", "request_id", "round", "number", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    round: str
    number: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., round: _Optional[str] = ..., number: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class SettleResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class Reroll(_message.Message):
    __slots__ = ("round", "number")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    round: str
    number: int
    def __init__(self, round: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class RerollRequest(_message.Message):
    __slots__ = ("realm", "request_id", "round", "number", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    round: str
    number: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., round: _Optional[str] = ..., number: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class RerollResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class CancelRound(_message.Message):
    __slots__ = ("round", "number")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    round: str
    number: int
    def __init__(self, round: _Optional[str] = ..., number: _Optional[int] = ...) -> None: ...

class CancelRoundRequest(_message.Message):
    __slots__ = ("realm", "request_id", "round", "number", "reason", "metadata")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    realm: str
    request_id: str
    round: str
    number: int
    reason: str
    metadata: str
    def __init__(self, realm: _Optional[str] = ..., request_id: _Optional[str] = ..., round: _Optional[str] = ..., number: _Optional[int] = ..., reason: _Optional[str] = ..., metadata: _Optional[str] = ...) -> None: ...

class CancelRoundResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: _result_pb2.Result
    def __init__(self, result: _Optional[_Union[_result_pb2.Result, _Mapping]] = ...) -> None: ...

class GetRoundRequest(_message.Message):
    __slots__ = ("realm", "number", "stale", "entrant_offset", "entrant_limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    ENTRANT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENTRANT_LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    number: int
    stale: bool
    entrant_offset: int
    entrant_limit: int
    def __init__(self, realm: _Optional[str] = ..., number: _Optional[int] = ..., stale: bool = ..., entrant_offset: _Optional[int] = ..., entrant_limit: _Optional[int] = ...) -> None: ...

class GetRoundResponse(_message.Message):
    __slots__ = ("round", "entrants")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ENTRANTS_FIELD_NUMBER: _ClassVar[int]
    round: _result_pb2.Round
    entrants: _containers.RepeatedCompositeFieldContainer[Entrant]
    def __init__(self, round: _Optional[_Union[_result_pb2.Round, _Mapping]] = ..., entrants: _Optional[_Iterable[_Union[Entrant, _Mapping]]] = ...) -> None: ...

class ListRoundsRequest(_message.Message):
    __slots__ = ("realm", "stale", "round_offset", "round_limit")
    REALM_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    ROUND_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ROUND_LIMIT_FIELD_NUMBER: _ClassVar[int]
    realm: str
    stale: bool
    round_offset: int
    round_limit: int
    def __init__(self, realm: _Optional[str] = ..., stale: bool = ..., round_offset: _Optional[int] = ..., round_limit: _Optional[int] = ...) -> None: ...

class ListRoundsResponse(_message.Message):
    __slots__ = ("rounds", "round_count")
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    ROUND_COUNT_FIELD_NUMBER: _ClassVar[int]
    rounds: _containers.RepeatedCompositeFieldContainer[_result_pb2.Round]
    round_count: int
    def __init__(self, rounds: _Optional[_Iterable[_Union[_result_pb2.Round, _Mapping]]] = ..., round_count: _Optional[int] = ...) -> None: ...

class Entrant(_message.Message):
    __slots__ = ("player", "tickets", "held")
    PLAYER_FIELD_NUMBER: _ClassVar[int]
    TICKETS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    player: str
    tickets: int
    held: _containers.RepeatedCompositeFieldContainer[_result_pb2.Stack]
    def __init__(self, player: _Optional[str] = ..., tickets: _Optional[int] = ..., held: _Optional[_Iterable[_Union[_result_pb2.Stack, _Mapping]]] = ...) -> None: ...
