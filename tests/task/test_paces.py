"""When a checkpoint is due."""

from __future__ import annotations

from ripple.task.replay_debts import ReplayDebts
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
