from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NamedText(_message.Message):
    __slots__ = ("name", "text")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    name: str
    text: str
    def __init__(self, name: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class NamedCount(_message.Message):
    __slots__ = ("name", "count")
    NAME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    name: str
    count: int
    def __init__(self, name: _Optional[str] = ..., count: _Optional[int] = ...) -> None: ...

class Code(_message.Message):
    __slots__ = ("pipeline", "plan_hash", "topology_hash", "protocol", "schemas", "stages", "ends")
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    PLAN_HASH_FIELD_NUMBER: _ClassVar[int]
    TOPOLOGY_HASH_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    STAGES_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    pipeline: str
    plan_hash: str
    topology_hash: str
    protocol: int
    schemas: _containers.RepeatedCompositeFieldContainer[NamedText]
    stages: _containers.RepeatedCompositeFieldContainer[NamedCount]
    ends: _containers.RepeatedCompositeFieldContainer[NamedText]
    def __init__(self, pipeline: _Optional[str] = ..., plan_hash: _Optional[str] = ..., topology_hash: _Optional[str] = ..., protocol: _Optional[int] = ..., schemas: _Optional[_Iterable[_Union[NamedText, _Mapping]]] = ..., stages: _Optional[_Iterable[_Union[NamedCount, _Mapping]]] = ..., ends: _Optional[_Iterable[_Union[NamedText, _Mapping]]] = ...) -> None: ...

class Candidate(_message.Message):
    __slots__ = ("id", "nonce", "addresses", "processes", "code", "inputs", "store")
    ID_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    id: str
    nonce: str
    addresses: _containers.RepeatedCompositeFieldContainer[NamedText]
    processes: int
    code: Code
    inputs: _containers.RepeatedCompositeFieldContainer[NamedCount]
    store: str
    def __init__(self, id: _Optional[str] = ..., nonce: _Optional[str] = ..., addresses: _Optional[_Iterable[_Union[NamedText, _Mapping]]] = ..., processes: _Optional[int] = ..., code: _Optional[_Union[Code, _Mapping]] = ..., inputs: _Optional[_Iterable[_Union[NamedCount, _Mapping]]] = ..., store: _Optional[str] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("id", "incarnation")
    ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    incarnation: int
    def __init__(self, id: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Live(_message.Message):
    __slots__ = ("partition", "since")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    partition: int
    since: int
    def __init__(self, partition: _Optional[int] = ..., since: _Optional[int] = ...) -> None: ...

class Follower(_message.Message):
    __slots__ = ("partition", "process", "behind")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    partition: int
    process: str
    behind: int
    def __init__(self, partition: _Optional[int] = ..., process: _Optional[str] = ..., behind: _Optional[int] = ...) -> None: ...

class MoveFailed(_message.Message):
    __slots__ = ("partition", "process", "reason")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    partition: int
    process: str
    reason: str
    def __init__(self, partition: _Optional[int] = ..., process: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Backpressure(_message.Message):
    __slots__ = ("level", "fill", "queue")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    FILL_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    level: int
    fill: float
    queue: str
    def __init__(self, level: _Optional[int] = ..., fill: _Optional[float] = ..., queue: _Optional[str] = ...) -> None: ...

class Alert(_message.Message):
    __slots__ = ("name", "severity", "cause", "seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    severity: str
    cause: str
    seconds: float
    def __init__(self, name: _Optional[str] = ..., severity: _Optional[str] = ..., cause: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class Demand(_message.Message):
    __slots__ = ("busy", "backlog_s", "debt_s", "live")
    BUSY_FIELD_NUMBER: _ClassVar[int]
    BACKLOG_S_FIELD_NUMBER: _ClassVar[int]
    DEBT_S_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    busy: float
    backlog_s: float
    debt_s: float
    live: int
    def __init__(self, busy: _Optional[float] = ..., backlog_s: _Optional[float] = ..., debt_s: _Optional[float] = ..., live: _Optional[int] = ...) -> None: ...

class Line(_message.Message):
    __slots__ = ("time_ms", "number", "level", "process", "text")
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    time_ms: int
    number: int
    level: str
    process: str
    text: str
    def __init__(self, time_ms: _Optional[int] = ..., number: _Optional[int] = ..., level: _Optional[str] = ..., process: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("load", "starts", "live", "followers", "failed", "inputs", "backpressure", "alerts", "demand", "lines")
    LOAD_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    FOLLOWERS_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    BACKPRESSURE_FIELD_NUMBER: _ClassVar[int]
    ALERTS_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    load: float
    starts: _containers.RepeatedScalarFieldContainer[int]
    live: _containers.RepeatedCompositeFieldContainer[Live]
    followers: _containers.RepeatedCompositeFieldContainer[Follower]
    failed: _containers.RepeatedCompositeFieldContainer[MoveFailed]
    inputs: _containers.RepeatedCompositeFieldContainer[NamedCount]
    backpressure: Backpressure
    alerts: _containers.RepeatedCompositeFieldContainer[Alert]
    demand: Demand
    lines: _containers.RepeatedCompositeFieldContainer[Line]
    def __init__(self, load: _Optional[float] = ..., starts: _Optional[_Iterable[int]] = ..., live: _Optional[_Iterable[_Union[Live, _Mapping]]] = ..., followers: _Optional[_Iterable[_Union[Follower, _Mapping]]] = ..., failed: _Optional[_Iterable[_Union[MoveFailed, _Mapping]]] = ..., inputs: _Optional[_Iterable[_Union[NamedCount, _Mapping]]] = ..., backpressure: _Optional[_Union[Backpressure, _Mapping]] = ..., alerts: _Optional[_Iterable[_Union[Alert, _Mapping]]] = ..., demand: _Optional[_Union[Demand, _Mapping]] = ..., lines: _Optional[_Iterable[_Union[Line, _Mapping]]] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("who", "report")
    WHO_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    who: Member
    report: Report
    def __init__(self, who: _Optional[_Union[Member, _Mapping]] = ..., report: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...

class ProcessExited(_message.Message):
    __slots__ = ("who", "slot", "start")
    WHO_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    who: Member
    slot: int
    start: int
    def __init__(self, who: _Optional[_Union[Member, _Mapping]] = ..., slot: _Optional[int] = ..., start: _Optional[int] = ...) -> None: ...

class Draining(_message.Message):
    __slots__ = ("who", "reason")
    WHO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    who: Member
    reason: str
    def __init__(self, who: _Optional[_Union[Member, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class Present(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FromWorker(_message.Message):
    __slots__ = ("register", "heartbeat", "exited", "draining", "left", "checkpointed", "present")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTED_FIELD_NUMBER: _ClassVar[int]
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    register: Candidate
    heartbeat: Heartbeat
    exited: ProcessExited
    draining: Draining
    left: Member
    checkpointed: Member
    present: Present
    def __init__(self, register: _Optional[_Union[Candidate, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., exited: _Optional[_Union[ProcessExited, _Mapping]] = ..., draining: _Optional[_Union[Draining, _Mapping]] = ..., left: _Optional[_Union[Member, _Mapping]] = ..., checkpointed: _Optional[_Union[Member, _Mapping]] = ..., present: _Optional[_Union[Present, _Mapping]] = ...) -> None: ...

class Announced(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: int
    def __init__(self, version: _Optional[int] = ...) -> None: ...

class Refused(_message.Message):
    __slots__ = ("nonce", "reason")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    reason: str
    def __init__(self, nonce: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Postponed(_message.Message):
    __slots__ = ("nonce", "wait_ms", "reason")
    NONCE_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    nonce: str
    wait_ms: int
    reason: str
    def __init__(self, nonce: _Optional[str] = ..., wait_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Evicted(_message.Message):
    __slots__ = ("who", "reason")
    WHO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    who: Member
    reason: str
    def __init__(self, who: _Optional[_Union[Member, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class ToWorker(_message.Message):
    __slots__ = ("announced", "refused", "postponed", "evicted", "checkpoint")
    ANNOUNCED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    POSTPONED_FIELD_NUMBER: _ClassVar[int]
    EVICTED_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    announced: Announced
    refused: Refused
    postponed: Postponed
    evicted: Evicted
    checkpoint: Member
    def __init__(self, announced: _Optional[_Union[Announced, _Mapping]] = ..., refused: _Optional[_Union[Refused, _Mapping]] = ..., postponed: _Optional[_Union[Postponed, _Mapping]] = ..., evicted: _Optional[_Union[Evicted, _Mapping]] = ..., checkpoint: _Optional[_Union[Member, _Mapping]] = ...) -> None: ...
