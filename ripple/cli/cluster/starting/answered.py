"""How far the answers to a local cluster's rows have come, from its workers' metrics.

An ask's records count in commits before its rows have answers. A partition tells how many offsets
of its sources are committed while no row waits. That stays true of these offsets for ever, also
if the page is old, or of a worker that is dead by now.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.cli.lib.client_options import page_at
from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

_OFFSETS, _WAITING = "ripple_partition_answered_offsets", "ripple_ask_waiting_rows"


class Answered(NamedTuple):
    """Committed offsets of sources whose rows all have answers, and the rows that wait."""

    offsets: int
    waiting: int

    def __str__(self) -> str:
        return f"{self.waiting:,} rows wait for answers"


class Answers:
    """Reads the numbers of the workers that answer, and keeps those of each partition."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """addresses: of the workers' pages of metrics."""
        self._addresses = addresses
        self._offsets: dict[str, int] = {}

    async def look(self) -> Answered:
        """Return the present numbers; to be called before the ends of the sources are read."""
        waiting = 0
        for address in self._addresses:
            with suppress(OSError, ValueError, KeyError, TypeError):
                page = json.loads(await page_at(address, "/numbers"))
                for (name, labels), value in Samples.from_values(page).numbers.items():
                    if name == _OFFSETS:
                        _, partition = labels
                        known = self._offsets.get(partition, 0)
                        self._offsets[partition] = max(known, int(value))
                    elif name == _WAITING:
                        waiting += int(value)
        return Answered(sum(self._offsets.values()), waiting)
