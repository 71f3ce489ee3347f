"""Work of nodes over all partitions, and the hot spots."""

from __future__ import annotations

from typing import Any

from coordinator.dashboard.graphs import added, ranked
from ripple.client.dashboard.figures import Rates

SECOND_NS = 1_000_000_000


def part(number: int, recomputed: int, cutoffs: int) -> dict[str, Any]:
    counted = {"rows_in": 10 * recomputed, "rows_out": recomputed - cutoffs}
    fold = {"kind": "fold", "name": "prices", "recomputed": recomputed, "cutoffs": cutoffs}
    nodes = [{"kind": "source", "name": "trades"}, fold | counted | {"keys": 5, "bytes": 7}]
    return {"process": "w/0", "partition": number, "nodes": nodes}


def test_rates_are_of_each_partition_and_then_added() -> None:
    rates = Rates()
    first = added([part(0, 100, 0), part(1, 1000, 500)], rates, 0)
    assert first["prices"]["rate"] is None
    assert ranked(first) == []
    # One has begun anew: what it has counted since is no negative rate of all.
    found = added([part(0, 110, 4), part(1, 3, 1)], rates, SECOND_NS)["prices"]
    assert (found["recomputed_rate"], found["wasted_rate"], found["cutoff"]) == (10, 4, 0.4)
    assert (found["rate"], found["changes_rate"], found["keys"], found["bytes"]) == (100, 6, 10, 14)


def test_idle_inputs_are_added_and_the_longest_silence_is_shown() -> None:
    parts = [part(number, 1, 0) for number in range(3)]
    for one, seconds in zip(parts, (4.0, 9.5), strict=False):
        one["nodes"][0] |= {"idle_inputs": 2, "idle_seconds": seconds}
    found = added(parts, Rates(), 0)
    source = found["source trades"]
    assert (source["idle_inputs"], source["idle_seconds"]) == (4, 9.5)
    assert found["prices"]["idle_inputs"] is found["prices"]["idle_seconds"] is None


def test_nodes_with_most_work_come_first() -> None:
    nodes: dict[str, Any] = {
        "a": {"recomputed_rate": 60.0, "wasted_rate": 50.0},
        "b": {"recomputed_rate": 35.0, "wasted_rate": None},
        "c": {"recomputed_rate": 5.0, "wasted_rate": 5.0},
        "output o": {"recomputed_rate": None, "wasted_rate": None},
    }
    assert [(one["node"], one["what"], one["share"]) for one in ranked(nodes)] == [
        ("a", "recomputes", 0.6),
        ("a", "wasted", 0.5),
        ("b", "recomputes", 0.35),
    ]
