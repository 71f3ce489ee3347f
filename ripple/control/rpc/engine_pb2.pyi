from ripple.control.rpc import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Begin(_message.Message):
    __slots__ = ("process", "deltas", "plan_hash", "topology_hash", "settings")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    DELTAS_FIELD_NUMBER: _ClassVar[int]
    PLAN_HASH_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_HASH_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    process: str
    deltas: str
    plan_hash: str
    topology_hash: str
    settings: bytes
    def __init__(self, process: _Optional[str] = ..., deltas: _Optional[str] = ..., plan_hash: _Optional[str] = ..., topology_hash: _Optional[str] = ..., settings: _Optional[bytes] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("incarnation", "start")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    start: int
    def __init__(self, incarnation: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class Assign(_message.Message):
    __slots__ = ("assignment", "run")
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    assignment: bytes
    run: Run
    def __init__(self, assignment: _Optional[bytes] = ..., run: _Optional[_Union[Run, _Mapping]] = ...) -> None: ...

class Store(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Inspect(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Stop(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ToEngine(_message.Message):
    __slots__ = ("begin", "assign", "store", "inspect", "stop")
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    ASSIGN_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    INSPECT_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    begin: Begin
    assign: Assign
    store: Store
    inspect: Inspect
    stop: Stop
    def __init__(self, begin: _Optional[_Union[Begin, _Mapping]] = ..., assign: _Optional[_Union[Assign, _Mapping]] = ..., store: _Optional[_Union[Store, _Mapping]] = ..., inspect: _Optional[_Union[Inspect, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ...) -> None: ...

class Health(_message.Message):
    __slots__ = ("is_live", "behind", "failure", "epoch", "events", "rows_out", "checkpoints", "is_spent", "backlog_s", "debt_s")
    IS_LIVE_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    ROWS_OUT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    IS_SPENT_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_S_FIELD_NUMBER: _ClassVar[int]
    DEBT_S_FIELD_NUMBER: _ClassVar[int]
    is_live: bool
    behind: int
    failure: str
    epoch: int
    events: int
    rows_out: int
    checkpoints: int
    is_spent: bool
    backlog_s: float
    debt_s: float
    def __init__(self, is_live: _Optional[bool] = ..., behind: _Optional[int] = ..., failure: _Optional[str] = ..., epoch: _Optional[int] = ..., events: _Optional[int] = ..., rows_out: _Optional[int] = ..., checkpoints: _Optional[int] = ..., is_spent: _Optional[bool] = ..., backlog_s: _Optional[float] = ..., debt_s: _Optional[float] = ...) -> None: ...

class Standing(_message.Message):
    __slots__ = ("partition", "health")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    partition: int
    health: Health
    def __init__(self, partition: _Optional[int] = ..., health: _Optional[_Union[Health, _Mapping]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "held", "limit")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    name: str
    held: int
    limit: int
    def __init__(self, name: _Optional[str] = ..., held: _Optional[int] = ..., limit: _Optional[int] = ...) -> None: ...

class Cannot(_message.Message):
    __slots__ = ("why",)
    WHY_FIELD_NUMBER: _ClassVar[int]
    why: str
    def __init__(self, why: _Optional[str] = ...) -> None: ...

class EngineReport(_message.Message):
    __slots__ = ("report", "standings", "queues", "measures", "inspected")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    STANDINGS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    INSPECTED_FIELD_NUMBER: _ClassVar[int]
    report: _worker_pb2.Report
    standings: _containers.RepeatedCompositeFieldContainer[Standing]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    measures: bytes
    inspected: bytes
    def __init__(self, report: _Optional[_Union[_worker_pb2.Report, _Mapping]] = ..., standings: _Optional[_Iterable[_Union[Standing, _Mapping]]] = ..., queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ..., measures: _Optional[bytes] = ..., inspected: _Optional[bytes] = ...) -> None: ...

class FromEngine(_message.Message):
    __slots__ = ("cannot", "report")
    CANNOT_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    cannot: Cannot
    report: EngineReport
    def __init__(self, cannot: _Optional[_Union[Cannot, _Mapping]] = ..., report: _Optional[_Union[EngineReport, _Mapping]] = ...) -> None: ...
