"""Spans of a zone's calendar: days of 23 and 25 hours, midnights that are not or come twice."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.calendar.definition import offset_ns, span_at
from ripple.model.calendar.spans import spans
from ripple.model.calendar.zone import zone
from tests.examples import EXAMPLES, SAMPLED

HOUR_NS = 3_600 * 10**9
ZONES = [
    "America/New_York", "America/Havana", "America/St_Johns", "Australia/Lord_Howe",
    "Africa/Casablanca", "Pacific/Apia", "Asia/Kathmandu", "Europe/Dublin", "UTC",
]  # fmt: skip
SIZES = ["1d", "2d", "1w", "3w", "1mo", "5mo", "1q", "1y", "1h", "7h", "15m", "500ms"]
OFFSETS_S = [0, 34_200, -25_200, 61_200]


def _ns(text: str) -> int:
    return int(np.datetime64(text, "ns").astype(np.int64))


def _text(time_ns: Any) -> str:
    return str(np.datetime64(int(time_ns), "ns"))[5:16]


@pytest.mark.parametrize(
    ("name", "within", "begin", "end"),
    [
        ("America/New_York", "2026-03-08T12", "03-08T05:00", "03-09T04:00"),
        ("America/New_York", "2026-11-01T12", "11-01T04:00", "11-02T05:00"),
        ("Australia/Lord_Howe", "2026-04-05T00", "04-04T13:00", "04-05T13:30"),
        ("Australia/Lord_Howe", "2026-10-04T00", "10-03T13:30", "10-04T13:00"),
        ("America/Santiago", "2026-09-06T12", "09-06T04:00", "09-07T03:00"),
        ("Asia/Beirut", "2026-03-29T12", "03-28T22:00", "03-29T21:00"),
        ("America/Sao_Paulo", "2018-11-04T12", "11-04T03:00", "11-05T02:00"),
        ("America/Havana", "2025-11-02T12", "11-02T04:00", "11-03T05:00"),
        ("America/St_Johns", "2007-11-04T12", "11-04T02:30", "11-05T03:30"),
        ("Asia/Amman", "2022-10-28T12", "10-27T21:00", "10-28T21:00"),
        ("Africa/Casablanca", "2026-02-15T12", "02-14T23:00", "02-16T00:00"),
        ("Pacific/Apia", "2011-12-30T09", "12-29T10:00", "12-30T10:00"),
        ("Pacific/Apia", "2011-12-30T10", "12-30T10:00", "12-31T10:00"),
        ("Asia/Kathmandu", "2026-01-01T12", "12-31T18:15", "01-01T18:15"),
    ],
)
def test_days_are_those_of_the_clocks(name: str, within: str, begin: str, end: str) -> None:
    days = spans("1d", name)
    (at,) = days.begins_of(np.array([_ns(within)]))
    assert (_text(at), _text(days.ends_of(np.array([at]))[0])) == (begin, end)


@pytest.mark.parametrize(("size", "lengths"), [("1h", [1.0] * 25), ("7h", [7.0, 7.0, 7.0, 4.0])])
def test_shorter_spans_divide_the_day_from_its_begin(size: str, lengths: list[float]) -> None:
    of_size, at, end = spans(size, "America/New_York"), _ns("2026-11-01T04"), _ns("2026-11-02T05")
    found = []
    while at < end:
        (until,) = of_size.ends_of(np.array([at]))
        assert of_size.begins_of(np.array([at, until - 1])).tolist() == [at, at]
        found.append((until - at) / HOUR_NS)
        at = until
    assert (found, at) == (lengths, end)


@settings(max_examples=60 * EXAMPLES // SAMPLED)
@given(st.sampled_from(ZONES), st.sampled_from(SIZES), st.sampled_from(OFFSETS_S), st.data())
def test_spans_are_those_of_the_definition(
    name: str, size: str, offset_s: int, data: st.DataObject
) -> None:
    changes = [int(at) * 10**9 for at in zone(name).begins_s if abs(at) < 8e9] or [0]
    near = st.builds(
        lambda at, hours, rest_ns: at + hours * HOUR_NS + rest_ns,
        st.sampled_from(changes),
        st.integers(-40, 40),
        st.integers(-HOUR_NS, HOUR_NS),
    )
    times = data.draw(st.lists(near | st.integers(-8 * 10**18, 8 * 10**18), min_size=1, max_size=3))
    of_size = spans(size, name, offset_s)
    begins = of_size.begins_of(np.array(times))
    found = list(zip(begins.tolist(), of_size.ends_of(begins).tolist(), strict=True))
    assert found == [span_at(size, name, offset_s, at) for at in times]
    assert zone(name).offsets_ns(np.array(times)).tolist() == [offset_ns(name, at) for at in times]


def test_each_time_of_64_bits_is_in_a_span() -> None:
    days = spans("1d", "America/New_York")
    least, greatest = -(1 << 63), (1 << 63) - 1
    begins = days.begins_of(np.array([least, least + 1, greatest - 1, greatest]))
    ends = days.ends_of(begins)
    assert begins[0] == least
    assert ends[3] == greatest
    assert (begins < ends).all()
    assert days.begins_of(np.empty(0, np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"zone": "America/NewYork"}, "no time zone 'America/NewYork' .* America/New_York"),
        ({"zone": "../zones"}, "no time zone '../zones' in tzdata"),
        ({"zone": 5}, "Tumbling: zone must be a name such as 'America/New_York', not 5"),
        ({"offset": "1h"}, "offset is of a zone's days: name one, as in zone='UTC'"),
        ({"size": "1mo"}, "Tumbling: size '1mo' is of a calendar: add zone='UTC', or another"),
        ({"zone": "UTC", "size": "1 month"}, r"size must be a number and a unit .*, not '1 month'"),
        ({"zone": "UTC", "size": "24h"}, "shorter than a day with zone=.*not '24h': write 1d"),
        ({"zone": "UTC", "size": "0d"}, "size must be 1 to 100000 of its unit, not '0d'"),
        ({"zone": "UTC", "size": 60}, r"size must be a number and a unit .*, not 60"),
        ({"zone": "UTC", "offset": "1d"}, "offset must be whole seconds and shorter than a window"),
        ({"zone": "UTC", "offset": "1ms"}, "offset must be whole seconds"),
        ({"zone": "UTC", "offset": "noon"}, "offset must be a number and a unit"),
    ],
)
def test_what_no_window_can_be_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        rp.Tumbling(**({"size": "1d"} | given))


def test_spellings_of_one_size_are_one_window() -> None:
    whole = rp.Tumbling("30 min", zone="Europe/Paris", offset="9h30min")
    assert whole == rp.Tumbling("30m", zone="Europe/Paris", offset="34200s")
    assert whole != rp.Tumbling("30m", zone="Europe/Madrid", offset="9.5h")
    assert re.search(r"size='30m', zone='Europe/Paris', offset_s=34200, digest=", repr(whole))
