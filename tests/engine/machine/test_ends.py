"""The ends of several inputs, in any order: their results are a function of the cut."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import ripple as rp
from ripple.engine.machine import Engine
from ripple.model.schema.columns import records_of
from ripple.model.window import watermark
from ripple.storage.checkpoint.format import checkpoint_of, decode, encode, fields_of
from ripple.testing import Marker, check_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable


@rp.record
class Row:
    symbol: str
    t: rp.Timestamp


@dataclass
class Beat:
    count: int = 0
    next: rp.Timestamp | None = None


@dataclass
class Beaten:
    at: int
    count: int


def stepped(beat: Beat, row: Row) -> Beaten:
    beat.next = row.t + 4
    return Beaten(row.t, beat.count)


def beaten(beat: Beat, at: int) -> Beaten:
    """Set the timer again, so that the watermark alone says how often it is called."""
    beat.count += 1
    beat.next = at + 4
    if beat.count % 5 == 0:
        raise ValueError("no row of this one")
    return Beaten(at, beat.count)


FIELDS = rp.schema_of(Row).fields
TIMES = {
    "rows/0": [("a", 5), ("c", 7), ("a", 26)],
    "rows/1": [("b", 20), ("a", 31), ("b", 90)],
    "rows/2": [("c", 40), ("d", 52)],
}
INPUTS = {name: [{"symbol": s, "t": t} for s, t in rows] for name, rows in TIMES.items()}
BEATS: Any = {"key": "symbol", "state": Beat, "step": stepped, "into": Beaten}
TIMED: Any = {**BEATS, "timers": {"next": beaten}}


def counted(rows: Any) -> Any:
    return rows.partition("p", key="symbol").fold("f", n=rp.count(), ttl="25ns")


def finals(rows: Any) -> Any:
    keyed = rows.partition("q", key="symbol").window("w", rp.Tumbling("10ns"), lateness="2ns")
    return counted(keyed.fold("bars", last=rp.max("t")).finals("final"))


def joined(rows: Any) -> Any:
    """Pair rows of one source with each other: its mark has two spans of lateness."""
    other = rows.derive("other", at=rp.col("t"))
    near = rows.join_interval(
        "near", other, on="symbol", within=("-9ns", "9ns"), lateness="3ns", emit="final"
    )
    return counted(near)


WAITING: dict[str, Callable[[Any], Any]] = {
    "keys that end": counted,
    "last rows": lambda rows: rows.scan("s", show="last", ttl="25ns", lateness="6ns", **BEATS),
    "last rows and timers": lambda rows: rows.scan(
        "s", show="last", ttl="25ns", lateness="6ns", **TIMED
    ),
    "last rows and timers for ever": lambda rows: rows.scan(
        "s", show="last", lateness="6ns", **TIMED
    ),
    "all rows and timers": lambda rows: rows.scan("s", lateness="6ns", **TIMED),
    "final rows and timers": lambda rows: rows.scan("s", settled=True, lateness="6ns", **TIMED),
    "final rows, timers and keys that end": lambda rows: rows.scan(
        "s", settled=True, lateness="6ns", ttl="25ns", **TIMED
    ),
    "behind distinct rows": lambda rows: counted(
        rows.distinct("once", "symbol", within="6ns", lateness="4ns")
    ),
    "behind final rows": finals,
    "behind a join": joined,
}
kinds = pytest.mark.parametrize("kind", WAITING)


def plan_of(kind: str) -> Any:
    rows = rp.Pipeline("p").source("rows", Row, time="t", out_of_order="3ns", key="symbol")
    return WAITING[kind](rows).sink("out").plan()


WAYS = {
    "all at once": "0 1 2 . ! !0 !1 !2",
    "in one call": "0 1 2 . close",
    "unseen": "0 1 2 close",
    "unseen, one by one": "2 1 0 !2 !1 !0",
    "first the shortest": "0 1 2 . !0 . !2 . !1",
    "first the longest": "0 1 2 . !1 . !0 . !2",
    "as read": "0 . !0 . 1 . !1 . 2 . !2",
    "the longest alone at last": "2 !2 0 !0 . 1 . !1",
    "with restarts": "0 1 2 . !0 . R !1 . R !2 . R",
    "again": "1 . !1 . R 0 . !0 . R 2 . !2 . R .",
}


def ended(plan: Any, way: str) -> Engine:
    """Return the engine after its inputs: N reads one, !N ends it, R stores it and begins anew."""
    engine = Engine(plan, inputs=list(INPUTS))
    for one in way.split():
        name = f"rows/{one[-1]}"
        if one == ".":
            engine.stabilize()
        elif one == "close":
            engine.close()
        elif one == "R":
            checkpoint, files = encode(engine.snapshot(), "name", 0, 0)
            kept = {name: bytes(data) for name, data in files.items()}
            engine = Engine.restore(plan, decode(checkpoint_of(fields_of(checkpoint)), kept))
        elif one[0] == "!" and len(one) > 1:
            engine.advance(name, watermark.END, len(INPUTS[name]) + 1)
        elif one != "!":
            engine.apply(name, records_of(INPUTS[name], FIELDS), len(INPUTS[name]))
    engine.stabilize()
    engine.check_invariants()
    return engine


@kinds
def test_no_order_of_the_ends_decides(kind: str) -> None:
    plan = plan_of(kind)
    found = {way: ended(plan, said) for way, said in WAYS.items()}
    digests = {way: engine.digests for way, engine in found.items()}
    assert len({str(one) for one in digests.values()}) == 1, digests
    lost = {way: str(engine.uncomputable_counts) for way, engine in found.items()}
    assert len({*lost.values()}) == 1, lost


@kinds
@pytest.mark.parametrize("last", INPUTS)
def test_each_order_of_the_ends_is_that_of_the_reference(kind: str, last: str) -> None:
    names = [*(name for name in INPUTS if name != last), last]
    read = [(name, row) for name, rows in INPUTS.items() for row in rows]
    ends = [Marker(name, watermark.END) for name in names]
    check_pipeline(plan_of(kind), [*read, *ends], (1, 100), inputs=names, restarts=[9, 10])


def test_an_end_gives_back_no_row_that_was_taken_away() -> None:
    plan = plan_of("keys that end")
    shown = [
        {row["symbol"] for row in ended(plan, way).table("out").to_pylist()}
        for way in ("0 1 2", "0 1 2 !0", "0 1 2 !0 !2", "0 1 2 !0 !2 !1")
    ]
    assert shown[0] == {"a", "b", "c", "d"}
    assert all(after <= before for before, after in pairwise(shown))
    assert shown[-1] == {"b"}


def test_a_snapshot_has_the_watermarks_before_the_ends_and_only_these() -> None:
    plan = plan_of("keys that end")
    assert "ends_ns" not in fields_of(encode(ended(plan, "0 1 2").snapshot(), "name", 0, 0)[0])
    stored = encode(ended(plan, "0 1 2 !0").snapshot(), "name", 0, 0)[0]
    assert fields_of(stored)["ends_ns"] == {"rows/0": 23}


def test_a_snapshot_of_an_earlier_release_goes_on() -> None:
    """It lacks the watermark before an end, and that of a later one is at least as far."""
    plan = plan_of("keys that end")
    engine = Engine.restore(plan, replace(ended(plan, "0 1 2 !0").snapshot(), ends_ns={}))
    for name in ("rows/2", "rows/1"):
        engine.advance(name, watermark.END, len(INPUTS[name]) + 1)
        engine.stabilize()
    assert engine.digests == ended(plan, WAYS["in one call"]).digests


def test_one_input_keeps_its_watermark() -> None:
    rows = [{"symbol": "a", "t": 5}, {"symbol": "b", "t": 20}, {"symbol": "c", "t": 40}]
    plan = plan_of("keys that end")
    engine = Engine(plan, inputs=["rows/0"])
    engine.apply("rows/0", records_of(rows, FIELDS), 3)
    engine.stabilize()
    before = engine.digests
    engine.close()
    engine.stabilize()
    assert engine.digests == before
    assert [row["symbol"] for row in engine.table("out").to_pylist()] == ["b", "c"]
