"""How far the answers to a local cluster's rows have come, from its workers' metrics.

An ask's records count in commits before its rows have answers. A partition tells how many offsets
of its sources are committed, with how many answers, while no row waits. That stays true of these
offsets for ever, also if the page is old, or of a worker that is dead by now.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.cli.lib.client_options import page_at
from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.cli.cluster.starting.reach import Reached

_OFFSETS, _ANSWERS = "ripple_partition_answered_offsets", "ripple_partition_committed_answers"
_WAITING = "ripple_ask_waiting_rows"


class Answered(NamedTuple):
    """Committed offsets without a waiting row, the answers to their rows, and all waiting rows.

    answers: by partition.
    """

    offsets: int
    answers: Mapping[str, int]
    waiting: int

    def is_all(self, reached: Reached) -> bool:
        """Return whether the outputs have all records, with the answers to all rows.

        reached: looked at after this, so that its ends are no earlier.
        """
        have = all(reached.answers.get(one, 0) >= count for one, count in self.answers.items())
        return self.offsets == reached.of and have

    def __str__(self) -> str:
        return f"{self.waiting:,} rows wait for answers"


class Answers:
    """Reads the numbers of the workers that answer, and keeps those of each partition."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """addresses: of the workers' pages of metrics."""
        self._addresses = addresses
        self._known: dict[str, tuple[int, int]] = {}

    async def look(self) -> Answered:
        """Return the present numbers."""
        waiting = 0
        for address in self._addresses:
            with suppress(OSError, ValueError, KeyError, TypeError):
                page = json.loads(await page_at(address, "/numbers"))
                waiting += self._take(Samples.from_values(page).numbers)
        answers = {partition: answers for partition, (_, answers) in self._known.items()}
        return Answered(sum(offsets for offsets, _ in self._known.values()), answers, waiting)

    def _take(self, numbers: Mapping[tuple[str, tuple[str, ...]], float]) -> int:
        """Keep what a page tells of partitions; return the rows that wait."""
        for (name, labels), offsets in numbers.items():
            if name == _OFFSETS:
                told = int(offsets), int(numbers[_ANSWERS, labels])
                partition = labels[1]
                self._known[partition] = max(told, self._known.get(partition, told))
        return int(sum(value for (name, _), value in numbers.items() if name == _WAITING))
