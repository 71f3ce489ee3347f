"""Metrics of workers, fetched from their pages by the dashboard once a tick.

A worker that does not answer in time is shown without numbers, and delays nothing.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ripple.control.probes import page_of
from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.world.ports import Network

ANSWER_S = 0.8


class WorkerMetrics:
    """Fetches metrics from workers."""

    def __init__(self, network: Network) -> None:
        """Fetch nothing yet."""
        self._network = network

    async def of(self, workers: Iterable[tuple[str, str]]) -> dict[str, Samples]:
        """Return the metrics of each worker that answers; given: names and addresses."""
        workers = list(workers)
        found = await asyncio.gather(*(self.page(address, "numbers") for _, address in workers))
        return {
            worker: samples
            for (worker, _), values in zip(workers, found, strict=True)
            if values is not None and (samples := _samples(values)) is not None
        }

    async def page(self, address: str, name: str) -> Any:
        """Return a page's JSON; None without an answer, or if it is no JSON."""
        try:
            return json.loads(await page_of(self._network, address, f"/{name}", ANSWER_S))
        except (OSError, ValueError):
            return None


def _samples(values: Any) -> Samples | None:
    try:
        return Samples.from_values(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # of a worker of another release
