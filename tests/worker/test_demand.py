"""The demand on a partition, by the events of its task and a clock by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ripple.core.events import Committed, Restored, Stored
from tests.storage.log.trades import ManualClock
from worker.engine.demand import SECOND, PartitionDemand


def restored(start: int, cut: int) -> Restored:
    return Restored(None, {"t": start}, {"t": cut}, (), cut - start, 0.0, "")


def committed(cut: int) -> Committed:
    return Committed({"t": cut}, 1, 0.0, {})


def test_a_backlog_is_the_time_since_the_end_of_the_input() -> None:
    clock, task = ManualClock(), SimpleNamespace(is_at_end=False, ends=0)
    one, at = PartitionDemand(clock), task_of(task)
    one.on_event(restored(0, 0))
    clock.time_ns += 5 * SECOND
    assert one.backlog_s(at) == 5
    task.ends += 1  # it was there, between two looks
    assert one.backlog_s(at) == 0
    clock.time_ns += 2 * SECOND
    assert one.backlog_s(at) == 2
    task.is_at_end = True
    assert one.backlog_s(at) == 0
    clock.time_ns += 60 * SECOND
    assert one.backlog_s(at) == 0  # it waits there


def test_a_debt_is_the_age_of_the_first_record_in_no_checkpoint() -> None:
    clock = ManualClock()
    one = PartitionDemand(clock)
    one.on_event(restored(5, 5))
    clock.time_ns += 3 * SECOND
    assert one.debt_s == 0
    one.on_event(committed(7))
    clock.time_ns += 3 * SECOND
    one.on_event(committed(9))
    assert one.debt_s == 3
    one.on_event(Stored("c", {"t": 7}))
    assert one.debt_s == 0  # of records behind 7, from now on
    clock.time_ns += SECOND
    assert one.debt_s == 1
    one.on_event(Stored("c", {"t": 9}))
    clock.time_ns += SECOND
    assert one.debt_s == 0


def task_of(said: SimpleNamespace) -> Any:
    return said
