"""The inputs of several sources as those of one task."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol, TypeGuard, TypeVar

from ripple.connectors.inputs import (
    NO_ORIGINALS,
    FiledInputs,
    KeepingInputs,
    OriginalInputs,
    RecordingInputs,
    Signal,
    recorded_of,
)
from ripple.core.errors import InputError
from ripple.core.events import EventListener, no_listener
from ripple.core.tracing import TracedInputs
from ripple.model.window import watermark
from ripple.task.next_source import Reading, in_order
from ripple.task.spec import is_notifying

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.connectors.files.folder.taken import FileRecord
    from ripple.connectors.inputs import Inputs, Original
    from ripple.core.cut import Cut
    from ripple.engine.machine import Engine
    from ripple.model.batch import Batch, Marker
    from ripple.model.pipeline.plan import Plan

T = TypeVar("T")


def inputs_of(plan: Plan, opened: Mapping[str, Inputs]) -> Inputs:
    """Return the inputs of all sources of a plan as those of one task.

    opened: of each source, by its name. Raises InputError for other names of inputs of several.
    """
    return SeveralSources(plan, opened) if len(opened) > 1 else opened[plan.sources[0].name]


class WatermarkedInputs(Protocol):
    """Inputs whose order, or markers, depend on the engine's watermarks.

    watermarks_ns: returns them by input, at the cut of ``next``; a task sets it.
    """

    watermarks_ns: Callable[[], Mapping[str, int]]


class AskingInputs(Protocol):
    """Inputs that call for the rows that wait for answers in an engine."""

    def ask_for(self, engine: Engine) -> None:
        """Call for the rows of this engine from now on."""
        ...


class MarkingInputs(Protocol):
    """Inputs whose markers depend on state waiting for a watermark: windows, ending keys, rows.

    waiting_count: its number; is_awaited: whether later stages may hold some. A task sets both.
    """

    waiting_count: Callable[[], int]
    is_awaited: bool


def is_watermarked(inputs: Inputs) -> TypeGuard[WatermarkedInputs]:
    """Tell whether inputs take the engine's watermarks."""
    return hasattr(inputs, "watermarks_ns")


def is_asking(inputs: Inputs) -> TypeGuard[AskingInputs]:
    """Tell whether inputs call for answers."""
    return hasattr(inputs, "ask_for")


def is_marking(inputs: Inputs) -> TypeGuard[MarkingInputs]:
    """Tell whether markers of inputs depend on waiting state."""
    return hasattr(inputs, "waiting_count")


def read_by_watermarks(inputs: Inputs, engine: Engine) -> None:
    """Let the watermarks of an engine decide which of several sources is read next."""
    if is_watermarked(inputs):
        inputs.watermarks_ns = lambda: engine.watermarks_ns


