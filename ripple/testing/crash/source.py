"""Events as a log for a simulated task: all of it there, or written alongside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ripple.core.errors import InputError
from ripple.model.schema.columns import records_of
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic
from ripple.testing.check import NO_EVENTS, Happening, Marker, one_by_one
from ripple.testing.sim.world import sim_world

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.reference.steps import Row
    from ripple.testing.sim.disk import SimDisk
    from ripple.testing.sim.world import SimWorld

TOPIC = "source"
# Rows of the appends in turn, so that they do not end where batches do.
FRAME_ROWS = (3, 1, 6, 2)
PAUSE_MS_MAX = 150


class Frame(NamedTuple):
    """One append to a partition: records, or a marker's watermark."""

    partition: int
    first_offset: int
    records: pa.RecordBatch | None
    watermark_ns: int = 0


class CrashSource:
    """The input of a crash test: the same log in every run.

    events: per input, all rows and markers in order, so that an offset is an index.
    """

    def __init__(self, plan: Plan, events: Iterable[Happening], inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.events: dict[str, list[Row | Marker]] = {name: [] for name in inputs}
        self._plan = plan
        self._frames = list(self._framed(one_by_one(events, self.inputs[0])))
        if not self._frames:
            raise InputError(NO_EVENTS)
        self._empty = self._image([])
        self._full = self._image(self._frames)

    @property
    def end(self) -> dict[str, int]:
        """The cut after everything."""
        return {name: len(events) for name, events in self.events.items()}

    def install(self, world: SimWorld, *, whole: bool) -> None:
        """Put the log there, durable, unless an earlier incarnation has found it."""
        if not world.disk.exists(f"{TOPIC}/topic"):
            world.disk.install(self._full if whole else self._empty)

    def end_of(self, disk: SimDisk, name: str) -> int:
        """Return the end of an input's log now."""
        with PartitionReader(Topic.open(disk, TOPIC), self.inputs.index(name)) as reader:
            return reader.range()[1]

    async def produce(
        self, world: SimWorld, *, pause_ms_max: Callable[[], int] = lambda: PAUSE_MS_MAX
    ) -> None:
        """Append missing records, as another process does that syncs at its end."""
        topic = Topic.open(world.disk, TOPIC)
        writers = [PartitionWriter(topic, at, world.clock) for at in range(len(self.inputs))]
        try:
            for frame in self._frames:
                writer = writers[frame.partition]
                if frame.first_offset >= writer.next_offset:
                    await world.clock.sleep(world.random.below(pause_ms_max()) / 1000)
                    _append(writer, frame)
        finally:
            for writer in writers:
                writer.close()

    def _framed(self, events: Iterator[tuple[str, Mapping[str, Any] | Marker]]) -> Iterator[Frame]:
        """Cut the events into appends, in the order given."""
        rows: list[Row] = []
        name, sizes = self.inputs[0], cycle(FRAME_ROWS)
        size = next(sizes)

        def frame() -> Iterator[Frame]:
            if rows:
                first_offset = len(self.events[name]) - len(rows)
                records = records_of(rows, self._plan.source.fields)
                yield Frame(self.inputs.index(name), first_offset, records)
                rows.clear()

        for source, event in events:
            if source != name or isinstance(event, Marker) or len(rows) == size:
                yield from frame()
                size = next(sizes)
            name = source
            if isinstance(event, Marker):
                at = self.inputs.index(name)
                yield Frame(at, len(self.events[name]), None, event.watermark_ns)
            else:
                rows.append(dict(event))
            self.events[name].append(event if isinstance(event, Marker) else dict(event))
        yield from frame()

    def _image(self, frames: Iterable[Frame]) -> dict[str, bytes]:
        world = sim_world()
        schema, settings = self._plan.source.schema, LogSettings(sync_appends=0)
        count = len(self.inputs)
        topic = Topic.create(world.disk, TOPIC, schema, partitions=count, settings=settings)
        for at in range(count):
            with PartitionWriter(topic, at, world.clock) as writer:
                for frame in frames:
                    if frame.partition == at:
                        _append(writer, frame)
        return world.disk.image()


def _append(writer: PartitionWriter, frame: Frame) -> None:
    if frame.records is None:
        writer.mark(frame.watermark_ns)
    else:
        writer.append(frame.records)
