"""Events with dates, times and decimals, as a program has them, checked against the reference."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import numpy as np
import pytest

import ripple as rp
from ripple.testing import check_pipeline


@rp.record(version=1)
class Bond:
    name: str
    due: dt.date
    seen: dt.datetime | None
    price: Annotated[Decimal, rp.Decimal(8, 2)]
    at_ns: rp.Timestamp


@rp.record(version=1)
class Offer:
    name: str
    due: dt.date
    price: Annotated[Decimal, rp.Decimal(8, 2)]


@dataclass
class Seen:
    count: int = 0


SEEN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
EVENTS = [
    Bond("a", dt.date(2026, 1, 31), SEEN, Decimal("1.25"), 3),
    Bond("b", dt.date(1969, 1, 1), None, Decimal(-3), 5),
]


def moved(bond: Bond) -> Offer:
    return Offer(bond.name, bond.due + dt.timedelta(1), bond.price * 2)


def twice(bond: Bond) -> list[Offer]:
    return [Offer(bond.name, bond.due, bond.price)] * 2


def moved_all(columns: dict[str, Any]) -> dict[str, Any]:
    return columns | {"due": columns["due"] + np.timedelta64(1, "D")}


def scanned(seen: Seen, bond: Bond) -> Offer:
    seen.count += 1
    return Offer(bond.name, bond.due + dt.timedelta(seen.count), bond.price)


@pytest.mark.parametrize("way", ["map", "batch", "flat_map", "scan"])
def test_functions_get_what_they_get_in_the_engine(way: str) -> None:
    bonds = rp.Pipeline("bonds").source("bonds", Bond, time="at_ns")
    if way == "map":
        offers = bonds.map("offers", moved, into=Offer)
    elif way == "batch":
        offers = bonds.map("offers", moved_all, into=Offer, batch=True)
    elif way == "flat_map":
        offers = bonds.flat_map("offers", twice, into=Offer)
    else:
        offers = bonds.scan(
            "offers", key="name", state=Seen, step=scanned, into=Offer, settled=True
        )
    by_due = offers.partition("by-due", key="due")
    totals = by_due.fold("totals", most=rp.max("price"), name=rp.last("name"))
    events = [{name: getattr(one, name) for name in Bond.__annotations__} for one in EVENTS]
    check_pipeline(totals.sink("out"), events, (1, 2))


def test_a_date_of_another_type_is_named() -> None:
    bonds = rp.Pipeline("bonds").source("bonds", Bond, time="at_ns").sink("out")
    event = {"name": "a", "due": 3, "seen": None, "price": Decimal(1), "at_ns": 3}
    with pytest.raises(rp.SchemaError, match="the field 'due' must be a date, not 3"):
        check_pipeline(bonds, [event], (1,))
