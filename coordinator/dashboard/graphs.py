"""Live graph: counters of each node of the plan over all partitions, while the graph is viewed.

Workers are asked once for all viewers, and at most every ``EVERY_NS``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.client.dashboard.figures import Rates
from ripple.client.dashboard.nodes import graph_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.dashboard.worker_metrics import WorkerMetrics
    from ripple.client.dashboard.contract import Values
    from ripple.world.ports import Clock

EVERY_NS = 900_000_000


class Graphs:
    """The live graphs of workers, added up by node."""

    def __init__(self, numbers: WorkerMetrics, clock: Clock) -> None:
        """Start without data."""
        self._numbers = numbers
        self._clock = clock
        self._rates = Rates()
        self._newest: Values = {}
        self._at_ns: int | None = None
        self._asking = asyncio.Lock()

    async def of(self, workers: Iterable[tuple[str, str]]) -> Values:
        """Return the nodes and the hot spots; given: names and addresses of workers."""
        async with self._asking:
            now_ns = self._clock.monotonic_ns()
            if self._at_ns is None or now_ns - self._at_ns >= EVERY_NS:
                self._at_ns = now_ns
                pages = await asyncio.gather(
                    *(self._numbers.page(address, "graph") for _, address in workers)
                )
                parts = [part for page in pages if isinstance(page, dict) for part in _parts(page)]
                self._newest = graph_of(parts, self._rates, now_ns)
            return self._newest


def _parts(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a worker's partitions; nothing from another release."""
    parts = page.get("partitions")
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []
