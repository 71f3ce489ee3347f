"""Changes of the stage before, read from its lanes: a Follows that can be read again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.task.repartition.rows import changes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from ripple.core.cut import Cut
    from ripple.task.repartition.reading import LaneReading

# The log itself shuts out owners that were replaced.
EPOCH = 0
# So many rows are taken at a time; then others have their turn.
TAKE_ROWS = 16_384


@dataclass(frozen=True, slots=True)
class Read:
    """The next arrival in a sender's lane. See Arrival."""

    sender: int
    epoch: int
    changes: EdgeChanges


class FollowedLanes:
    """The lanes of all senders to one receiver."""

    def __init__(
        self,
        reading: LaneReading,
        lanes: Sequence[int],
        schema: pa.Schema,
        wake: Callable[[], None],
    ) -> None:
        """Connect the parts; nothing is read before ``find``.

        reading: of the lanes. lanes: by sender. schema: of the edge. wake: called when there is
        more.
        """
        self._reading = reading
        self._lanes = list(lanes)
        self._schema = schema
        self._wake = wake
        self._cuts: dict[int, Cut] = {}
        self._ends: list[Cut | None] = []
        self._watching: asyncio.Task[None] | None = None
        self._turn = 0
        self._is_unsynced = False

    def begin(self, sender: int, epoch: int | None, cut: Cut | None) -> None:
        """Note the restored position of a sender."""
        del epoch
        if cut is not None:
            self._cuts[sender] = cut

    async def find(self) -> None:
        """Find the position to resume from. Raises InputError where records are missing."""
        cuts = {lane: self._cuts.get(sender) for sender, lane in enumerate(self._lanes)}
        await self._reading.open(cuts)
        ranges = await self._reading.ranges()
        self._ends = [ranges[lane][1] for lane in self._lanes]

    def start(self) -> None:
        """Read all lanes from there on."""
        self._watching = asyncio.get_running_loop().create_task(self._look())
        self._watching.add_done_callback(lambda _: self._wake())
        self._wake()

    def reached_before(self, sender: int) -> Cut | None:
        """Return the end of the lane when it was opened: earlier tasks have seen no more."""
        return self._ends[sender]

    def take(self) -> list[Read]:
        """Return whole cuts of senders in turn, about so many rows as are taken at a time.

        Raises OSError where lanes cannot be watched any more.
        """
        watching = self._watching
        if watching is not None and watching.done() and not watching.cancelled():
            watching.result()
        taken, rows, idle = [], 0, 0
        while idle < len(self._lanes) and rows < TAKE_ROWS:
            sender = self._turn % len(self._lanes)
            self._turn += 1
            section = self._reading.next(self._lanes[sender])
            if section is None:
                idle += 1
                continue
            idle, rows = 0, rows + section.rows.num_rows
            mark = section.mark
            changes = changes_of(section.rows, self._schema)
            taken.append(
                Read(sender, EPOCH, EdgeChanges(mark.since, mark.cut, mark.watermark_ns, changes))
            )
        self._is_unsynced = self._is_unsynced or bool(taken)
        if idle < len(self._lanes):
            self._wake()
        return taken

    async def sync(self) -> None:
        """Make arrivals durable: a writer's rows may be seen before they are."""
        if self._is_unsynced:
            await self._reading.sync()
            self._is_unsynced = False

    def applied(self, arrival: Read) -> None:
        """Do nothing: a checkpoint says up to where it is needed."""

    def refused(self, arrival: Read) -> None:
        """Raise InputError: a log keeps its order."""
        changes = arrival.changes
        raise InputError(
            f"sender {arrival.sender}'s lane goes from {dict(changes.since or {})} to "
            f"{dict(changes.cut)}, which does not start at this partition's position: restore "
            "the repartition topic, or begin with another folder, and other outputs"
        )

    def dropped(self, arrival: Read) -> None:
        """Raise InputError: there are no owners here."""
        self.refused(arrival)

    def release(self, watermark_ns: int) -> None:
        """Do nothing: senders look at the checkpoints."""

    async def stop(self) -> None:
        """Release the reading."""
        if self._watching is not None:
            self._watching.cancel()
        await self._reading.close()

    async def _look(self) -> None:
        while True:
            await self._reading.more()
            self._wake()
