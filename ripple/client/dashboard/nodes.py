"""Live numbers of the nodes of a plan, added up over partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.client.dashboard.figures import total
from ripple.control.telemetry.measures import is_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ripple.client.dashboard.contract import Values
    from ripple.client.dashboard.figures import Rates

RANKED_MAX = 8
# A smaller share of the total is no hot spot.
SHARE_MIN = 0.1
_COUNTERS = {
    "rows_in": "rate",
    "rows_out": "changes_rate",
    "recomputed": "recomputed_rate",
    "cutoffs": "wasted_rate",
}
_GAUGES = (
    *("keys", "bytes", "idle_inputs", "uncomputable"),
    *("waiting", "answered", "calls_now", "retries", "failures"),
)
_GREATEST = "idle_seconds"


def graph_of(parts: Sequence[Mapping[str, Any]], rates: Rates, now_ns: int) -> Values:
    """Return the nodes and the hot spots of some partitions."""
    nodes = added(parts, rates, now_ns)
    rates.turn()
    return {"nodes": nodes, "ranked": ranked(nodes), "partitions": len(parts)}


def added(parts: Iterable[Mapping[str, Any]], rates: Rates, now_ns: int) -> dict[str, Values]:
    """Return the sums over all partitions, by a node's id in the drawing of the plan.

    A partition's counters restart when it is restored: rates are taken for each, and then added.
    """
    said: dict[str, list[Values]] = {}
    joins: dict[str, list[Mapping[str, Any]]] = {}
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
            if node.get("sides"):
                joins.setdefault(name, []).append(node)
    found: dict[str, Values] = {}
    for node, known in said.items():
        one: Values = {each: total(values[each] for values in known) for each in known[0]}
        greatest = [each[_GREATEST] for each in known if each[_GREATEST] is not None]
        one[_GREATEST] = max(greatest, default=None)
        one["join"] = joined(joins[node]) if node in joins else None
        again, wasted = one["recomputed_rate"], one["wasted_rate"]
        found[node] = one | {"cutoff": wasted / again if again else None}
    return found


def joined(parts: Sequence[Mapping[str, Any]]) -> Values:
    """Return where a join is in all partitions: ``sides``, and the share ``alone``.

    Of a side rows is the sum, watermark_ms the least, behind the number of partitions in which it
    holds the other up. alone: of the rows of the left side those without a partner; None of tables.
    """
    sides = []
    for each in zip(*(part["sides"] for part in parts), strict=True):
        times = [one["watermark_ns"] for one in each]
        is_known = all(time is not None and is_time(time) for time in times)
        sides.append(
            {
                "reads": each[0]["reads"],
                "rows": sum(one["rows"] for one in each),
                "watermark_ms": min(times) // 1_000_000 if is_known else None,
                "behind": sum(one["is_behind"] for one in each),
            }
        )
    matched, unmatched = (total(one[name] for one in parts) for name in ("matched", "unmatched"))
    rows = (matched or 0) + (unmatched or 0)
    return {"sides": sides, "alone": unmatched / rows if unmatched is not None and rows else None}


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
