"""Whole lives under epochs: an owner that is frozen at any effect changes nothing when it wakes."""

from __future__ import annotations

from random import Random

import pytest

from ripple.storage.fenced import FencedError
from ripple.storage.log import StaleEpochError
from ripple.world.ports import Guards, all_guards
from tests.examples import EXAMPLES
from tests.storage.log.frozen import Frozen
from tests.storage.log.turns import shared
from tests.task.owners import EPOCHS, disk_with_input, left, live

LATE = 1 << 30
REFUSALS = (FencedError, StaleEpochError)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, object]:
    disk = disk_with_input()
    life = live(disk, EPOCHS[0])
    found = left(disk) | {"digest": life.engine.digest}
    assert not found["problems"]
    assert found["letters"]
    return found


def taken_over(stop_at: int, wake_at: int, guards: Guards = all_guards) -> tuple[bool, object]:
    """Freeze the first owner before an effect; the second lives, and meanwhile the first wakes.

    Return whether it was frozen before it had ended, and what is left.
    """
    disk = disk_with_input()
    old = Frozen(lambda own: live(own, EPOCHS[0], guards) and None, disk, stop_at=stop_at)
    has_stopped = old.start()
    calls = 0

    def between() -> None:
        nonlocal calls
        calls += 1
        if calls == wake_at and has_stopped:
            old.wake()

    life = live(shared(disk, between), EPOCHS[1], guards)
    if has_stopped and wake_at > calls:
        old.wake()
    assert old.error is None or isinstance(old.error, REFUSALS), repr(old.error)
    found = left(disk) | {"digest": life.engine.digest}
    again = live(disk, EPOCHS[2])
    assert again.report.rows_out == 0, "whoever comes next finds everything done"
    return has_stopped, found


def test_owner_frozen_at_any_effect_changes_nothing_when_it_wakes(
    undisturbed: dict[str, object],
) -> None:
    random = Random(11)
    stop_at, count, has_stopped = 1, 0, True
    while has_stopped:
        for wake_at in (LATE, 1 + random.randrange(400)):
            has_stopped, found = taken_over(stop_at, wake_at)
            assert found == undisturbed, (stop_at, wake_at)
            count += 1
        stop_at += max(1, 83 // EXAMPLES)
    assert count > 6


def test_missing_fence_of_the_outputs_is_found_out(undisturbed: dict[str, object]) -> None:
    for stop_at in range(228, 312, 4):  # found out at the first when this was written
        wake_at = 92
        try:
            _, found = taken_over(stop_at, wake_at, lambda name: name != "fence_check")
        except Exception:
            return
        if found != undisturbed:
            return
    pytest.fail("nobody has noticed that old owners do not look for a fence")
