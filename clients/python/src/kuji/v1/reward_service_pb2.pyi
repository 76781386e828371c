from kuji.v1 import atomic_pb2 as _atomic_pb2
from kuji.v1 import batch_pb2 as _batch_pb2
from kuji.v1 import catalog_pb2 as _catalog_pb2
from kuji.v1 import claim_pb2 as _claim_pb2
from kuji.v1 import collect_pb2 as _collect_pb2
from kuji.v1 import draw_pb2 as _draw_pb2
from kuji.v1 import events_pb2 as _events_pb2
from kuji.v1 import grant_pb2 as _grant_pb2
from kuji.v1 import history_pb2 as _history_pb2
from kuji.v1 import hold_pb2 as _hold_pb2
from kuji.v1 import identity_pb2 as _identity_pb2
from kuji.v1 import lookup_pb2 as _lookup_pb2
from kuji.v1 import odds_pb2 as _odds_pb2
from kuji.v1 import player_pb2 as _player_pb2
from kuji.v1 import pool_pb2 as _pool_pb2
from kuji.v1 import progress_pb2 as _progress_pb2
from kuji.v1 import quest_pb2 as _quest_pb2
from kuji.v1 import rank_pb2 as _rank_pb2
from kuji.v1 import redeem_pb2 as _redeem_pb2
from kuji.v1 import register_pb2 as _register_pb2
from kuji.v1 import role_pb2 as _role_pb2
from kuji.v1 import round_pb2 as _round_pb2
from kuji.v1 import stream_pb2 as _stream_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
