"""Bounds of fields that are dates, times and decimals."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from typing import Annotated, Any

import pytest

import ripple as rp
from ripple.core.errors import SchemaError
from ripple.model.records import schema_of
from ripple.model.schema.checks import Checks


@rp.record
class Fill:
    who: str
    px: Annotated[Decimal, rp.Decimal(10, 2)] = rp.field(gt=0, le=Decimal("99.95"))
    day: dt.date = rp.field(ge=dt.date(2026, 1, 1))
    at: dt.datetime | None = rp.field(lt=dt.datetime(2027, 1, 1, tzinfo=dt.UTC), default=None)


MEMBERS = {member.name: member for member in schema_of(Fill).fields}
OUT = rp.Pipeline("p").source("fills", Fill).sink("out")


def test_each_source_rejects_what_is_out_of_bounds(tmp_path: Any) -> None:
    lines = {
        "a,0.01,2026-01-01,": None,
        "b,0,2026-01-02,": "px is not in (0.00, 99.95]",
        "c,-1.00,2026-01-02,": "px is not in (0.00, 99.95]",
        "d,99.96,2026-01-02,": "px is not in (0.00, 99.95]",
        "e,99.95,2025-12-31,": "day is not at least 2026-01-01",
        "f,1,2026-01-01,2027-01-01T00:00Z": "at is not less than 2027-01-01T00:00:00.000000000Z",
        "g,1,2026-01-01,2026-12-31T23:59:59.999999999Z": None,
    }
    file = tmp_path / "fills.csv"
    file.write_text("".join(f"{line}\n" for line in lines))
    with pytest.warns(rp.LostRecordsWarning):
        result = rp.collect(OUT, file)
    reasons = [reason for reason in lines.values() if reason]
    assert result.rejected["reason"].to_pylist() == reasons
    assert [row["who"] for row in result.rows()] == ["a", "g"]
    rows = [
        {"who": "a", "px": Decimal(px), "day": dt.date(2026, 1, 1)}
        for px in ("0.00", "0.01", "100")
    ]
    with pytest.warns(rp.LostRecordsWarning):
        assert [row["px"] for row in rp.collect(OUT, rows)] == [Decimal("0.01")]


@pytest.mark.parametrize(
    ("field", "bounds", "said"),
    [
        ("px", {"gt": 0.1}, "the field 'px' is Decimal, which cannot be 0.1: choose another"),
        ("px", {"le": Decimal("0.001")}, "which cannot be Decimal('0.001')"),
        ("px", {"ge": dt.date(2026, 1, 1)}, "which cannot be datetime.date"),
        ("day", {"lt": 5}, "the field 'day' is Date, which cannot be 5"),
        (
            "day",
            {"lt": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)},
            "which cannot be datetime.datetime",
        ),
        ("at", {"gt": dt.date(2026, 1, 1)}, "the field 'at' is DateTime, which cannot be"),
        ("who", {"gt": Decimal(1)}, "gt is a check of numbers, dates and times"),
        ("px", {"gt": Decimal(5), "lt": 5}, "no value of the field 'px' passes"),
    ],
)
def test_bound_that_a_field_cannot_have_is_refused(
    field: str, bounds: dict[str, Any], said: str
) -> None:
    with pytest.raises(SchemaError) as refused:
        Checks(**bounds).fitted(MEMBERS[field])
    assert said in str(refused.value)


def test_bounds_fit_once_and_go_to_other_processes() -> None:
    fitted = Checks(gt=0, le=Decimal("99.95")).fitted(MEMBERS["px"])
    assert fitted.interval == (1, 9995)
    assert fitted.fitted(MEMBERS["px"]) == fitted
    assert str(pickle.loads(pickle.dumps(fitted))) == str(fitted) == "gt=0.00, le=99.95"


def test_no_bound_is_infinite() -> None:
    with pytest.raises(SchemaError, match="a bound is a finite number, a date or a time"):
        Checks(gt=Decimal("NaN"))
