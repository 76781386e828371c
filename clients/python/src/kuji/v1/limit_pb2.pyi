from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LimitPeriod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIMIT_PERIOD_UNSPECIFIED: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_FOREVER: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_DAY: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_WEEK: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_WINDOW: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_HOUR: _ClassVar[LimitPeriod]
    LIMIT_PERIOD_MONTH: _ClassVar[LimitPeriod]
LIMIT_PERIOD_UNSPECIFIED: LimitPeriod
LIMIT_PERIOD_FOREVER: LimitPeriod
LIMIT_PERIOD_DAY: LimitPeriod
LIMIT_PERIOD_WEEK: LimitPeriod
LIMIT_PERIOD_WINDOW: LimitPeriod
LIMIT_PERIOD_HOUR: LimitPeriod
LIMIT_PERIOD_MONTH: LimitPeriod

class Limit(_message.Message):
    __slots__ = ("per", "window_ms", "draws", "left", "resets_unix_ms", "pool")
    PER_FIELD_NUMBER: _ClassVar[int]
    WINDOW_MS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    RESETS_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    per: LimitPeriod
    window_ms: int
    draws: int
    left: int
    resets_unix_ms: int
    pool: str
    def __init__(self, per: _Optional[_Union[LimitPeriod, str]] = ..., window_ms: _Optional[int] = ..., draws: _Optional[int] = ..., left: _Optional[int] = ..., resets_unix_ms: _Optional[int] = ..., pool: _Optional[str] = ...) -> None: ...

class Lack(_message.Message):
    __slots__ = ("item", "have", "need")
    ITEM_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    NEED_FIELD_NUMBER: _ClassVar[int]
    item: str
    have: int
    need: int
    def __init__(self, item: _Optional[str] = ..., have: _Optional[int] = ..., need: _Optional[int] = ...) -> None: ...
