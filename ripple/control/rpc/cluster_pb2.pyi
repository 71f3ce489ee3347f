from ripple.control.rpc import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Sighting(_message.Message):
    __slots__ = ("who", "silent_ns", "was_heard", "has_ended")
    WHO_FIELD_NUMBER: _ClassVar[int]
    SILENT_NS_FIELD_NUMBER: _ClassVar[int]
    WAS_HEARD_FIELD_NUMBER: _ClassVar[int]
    HAS_ENDED_FIELD_NUMBER: _ClassVar[int]
    who: _worker_pb2.Member
    silent_ns: int
    was_heard: bool
    has_ended: bool
    def __init__(self, who: _Optional[_Union[_worker_pb2.Member, _Mapping]] = ..., silent_ns: _Optional[int] = ..., was_heard: _Optional[bool] = ..., has_ended: _Optional[bool] = ...) -> None: ...

class Demanded(_message.Message):
    __slots__ = ("who", "demand")
    WHO_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    who: _worker_pb2.Member
    demand: _worker_pb2.Demand
    def __init__(self, who: _Optional[_Union[_worker_pb2.Member, _Mapping]] = ..., demand: _Optional[_Union[_worker_pb2.Demand, _Mapping]] = ...) -> None: ...

class View(_message.Message):
    __slots__ = ("replica", "number", "sightings", "demands")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    SIGHTINGS_FIELD_NUMBER: _ClassVar[int]
    DEMANDS_FIELD_NUMBER: _ClassVar[int]
    replica: str
    number: int
    sightings: _containers.RepeatedCompositeFieldContainer[Sighting]
    demands: _containers.RepeatedCompositeFieldContainer[Demanded]
    def __init__(self, replica: _Optional[str] = ..., number: _Optional[int] = ..., sightings: _Optional[_Iterable[_Union[Sighting, _Mapping]]] = ..., demands: _Optional[_Iterable[_Union[Demanded, _Mapping]]] = ...) -> None: ...

class ViewRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ViewAnswer(_message.Message):
    __slots__ = ("view", "version")
    VIEW_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    view: View
    version: int
    def __init__(self, view: _Optional[_Union[View, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class Freeze(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Unfreeze(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Pin(_message.Message):
    __slots__ = ("partition", "worker")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    partition: int
    worker: str
    def __init__(self, partition: _Optional[int] = ..., worker: _Optional[str] = ...) -> None: ...

class Unpin(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: int
    def __init__(self, partition: _Optional[int] = ...) -> None: ...

class Drain(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    def __init__(self, worker: _Optional[str] = ...) -> None: ...

class Undrain(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: str
    def __init__(self, worker: _Optional[str] = ...) -> None: ...

class Move(_message.Message):
    __slots__ = ("partition", "worker")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    partition: int
    worker: str
    def __init__(self, partition: _Optional[int] = ..., worker: _Optional[str] = ...) -> None: ...

class CommandRequest(_message.Message):
    __slots__ = ("reason", "freeze", "unfreeze", "pin", "unpin", "drain", "undrain", "move")
    REASON_FIELD_NUMBER: _ClassVar[int]
    FREEZE_FIELD_NUMBER: _ClassVar[int]
    UNFREEZE_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    UNPIN_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    UNDRAIN_FIELD_NUMBER: _ClassVar[int]
    MOVE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    freeze: Freeze
    unfreeze: Unfreeze
    pin: Pin
    unpin: Unpin
    drain: Drain
    undrain: Undrain
    move: Move
    def __init__(self, reason: _Optional[str] = ..., freeze: _Optional[_Union[Freeze, _Mapping]] = ..., unfreeze: _Optional[_Union[Unfreeze, _Mapping]] = ..., pin: _Optional[_Union[Pin, _Mapping]] = ..., unpin: _Optional[_Union[Unpin, _Mapping]] = ..., drain: _Optional[_Union[Drain, _Mapping]] = ..., undrain: _Optional[_Union[Undrain, _Mapping]] = ..., move: _Optional[_Union[Move, _Mapping]] = ...) -> None: ...

class CommandAnswer(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemberStatus(_message.Message):
    __slots__ = ("id", "incarnation", "standing", "silent_ms", "load", "partitions", "is_leaving", "addresses", "backpressure")
    ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STANDING_FIELD_NUMBER: _ClassVar[int]
    SILENT_MS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    IS_LEAVING_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    BACKPRESSURE_FIELD_NUMBER: _ClassVar[int]
    id: str
    incarnation: int
    standing: str
    silent_ms: int
    load: float
    partitions: int
    is_leaving: bool
    addresses: _containers.RepeatedCompositeFieldContainer[_worker_pb2.NamedText]
    backpressure: _worker_pb2.Backpressure
    def __init__(self, id: _Optional[str] = ..., incarnation: _Optional[int] = ..., standing: _Optional[str] = ..., silent_ms: _Optional[int] = ..., load: _Optional[float] = ..., partitions: _Optional[int] = ..., is_leaving: _Optional[bool] = ..., addresses: _Optional[_Iterable[_Union[_worker_pb2.NamedText, _Mapping]]] = ..., backpressure: _Optional[_Union[_worker_pb2.Backpressure, _Mapping]] = ...) -> None: ...

class MoveStatus(_message.Message):
    __slots__ = ("partition", "source", "target", "phase", "times_near")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    TIMES_NEAR_FIELD_NUMBER: _ClassVar[int]
    partition: int
    source: str
    target: str
    phase: str
    times_near: int
    def __init__(self, partition: _Optional[int] = ..., source: _Optional[str] = ..., target: _Optional[str] = ..., phase: _Optional[str] = ..., times_near: _Optional[int] = ...) -> None: ...

class PinStatus(_message.Message):
    __slots__ = ("partition", "worker", "reason")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    partition: int
    worker: str
    reason: str
    def __init__(self, partition: _Optional[int] = ..., worker: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PartitionStatus(_message.Message):
    __slots__ = ("stage", "number", "owner", "since", "standby")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    STANDBY_FIELD_NUMBER: _ClassVar[int]
    stage: str
    number: int
    owner: str
    since: int
    standby: str
    def __init__(self, stage: _Optional[str] = ..., number: _Optional[int] = ..., owner: _Optional[str] = ..., since: _Optional[int] = ..., standby: _Optional[str] = ...) -> None: ...

class AlertStatus(_message.Message):
    __slots__ = ("worker", "alert")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ALERT_FIELD_NUMBER: _ClassVar[int]
    worker: str
    alert: _worker_pb2.Alert
    def __init__(self, worker: _Optional[str] = ..., alert: _Optional[_Union[_worker_pb2.Alert, _Mapping]] = ...) -> None: ...

class Scale(_message.Message):
    __slots__ = ("wanted", "now", "most", "why")
    WANTED_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    MOST_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    wanted: int
    now: int
    most: int
    why: str
    def __init__(self, wanted: _Optional[int] = ..., now: _Optional[int] = ..., most: _Optional[int] = ..., why: _Optional[str] = ...) -> None: ...

class StatusAnswer(_message.Message):
    __slots__ = ("replica", "version", "cause", "frozen", "partitions", "unowned", "members", "moves", "pins", "replicas", "waiting", "problems", "owners", "alerts", "scale", "credential")
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    UNOWNED_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    MOVES_FIELD_NUMBER: _ClassVar[int]
    PINS_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    replica: str
    version: int
    cause: str
    frozen: str
    partitions: int
    unowned: int
    members: _containers.RepeatedCompositeFieldContainer[MemberStatus]
    moves: _containers.RepeatedCompositeFieldContainer[MoveStatus]
    pins: _containers.RepeatedCompositeFieldContainer[PinStatus]
    replicas: _containers.RepeatedScalarFieldContainer[str]
    waiting: _containers.RepeatedCompositeFieldContainer[_worker_pb2.NamedText]
    problems: _containers.RepeatedScalarFieldContainer[str]
    owners: _containers.RepeatedCompositeFieldContainer[PartitionStatus]
    alerts: _containers.RepeatedCompositeFieldContainer[AlertStatus]
    scale: Scale
    credential: str
    def __init__(self, replica: _Optional[str] = ..., version: _Optional[int] = ..., cause: _Optional[str] = ..., frozen: _Optional[str] = ..., partitions: _Optional[int] = ..., unowned: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberStatus, _Mapping]]] = ..., moves: _Optional[_Iterable[_Union[MoveStatus, _Mapping]]] = ..., pins: _Optional[_Iterable[_Union[PinStatus, _Mapping]]] = ..., replicas: _Optional[_Iterable[str]] = ..., waiting: _Optional[_Iterable[_Union[_worker_pb2.NamedText, _Mapping]]] = ..., problems: _Optional[_Iterable[str]] = ..., owners: _Optional[_Iterable[_Union[PartitionStatus, _Mapping]]] = ..., alerts: _Optional[_Iterable[_Union[AlertStatus, _Mapping]]] = ..., scale: _Optional[_Union[Scale, _Mapping]] = ..., credential: _Optional[str] = ...) -> None: ...

class PipelinesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Pipeline(_message.Message):
    __slots__ = ("name", "number", "file", "source", "sinks", "partitions", "needs_one", "is_stopped", "revision")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SINKS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEEDS_ONE_FIELD_NUMBER: _ClassVar[int]
    IS_STOPPED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    file: str
    source: str
    sinks: _containers.RepeatedScalarFieldContainer[str]
    partitions: int
    needs_one: bool
    is_stopped: bool
    revision: int
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ..., file: _Optional[str] = ..., source: _Optional[str] = ..., sinks: _Optional[_Iterable[str]] = ..., partitions: _Optional[int] = ..., needs_one: _Optional[bool] = ..., is_stopped: _Optional[bool] = ..., revision: _Optional[int] = ...) -> None: ...

class PipelinesAnswer(_message.Message):
    __slots__ = ("all", "entry")
    ALL_FIELD_NUMBER: _ClassVar[int]
    ENTRY_FIELD_NUMBER: _ClassVar[int]
    all: _containers.RepeatedCompositeFieldContainer[Pipeline]
    entry: int
    def __init__(self, all: _Optional[_Iterable[_Union[Pipeline, _Mapping]]] = ..., entry: _Optional[int] = ...) -> None: ...
