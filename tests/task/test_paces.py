"""When a checkpoint is due, and how much is taken at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import ripple as rp
from ripple.task.replay_debts import ReplayDebts
from ripple.task.settings import Settings, StorePace, catch_up_batches

if TYPE_CHECKING:
    from pathlib import Path

    from ripple.model.pipeline.plan import Plan

S = 1_000_000_000


def test_a_checkpoint_is_due_by_the_clock_or_by_the_work_since_the_last() -> None:
    worked_ns = 5 * S  # before
    pace = StorePace(Settings(checkpoint_debt_ns=3 * S), 0, lambda: worked_ns)
    worked_ns += 3 * S - 1
    assert not pace.is_due(4 * S)
    worked_ns += 1
    assert pace.is_due(4 * S)
    assert pace.is_due(4 * S)  # one is under way: as soon as that is done
    pace.begin(4 * S)
    assert not pace.is_due(14 * S - 1)
    assert pace.is_due(14 * S)
    by_clock = StorePace(Settings(), 0, lambda: worked_ns)
    worked_ns += 99 * S
    assert not by_clock.is_due(10 * S - 1)
    assert by_clock.is_due(10 * S)


class Member:
    """A partition of a process with its work, and the checkpoints that are due."""

    def __init__(self, debts: ReplayDebts) -> None:
        self.worked_ns = self.wakes = 0
        self.debt = debts.join(self.wake)
        self.pace = StorePace(SELDOM, 0, lambda: self.worked_ns, debt=self.debt)

    def wake(self) -> None:
        self.wakes += 1

    def works(self, seconds: int) -> bool:
        self.worked_ns += seconds * S
        return self.pace.is_due(0)


SELDOM = Settings(checkpoint_interval_ns=120 * S)


def test_of_a_process_that_owes_too_much_the_partition_with_most_of_it_stores() -> None:
    debts = ReplayDebts(10 * S)
    one, most, third = Member(debts), Member(debts), Member(debts)
    assert (one.works(2), most.works(5), third.works(2)) == (False, False, False)
    assert not one.works(1), "another one has more"
    assert (one.wakes, most.wakes) == (0, 1)
    assert not third.works(1)
    assert most.wakes == 1, "it was called already"
    assert most.works(0)
    most.pace.begin(0)
    assert debts.owed_ns == 6 * S
    assert not most.works(0)
    assert one.works(4), "it has most of 10 s"
    third.pace.end()
    third.pace.end()
    assert debts.owed_ns == 7 * S


def test_debts_without_a_limit_call_nobody() -> None:
    alone = Member(ReplayDebts(0))
    assert not alone.works(99)
    assert alone.wakes == 0


@rp.record
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp


SOURCE = rp.Pipeline("p").source("trades", Trade)
BY_SYMBOL = SOURCE.partition("by", key="symbol")
COUNTED = BY_SYMBOL.fold("counts", n=rp.count()).sink("output").plan()
IN_PYTHON = (
    SOURCE.map("same", lambda row: row, into=Trade)
    .partition("by", key="symbol")
    .fold("counts", n=rp.count())
    .sink("output")
    .plan()
)
PARTLY_SHOWN = (
    BY_SYMBOL.window("w", rp.Tumbling("10s"), trigger=rp.OnCount(3))
    .fold("counts", n=rp.count())
    .sink("output")
    .plan()
)
NARROW = (
    BY_SYMBOL.window("w", rp.Sliding("1h", "1s")).fold("counts", n=rp.count()).sink("output").plan()
)


@pytest.mark.parametrize(
    ("plan", "batch_rows", "rows"),
    [
        (COUNTED, 1000, 8000),
        (COUNTED, 999, 999),  # asked for
        (IN_PYTHON, 1000, 1000),  # a batch may take long
        (PARTLY_SHOWN, 1000, 1000),
        (NARROW, 1000, 1000),  # each row is in many windows
    ],
)
def test_a_run_behind_its_input_takes_some_batches_at_once(
    plan: Plan, batch_rows: int, rows: int
) -> None:
    settings = Settings(batch_rows=batch_rows, catch_up_batches=catch_up_batches(batch_rows))
    assert settings.rows_at_once(plan) == rows


def test_a_durable_run_over_a_log_cuts_it_at_multiples_of_these(tmp_path: Path) -> None:
    copied = SOURCE.sink("all", key="symbol").plan()
    rows = {"symbol": ["A"] * 17_500, "price": [1.0] * 17_500, "size": [1] * 17_500}
    rows["timestamp_ns"] = [10**18] * 17_500
    rp.run(copied, source=pa.table(rows), sink=f"log:{tmp_path}/trades")
    cuts: list[int] = []
    rp.run(
        COUNTED,
        source=f"log:{tmp_path}/trades",
        sink=f"log:{tmp_path}/counts",
        checkpoint_dir=str(tmp_path / "state"),
        on_batch=lambda engine, _: cuts.extend(engine.cut.values()),
    )
    assert cuts == [8000, 16_000, 17_500]
