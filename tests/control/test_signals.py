"""A second signal is told from the same one sent twice."""

from __future__ import annotations

from signal import SIGINT, SIGTERM

from ripple.control.signals import ONE_CAUSE_S, Causes


def test_the_same_signal_at_once_has_one_cause() -> None:
    times = iter([5.0, 5.0, 5.0 + ONE_CAUSE_S / 2, 5.0 + 2 * ONE_CAUSE_S])
    causes = Causes(lambda: next(times))
    assert [causes.is_new(SIGTERM) for _ in range(4)] == [True, False, False, True]


def test_another_signal_has_another_cause() -> None:
    causes = Causes(lambda: 5.0)
    assert causes.is_new(SIGTERM)
    assert causes.is_new(SIGINT)
    assert not causes.is_new(SIGTERM)
