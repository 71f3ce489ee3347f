"""When a checkpoint is due."""

from __future__ import annotations

from ripple.task.settings import Settings, StorePace

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
