"""Repartitioned records of a source, as the inputs of the task that folds them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from ripple.connectors.inputs import Signal, in_turn
from ripple.core.cut import is_within
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.window import watermark
from ripple.task.repartition.lane import in_batches
from ripple.task.repartition.rows import OFFSET, WATERMARK
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.core.cut import Cut
    from ripple.model.batch import Marker
    from ripple.task.repartition.lane import Section
    from ripple.task.repartition.reading import LaneReading
    from ripple.world.ports import Guards


class DividedInputs:
    """All inputs of the source, with the records of one receiver, at their own offsets.

    They never end. Each input is a lane; the records of other receivers are holes. The order of
    inputs follows from the cut, as where the source itself is read.
    """

    def __init__(
        self,
        reading: LaneReading,
        lanes: Mapping[str, int],
        fields: Sequence[str],
        batch_rows: int,
        guards: Guards = all_guards,
    ) -> None:
        """Take the lanes' reader, and the input of each lane; fields: of the source."""
        self._reading = reading
        self._lanes = dict(lanes)
        self._fields = list(fields)
        self._batch_rows = batch_rows
        self._guards = guards
        self._rows = batch_rows
        self._rank = {name: rank for rank, name in enumerate(lanes)}
        self._waiting: dict[str, deque[Batch]] = {}
        self._stop: Cut | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which the source declares them."""
        return tuple(self._lanes)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first readable cut, and the cut that all senders have committed."""
        first, end, ranges = {}, {}, await self._reading.ranges()
        for name, lane in self._lanes.items():
            since, last = ranges[lane]
            first[name], end[name] = (since or {}).get(name, 0), (last or {}).get(name, 0)
        return first, end

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the lanes reach ``cut``."""
        del identities  # a lane is never replaced by another one
        _, end = await self.bounds()
        if not is_within(cut, end):
            raise InputError(
                f"the repartition topic ends at {dict(end)}, but what was read of it is "
                f"{dict(cut)}: restore it, give --lanes as it was before, or begin with another "
                "folder, and other outputs"
            )

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identities: lanes have none."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` reads on from there, ``rows`` at a time, up to ``stop``."""
        self._rows, self._stop = rows, stop
        self._waiting = {name: deque() for name in self._lanes}
        await self._reading.open(dict.fromkeys(self._lanes.values(), cut))

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next entry after ``cut``, and its input; or why there is none."""
        for name in in_turn(cut, self._batch_rows, self._rank):
            batch = self._next(name, cut[name])
            if batch is not None:
                return name, batch
        is_at_stop = self._stop is not None and is_within(self._stop, cut)
        return Signal.ENDED if is_at_stop else Signal.WAITING

    async def more(self) -> None:
        """Wait until a sender has written."""
        await self._reading.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._reading.wake()

    async def sync(self) -> None:
        """Make the input read so far durable, before a cut that includes it is stored."""
        await self._reading.sync()

    async def close(self) -> None:
        """Release the reading."""
        await self._reading.close()

    def _next(self, name: str, offset: int) -> Batch | None:
        stop = None if self._stop is None else self._stop[name]
        if stop is not None and offset >= stop:
            return None
        waiting = self._waiting[name]
        while not waiting:
            section = self._reading.next(self._lanes[name])
            if section is None:
                return None
            waiting.extend(self._batches(section, name, offset, stop))
        return waiting.popleft()

    def _batches(self, section: Section, name: str, offset: int, stop: int | None) -> list[Batch]:
        """Return the batches of a section from ``offset`` on, the last one up to its mark.

        Or up to ``stop``, where that comes before: there a batch has ended in an earlier task,
        right after a row.
        """
        end, watermark_ns = section.mark.cut[name], section.mark.watermark_ns
        if end <= offset:
            return []
        offsets = section.rows.column(OFFSET).to_numpy()
        behind = section.rows.column(WATERMARK).to_numpy()
        first, count = int(np.searchsorted(offsets, offset)), len(offsets)
        if stop is not None and stop < end:
            count = int(np.searchsorted(offsets, stop))
            end, watermark_ns = stop, int(behind[count - 1]) if count else watermark.NONE
        rows = section.rows.select(self._fields).slice(first, count - first)
        offsets, behind = offsets[first:count], behind[first:count]
        if not self._guards("lane_holes"):
            end = int(offsets[-1]) + 1 if len(offsets) else offset
        judges = self._guards("lane_watermarks")
        made = []
        for begin, until in in_batches(len(offsets), self._rows):
            is_last = until == len(offsets)
            made.append(
                Batch(
                    rows.slice(begin, until - begin),
                    end if is_last else int(offsets[until - 1]) + 1,
                    (),
                    offsets[begin:until],
                    watermark_ns if is_last else int(behind[until - 1]),
                    behind[begin:until] if judges else None,
                )
            )
        return made
