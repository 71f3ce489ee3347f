"""Joins with a narrower span of time resume with the rows held by a wider one."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.migration.evolution import Verdict, compare
from ripple.engine.snapshots.snapshot import Snapshot
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.columns import records_of


@rp.record
class Trade:
    symbol: str
    size: int
    t: rp.Timestamp


@rp.record
class Quote:
    symbol: str
    bid: int
    t: rp.Timestamp


def start() -> tuple[Pipeline, Pipeline]:
    one = Pipeline("test")
    return (
        one.source("trades", Trade, out_of_order=4),
        one.source("quotes", Quote, out_of_order=4),
    )


def asof(tolerance: int | None, emit: Any = "final", **more: Any) -> Pipeline:
    trades, quotes = start()
    said = {"lateness": 3} | more
    return trades.join_asof("j", quotes, on="symbol", tolerance=tolerance, emit=emit, **said)


def near(within: tuple[int, int], emit: Any = "final", **more: Any) -> Pipeline:
    trades, quotes = start()
    said = {"lateness": 3} | more
    return trades.join_interval("j", quotes, on="symbol", within=within, emit=emit, **said)


FIELDS = {"trades": rp.schema_of(Trade).fields, "quotes": rp.schema_of(Quote).fields}


@cache
def rows(seed: int) -> list[tuple[str, pa.RecordBatch]]:
    """Return records of both sources with ties and late ones, each a batch."""
    draw, made = random.Random(seed), list[tuple[str, pa.RecordBatch]]()
    for at in range(0, 240, 2):
        of = draw.choice(["trades", "quotes"])
        row = {"symbol": draw.choice("ABC"), "t": max(0, at - draw.choice([0, 0, 1, 3, 6, 20]))}
        row["size" if of == "trades" else "bid"] = at
        made.append((of, records_of([row], FIELDS[of])))
    return made


def fed(engine: Engine, records: list[Any]) -> list[dict[str, Any]]:
    """Apply further records, one at a time, and return the rows of the output named out."""
    found = []
    for of, batch in records:
        engine.apply(of, batch)
        found += engine.stabilize().outputs["out"].to_pylist()
    engine.check_invariants()
    return found


def went_on(snapshot: Snapshot, plan: Plan) -> tuple[Engine, dict[str, str]]:
    """Return an engine of ``plan`` with state of the wider one, and the verdicts by name."""
    found = decide(plan, snapshot)
    assert found.snapshot is not None
    assert found.snapshot.nodes == plan.node_keys
    verdicts = {
        one.key.partition("#")[0].rpartition("/")[2]: one.verdict.value
        for one in found.comparison.nodes
    }
    return Engine.restore(plan, found.snapshot), verdicts


def has_span(row: Mapping[str, Any]) -> bool:
    return None not in (row["t"], row["t_right"]) and row["t"] - row["t_right"] > 5


WAYS: list[tuple[Callable[..., Pipeline], Any, Any, dict[str, Any]]] = [
    (asof, None, 5, {"how": "left"}),
    (asof, 30, 5, {"how": "left"}),
    (asof, 30, 5, {"how": "inner", "allow_exact_matches": False}),
    (near, (-30, 0), (-5, 0), {"how": "inner"}),
    (near, (-30, 6), (-5, 6), {"how": "left"}),
    (near, (0, 9), (4, 9), {"how": "right"}),
    (near, (1, 9), (4, 9), {"how": "full"}),
    (near, (-5, 0), (-5, -3), {"how": "full"}),
]


@pytest.mark.parametrize(("of", "was", "now", "more"), WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_after_the_cut_are_those_of_the_narrower_join_alone(
    seed: int, of: Callable[..., Pipeline], was: Any, now: Any, more: dict[str, Any]
) -> None:
    wide, plan = (of(span, **more).sink("out").plan() for span in (was, now))
    records, cuts = rows(seed), (0, 17, 60, 101)
    old, fresh = Engine(wide), Engine(plan)
    alone = [fed(fresh, records[begin:end]) for begin, end in pairwise([*cuts, len(records)])]
    for number, (begin, cut) in enumerate(pairwise(cuts), 1):
        before = fed(old, records[begin:cut])
        engine, verdicts = went_on(old.snapshot(), plan)
        assert verdicts["j"] == "migrate"
        assert verdicts["out"] == "changed"
        digests = engine.digests
        assert digests == old.digests
        shown = fed(engine, records[cut:])
        assert shown == list(chain(*alone[number:]))
        assert shown
        assert not any(map(has_span, shown))
        # No more rows are held, and a checkpoint of the narrower join is restored.
        assert engine.snapshot().tables == fresh.snapshot().tables
        again = Engine.restore(plan, engine.snapshot())
        assert again.digests == engine.digests
        assert before


def by_origin(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by their origins, the changes of each in their order."""
    partner = "right_offset"
    return sorted(rows, key=lambda row: (row["row_offset"], str(row.get(partner))))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("of", "was", "now", "how"),
    [
        *((asof, None, 5, how) for how in ("left", "inner")),
        *((near, (-30, 3), (-5, 3), how) for how in ("left", "inner")),
        *((near, (0, 9), (4, 9), how) for how in ("right", "full")),
    ],
)
def test_rows_not_final_follow_the_narrower_join_and_final_ones_stay(
    seed: int, how: str, of: Callable[..., Pipeline], was: Any, now: Any
) -> None:
    spans = (was, now)
    wide, plan = (
        of(span, "eager", how=how).filter("some", rp.col("size") != 40).sink("out").plan()
        for span in spans
    )
    records = rows(seed)
    old, fresh = Engine(wide), Engine(plan)
    fed(old, records[:60])
    fed(fresh, records[:60])
    engine, verdicts = went_on(old.snapshot(), plan)
    assert [verdicts[name] for name in ("j", "j.rows", "out")] == ["migrate", "migrate", "changed"]
    assert by_origin(engine.table("out").to_pylist()) == by_origin(fresh.table("out").to_pylist())
    assert by_origin(fed(engine, records[60:])) == by_origin(fed(fresh, records[60:]))