class SeveralSources:
    """The inputs of all sources of a plan; see Inputs, and ``next_source`` for their order.

    watermarks_ns: returns the engine's watermarks by input, at the cut of ``next``; see
    ``read_by_watermarks``.
    """

    def __init__(self, plan: Plan, inputs: Mapping[str, Inputs]) -> None:
        """Take the inputs of each source, by its name. Raises InputError for other names."""
        self._sources = [(source, inputs[source.name]) for source in plan.sources]
        for source, each in self._sources:
            for name in each.names:
                if name.partition("/")[0] != source.name:
                    raise InputError(
                        f"source {source.name!r} has an input called {name!r}: with several "
                        f"sources it must be called {source.name}, or {source.name}/PARTITION"
                    )
        self.watermarks_ns: Callable[[], Mapping[str, int]] = dict
        self.never_waits = all(getattr(one, "never_waits", False) for _, one in self._sources)
        self._of = {name: each for _, each in self._sources for name in each.names}
        self._rows = 1
        self._ended: set[int] = set()
        self._emit: EventListener = no_listener

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs of all, source by source."""
        return tuple(self._of)

    @property
    def emit(self) -> EventListener:
        """The listener of events."""
        return self._emit

    @emit.setter
    def emit(self, listener: EventListener) -> None:
        self._emit = listener
        for _, each in self._sources:
            if is_notifying(each):
                each.emit = listener

    @property
    def fraction_read(self) -> float | None:
        """How much was read, 0.0 to 1.0, all sources alike; None where one does not know."""
        known = [getattr(each, "fraction_read", None) for _, each in self._sources]
        fractions = [one for one in known if one is not None]
        return sum(fractions) / len(known) if len(fractions) == len(known) else None

    def file_at(self, name: str, offset: int) -> str | None:
        """Return the file with a record that was read; see FiledInputs."""
        held = self._of[name]
        return held.file_at(name, offset) if isinstance(held, FiledInputs) else None

    @property
    def recorded(self) -> tuple[str, ...]:
        """The inputs that need a record of their order; see RecordingInputs."""
        return tuple(name for _, each in self._sources for name in recorded_of(each))

    def record_in(self, records: Mapping[str, FileRecord]) -> None:
        """Use these records, by input; see RecordingInputs."""
        for _, each in self._sources:
            if isinstance(each, RecordingInputs):
                each.record_in(records)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        first: dict[str, int] = {}
        end: dict[str, int] = {}
        for _, each in self._sources:
            begins, ends = await each.bounds()
            first |= begins
            end |= ends
        return first, end

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs reach ``cut``; see Inputs."""
        for _, each in self._sources:
            await each.check(_part(cut, each), _part(identities, each))

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that identifies the records before ``cut``; see Inputs."""
        found: dict[str, str] = {}
        for _, each in self._sources:
            found |= await each.identities(_part(cut, each))
        return found

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        self._rows = rows
        self._ended.clear()
        for _, each in self._sources:
            await each.open(_part(cut, each), rows, None if stop is None else _part(stop, each))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next batch of the source with the lowest watermark, of those with batches."""
        found = Signal.ENDED
        for rank in in_order(self._readings(cut)):
            if rank in self._ended:
                continue
            each = self._sources[rank][1]
            entry = each.next(_part(cut, each))
            if not isinstance(entry, Signal):
                return entry
            if entry is Signal.ENDED:
                self._ended.add(rank)
            else:
                found = entry
        return found

    def _readings(self, cut: Cut) -> list[Reading]:
        marks_ns = self.watermarks_ns()
        return [
            Reading(
                rank,
                source.time_field is not None,
                min(marks_ns.get(name, watermark.NONE) for name in each.names),
                sum(_part(cut, each).values()) // self._rows,
            )
            for rank, (source, each) in enumerate(self._sources)
        ]

    async def more(self) -> None:
        """Wait until one of them may have more to say."""
        import asyncio  # noqa: PLC0415 - slow to import, and a one-shot run never waits

        from ripple.world.together import called_off  # noqa: PLC0415 - likewise

        left = [each for rank, (_, each) in enumerate(self._sources) if rank not in self._ended]
        waits = [asyncio.ensure_future(each.more()) for each in left]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            await called_off(*waits)

    def wake(self) -> None:
        """Let ``more`` return; see Inputs."""
        for _, each in self._sources:
            each.wake()

    async def sync(self) -> None:
        """Make the records read so far durable; see Inputs."""
        for _, each in self._sources:
            await each.sync()

    async def close(self) -> None:
        """Release connections and files of all, also where one fails; twice is allowed."""
        async with AsyncExitStack() as closing:
            for _, each in self._sources:
                closing.push_async_callback(each.close)

    # --- optional contracts of inputs ---

    def originals(self, name: str, offsets: Sequence[int]) -> Mapping[int, Original]:
        """Return records of the last batch of input ``name``, by offset; see OriginalInputs."""
        held = self._of[name]
        return held.originals(name, offsets) if isinstance(held, OriginalInputs) else NO_ORIGINALS

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Release the records that no checkpoint needs; see KeepingInputs."""
        for _, each in self._sources:
            if isinstance(each, KeepingInputs):
                each.stored([(_part(cut, each), _part(texts, each)) for cut, texts in checkpoints])

    def trace(self) -> None:
        """Keep the trace contexts of records from the next ``open`` on; see TracedInputs."""
        for _, each in self._sources:
            if isinstance(each, TracedInputs):
                each.trace()

    def contexts(self, name: str, next_offset: int) -> list[str]:
        """Return those of the records of an input before an offset; see TracedInputs."""
        held = self._of[name]
        return held.contexts(name, next_offset) if isinstance(held, TracedInputs) else []


def _part(by_input: Mapping[str, T], inputs: Inputs) -> dict[str, T]:
    """Return the entries of these inputs."""
    return {name: by_input[name] for name in inputs.names if name in by_input}
