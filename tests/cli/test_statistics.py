"""Statistics of a run, as people read them."""

from __future__ import annotations

import pytest

from ripple.cli.lib.statistics import watermark_of
from ripple.model.window import watermark
from ripple.model.window.instant import instant_ns, instant_text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (1_709_000_000_500_000_000, "2024-02-27T02:13:20.5Z"),
        (17, "1970-01-01T00:00:00.000000017Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (watermark.END - 1, "2262-04-11T23:47:16.854775806Z"),
    ],
)
def test_watermark_is_a_time(time_ns: int, text: str) -> None:
    assert watermark_of(time_ns) == [("Watermark", text)]
    assert instant_text(time_ns) == text
    assert instant_ns(text) == time_ns


def test_watermark_without_times_is_left_out() -> None:
    assert watermark_of(watermark.NONE) == []
    assert watermark_of(watermark.END) == [("Watermark", "past all events")]
