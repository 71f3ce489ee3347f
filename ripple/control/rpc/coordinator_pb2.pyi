from ripple.control.rpc import cluster_pb2 as _cluster_pb2
from ripple.control.rpc import worker_pb2 as _worker_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
