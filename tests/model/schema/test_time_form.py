"""Times in text and in units, held against Python's and Arrow's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.model.calendar.zone import Zone, zone
from ripple.model.schema.time_form import TimeForm
from tests.examples import EXAMPLES, SAMPLED

SECOND = 1_000_000_000
NOON = 1_769_860_800 * SECOND  # 2026-01-31
LEAST, MOST = -(1 << 63), (1 << 63) - 1


def parsed(form: TimeForm, *values: object) -> list[int | None]:
    kind = pa.string() if form.is_text else pa.int64()
    column, failed = form.parsed(pa.array(values, kind))
    assert column.type == pa.int64()
    times = column.to_pylist()
    expected = [v is not None and t is None for v, t in zip(values, times, strict=True)]
    assert failed.tolist() == expected
    return list(times)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-31T12:00:00Z", NOON),
        ("2026-01-31 12:00Z", NOON),
        ("2026-01-31T13:30:00+01:30", NOON),
        ("2026-01-31T11:00-0100", NOON),
        ("2026-01-31T11:00:00.5-01", NOON + SECOND // 2),
        ("2026-01-31T12:00:00.000000001+00:00", NOON + 1),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
        ("1677-09-21T00:12:43.145224192Z", LEAST),
        ("2262-04-11T23:47:16.854775807Z", MOST),
        ("1677-09-21T00:12:43.145224191Z", None),
        ("2262-04-11T23:47:16.854775808Z", None),
        ("0000-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("2026-01-31T12:00:00", None),  # of which zone?
        ("2026-01-31", None),
        ("2026-01-31T24:00:00Z", None),
        ("2026-01-31T23:59:60Z", None),
        ("2026-01-31T12:00:00.1234567890Z", None),
        ("2026-01-31T12:00:00.Z", None),
        ("2026-01-31T12:00:00,5Z", None),
        ("2026-01-31T12:00:00z", None),
        ("2026-01-31t12:00:00Z", None),
        ("2026-01-31T12:00:00 Z", None),
        ("2026-01-31T12:00:00Z ", None),
        ("2026-01-31T12:00:00+24:00", None),
        ("2026-01-31T12:00:00+1", None),
        ("2026-01-31T12:00:00+01:", None),
        ("2026-01-31T12Z", None),
        ("2026-02-29T12:00:00Z", None),
        ("1900-02-29T12:00:00Z", None),
        ("2026-13-01T12:00:00Z", None),
        ("2026-00-01T12:00:00Z", None),
        ("2026-01-00T12:00:00Z", None),
        ("2026-W05-6T12:00:00Z", None),
        ("20260131T120000Z", None),
        ("+002026-01-31T12:00:00Z", None),
        ("2026-01-31T12:00:0éZ", None),
        ("", None),
    ],
)
def test_iso_to_the_letter(text: str, wanted: int | None) -> None:
    # Behind a null and a good one of the same day, whose date is not looked at again.
    assert parsed(TimeForm("iso"), None, "2026-01-31T12:00:00Z", text) == [None, NOON, wanted]


def test_a_text_without_a_zone_is_of_the_declared_one() -> None:
    texts = ("2026-01-31T12:00:00", "2026-01-31T12:00:00Z", "2026-01-31")
    assert parsed(TimeForm("iso", "UTC"), *texts) == [NOON, NOON, None]
    assert parsed(TimeForm("iso", "+01:00"), *texts) == [NOON - 3600 * SECOND, NOON, None]
    assert parsed(TimeForm("iso", "-05:30"), *texts) == [NOON + 19_800 * SECOND, NOON, None]


def test_short_ones_are_those_of_arrow() -> None:
    texts = ["2026-01-31", "2026-01-31T12", "2026-01-31 12Z", "2026-01-31T12+01", "2026-01-31T1"]
    form = TimeForm("iso", "UTC", short_ones=True)
    hour = 3600 * SECOND
    assert parsed(form, *texts) == [NOON - 12 * hour, NOON, NOON, NOON - hour, None]


@given(
    st.lists(
        st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1)),  # noqa: DTZ001 - of any zone
        min_size=1,
        max_size=20,
    ),
    st.integers(-23 * 60, 23 * 60),
)
def test_all_forms_of_a_time_are_it(times: list[datetime], east: int) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    sign, minutes = "-" if east < 0 else "+", abs(east)
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    wanted = [
        (one.replace(tzinfo=UTC) - timedelta(minutes=east) - epoch) // timedelta(microseconds=1)
        for one in times
    ]
    ns = [1000 * one for one in wanted]
    isos = [one.isoformat() for one in times]
    assert parsed(TimeForm("iso", zone), *isos) == ns
    assert parsed(TimeForm("iso"), *(one + zone for one in isos)) == ns
    texts = [one.strftime("%d.%m.") + f"{one.year:04d} {one:%H:%M:%S}.{one:%f}" for one in times]
    assert parsed(TimeForm("%d.%m.%Y %H:%M:%S.%6f", zone), *texts) == ns
    assert parsed(TimeForm("%d.%m.%Y %T.%f%z"), *(one + zone for one in texts)) == ns


def test_patterns_are_read_to_the_last_letter() -> None:
    form = TimeForm("%d.%m.%Y %R", "UTC")
    texts = ("31.01.2026 12:00", "31.1.2026 12:00", "31.01.2026 12:00 ", "31.01.2026 12", "")
    assert parsed(form, *texts) == [NOON, None, None, None, None]
    assert parsed(TimeForm("%F", "UTC"), "2026-01-31") == [NOON - 43_200 * SECOND]
    assert parsed(TimeForm("100%% %F", "UTC"), "100% 2026-01-31", "100%% 2026-01-31") == [
        NOON - 43_200 * SECOND,
        None,
    ]


@pytest.mark.parametrize(("unit", "ns"), [("s", SECOND), ("ms", 10**6), ("us", 1000), ("ns", 1)])
def test_numbers_of_a_unit(unit: str, ns: int) -> None:
    most, least = MOST // ns, -(-LEAST // ns)
    numbers = [0, None, -1, most, least]
    wanted = [None if one is None else one * ns for one in numbers]
    assert parsed(TimeForm(unit), *numbers) == wanted
    if ns > 1:
        assert parsed(TimeForm(unit), most + 1, least - 1) == [None, None]


NEW_YORK = TimeForm("iso", "America/New_York")


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-01-31T07:00", "2026-01-31T12:00Z"),
        ("2026-07-31T07:00", "2026-07-31T11:00Z"),
        ("2026-03-08T01:59:59.9", "2026-03-08T06:59:59.9Z"),
        ("2026-03-08T02:30", None),  # skipped
        ("2026-03-08T03:00", "2026-03-08T07:00Z"),
        ("2026-11-01T00:59:59", "2026-11-01T04:59:59Z"),
        ("2026-11-01T01:00", None),  # twice
        ("2026-11-01T01:59:59", None),
        ("2026-11-01T01:30-05:00", "2026-11-01T06:30Z"),
        ("2026-11-01T02:00", "2026-11-01T07:00Z"),
        ("1677-09-21T00:00", None),
        ("no time", None),
    ],
)
def test_a_text_is_what_clocks_of_a_zone_show_just_once(text: str, utc: str | None) -> None:
    wanted = [None] if utc is None else parsed(TimeForm("iso"), utc)
    assert parsed(NEW_YORK, text) == wanted
    if not text.endswith("-05:00") and len(text) == len("2026-01-31T07:00"):
        assert parsed(TimeForm("%FT%R", "America/New_York"), text) == wanted
    assert "or one that clocks of America/New_York skip or show twice" in NEW_YORK.words


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(st.lists(st.integers(-8 * 10**9, 8 * 10**9), min_size=1, max_size=9))
def test_clocks_of_a_zone_are_read_back(seconds: list[int]) -> None:
    clocks = zone("America/Havana")
    times = np.array(seconds) * SECOND
    shown = times + clocks.offsets_ns(times)
    instants, is_one = clocks.instants_ns(shown)
    assert (instants[is_one] == times[is_one]).all()
    others = instants_that_show(clocks, shown)
    assert is_one.tolist() == [len(each) == 1 for each in others]


def instants_that_show(clocks: Zone, shown: np.ndarray) -> list[set[int]]:
    """Return by definition the instants at which clocks show each time."""
    offsets = {int(one) * SECOND for one in clocks.offsets_s}
    found: list[set[int]] = []
    for local in shown.tolist():
        near = {local - offset for offset in offsets}
        found.append({at for at in near if clocks.offsets_ns(np.array([at]))[0] == local - at})
    return found


@pytest.mark.parametrize(
    ("form", "zone", "words"),
    [
        ("ISO", None, "format is 'ISO': it is 'iso', 's', 'ms', 'us', 'ns' or a pattern such as"),
        (5, None, "format is 5"),
        ("ms", "UTC", "zone is 'UTC', and numbers since 1970 are in UTC: leave it out"),
        ("iso", "Europe/Pari", "write one such as Europe/Paris"),
        ("iso", "01:00", "zone is '01:00': it is 'UTC', a name such as 'America/New_York' or an"),
        ("iso", "+24:00", "zone is '+24:00'"),
        ("iso", 1, "zone is 1"),
        ("%Y-%m", "UTC", "a time has a year, a month and a day"),
        ("%Y-%m-%d %p", "UTC", "the directives %Y %m %d"),
        ("%Y-%m-%d %", "UTC", "the directives %Y %m %d"),
        ("%F %Y", "UTC", "which has %Y twice"),
        ("%F %3f%6f", "UTC", "which has %f twice"),
        ("%F", None, "in which no zone is written: add zone='UTC'"),
        ("%FT%T%z", "UTC", "in which the zone is written: leave zone= out"),
        ("%F" + "x" * 200, "UTC", "at most 200 characters"),
    ],
)
def test_forms_that_are_none(form: str, zone: str | None, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        TimeForm(form, zone)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
