"""Window steps are checked when they are written, not when the first event arrives."""

from __future__ import annotations

import pytest

import ripple.model.window as rw
from ripple.core.errors import PlanError


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [("60s", 60 * 10**9), ("1min", 60 * 10**9), ("1.5ms", 1_500_000), ("0s", 0), (7, 7)],
)
def test_duration_reads_number_and_unit(text: str | int, expected_ns: int) -> None:
    assert rw.duration_ns(text) == expected_ns


@pytest.mark.parametrize("text", ["", "60", "s", "-1s", "1.5ns", "1 fortnight", "1e3s", True, 1.5])
def test_unreadable_duration_is_refused(text: object) -> None:
    with pytest.raises(PlanError):
        rw.duration_ns(text)  # type: ignore[arg-type]


def test_window_that_cannot_work_is_refused() -> None:
    with pytest.raises(PlanError, match="longer than zero"):
        rw.Tumbling("0s")
    with pytest.raises(PlanError, match="slide"):
        rw.Sliding("10s", "11s")
    with pytest.raises(PlanError, match="windows"):
        rw.Sliding("1h", "1ms")
    with pytest.raises(PlanError, match="count must be a whole number from 1 on, not 0"):
        rw.OnCount(0)
    with pytest.raises(PlanError, match="trigger"):
        rw.window_spec("w", rw.Tumbling("1s"), trigger="often")  # type: ignore[arg-type]


def test_defaults_are_the_sixty_seconds_of_the_design() -> None:
    spec = rw.window_spec("w", rw.Tumbling("1min"))
    assert spec.lateness_ns == spec.future_ns == 60 * 10**9
    assert spec.trigger == rw.OnWatermark()
