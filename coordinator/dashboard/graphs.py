"""Live graph: counters of each node of the plan over all partitions, while the graph is viewed.

Workers are asked once for all viewers, and at most every ``EVERY_NS``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.client.dashboard.figures import Rates, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.dashboard.worker_metrics import WorkerMetrics
    from ripple.client.dashboard.contract import Values
    from ripple.world.ports import Clock

EVERY_NS = 900_000_000
RANKED_MAX = 8
# A smaller share of the total is no hot spot.
SHARE_MIN = 0.1
_COUNTERS = {
    "rows_in": "rate",
    "rows_out": "changes_rate",
    "recomputed": "recomputed_rate",
    "cutoffs": "wasted_rate",
}
_GAUGES = ("keys", "bytes", "idle_inputs")
_GREATEST = "idle_seconds"


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
                nodes = added(parts, self._rates, now_ns)
                self._rates.turn()
                self._newest = {"nodes": nodes, "ranked": ranked(nodes), "partitions": len(parts)}
            return self._newest


def _parts(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return a worker's partitions; nothing from another release."""
    parts = page.get("partitions")
    return [one for one in parts if isinstance(one, dict)] if isinstance(parts, list) else []


def added(parts: Iterable[Mapping[str, Any]], rates: Rates, now_ns: int) -> dict[str, Values]:
    """Return the sums over all partitions, by a node's id in the drawing of the plan.

    A partition's counters restart when it is restored: rates are taken for each, and then added.
    """
    said: dict[str, list[Values]] = {}
    for part in parts:
        where = part.get("process"), part.get("partition")
        for node in part.get("nodes", ()):
            name = _id(node)
            values = {
                rate: rates.rate((name, counter, where), node.get(counter), now_ns)
                for counter, rate in _COUNTERS.items()
            }
            values |= {gauge: node.get(gauge) for gauge in (*_GAUGES, _GREATEST)}
            said.setdefault(name, []).append(values)
    found: dict[str, Values] = {}
    for node, known in said.items():
        one: Values = {each: total(values[each] for values in known) for each in known[0]}
        greatest = [each[_GREATEST] for each in known if each[_GREATEST] is not None]
        one[_GREATEST] = max(greatest, default=None)
        again, wasted = one["recomputed_rate"], one["wasted_rate"]
        found[node] = one | {"cutoff": wasted / again if again else None}
    return found


def _id(node: Mapping[str, Any]) -> str:
    kind, name = str(node.get("kind")), str(node.get("name"))
    return f"{kind} {name}" if kind in ("source", "output") else name


def ranked(nodes: Mapping[str, Values]) -> list[Values]:
    """Return the nodes with the most work, and with the most wasted work; most first."""
    again = total(one["recomputed_rate"] for one in nodes.values()) or 0.0
    found: list[Values] = []
    for name, one in nodes.items():
        share = (one["recomputed_rate"] or 0.0) / again if again else 0.0
        if share >= SHARE_MIN:
            found.append({"node": name, "what": "recomputes", "share": share})
        wasted = (one["wasted_rate"] or 0.0) / again if again else 0.0
        if wasted >= SHARE_MIN:
            found.append({"node": name, "what": "wasted", "share": wasted})
    return sorted(found, key=lambda one: (-one["share"], one["node"], one["what"]))[:RANKED_MAX]
