"""Events as a log for a simulated task: all of it there, or written alongside."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ripple.connectors.connector import Part
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError
from ripple.model.pipeline.input_names import inputs_by_source, source_of
from ripple.model.schema.columns import records_of
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic
from ripple.task.endpoints import NONE_DIVIDED
from ripple.task.several_sources import inputs_of
from ripple.testing.check import NO_EVENTS, Happening, Marker, one_by_one
from ripple.testing.sim.world import sim_world
from ripple.testing.written import read

if TYPE_CHECKING:
    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.reference.steps import Row
    from ripple.testing.sim.disk import SimDisk
    from ripple.testing.sim.world import SimWorld
    from ripple.world.ports import Disk

TOPIC = "source"
# Rows of the appends in turn, so that they do not end where batches do.
FRAME_ROWS = (3, 1, 6, 2)
PAUSE_MS_MAX = 150


class Frame(NamedTuple):
    """One append to an input's log: records, or a marker's watermark."""

    name: str
    first_offset: int
    records: pa.RecordBatch | None
    watermark_ns: int = 0


class CrashSource:
    """The input of a crash test: the same logs in every run, one for each source.

    events: per input, all rows and markers in order, so that an offset is an index.
    """

    def __init__(self, plan: Plan, events: Iterable[Happening], inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self.events: dict[str, list[Row | Marker]] = {name: [] for name in inputs}
        self._plan = plan
        self.by_source = inputs_by_source(plan, inputs)
        self._frames = list(self._framed(read(plan, one_by_one(events, self._alone))))
        if not self._frames:
            raise InputError(NO_EVENTS)

    @cached_property
    def _empty(self) -> dict[str, bytes]:
        return self._image([])

    @cached_property
    def _full(self) -> dict[str, bytes]:
        return self._image(self._frames)

    @property
    def _alone(self) -> str | None:
        """The input of events that name none; None where there are several sources."""
        return self.inputs[0] if len(self.by_source) == 1 else None

    def _topic(self, source: str) -> str:
        return TOPIC if len(self.by_source) == 1 else f"{TOPIC}/{source}"

    def _place(self, name: str) -> tuple[str, int]:
        """Return the topic and the partition of an input."""
        source = source_of(self._plan, name).name
        return self._topic(source), self.by_source[source].index(name)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many inputs each source has, by name."""
        return tuple((name, len(inputs)) for name, inputs in self.by_source.items())

    def of_part(self, part: Part, *, whole: Container[str] = ()) -> tuple[str, ...]:
        """Return the inputs of a partition of a cluster, source by source; of ``whole`` all."""
        number, count = part
        return tuple(
            name
            for source, inputs in self.by_source.items()
            for name in (inputs if source in whole else inputs[number::count])
        )

    def opened(
        self,
        disk: Disk,
        batch_rows: int,
        *,
        follow: bool,
        part: Part | None = None,
        divided: Mapping[str, Inputs] = NONE_DIVIDED,
    ) -> Inputs:
        """Return the inputs of a task. part: of a cluster, whose inputs these are; None: all.

        divided: of repartitioned sources.
        """
        opened = self.opened_by_source(disk, batch_rows, follow=follow, part=part, but=divided)
        return inputs_of(self._plan, {**opened, **divided})

    def opened_by_source(
        self,
        disk: Disk,
        batch_rows: int,
        *,
        follow: bool,
        part: Part | None = None,
        but: Container[str] = (),
    ) -> dict[str, Inputs]:
        """Return the inputs of a task by source, without the sources ``but``."""
        opened: dict[str, Inputs] = {}
        own = self.inputs if part is None else self.of_part(part)
        for source in self._plan.sources:
            if source.name in but:
                continue
            places = enumerate(self.by_source[source.name])
            partitions = {name: at for at, name in places if name in own}
            shape = RecordShape.of(source)
            topic = Topic.open(disk, self._topic(source.name))
            opened[source.name] = LogInputs(topic, partitions, shape, batch_rows, follow=follow)
        return opened

    @property
    def end(self) -> dict[str, int]:
        """The cut after everything."""
        return {name: len(events) for name, events in self.events.items()}

    def install(self, world: SimWorld, *, whole: bool) -> None:
        """Put the log there, durable, unless an earlier incarnation has found it."""
        if not world.disk.exists(f"{self._place(self.inputs[0])[0]}/topic"):
            world.disk.install(self._full if whole else self._empty)

    def end_of(self, disk: SimDisk, name: str) -> int:
        """Return the end of an input's log now."""
        topic, partition = self._place(name)
        with PartitionReader(Topic.open(disk, topic), partition) as reader:
            return reader.range()[1]

    async def produce(
        self, world: SimWorld, *, pause_ms_max: Callable[[], int] = lambda: PAUSE_MS_MAX
    ) -> None:
        """Append missing records, as another process does that syncs at its end."""
        writers: dict[str, PartitionWriter] = {}
        for name in self.inputs:
            topic, partition = self._place(name)
            writers[name] = PartitionWriter(Topic.open(world.disk, topic), partition, world.clock)
        try:
            for frame in self._frames:
                writer = writers[frame.name]
                if frame.first_offset >= writer.next_offset:
                    await world.clock.sleep(world.random.below(pause_ms_max()) / 1000)
                    _append(writer, frame)
        finally:
            for writer in writers.values():
                writer.close()

    def _framed(self, events: Iterator[tuple[str, Mapping[str, Any] | Marker]]) -> Iterator[Frame]:
        """Cut the events into appends, in the order given."""
        rows: list[Row] = []
        name, sizes = self.inputs[0], cycle(FRAME_ROWS)
        size = next(sizes)

        def frame() -> Iterator[Frame]:
            if rows:
                first_offset = len(self.events[name]) - len(rows)
                records = records_of(rows, source_of(self._plan, name).fields)
                yield Frame(name, first_offset, records)
                rows.clear()

        for source, event in events:
            if source != name or isinstance(event, Marker) or len(rows) == size:
                yield from frame()
                size = next(sizes)
            name = source
            if isinstance(event, Marker):
                yield Frame(name, len(self.events[name]), None, event.watermark_ns)
            else:
                rows.append(dict(event))
            self.events[name].append(event if isinstance(event, Marker) else dict(event))
        yield from frame()

    def _image(self, frames: Iterable[Frame]) -> dict[str, bytes]:
        world = sim_world()
        settings, written = LogSettings(sync_appends=0), list(frames)
        for source in self._plan.sources:
            names, place = self.by_source[source.name], self._topic(source.name)
            topic = Topic.create(
                world.disk, place, source.schema, partitions=len(names), settings=settings
            )
            for at, name in enumerate(names):
                with PartitionWriter(topic, at, world.clock) as writer:
                    for frame in written:
                        if frame.name == name:
                            _append(writer, frame)
        return world.disk.image()


def _append(writer: PartitionWriter, frame: Frame) -> None:
    if frame.records is None:
        writer.mark(frame.watermark_ns)
    else:
        writer.append(frame.records)
