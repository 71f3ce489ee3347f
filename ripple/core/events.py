"""Events of a task, as plain values: its caller renders, counts or logs them.

A cut is, per input, the next offset to read. Their text is in ``event_text``. They are named
tuples: as many dataclasses would cost a short command a noticeable time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

_Cut: TypeAlias = Mapping[str, int]


class Started(NamedTuple):
    """A task has started. epoch: its fencing number, None in a one-shot run."""

    pipeline: str
    partition: int
    epoch: int | None


class Promise(NamedTuple):
    """A sink records no cut, so that a restart may repeat. text: its guarantee to readers."""

    sink: str
    text: str


class OutputTruncated(NamedTuple):
    """Opening a sink has removed bytes after its last commit."""

    sink: str
    length_bytes: int


class Quarantined(NamedTuple):
    """A record has ended so many tasks that it becomes a dead letter."""

    input: str
    offset: int
    reason: str


class UnskippableRecord(NamedTuple):
    """A poison record ends each task, but an output shows it: it cannot be skipped."""

    input: str
    offset: int


class ManyQuarantined(NamedTuple):
    """So many records became dead letters, after ``deaths`` each, that they are hardly at fault."""

    records: int
    deaths: int


class NotesLost(NamedTuple):
    """The notes of records in flight are damaged; deaths are counted anew."""

    why: str


class NotesUnwritten(NamedTuple):
    """Records in flight cannot be noted; a death in this time blames no record."""

    place: str
    error: OSError


class DeadLettersLost(NamedTuple):
    """Dead letters cannot be read. damage: a text for each object."""

    damage: tuple[str, ...]


class EntriesLost(NamedTuple):
    """The newest entries of a manifest cannot be read. damage: a text for each entry."""

    damage: tuple[str, ...]


class Applying(NamedTuple):
    """Records of one input are being applied."""

    input: str
    first_offset: int
    next_offset: int


class Stabilizing(NamedTuple):
    """The views are being stabilized at a cut."""

    cut: _Cut


class FailedBefore(NamedTuple):
    """The task before ended by an error. doing: its work at that time."""

    doing: Applying | Stabilizing
    reason: str


class RecoveryStalled(NamedTuple):
    """So many tasks were killed while they stabilized the views, the last one at ``cut``."""

    cut: _Cut
    kills: int


class CheckpointSkipped(NamedTuple):
    """A checkpoint that was not taken. why: in words, with its name."""

    checkpoint: str
    why: str


class EngineView(Protocol):
    """The visible state of a stabilized engine.

    plan: of its pipeline. graph: its incremental graph. counters: of events, by outcome.
    last_retractions: rows of windows that were shown before and were corrected or withdrawn.
    """

    plan: Any
    graph: Any
    counters: Any
    last_retractions: int

    @property
    def counters_by_source(self) -> Mapping[str, Any]:
        """The same of each source, by its name."""

    @property
    def asked_counts(self) -> Mapping[str, int]:
        """How many rows wait for the answers of each ask."""

    def answered(self, cut: _Cut) -> tuple[int, int] | None:
        """Return the offsets of sources before a cut, and the answers, if no row waits.

        None without asks, and at another cut.
        """

    @property
    def uncomputable_counts(self) -> Mapping[str, int]:
        """How many rows of each fold cannot be computed."""

    @property
    def versions_out_of_order(self) -> Mapping[str, int]:
        """How many records of each table have an earlier time than the row of their key then."""

    @property
    def join_states(self) -> Mapping[str, Any]:
        """Where each join is."""

    @property
    def keys_held(self) -> int:
        """Keys, of each window that is held, in the fold that holds the most."""

    @property
    def watermark_ns(self) -> int:
        """The merged watermark."""

    @property
    def windows(self) -> int:
        """How many windows are held."""

    def inspected(self) -> dict[str, Any]:
        """Return the counters of its plan's nodes, as values of JSON."""


class Stabilized(NamedTuple):
    """The views are at the engine's cut. nanoseconds: that it took, 0 where no clock is.

    engine: for the listener to read, and not to keep.
    """

    engine: EngineView
    nanoseconds: int


class Replaying(NamedTuple):
    """A replay has come to ``cut`` on its way to ``stop``."""

    cut: _Cut
    stop: _Cut


class Restored(NamedTuple):
    """The state is that of ``cut``, where new records begin.

    checkpoint: its name, None for a replay from the beginning. start, cut: where the replay began
    and ended. events: how many it applied. digest: of all outputs at ``cut``. written_ns: when the
    last checkpoint was written, by its owner's wall clock; None where there is none.
    """

    checkpoint: str | None
    start: _Cut
    cut: _Cut
    skipped: tuple[CheckpointSkipped, ...]
    events: int
    seconds: float
    digest: str
    written_ns: int | None = None


class Diverged(NamedTuple):
    """A restored table differs from its sink's record at the cut: by digests."""

    output: str
    cut: _Cut
    restored: str
    recorded: str


class Refused(NamedTuple):
    """Records of an input became dead letters. causes: how many, by step and reason."""

    input: str
    causes: Mapping[str, int]


class Committed(NamedTuple):
    """All outputs have reached ``cut``.

    rows: written since the last commit. seconds: that it took. digests: by output.
    """

    cut: _Cut
    rows: int
    seconds: float
    digests: Mapping[str, str]


class CommitWaits(NamedTuple):
    """The outputs' brokers do not take a commit, which is tried again and again.

    seconds: for how long. rows: that wait with it; none where the outputs are about to be opened.
    """

    seconds: float
    rows: int
    error: str


