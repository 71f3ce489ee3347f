"""Instants are read to the nanosecond, or refused."""

from __future__ import annotations

import pytest

from ripple.model.window.instant import any_instant_ns, instant_ns

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01.000000001Z", SECOND + 1),
        ("1970-01-01T01:00:00.123456789+01:00", 123_456_789),
        ("1970-01-01T00:00:00.5", SECOND // 2),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1708900999123456789ns", 1_708_900_999_123_456_789),
    ],
)
def test_each_nanosecond_is_read(text: str, time_ns: int) -> None:
    assert instant_ns(text) == time_ns


@pytest.mark.parametrize(
    "text",
    ["", "1970", "yesterday", "1970-01-01T00:00:00.1234567891Z", "9999999999999999999ns", "-1ns",
     "2300-01-01T00:00:00Z", "1700000000"],
)  # fmt: skip
def test_text_that_is_no_instant_is_refused_and_not_rounded(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - who calls it says the rest
        instant_ns(text)


@pytest.mark.parametrize(("text", "years"), [("0001-01-01", -1969), ("9999-12-31", 8029)])
def test_years_that_no_event_has_are_before_or_after_all_of_them(text: str, years: int) -> None:
    with pytest.raises(ValueError, match="beyond 64 bits"):
        instant_ns(text)
    assert any_instant_ns(text) // (365.25 * 86_400 * SECOND) == pytest.approx(years, abs=1)
