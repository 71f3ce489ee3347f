"""Retries of dead letters: their records are appended to their source again, each once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import pyarrow as pa

from ripple.core.errors import InputError, LimitError, SchemaError
from ripple.model.batch import Batch
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.types import Field, Int64, Schema, String
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.log import (
    LogSettings,
    PartitionReader,
    PartitionWriter,
    SequenceError,
    Stamp,
    Topic,
    body,
)
from ripple.storage.log.router import Router
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ripple.connectors.letter import Letter
    from ripple.world.ports import Clock, Disk, Random

# The records that are appended in one step.
LETTERS_MAX = 1000
BYTES_MAX = 4 << 20

_INTENT, _DONE = "intent", "done"
_RETRIED = "retried"  # by a target that records retries itself
_SCHEMA = Schema(
    "retry",
    (
        Field("kind", String()),
        Field("producer", Int64()),
        Field("epoch", Int64()),
        Field("target", String(), doc="the topic's folder"),
        Field("partition", Int64(), doc="of the target"),
        Field("sequence", Int64()),
        Field("input", String(), optional=True),
        Field("offset", Int64(), optional=True),
    ),
)
_ARROW = to_arrow(_SCHEMA)


def retries_path(pipeline: str, partition: int = 0) -> str:
    """Return the journal's folder on the disk of the checkpoints, next to the dead letters."""
    return f"{prefix_of(pipeline, partition)}retries.topic"


class Name(NamedTuple):
    """The identity of a record, not of a dead letter: two versions may reject the same record."""

    input: str
    offset: int


class Step(NamedTuple):
    """One append of a retry: where it goes, and its place among the appends of this journal."""

    target: str
    partition: int
    epoch: int
    sequence: int


@dataclass(slots=True)
class Journal:
    """The finished and unfinished steps of all retries so far.

    producer: drawn once, so that no other journal appends under the same stamps; None before.
    unfinished: steps that may or may not be in the target.
    """

    producer: int | None = None
    epoch: int = 0
    retried: set[Name] = field(default_factory=set)
    unfinished: dict[Step, list[Name]] = field(default_factory=dict)

    def note(self, row: dict[str, Any]) -> None:
        """Take in a row of the journal."""
        step = Step(row["target"], row["partition"], row["epoch"], row["sequence"])
        self.producer = row["producer"]
        self.epoch = max(self.epoch, step.epoch)
        if row["kind"] == _INTENT:
            name = Name(row["input"], row["offset"])
            self.retried.add(name)
            self.unfinished.setdefault(step, []).append(name)
        elif row["kind"] == _RETRIED:
            self.retried.add(Name(row["input"], row["offset"]))
        elif row["kind"] == _DONE:
            self.unfinished.pop(step, None)


def read_journal(disk: Disk, path: str) -> Journal:
    """Read the finished retries; allowed to all, at any time. Raises LogDamagedError."""
    journal = Journal()
    if disk.exists(f"{path}/topic"):
        with PartitionReader(Topic.open(disk, path), 0) as reader:
            for entry in reader.read():
                if isinstance(entry, Batch):
                    for row in entry.records.to_pylist():
                        journal.note(row)
    return journal


@dataclass(slots=True)
class Outcome:
    """The result of a retry. finished: letters of an earlier, interrupted one.

    refused: letters that cannot be retried, and why.
    """

    sent: int = 0
    finished: int = 0
    before: int = 0
    refused: list[tuple[Letter | Name, str]] = field(default_factory=list)


class Retrying(Protocol):
    """A place that takes records of letters as they were where they came from; see Connector.

    It knows its letters by itself, and takes each once. name: of the place.
    """

    name: str

    def __enter__(self) -> Self:
        """Return this."""
        ...

    def __exit__(self, *_: object) -> None:
        """Release it."""
        ...

    def send(self, letters: Iterable[Letter], outcome: Outcome) -> None:
        """Take the records of dead letters; report in ``outcome``. Raises InputError."""
        ...