class InputWaits(NamedTuple):
    """An input is away, which is asked for again and again.

    seconds: for how long.
    """

    seconds: float
    error: str


class InputBack(NamedTuple):
    """An input that was away is back and unchanged. seconds: that it was away."""

    seconds: float


class InputIdle(NamedTuple):
    """An input has fallen silent, and a marker that raises its watermark is recorded.

    offset: that it was read up to. watermark_ns: from there on.
    """

    input: str
    offset: int
    watermark_ns: int


class InputsEmpty(NamedTuple):
    """Inputs of a source are empty so far, and rows by the watermark wait for them.

    node: a waiting one. is_idle: the source has ``idle=``, and reading ended before its markers.
    is_divided: a source is repartitioned, which excludes ``idle=``.
    """

    source: str
    inputs: tuple[str, ...]
    node: str
    is_idle: bool = False
    is_divided: bool = False


class Silences(NamedTuple):
    """The silence of inputs has changed, or markers of it were recorded.

    idle: how many inputs go on by markers now, by source. recorded: new markers, by source.
    """

    idle: Mapping[str, int]
    recorded: Mapping[str, int]


class Called(NamedTuple):
    """Calls for rows were made, or answers recorded.

    calls, retries, failures: new ones, by ask; a failure is a row without an answer. log_bytes: of
    the partition's log of answers. in_progress: calls by ask at this time.
    """

    calls: Mapping[str, int]
    retries: Mapping[str, int]
    failures: Mapping[str, int]
    log_bytes: int
    in_progress: Mapping[str, int] = MappingProxyType({})


class Stored(NamedTuple):
    """A checkpoint counts from now on. length_bytes: of its files. seconds: that it took."""

    checkpoint: str
    cut: _Cut
    length_bytes: int = 0
    seconds: float = 0.0


class StoreFailed(NamedTuple):
    """A checkpoint could not be stored; the run continues.

    last: the cut of the newest that was. seconds: since when none could be. debt: how many offsets
    lie between that cut and this checkpoint's, which a recovery would replay.
    """

    last: _Cut | None
    error: str
    seconds: float = 0.0
    debt: int = 0


class StoreHandedOver(NamedTuple):
    """The next owner has claimed the checkpoints; this one runs until the handover."""


class Uncomputable(NamedTuple):
    """Rows of a fold cannot be computed, and are absent. final: how many of them for ever.

    key, step, reason: of the first of them by key; empty where it is not known any more.
    """

    fold: str
    rows: int
    final: int
    key: tuple[Any, ...]
    step: str
    reason: str


class FromFuture(NamedTuple):
    """So many events in this task were far ahead of their watermark, which they have moved."""

    events: int


class VeryLate(NamedTuple):
    """So many events in this task came later than is allowed, and do not count."""

    events: int


class RecordsRefused(NamedTuple):
    """So many records of an input became dead letters in this task. cause: of the last one."""

    input: str
    records: int
    cause: str


class CoordinatorFound(NamedTuple):
    """A coordinator answers."""

    coordinator: str


class CoordinatorAnswered(NamedTuple):
    """A coordinator has answered a report, after so many nanoseconds."""

    coordinator: str
    nanoseconds: int


class CoordinatorLost(NamedTuple):
    """A coordinator answers no more, or not yet; it is retried."""

    coordinator: str
    reason: str


class PeerConnected(NamedTuple):
    """There is a connection with another process, for edges between partitions."""

    process: str


class PeerLost(NamedTuple):
    """A connection with another process has ended, or could not be made; it is tried again."""

    process: str
    reason: str


class AssignmentUnread(NamedTuple):
    """The assignment could not be read; its last known version holds."""

    reason: str


class JoinRefused(NamedTuple):
    """A coordinator does not let the worker in; it asks again and again."""

    coordinator: str
    reason: str


class JoinPostponed(NamedTuple):
    """A coordinator lets the worker in later."""

    coordinator: str
    wait_ms: int
    reason: str


class Joined(NamedTuple):
    """The worker is a member, since the version that its incarnation is named after."""

    worker: str
    incarnation: int


class Evicted(NamedTuple):
    """A version is without the worker, which owns nothing any more."""

    worker: str
    incarnation: int
    version: int
    cause: str


class PartitionFailed(NamedTuple):
    """A partition's task has ended by an error; another one follows."""

    partition: int
    epoch: int
    error: Exception


class Remark(NamedTuple):
    """A remark about a whole run, for people, in one line."""

    text: str


class Ended(NamedTuple):
    """The task has ended gracefully."""

    cut: _Cut
    digest: str


Event: TypeAlias = (
    Started
    | Remark
    | Promise
    | OutputTruncated
    | DeadLettersLost
    | EntriesLost
    | NotesLost
    | NotesUnwritten
    | Quarantined
    | UnskippableRecord
    | ManyQuarantined
    | FailedBefore
    | RecoveryStalled
    | Stabilized
    | Replaying
    | Restored
    | Diverged
    | Refused
    | Committed
    | CommitWaits
    | InputWaits
    | InputBack
    | InputIdle
    | InputsEmpty
    | Silences
    | Called
    | Stored
    | StoreFailed
    | StoreHandedOver
    | Uncomputable
    | FromFuture
    | VeryLate
    | RecordsRefused
    | CoordinatorFound
    | CoordinatorAnswered
    | CoordinatorLost
    | PeerConnected
    | PeerLost
    | AssignmentUnread
    | JoinRefused
    | JoinPostponed
    | Joined
    | Evicted
    | PartitionFailed
    | Ended
)

EventListener: TypeAlias = Callable[[Event], None]


def no_listener(_: Event) -> None:
    """Emit to no listener."""
