"""Windows and parts of times by zone: the engine against the reference, over a change of clocks."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
from ripple.testing import check_pipeline

HOUR_NS = 3_600 * 10**9
BEFORE_NS = (
    1_762_030_800 * 10**9
)  # 2025-11-01T21:00Z: clocks of New York are set back 9 hours later
ZONE = "America/New_York"


@rp.record
class Tick:
    """A tick."""

    name: str
    at: rp.Timestamp
    price: int


TICKS = [
    {"name": "ab"[step % 2], "at": BEFORE_NS + step * 53 * HOUR_NS // 60, "price": step}
    for step in range(48)
]


def pipeline(window: Any, trigger: Any = None) -> rp.Pipeline:
    local = rp.col("at").dt.in_zone(ZONE)
    return (
        rp.Pipeline("days")
        .source("ticks", Tick, key="name", out_of_order="2h")
        .derive("parts", hour=local.hour(), day=local.to_string("%F"))
        .partition("by-name", key="name")
        .window("w", window, lateness="1h", trigger=trigger)
        .fold("bars", n=rp.count(), last=rp.last("price"), hours=rp.count_distinct("hour"))
        .partition("all", key=("window_start_ns",))
        .fold("both", n=rp.sum("n"), most=rp.max("hours"))
        .derive("shown", label=rp.col("window_start_ns").dt.in_zone(ZONE).to_string("%F %R"))
        .sink("out")
    )


@pytest.mark.parametrize(
    ("size", "offset", "trigger"),
    [
        ("1d", None, None),
        ("1d", "9h30min", rp.OnEveryElement()),
        ("5h", None, rp.OnCount(3)),
        ("1w", "-1d", None),
    ],
)
def test_windows_by_zone_equal_the_reference(size: str, offset: str | None, trigger: Any) -> None:
    window = rp.Tumbling(size, zone=ZONE, offset=offset)
    check_pipeline(pipeline(window, trigger), TICKS, (1, 7, 100), restarts=[len(TICKS) // 2])


def test_node_keys_have_the_bounds_of_the_windows() -> None:
    keys = {
        pipeline(rp.Tumbling("1d", zone=name)).plan().fold("bars").node_key
        for name in (ZONE, "US/Eastern", "Europe/Paris")
    }
    assert len(keys) == 3


def test_the_plan_names_size_zone_and_offset() -> None:
    text = pipeline(rp.Tumbling("1d", zone=ZONE, offset="-7h")).plan().describe()
    assert "window w: tumbling 1d of America/New_York at -7h, lateness 1h" in text
