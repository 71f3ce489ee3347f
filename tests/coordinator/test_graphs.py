"""Work of nodes over all partitions, and the hot spots."""

from __future__ import annotations

from typing import Any

from ripple.client.dashboard.figures import Rates
from ripple.client.dashboard.nodes import added, ranked

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


def side(reads: str, rows: int, at: int | None, *, is_behind: bool = False) -> dict[str, Any]:
    return {"reads": reads, "rows": rows, "watermark_ns": at, "is_behind": is_behind}


def joins(*sides: dict[str, Any], matched: int | None, unmatched: int | None) -> dict[str, Any]:
    of = {"kind": "join", "name": "j", "sides": list(sides)}
    return {"nodes": [of | {"matched": matched, "unmatched": unmatched}]}


def test_sides_of_a_join_are_added_over_partitions() -> None:
    late = side("quotes", 1, SECOND_NS, is_behind=True)
    parts = [
        joins(side("trades", 4, 7 * SECOND_NS), late, matched=3, unmatched=0),
        joins(side("trades", 6, 5 * SECOND_NS), late, matched=0, unmatched=1),
    ]
    assert added(parts, Rates(), 0)["j"]["join"] == {
        "sides": [
            {"reads": "trades", "rows": 10, "watermark_ms": 5000, "behind": 0},
            {"reads": "quotes", "rows": 2, "watermark_ms": 1000, "behind": 2},
        ],
        "alone": 0.25,
    }


def test_what_a_join_does_not_know_is_none() -> None:
    sides = side("a", 1, None), side("b", 1, 1 << 62)
    empty = added([joins(*sides, matched=0, unmatched=0)], Rates(), 0)["j"]["join"]
    assert empty["alone"] is None
    assert [one["watermark_ms"] for one in empty["sides"]] == [None, None]
    table = added([joins(*sides, matched=None, unmatched=None)], Rates(), 0)["j"]["join"]
    assert table["alone"] is None
    assert added([part(0, 1, 0)], Rates(), 0)["prices"]["join"] is None


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
