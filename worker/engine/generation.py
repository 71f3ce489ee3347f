"""What a process knows of its generation: whether it serves, and with which epochs."""

from __future__ import annotations

from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING

from ripple.control.assignment.generations import FIRST, Serving
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.control.assignment.generations import ServingChain
    from ripple.world.ports import Clock

# How often partitions are asked whether they may go over, and the record is read: five times less
# by a generation that serves, which an output tells where there is anything to write.
LOOK_S, LOOKS_SERVING = 0.2, 5


class Standing(Enum):
    """What a generation's partitions write."""

    SERVES = "serves"  # the outputs
    PREVIEW = "preview"  # outputs of its own, since it never has served
    FORMER = "former"  # nothing


class Generation:
    """A generation's number, and what the record says of it, as this process last read.

    Without an entry generation 1 serves, and so it begins without reading.
    """

    def __init__(self, number: int, record: ServingChain | None) -> None:
        """Know nothing yet. record: None where there is one generation for ever, as in S3."""
        self.number = number
        self._record = record
        self._now = Serving()
        self._is_known = number == FIRST

    @property
    def standing(self) -> Standing:
        """What its partitions write at present."""
        if self._now.generation == self.number:
            return Standing.SERVES
        return Standing.FORMER if self.number <= self._now.newest else Standing.PREVIEW

    def outputs(self, named: Mapping[str, str], previews: Mapping[str, str]) -> Mapping[str, str]:
        """Return the outputs that its partitions open at present, of those by their names."""
        if self.standing is Standing.SERVES:
            return named
        return previews if self.standing is Standing.PREVIEW else {}

    @property
    def above(self) -> int:
        """How many versions its epochs are above those of its assignment."""
        return self._now.above

    @property
    def entry(self) -> int:
        """The number of the entry that it goes by."""
        return self._now.entry

    @property
    def serving(self) -> str:
        """The mark of its present service, for checkpoints; "" without a record."""
        is_marked = self._now.entry > 0 and self.standing is Standing.SERVES
        return str(self._now.entry) if is_marked else ""

    async def begin(self) -> None:
        """Know before an attempt whether it serves.

        Raises AssignmentError, ChainError and StoreError.
        """
        if not self._is_known:
            await self.look()

    def doubt(self) -> None:
        """Read the record before the next attempt: an output was taken by another owner."""
        self._is_known = self._record is None

    async def look(self) -> None:
        """Read the record. Raises as ``begin``."""
        assert self._record is not None
        self._now = await self._record.newest()
        self._is_known = True

    async def watch(self, clock: Clock, changed: Callable[[], None]) -> None:
        """Read the record for ever; call ``changed`` again and again once it has changed."""
        first, looks = self._now.entry, 0
        while self._record is not None:
            await clock.sleep(LOOK_S)
            looks += 1
            if self.standing is not Standing.SERVES or looks % LOOKS_SERVING == 0:
                with suppress(RippleError, OSError):  # the store is away: an attempt says so
                    await self.look()
            if self._now.entry != first:
                changed()


ALONE = Generation(FIRST, None)
