from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SyncPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SYNC_POLICY_UNSPECIFIED: _ClassVar[SyncPolicy]
    SYNC_POLICY_ALWAYS: _ClassVar[SyncPolicy]
    SYNC_POLICY_INTERVAL: _ClassVar[SyncPolicy]
    SYNC_POLICY_NONE: _ClassVar[SyncPolicy]
    SYNC_POLICY_OFF: _ClassVar[SyncPolicy]
SYNC_POLICY_UNSPECIFIED: SyncPolicy
SYNC_POLICY_ALWAYS: SyncPolicy
SYNC_POLICY_INTERVAL: SyncPolicy
SYNC_POLICY_NONE: SyncPolicy
SYNC_POLICY_OFF: SyncPolicy

class CreateRealmRequest(_message.Message):
    __slots__ = ("realm",)
    REALM_FIELD_NUMBER: _ClassVar[int]
    realm: str
    def __init__(self, realm: _Optional[str] = ...) -> None: ...

class CreateRealmResponse(_message.Message):
    __slots__ = ("created",)
    CREATED_FIELD_NUMBER: _ClassVar[int]
    created: bool
    def __init__(self, created: bool = ...) -> None: ...

class DeleteRealmRequest(_message.Message):
    __slots__ = ("realm", "confirm")
    REALM_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_FIELD_NUMBER: _ClassVar[int]
    realm: str
    confirm: str
    def __init__(self, realm: _Optional[str] = ..., confirm: _Optional[str] = ...) -> None: ...

class DeleteRealmResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetClockRequest(_message.Message):
    __slots__ = ("realm", "time_unix_ms", "reason")
    REALM_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    realm: str
    time_unix_ms: int
    reason: str
    def __init__(self, realm: _Optional[str] = ..., time_unix_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class SetClockResponse(_message.Message):
    __slots__ = ("from_unix_ms", "to_unix_ms", "position", "ids_from_unix_ms")
    FROM_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    TO_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    IDS_FROM_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    from_unix_ms: int
    to_unix_ms: int
    position: int
    ids_from_unix_ms: int
    def __init__(self, from_unix_ms: _Optional[int] = ..., to_unix_ms: _Optional[int] = ..., position: _Optional[int] = ..., ids_from_unix_ms: _Optional[int] = ...) -> None: ...

class FinishUpgradeRequest(_message.Message):
    __slots__ = ("realm", "reason")
    REALM_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    realm: str
    reason: str
    def __init__(self, realm: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class FinishUpgradeResponse(_message.Message):
    __slots__ = ("from_level", "to_level", "position")
    FROM_LEVEL_FIELD_NUMBER: _ClassVar[int]
    TO_LEVEL_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    from_level: int
    to_level: int
    position: int
    def __init__(self, from_level: _Optional[int] = ..., to_level: _Optional[int] = ..., position: _Optional[int] = ...) -> None: ...

class ListRealmsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListRealmsResponse(_message.Message):
    __slots__ = ("realms",)
    REALMS_FIELD_NUMBER: _ClassVar[int]
    realms: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, realms: _Optional[_Iterable[str]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ("realm",)
    REALM_FIELD_NUMBER: _ClassVar[int]
    realm: str
    def __init__(self, realm: _Optional[str] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("version", "draining", "realms", "sync")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    REALMS_FIELD_NUMBER: _ClassVar[int]
    SYNC_FIELD_NUMBER: _ClassVar[int]
    version: str
    draining: bool
    realms: _containers.RepeatedCompositeFieldContainer[RealmStatus]
    sync: SyncPolicy
    def __init__(self, version: _Optional[str] = ..., draining: bool = ..., realms: _Optional[_Iterable[_Union[RealmStatus, _Mapping]]] = ..., sync: _Optional[_Union[SyncPolicy, str]] = ...) -> None: ...

class RealmStatus(_message.Message):
    __slots__ = ("realm", "error", "position", "epoch", "batches", "events", "draws", "failures", "replays", "log_bytes", "players", "request_ids", "pending_bytes", "recovered_position", "recovered_events", "catalog_version", "clock_unix_ms", "time_unix_ms", "back_ms", "ids_from_unix_ms", "level", "newest_level", "log_kept_bytes", "snapshot_bytes", "snapshot_position", "backup_unix_ms")
    REALM_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    DRAWS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    REPLAYS_FIELD_NUMBER: _ClassVar[int]
    LOG_BYTES_FIELD_NUMBER: _ClassVar[int]
    PLAYERS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_IDS_FIELD_NUMBER: _ClassVar[int]
    PENDING_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_POSITION_FIELD_NUMBER: _ClassVar[int]
    RECOVERED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_VERSION_FIELD_NUMBER: _ClassVar[int]
    CLOCK_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    TIME_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    BACK_MS_FIELD_NUMBER: _ClassVar[int]
    IDS_FROM_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    NEWEST_LEVEL_FIELD_NUMBER: _ClassVar[int]
    LOG_KEPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_POSITION_FIELD_NUMBER: _ClassVar[int]
    BACKUP_UNIX_MS_FIELD_NUMBER: _ClassVar[int]
    realm: str
    error: str
    position: int
    epoch: int
    batches: int
    events: int
    draws: int
    failures: int
    replays: int
    log_bytes: int
    players: int
    request_ids: int
    pending_bytes: int
    recovered_position: int
    recovered_events: int
    catalog_version: int
    clock_unix_ms: int
    time_unix_ms: int
    back_ms: int
    ids_from_unix_ms: int
    level: int
    newest_level: int
    log_kept_bytes: int
    snapshot_bytes: int
    snapshot_position: int
    backup_unix_ms: int
    def __init__(self, realm: _Optional[str] = ..., error: _Optional[str] = ..., position: _Optional[int] = ..., epoch: _Optional[int] = ..., batches: _Optional[int] = ..., events: _Optional[int] = ..., draws: _Optional[int] = ..., failures: _Optional[int] = ..., replays: _Optional[int] = ..., log_bytes: _Optional[int] = ..., players: _Optional[int] = ..., request_ids: _Optional[int] = ..., pending_bytes: _Optional[int] = ..., recovered_position: _Optional[int] = ..., recovered_events: _Optional[int] = ..., catalog_version: _Optional[int] = ..., clock_unix_ms: _Optional[int] = ..., time_unix_ms: _Optional[int] = ..., back_ms: _Optional[int] = ..., ids_from_unix_ms: _Optional[int] = ..., level: _Optional[int] = ..., newest_level: _Optional[int] = ..., log_kept_bytes: _Optional[int] = ..., snapshot_bytes: _Optional[int] = ..., snapshot_position: _Optional[int] = ..., backup_unix_ms: _Optional[int] = ...) -> None: ...
