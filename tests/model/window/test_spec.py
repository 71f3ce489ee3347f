"""Window steps are checked when they are written, not when the first event arrives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
import ripple.model.window as rw
from ripple.core.errors import PlanError
from tests.records import Trade


@rp.record(version=1)
class Answer:
    grade: int


async def _answer(_: Trade) -> Answer:
    return Answer(1)


def _keyed() -> rp.Pipeline:
    return _start().partition("k", key="symbol")


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("60s", 60 * 10**9),
        ("1min", 60 * 10**9),
        ("1.5ms", 1_500_000),
        ("9h30min", 34_200 * 10**9),
        ("0s", 0),
        (7, 7),
    ],
)
def test_duration_reads_number_and_unit(text: str | int, expected_ns: int) -> None:
    assert rw.duration_ns(text) == expected_ns


@pytest.mark.parametrize(
    "text",
    ["", "60", "s", "-1s", "1.5ns", "1 fortnight", "1e3s", "1h 5", "1s1s", "1min1h", True, 1.5],
)
def test_unreadable_duration_is_refused(text: object) -> None:
    with pytest.raises(PlanError):
        rw.duration_ns(text)  # type: ignore[arg-type]


def _start() -> rp.Pipeline:
    return rp.Pipeline("p").source("trades", Trade, time="timestamp_ns", out_of_order="1s")


def _join(of: str, **arguments: Any) -> object:
    left, right = _start(), rp.Pipeline("p").source("more", Trade, time="timestamp_ns")
    return getattr(left, of)("j", right, on="symbol", emit="final", **arguments)


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda: rw.Tumbling(5), "size"),
        (lambda: rw.Sliding(10, 5), "slide"),
        (lambda: rw.Session(5), "gap"),
        (lambda: rp.Pipeline("p").source("s", Trade, out_of_order=5), "out_of_order"),
        (lambda: rp.Pipeline("p").source("s", Trade, reject_future=5), "reject_future"),
        (
            lambda: rp.Pipeline("p").table("s", Trade, key="symbol", time="timestamp_ns", ttl=5),
            "ttl",
        ),
        (lambda: _keyed().fold("f", n=rp.count(), ttl=5), "ttl"),
        (lambda: _keyed().window("w", rp.Tumbling("1s"), lateness=5), "lateness"),
        (lambda: _start().distinct("d", "symbol", within=5), "within"),
        (lambda: _join("join_asof", tolerance=5), "tolerance"),
        (lambda: _join("join_interval", within=(5, "1s")), "within"),
    ],
)
def test_small_int_is_warned_of_at_the_line_that_has_it(
    build: Callable[[], object], what: str
) -> None:
    said = f"{what}.* is 5 ns, since an int counts nanoseconds: write '5s' where .*, else '5ns'"
    with pytest.warns(UserWarning, match=said) as warned:
        build()
    assert {Path(one.filename) for one in warned} == {Path(__file__)}


@pytest.mark.parametrize("span", ["5ns", "999us", 0, 1_000_000])
def test_text_and_large_int_are_not_warned_of(span: str | int) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        rw.duration_ns(span)
    assert not warned


@pytest.mark.parametrize(
    "build",
    [
        lambda: rp.Pipeline("p").source("s", Trade, time="timestamp_ns", idle=5),
        lambda: _start().ask("a", _answer, into=Answer, timeout=5),
        lambda: rp.clock("t", every=5, since=0),
    ],
)
def test_small_span_of_the_wall_clock_is_refused(build: Callable[[], object]) -> None:
    with pytest.raises(rp.RippleError, match=r"must be at least 1ms, as in .*s'") as refused:
        build()
    assert "5" in str(refused.value)


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
