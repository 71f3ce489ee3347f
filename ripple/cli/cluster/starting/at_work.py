"""The number of running partitions of a local cluster, from its coordinators' metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.cli.lib.client_options import page_at

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARTITIONS = "ripple_coordinator_partitions"


class AtWork(NamedTuple):
    """The number of partitions that have restored their state and opened their outputs."""

    live: int
    of: int

    @property
    def is_all(self) -> bool:
        """Whether all partitions run; a cluster without partitions has not begun."""
        return 0 < self.of <= self.live

    def __str__(self) -> str:
        return f"{self.live} of {self.of} partitions are running"


async def at_work(addresses: Sequence[str]) -> AtWork:
    """Read the metrics of the coordinators that answer."""
    found = AtWork(0, 0)
    for address in addresses:
        with suppress(OSError, ValueError):
            said = _numbers(await page_at(address, "/metrics"))
            live, of = said.get(f"{_PARTITIONS}_live", 0), said.get(_PARTITIONS, 0)
            found = max(found, AtWork(live, of))
    return found


_NAMES = ("partitions_live", "partitions")


def _numbers(text: str) -> dict[str, int]:
    pairs = (
        line.split() for line in text.splitlines() if line.startswith("ripple_coordinator_part")
    )
    return {pair[0]: int(float(pair[1])) for pair in pairs}
