from kuji.v1 import access_pb2 as _access_pb2
from kuji.v1 import backup_pb2 as _backup_pb2
from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import codes_pb2 as _codes_pb2
from kuji.v1 import identity_pb2 as _identity_pb2
from kuji.v1 import node_pb2 as _node_pb2
from kuji.v1 import proposal_pb2 as _proposal_pb2
from kuji.v1 import realm_pb2 as _realm_pb2
from kuji.v1 import reverse_pb2 as _reverse_pb2
from kuji.v1 import role_pb2 as _role_pb2
from kuji.v1 import set_counter_pb2 as _set_counter_pb2
from kuji.v1 import set_limit_pb2 as _set_limit_pb2
from kuji.v1 import simulate_pb2 as _simulate_pb2
from kuji.v1 import slow_pb2 as _slow_pb2
from kuji.v1 import track_pb2 as _track_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