def folded(rows: Pipeline) -> Pipeline:
    by = rows.partition("by", key="symbol").fold("f", n=rp.count(), bid=rp.count("bid"))
    return by.sink("out")


def test_a_fold_and_a_node_behind_keep_what_they_counted() -> None:
    def line(span: int) -> Plan:
        return folded(asof(span).distinct("d", key=["symbol", "size"], within=9)).plan()

    records = rows(1)
    wide, plan = line(30), line(5)
    old = Engine(wide)
    fed(old, records[:60])
    shown = old.table("out")
    engine, verdicts = went_on(old.snapshot(), plan)
    assert {verdicts[name] for name in ("j", "d", "f")} == {"migrate"}
    assert engine.table("out") == shown
    fed(engine, records[60:])
    alone = Engine(wide), Engine(plan)
    for one in alone:
        fed(one, records)
    counts = [sum(one.table("out").column("bid").to_pylist()) for one in (alone[0], engine)]
    assert counts[0] > counts[1] > sum(alone[1].table("out").column("bid").to_pylist())
    numbers = [sum(one.table("out").column("n").to_pylist()) for one in (*alone, engine)]
    assert len({*numbers}) == 1


def refused(wide: Pipeline, narrow: Pipeline) -> str:
    old = Engine(wide.plan())
    fed(old, rows(2)[:40])
    with pytest.raises(ChangedPlanError) as error:
        decide(narrow.plan(), old.snapshot())
    return str(error.value).partition(" (")[2].partition("): ")[0]


def test_what_cannot_go_on_is_refused_with_its_reason() -> None:
    gone = "rows that the wider one needs are not there any more"
    sooner = "rows would follow sooner, and some from before this cut in no output"

    def out(rows: Pipeline) -> Pipeline:
        return rows.sink("out")

    change = "its tolerance was 5ns, and is 6ns"
    assert refused(out(asof(5)), out(asof(6))) == f"{change}: {gone}"
    assert refused(out(asof(0)), out(asof(None))).endswith(f"was 0ns, and is none: {gone}")
    ahead = {"strategy": "forward"}
    assert refused(out(asof(6, **ahead)), out(asof(5, **ahead))).endswith(sooner)
    now = "from 5ns before it to 1ns after it"
    change = f"its within was from 5ns before it to its time, and is {now}"
    assert refused(out(near((-5, 0))), out(near((-5, 1)))) == f"{change}: {gone}"
    assert refused(out(near((-5, 1))), out(near((-5, 0)))).endswith(sooner)
    assert refused(out(near((-5, 1), how="full")), out(near((-4, 1), how="full"))).endswith(sooner)
    assert refused(out(near((0, 2), how="right")), out(near((0, 1), how="right"))).endswith(sooner)
    eager = folded(asof(6, "eager")), folded(asof(5, "eager"))
    assert refused(*eager).endswith("the fold 'f' has rows by the former one")
    # More has changed than the span.
    changed = "its keys, strategy, tolerance, how, lateness or the fields of its sides changed"
    assert refused(out(asof(6)), out(asof(5, lateness=2))) == changed


def test_old_checkpoints_and_rebuilds_are_as_before() -> None:
    wide, narrow = asof(6).sink("out").plan(), asof(5).sink("out").plan()
    old = Engine(wide)
    fed(old, rows(2)[:40])
    snapshot = old.snapshot()
    rebuilt = compare(narrow, snapshot, ["j"])
    assert rebuilt.rebuilds
    notes = {name: text for name, text in snapshot.notes.items() if name != "spans"}
    assert notes != snapshot.notes
    without = compare(narrow, replace(snapshot, notes=notes))
    assert Verdict.MIGRATE not in {one.verdict for one in without.nodes}
    assert without.problems
    assert Engine.restore(wide, replace(snapshot, notes=notes)).digests == old.digests


def test_joins_behind_one_another_are_narrowed_at_once() -> None:
    def line(tolerance: int, lowest: int) -> Plan:
        trades, quotes = start()
        said: dict[str, Any] = {"on": "symbol", "lateness": 3, "emit": "final"}
        first = trades.join_asof("j", quotes, tolerance=tolerance, **said)
        both = first.join_interval("k", quotes, within=(lowest, 0), suffix="_k", how="left", **said)
        return both.sink("out").plan()

    records, plan = rows(3), line(5, -5)
    old = Engine(line(30, -30))
    shown = fed(old, records[:60])
    engine, verdicts = went_on(old.snapshot(), plan)
    assert [verdicts[name] for name in ("j", "k", "out")] == ["migrate", "migrate", "changed"]
    after = fed(engine, records[60:])
    fresh = fed(Engine(plan), records)
    # Rows that the second join held have their matches of the first one.
    assert [row["t"] for row in after] == [row["t"] for row in fresh[-len(after) :]]
    assert [row["t_k"] for row in after] == [row["t_k"] for row in fresh[-len(after) :]]
    assert shown
    # A wider one among them is named, and everything behind it is refused.
    wider = compare(line(40, -5), old.snapshot())
    causes = {one.cause for one in wider.nodes if one.verdict is Verdict.REBUILD}
    assert len(causes) == 2
    assert all("its tolerance was 30ns, and is 40ns" in cause for cause in causes)