class Target:
    """The topic that letters go to: a partition is opened, and locked, when one goes there.

    A topic may have many partitions, and to open one is a dozen syncs of a disk.
    """

    def __init__(self, topic: Topic, clock: Clock, *, holder: str = "a retry") -> None:
        self.topic = topic
        self._clock = clock
        self._holder = holder
        self._writers: dict[int, PartitionWriter] = {}

    def writer(self, partition: int) -> PartitionWriter:
        """Return the writer of a partition; raises as PartitionWriter does."""
        if partition not in self._writers:
            writer = PartitionWriter(self.topic, partition, self._clock, holder=self._holder)
            self._writers[partition] = writer
        return self._writers[partition]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close all partitions, the rest also when one cannot be."""
        with ExitStack() as closing:
            for writer in self._writers.values():
                closing.callback(writer.close)


def note_retried(
    disk: Disk,
    path: str,
    target_name: str,
    names: Iterable[Name],
    *,
    clock: Clock,
    random: Random,
    holder: str,
) -> None:
    """Note the letters that another place has taken and knows; raises as PartitionWriter does."""
    with _open_writer(disk, path, clock, holder) as writer:
        journal = read_journal(disk, path)
        producer = _drawn(random) if journal.producer is None else journal.producer
        step = Step(target_name, 0, journal.epoch, 0)
        rows = [_row(_RETRIED, producer, step, one) for one in names if one not in journal.retried]
        if rows:
            writer.append(pa.RecordBatch.from_pylist(rows, schema=_ARROW))


class Retries:
    """Appends dead letters' records to a topic, with durable notes before and after.

    A step that was noted and not finished is repeated under the same stamp before anything else, so
    the target's own log drops it if it is a repetition. The journal is never truncated: it is the
    only record of retries.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        target: Target,
        target_name: str,
        *,
        clock: Clock,
        random: Random,
        holder: str = "a retry",
        guards: Callable[[str], bool] = all_guards,
    ) -> None:
        """Open the journal at ``path``, made if it is absent; raises as PartitionWriter does.

        target_name: tells the target from others, for a retry that has to be finished.
        """
        self._path = path
        self._guards = guards
        self._target = target
        self._target_name = target_name
        self._columns = body.columns_of(target.topic.schema)
        self._writer = _open_writer(disk, path, clock, holder, guards)
        try:
            self._journal = read_journal(disk, path)
        except BaseException:
            self._writer.close()
            raise
        if self._journal.producer is None:
            self._journal.producer = _drawn(random)
        self.outcome = Outcome()

    def finish(self, letters: Callable[[], Iterable[Letter]]) -> None:
        """Repeat the steps of a retry that was cut short.

        letters: all there are, whether they count or not. Raises InputError when it had another
        target, or the target cannot tell its letters.
        """
        wanted = {name for names in self._journal.unfinished.values() for name in names}
        if not wanted:
            return
        rows: dict[Name, pa.RecordBatch] = {}
        for letter in letters():
            name = Name(letter.input, letter.offset)
            if name in wanted and letter.record is not None:
                rows[name] = self._fitted(letter)
        for step, names in list(self._journal.unfinished.items()):
            if step.target != self._target_name:
                raise InputError(
                    f"a retry to {step.target} was cut short: finish it first, by a retry to there"
                )
            if missing := [name for name in names if name not in rows]:
                reason = "its dead letter has gone during an interrupted retry"
                self.outcome.refused += [(name, reason) for name in missing]
            else:
                self._append(step, [rows[name] for name in names])
                self.outcome.finished += len(names)
            self._note([self._row(_DONE, step)])

    def send(self, letters: Iterable[Letter]) -> None:
        """Append the letters that were never retried, each to the partition of its key.

        Raises OSError; then ``finish`` of another life goes on from there.
        """
        topic = self._target.topic
        router = Router(topic.partitions, topic.key)
        self._journal.epoch += 1
        sequences = [0] * topic.partitions
        bytes_max = min(BYTES_MAX, topic.settings.batch_bytes_max)
        load = _Load()
        for letter in letters:
            name = Name(letter.input, letter.offset)
            if name in self._journal.retried:
                self.outcome.before += 1
                continue
            try:
                row = self._fitted(letter)
                ((partition, _),) = router.route(row)
                length_bytes = body.dumps(row).nbytes
                if length_bytes > bytes_max:
                    raise LimitError(f"its {length_bytes} bytes exceed the limit, {bytes_max}")
            except (InputError, SchemaError, LimitError) as error:
                self.outcome.refused.append((letter, str(error)))
                continue
            self._journal.retried.add(name)
            if load.count == LETTERS_MAX or load.length_bytes + length_bytes > bytes_max:
                self._deliver(load, sequences)
                load = _Load()
            load.add(partition, name, row, length_bytes)
        self._deliver(load, sequences)

    def _deliver(self, load: _Load, sequences: list[int]) -> None:
        for partition in sorted(load.groups):
            self._target.writer(partition)  # nothing is noted while another has one of them
        for partition, group in sorted(load.groups.items()):
            step = Step(self._target_name, partition, self._journal.epoch, sequences[partition])
            sequences[partition] += 1
            if self._guards("retry_intent"):
                self._note([self._row(_INTENT, step, name) for name, _ in group])
            self._append(step, [row for _, row in group])
            self._note([self._row(_DONE, step)])
            self.outcome.sent += len(group)

    def close(self) -> None:
        """Release the journal; closing twice is allowed."""
        self._writer.close()

    def _fitted(self, letter: Letter) -> pa.RecordBatch:
        """Return the record as one of the target's; raises InputError or SchemaError."""
        row = letter.row()
        columns = dict(zip(row.schema.names, row.columns, strict=True))
        kinds = {member.name: member.type for member in self._columns}
        for name, column in columns.items():
            if name not in kinds:
                raise SchemaError(f"the topic has no field {name!r}")
            if column.type != kinds[name]:
                raise SchemaError(f"the topic's {name!r} is {kinds[name]}, not {column.type}")
        for member in self._columns:
            if member.name not in columns and member.nullable:
                columns[member.name] = pa.nulls(1, member.type)
        return body.conformed(pa.RecordBatch.from_pydict(columns), self._columns)

    def _append(self, step: Step, rows: list[pa.RecordBatch]) -> None:
        assert self._journal.producer is not None
        stamp = Stamp(self._journal.producer, step.epoch, step.sequence)
        writer = self._target.writer(step.partition)
        try:
            writer.append(pa.concat_batches(rows), stamp)
        except SequenceError as error:
            raise InputError(
                f"{step.target} does not know the records of the interrupted retry ({error}):"
                " was it recreated? Its records may be there or not. Remove the "
                f"folder {self._path} to forget which dead letters were retried"
            ) from error
        writer.sync()

    def _note(self, rows: Sequence[dict[str, Any]]) -> None:
        self._writer.append(pa.RecordBatch.from_pylist(rows, schema=_ARROW))

    def _row(self, kind: str, step: Step, name: Name | None = None) -> dict[str, Any]:
        return _row(kind, self._journal.producer, step, name)


