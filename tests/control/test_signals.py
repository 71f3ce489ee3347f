"""A second signal, as distinct from a duplicate of the first."""

from __future__ import annotations

from signal import SIGINT, SIGTERM

from ripple.control.signals import DEBOUNCE_S, Debounce


def test_the_same_signal_at_once_has_one_cause() -> None:
    times = iter([5.0, 5.0, 5.0 + DEBOUNCE_S / 2, 5.0 + 2 * DEBOUNCE_S])
    debounce = Debounce(lambda: next(times))
    assert [debounce.is_new(SIGTERM) for _ in range(4)] == [True, False, False, True]


def test_another_signal_has_another_cause() -> None:
    debounce = Debounce(lambda: 5.0)
    assert debounce.is_new(SIGTERM)
    assert debounce.is_new(SIGINT)
    assert not debounce.is_new(SIGTERM)
