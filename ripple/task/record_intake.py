"""The intake of records: entries of inputs; rejected ones become dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.connectors.inputs import NO_ORIGINALS, OriginalInputs, Signal, in_files
from ripple.core.causes import Causes
from ripple.core.events import Refused
from ripple.model.batch import Batch, Marker, Rejected
from ripple.model.pipeline.input_names import source_of
from ripple.task.empty_inputs import EmptyInputs
from ripple.task.several_sources import is_asking, is_marking, read_by_watermarks

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from ripple.connectors.inputs import Original
    from ripple.core.cut import Cut
    from ripple.engine.machine import Changes
    from ripple.task.drive import Drive
    from ripple.task.live import LivePartition
    from ripple.task.spec import TaskContext, TaskSpec


class DeadLetterQueue(Protocol):
    """Takes rejected records. counts: their number by cause."""

    @property
    def counts(self) -> Counter[str]:
        """How many it has taken, by cause."""
        ...

    def write(
        self,
        name: str,
        rejected: Iterable[Rejected],
        batch: Batch,
        originals: Mapping[int, Original] = NO_ORIGINALS,
    ) -> object:
        """Keep the rejected records of a batch of input ``name``.

        originals: by offset, the records in the form of their source.
        """
        ...

    def sync(self) -> None:
        """Make them durable, before a cut that includes them is committed."""
        ...


class InFlightNotes(Protocol):
    """Notes of the records in flight, for the next task after a crash."""

    def begin(self, name: str, first_offset: int, next_offset: int) -> None:
        """Note that these records are about to be applied."""
        ...

    def stabilizing(self, cut: Cut) -> None:
        """Note that the views are about to be stabilized at ``cut``."""
        ...

    def blamed(self) -> AbstractContextManager[None]:
        """Attribute any error within to the records in flight."""
        ...

    def idle(self) -> None:
        """Note that nothing is in flight."""
        ...


async def _nothing() -> None:
    pass


class RecordIntake:
    """Takes in entries of inputs, and writes their changes. See Intake."""

    def __init__(
        self,
        drive: Drive,
        live: LivePartition,
        spec: TaskSpec,
        context: TaskContext,
        *,
        letters: DeadLetterQueue,
        notes: InFlightNotes | None = None,
        flush: Callable[[], Awaitable[None]] = _nothing,
        guards: Callable[[str], bool],
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        """Feed ``live`` through the drive of its engine.

        notes: None where no task follows after a crash. flush: makes notes, and dead letters up to
        the last sync, available to the next owner. now_ns: a clock, to measure work; None
        without measures.
        """
        self._drive = drive
        self._live = live
        self.engine = drive.engine
        self._counters = drive.engine.counters
        self._inputs = spec.inputs
        self._empty = EmptyInputs(
            spec.plan,
            spec.inputs.names,
            context.emit,
            is_awaited=spec.is_awaited,
            is_divided=spec.is_divided,
            received=spec.received,
        )
        read_by_watermarks(spec.inputs, drive.engine)
        if is_marking(spec.inputs):
            spec.inputs.waiting_count = lambda: drive.engine.waiting_count
            spec.inputs.is_awaited = spec.is_awaited
        if is_asking(spec.inputs):
            spec.inputs.ask_for(drive.engine)
        self._letters = letters
        self._notes = notes
        self._flush = flush
        self._guards = guards
        self._now_ns = now_ns
        self._emit = context.emit
        self._watch = context.watch
        self._traces = context.traces
        # No notes, measures or traces: as in most one-shot runs.
        self._is_bare = notes is None and now_ns is None and context.traces is None
        self._lettered: Cut = {}  # up to this cut the next owner finds the dead letters
        self._rows_traced = 0
        self._begun: set[str] = set()  # inputs of sources with noted first times
        live.report.rejected = letters.counts

    async def take(self) -> Signal | None:
        """Stabilize the views at the end of one batch and write the changes."""
        found = self._inputs.next(self._live.cut)
        if isinstance(found, Signal):
            if found is Signal.WAITING:
                self._empty.look(self.engine)
            elif self._notes is not None:  # a one-shot run ends all windows instead
                self._empty.look(self.engine, is_over=True)
            return found
        name, entry = found
        live, counters = self._live, self._counters
        consumed, report = counters.consumed, live.report
        if self._is_bare:
            self._apply_at_once(name, entry)
            live.write(self._drive.stabilize(), 0)
        else:
            await self._take_measured(name, entry)
        report.stabilizations += 1
        report.events += counters.consumed - consumed
        report.count(counters)
        self._watch(self.engine, report)
        return None

    async def _take_measured(self, name: str, entry: Batch | Marker) -> None:
        live, traces, now_ns = self._live, self._traces, self._now_ns
        started_ns = 0 if now_ns is None else now_ns()
        if traces is not None:
            traces.begin(name, entry, self._inputs)
        await self.apply(name, entry)
        await self.stabilize()
        if traces is not None:
            traces.end(live.outputs.rows_out - self._rows_traced)
            self._rows_traced = live.outputs.rows_out
        if now_ns is not None:
            live.work_ns += now_ns() - started_ns

    async def more(self) -> None:
        """Wait for more of the inputs."""
        await self._inputs.more()

    async def rest(self) -> None:
        """Let the next owner know that nothing is in flight: a kill now is no record's fault."""
        await self._flush()

    def wake(self) -> None:
        """End the wait."""
        self._inputs.wake()

    async def sync(self) -> None:
        """Make dead letters durable, then the position in the input."""
        if self._guards("letter_sync"):
            self._letters.sync()
            await self._flush()
            self._lettered = self.engine.cut
        if self._guards("source_sync"):
            await self._inputs.sync()

    async def apply(self, name: str, entry: Batch | Marker) -> None:
        """Apply a batch or a marker; rejected records become dead letters."""
        if self._notes is None or isinstance(entry, Marker):
            self._apply_at_once(name, entry)
            return
        self._live.is_stabilized = False
        if name not in self._begun:
            self._begin(name, entry)
        rejected, parts = self._drive.parts(name, entry)
        for piece, part in parts:
            self._notes.begin(piece.input, piece.first_offset, piece.next_offset)
            await self._flush()
            with self._notes.blamed():
                rejected += self._drive.apply_part(name, part)
        if rejected:
            self._refuse(name, entry, rejected)

    def _apply_at_once(self, name: str, entry: Batch | Marker) -> None:
        """Apply an entry without notes of entries in flight."""
        self._live.is_stabilized = False
        if name not in self._begun:
            self._begin(name, entry)
        rejected = self._drive.apply(name, entry)
        if rejected and isinstance(entry, Batch):
            self._refuse(name, entry, rejected)

    def _begin(self, name: str, entry: Batch | Marker) -> None:
        if isinstance(entry, Batch):
            source = source_of(self.engine.plan, name)
            if self._live.noticed.units.begins(source, entry):
                self._begun.add(name)

    def _refuse(self, name: str, batch: Batch, rejected: list[Rejected]) -> None:
        rejected = in_files(self._inputs, name, rejected)
        if self._notes is not None:
            self._notes.idle()  # a disk that is full is no record's fault
        originals: Mapping[int, Original] = NO_ORIGINALS
        if isinstance(self._inputs, OriginalInputs):
            originals = self._inputs.originals(name, [bad.offset for bad in rejected])
        self._letters.write(name, rejected, batch, originals)
        causes = Causes()
        for bad in rejected:
            causes.add(bad.cause)
        self._emit(Refused(name, causes))
        self._live.noticed.refused(name, len(rejected), rejected[-1].cause)

    async def stabilize(self) -> None:
        """Stabilize the views; write the changes to the outputs that lack them."""
        await self._write(self._drive.stabilize)

    async def close(self) -> None:
        """Declare the end of all inputs: windows end, and the resulting changes are written."""
        report = self._live.report
        report.watermark_ns = self.engine.watermark_ns
        self._live.noticed.look_at_times(self.engine)
        changes = await self._write(self._drive.close)
        report.stabilizations += any(rows.num_rows for rows in changes.outputs.made.values())
        self.watch()

    async def _write(self, stabilize: Callable[[], Changes]) -> Changes:
        now_ns = self._now_ns
        if self._notes is None:
            began_ns = 0 if now_ns is None else now_ns()
            changes = stabilize()
        else:
            self._notes.stabilizing(self.engine.cut)
            await self._flush()
            began_ns = 0 if now_ns is None else now_ns()
            with self._notes.blamed():
                changes = stabilize()
            self._notes.idle()
        self._live.write(changes, began_ns)
        return changes

    def watch(self) -> None:
        """Report the progress."""
        report = self._live.report
        report.count(self._counters)
        self._watch(self.engine, report)

    @property
    def is_whole(self) -> bool:
        """Whether all work is in the engine, the stored dead letters, and given to the outputs."""
        return self._live.is_stabilized and self._lettered == self.engine.cut
