"""The log of a partition's markers, in the store of its checkpoints.

It is an input of the partition: a marker is durable before it counts, and a cut says how many have
counted. An object holds markers as JSON, each as [next offset, input, offset, watermark in ns].

Of the markers of one silence the last one decides: the earlier ones go when objects are merged, and
leave holes. The oldest markers go once there are too many, as records of a log with retention do.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.model.batch import IdleMarker
from ripple.model.pipeline.input_names import markers_of
from ripple.storage.checkpoint.origin import folder_of
from ripple.task.input_log import InputLog
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ripple.core.cut import Cut
    from ripple.storage.fenced import Added
    from ripple.world.ports import Guards, ObjectStore, Random

_OF_PARTITION = re.compile(r"(\d{5})/markers/")
# Beyond, one object takes the place of all.
MARKER_OBJECTS_MAX = 256
# Kept when that happens; twice as many are the most at any time.
MARKERS_KEPT_MAX = 200_000
# The newest are kept one by one: an output may have committed between two of them.
MARKERS_SINGLE = 1_000


async def problems_of(
    store: ObjectStore, pipeline: str, partition: int, cuts: Iterable[Cut]
) -> list[str]:
    """Return why markers that cuts have read cannot be read again. Raises StoreError."""
    log, name = MarkerLog(store, pipeline, partition), markers_of(partition)
    try:
        await log.read()
        log.check(max((cut.get(name, 0) for cut in cuts), default=0))
    except InputError as error:
        return [str(error)]
    return []


class MarkerLog(InputLog):
    """The markers of a partition, in order; see InputLog.

    Invariants: ``_ends`` are the rising offsets after ``_markers``, ``_by_input`` the same markers.
    """

    _folder = "markers"
    _entries = "markers of idle inputs"
    _removed = "its oldest ones are gone, so begin with another folder of checkpoints and outputs"

    def __init__(
        self, store: ObjectStore, pipeline: str, partition: int = 0, *, guards: Guards = all_guards
    ) -> None:
        """Touch nothing yet. The store should retry failures."""
        super().__init__(store, pipeline, partition, guards)
        self._taken: list[Added] = []  # the objects read, which these markers are of
        self._markers: list[IdleMarker] = []
        self._ends: list[int] = []
        self._by_input: defaultdict[str, list[IdleMarker]] = defaultdict(list)
        self._first = 0
        self.is_there = False
        """Whether an owner has begun it."""

    @property
    def first(self) -> int:
        """The first offset that can be read from."""
        return self._first

    @property
    def end(self) -> int:
        """The offset after the last marker."""
        return self._ends[-1] if self._ends else self._first

    async def open(self, epoch: int, random: Random) -> None:
        """Become the owner, and read the markers; see InputLog."""
        await super().open(epoch, random)
        self._taken = []

    async def add(self, markers: Sequence[IdleMarker]) -> None:
        """Add markers; they can be read once they are durable.

        Raises FencedError when another owner has begun; after a StoreError it may be repeated.
        """
        if self._guards("marker_put"):
            await self._journal.add(_encoded(markers))
        self._hold(markers)

    async def remove_passed(self, cut: Cut) -> None:
        """Remove the markers that count before ``cut``; raises as ``add``.

        They were read by no run, and can count no more: one without ``idle`` has read on, or the
        input begins later by now.
        """
        left = [one for one in self._markers if one.input in cut and cut[one.input] <= one.offset]
        if len(left) < len(self._markers):
            await self._put_all(left)

    async def tidy(self) -> None:
        """Merge objects if there are too many; raises and may be repeated as ``add``."""
        if self._journal.objects <= MARKER_OBJECTS_MAX:
            return
        kept = merged(self._markers)
        if len(kept) > MARKERS_KEPT_MAX:
            self._first = kept[-MARKERS_KEPT_MAX - 1].next_offset
            del kept[:-MARKERS_KEPT_MAX]
        await self._put_all(kept)

    async def _put_all(self, markers: list[IdleMarker]) -> None:
        """Put one object in the place of all."""
        self._forget()
        self._hold(markers)
        await self._journal.add(_encoded(markers, self.first), is_whole=True)

    def _forget(self) -> None:
        self._markers, self._ends = [], []
        self._by_input.clear()

    def _hold(self, markers: Sequence[IdleMarker]) -> None:
        self._markers += markers
        for one in markers:
            self._ends.append(one.next_offset)
            self._by_input[one.input].append(one)

    def after(self, offset: int) -> IdleMarker | None:
        """Return the first marker that is not before an offset; None if there is none yet."""
        at = bisect_right(self._ends, offset)
        return self._markers[at] if at < len(self._markers) else None

    def barriers(self, offset: int, stop: int | None = None) -> dict[str, int]:
        """Return per input the offset of its first marker from ``offset`` on, up to ``stop``.

        No record behind it is read before the marker counts.
        """
        found: dict[str, int] = {}
        for name, markers in self._by_input.items():
            at = bisect_right(markers, offset, key=lambda one: one.next_offset)
            if at < len(markers) and (stop is None or markers[at].next_offset <= stop):
                found[name] = markers[at].offset
        return found

    def _take(self, added: list[Added]) -> None:
        if self._journal.damage:
            raise InputError(
                f"the log of markers of idle inputs is damaged: {self._journal.damage[0]}. Restore "
                "that object, or begin with another folder of checkpoints and outputs"
            )
        known = len(self._taken)
        if not known or added[:known] != self._taken:  # a whole one has taken their place
            known, self._first = 0, 0
            self._forget()
        self._taken, self.is_there = added, bool(added)
        for one in added[known:]:
            if one.data:
                first, markers = _decoded(one.data)
                self._first = first if one.is_whole else self._first
                self._hold(markers)


async def partitions_in(store: ObjectStore, pipeline: str) -> list[int]:
    """Return the partitions of a pipeline that have a log of markers. Raises StoreError."""
    folder = folder_of(pipeline)
    names = [name.removeprefix(folder) for name in await store.list(folder)]
    return sorted({int(found[1]) for name in names if (found := _OF_PARTITION.match(name))})


def merged(markers: Sequence[IdleMarker]) -> list[IdleMarker]:
    """Return the markers; of each silence, later ones replace earlier ones."""
    kept: dict[tuple[str, int], IdleMarker] = {}
    for one in markers[:-MARKERS_SINGLE]:
        kept.pop((one.input, one.offset), None)
        kept[one.input, one.offset] = one
    return [*kept.values(), *markers[-MARKERS_SINGLE:]]


def markers_in(data: bytes) -> list[IdleMarker]:
    """Return the markers of one object with data."""
    return _decoded(data)[1]


def _encoded(markers: Iterable[IdleMarker], first: int = 0) -> bytes:
    rows = [[one.next_offset, one.input, one.offset, one.watermark_ns] for one in markers]
    return json.dumps({"first": first, "markers": rows}, separators=(",", ":")).encode()


def _decoded(data: bytes) -> tuple[int, list[IdleMarker]]:
    held = json.loads(data)
    return held["first"], [
        IdleMarker(watermark_ns, next_offset, name, offset)
        for next_offset, name, offset, watermark_ns in held["markers"]
    ]