def _row(kind: str, producer: int | None, step: Step, name: Name | None) -> dict[str, Any]:
    return {
        "kind": kind,
        "producer": producer,
        **step._asdict(),
        "input": name and name.input,
        "offset": name and name.offset,
    }


def _open_writer(
    disk: Disk,
    path: str,
    clock: Clock,
    holder: str,
    guards: Callable[[str], bool] = all_guards,
) -> PartitionWriter:
    """Open the journal, made if it is absent."""
    topic = (
        Topic.open(disk, path)
        if disk.exists(f"{path}/topic")
        else Topic.create(disk, path, _SCHEMA, settings=LogSettings(sync_appends=1))
    )
    return PartitionWriter(topic, 0, clock, holder=holder, guards=guards)


def _drawn(random: Random) -> int:
    return int.from_bytes(random.bytes(8)) >> 1


@dataclass(slots=True)
class _Load:
    """Letters on their way, by partition."""

    groups: dict[int, list[tuple[Name, pa.RecordBatch]]] = field(default_factory=dict)
    count: int = 0
    length_bytes: int = 0

    def add(self, partition: int, name: Name, row: pa.RecordBatch, length_bytes: int) -> None:
        self.groups.setdefault(partition, []).append((name, row))
        self.count += 1
        self.length_bytes += length_bytes
