from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATE_UNSPECIFIED: _ClassVar[NodeState]
    NODE_STATE_SERVES: _ClassVar[NodeState]
    NODE_STATE_OPENS: _ClassVar[NodeState]
    NODE_STATE_CUT_OFF: _ClassVar[NodeState]
    NODE_STATE_UNREACHABLE: _ClassVar[NodeState]
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_SERVES: NodeState
NODE_STATE_OPENS: NodeState
NODE_STATE_CUT_OFF: NodeState
NODE_STATE_UNREACHABLE: NodeState

class ListNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("cluster", "nodes", "realms")
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    REALMS_FIELD_NUMBER: _ClassVar[int]
    cluster: str
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    realms: _containers.RepeatedCompositeFieldContainer[RealmLeader]
    def __init__(self, cluster: _Optional[str] = ..., nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., realms: _Optional[_Iterable[_Union[RealmLeader, _Mapping]]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("node", "address", "state", "ready", "why", "behind", "version", "clock_ms", "lag", "leads", "stored_bytes", "most_bytes", "free_bytes")
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLOCK_MS_FIELD_NUMBER: _ClassVar[int]
    LAG_FIELD_NUMBER: _ClassVar[int]
    LEADS_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    node: str
    address: str
    state: NodeState
    ready: bool
    why: str
    behind: str
    version: str
    clock_ms: int
    lag: int
    leads: int
    stored_bytes: int
    most_bytes: int
    free_bytes: int
    def __init__(self, node: _Optional[str] = ..., address: _Optional[str] = ..., state: _Optional[_Union[NodeState, str]] = ..., ready: bool = ..., why: _Optional[str] = ..., behind: _Optional[str] = ..., version: _Optional[str] = ..., clock_ms: _Optional[int] = ..., lag: _Optional[int] = ..., leads: _Optional[int] = ..., stored_bytes: _Optional[int] = ..., most_bytes: _Optional[int] = ..., free_bytes: _Optional[int] = ...) -> None: ...

class RealmLeader(_message.Message):
    __slots__ = ("realm", "leader", "position")
    REALM_FIELD_NUMBER: _ClassVar[int]
    LEADER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    realm: str
    leader: str
    position: int
    def __init__(self, realm: _Optional[str] = ..., leader: _Optional[str] = ..., position: _Optional[int] = ...) -> None: ...
