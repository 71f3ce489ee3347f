"""Records of tables that are earlier than the row of their key are counted, in any batches."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import ripple as rp
from ripple.engine.machine import Engine
from tests.examples import EXAMPLES


@rp.record(version=1)
class Rate:
    currency: str
    place: int
    rate: float = rp.field(gt=0)
    at: int
    gone: bool


def rates(key: Any, *, versions: bool, time: str | None = "at", **more: Any) -> rp.Pipeline:
    table = rp.Pipeline("p").table("rates", Rate, key=key, time=time, deleted="gone", **more)
    shown = table.sink("now")
    return shown.also(table.versions("changes").sink("all")) if versions else shown


def rows_of(chance: Random) -> list[dict[str, Any]]:
    """Return rows, deletions and dead letters, at times that go on, and go back now and then."""
    return [
        {
            "currency": chance.choice("abcd"),
            "place": chance.randrange(2),
            "rate": chance.choice([1.0, 1.0, 2.0, -1.0]),
            "at": at + chance.choice([0, 0, -2, -20]),
            "gone": chance.random() < 0.2,
        }
        for at in range(100, 100 + chance.randrange(60))
    ]


def counted(rows: list[dict[str, Any]], key: tuple[str, ...]) -> int:
    """Count them one after the other."""
    before: dict[tuple[Any, ...], dict[str, Any]] = {}
    count = 0
    for row in rows:
        if row["gone"] or row["rate"] > 0:
            was = before.get(found := tuple(row[name] for name in key))
            count += was is not None and not was["gone"] and row["at"] < was["at"]
            before[found] = row
    return count


@pytest.mark.parametrize("key", ["currency", ("currency", "place"), "place"])
@pytest.mark.parametrize("versions", [False, True])
def test_count_is_that_of_one_record_after_the_other(key: Any, versions: bool) -> None:
    plan = rates(key, versions=versions).plan()
    names = (key,) if isinstance(key, str) else key
    seen = 0
    for seed in range(4 * EXAMPLES):
        chance = Random(seed)
        rows = rows_of(chance)
        expected = counted(rows, names)
        seen += expected
        for size in (1, 7, 1000):
            engine = Engine(plan)
            for at in range(0, len(rows), size):
                engine.apply("rates", rows[at : at + size])
                if chance.random() < 0.5:
                    engine.stabilize()
                    if chance.random() < 0.5:
                        engine = Engine.restore(plan, engine.snapshot())
            assert engine.versions_out_of_order == {"rates": expected}
    assert seen


def test_a_table_without_time_and_one_that_ends_count_nothing() -> None:
    for plan in (
        rates("currency", versions=False, time=None).plan(),
        rates("currency", versions=True, ttl="1d").plan(),
    ):
        engine = Engine(plan)
        engine.apply("rates", rows_of(Random(0)))
        engine.stabilize()
        assert engine.versions_out_of_order == {}
        assert not any(name.startswith("out_of_order") for name in engine.snapshot().counters)


def test_a_run_tells_them() -> None:
    rows = [{"currency": "a", "place": 0, "rate": 1.0, "at": at, "gone": False} for at in (3, 2, 5)]
    report = rp.run(rates("currency", versions=True), source=rows, sink={"now": [], "all": []})
    assert report.versions_out_of_order == {"rates": 1}
