"""Checksums of venues over the levels of order books: examples of their own, and lost messages."""

from __future__ import annotations

import decimal
import random
import zlib
from typing import Annotated, Any

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.testing import check_pipeline


@rp.record
class Message:
    symbol: str
    action: str
    side: str
    price: Annotated[decimal.Decimal, rp.Decimal(12, 1)]
    size: Annotated[decimal.Decimal, rp.Decimal(18, 8)]
    last: bool
    checksum: int | None
    at: rp.Timestamp


pytestmark = pytest.mark.filterwarnings("ignore::ripple.LostRecordsWarning")

SOURCE = rp.Pipeline("test").source("messages", Message, out_of_order=10)

# The example of docs.kraken.com/exchange/guides/websockets/book-checksum-v2.
KRAKEN = (
    "45283.5 0.10000000 45283.4 1.54582015 45282.1 0.10000000 45281.0 0.10000000 "
    "45280.3 1.54592586 45279.0 0.07990000 45277.6 0.03310103 45277.5 0.30000000 "
    "45277.3 1.54602737 45276.6 0.15445238",
    "45285.2 0.00100000 45286.4 1.54571953 45286.6 1.54571109 45289.6 1.54560911 "
    "45290.2 0.15890660 45291.8 1.54553491 45294.7 0.04454749 45296.1 0.35380000 "
    "45297.5 0.09945542 45299.5 0.18772827",
)
# Examples of OKX's documentation of its futures.
OKX = ("3366.1 7 3366 6", "3366.8 9 3368 8")
OKX_UNEVEN = ("3366.1 7", "3366.8 9 3368 8 3372 8")
# The example of the tests of Bitfinex's bfx-api-node-models, "6000:1:6100:-3:5900:2:6200:-4".
BITFINEX = ("6000 1 5900 2", "6100 3 6200 4")
BITFINEX_UNEVEN = ("6000.5 0.00000025", "6100 0.000001 6200 0.0000005 6300 0.00000012")


def book_of(rule: str, **given: Any) -> rp.Pipeline:
    step = rp.OrderBook(
        action="action", last="last", checksum="checksum", checksum_rule=rule, **given
    )
    return SOURCE.scan("book", "symbol", step=step, settled=True, lateness=20)


def message(action: str, side: str = "B", price: Any = 0, size: Any = 0, **given: Any) -> Any:
    row = {"symbol": "A", "action": action, "side": side, "price": decimal.Decimal(price)}
    return {**row, "size": decimal.Decimal(size), "last": True, "checksum": None, **given}


def snapshot(bids: str, asks: str, checksum: int) -> list[dict[str, Any]]:
    """Return the messages of a snapshot of levels, the best first: "price size price size"."""
    told = [message("B")]
    for side, levels in (("B", bids.split()), ("A", asks.split())):
        each = zip(levels[::2], levels[1::2], strict=True)
        told += [message("S", side, *level) for level in each]
    return [*told, message("E", checksum=checksum)]


def timed(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "at": at} for at, one in enumerate(told)]


def last_row(book: rp.Pipeline, told: list[dict[str, Any]]) -> dict[str, Any]:
    return rp.collect(book.sink("out"), [Message(**one) for one in timed(told)]).rows()[-1]


@pytest.mark.parametrize(
    ("rule", "levels", "checksum"),
    [
        ("kraken", KRAKEN, 3310070434),
        ("okx", OKX, -1881014294),
        ("okx", OKX, -1881014294 + 2**32),
        ("okx", OKX_UNEVEN, 831078360),
        ("bitfinex", BITFINEX, zlib.crc32(b"6000:1:6100:-3:5900:2:6200:-4")),
        (
            "bitfinex",
            BITFINEX_UNEVEN,
            zlib.crc32(b"6000.5:2.5e-7:6100:-0.000001:6200:-5e-7:6300:-1.2e-7") - 2**32,
        ),
    ],
)
def test_examples_of_venues_fit_and_one_more_does_not(
    rule: str, levels: tuple[str, str], checksum: int
) -> None:
    assert last_row(book_of(rule), snapshot(*levels, checksum))["status"] == "open"
    with pytest.warns(rp.LostRecordsWarning, match="the checksum is not that of the book"):
        row = last_row(book_of(rule), snapshot(*levels, checksum + 1))
    assert (row["status"], row["gaps"], row["bid"]) == ("gap", 1, None)
    beyond = snapshot(*levels, checksum + 2**32)
    assert last_row(book_of(rule), beyond)["status"] == ("open" if checksum < 0 else "gap")


class Venue:
    """A venue with its own texts and checksums; it tells of ten levels of a side."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sides: dict[str, dict[int, int]] = {"B": {}, "A": {}}

    def best(self, side: str) -> list[int]:
        return sorted(self.sides[side], reverse=side == "B")[:10]

    def text(self) -> str:
        levels = [(price, self.sides[side][price]) for side in "AB" for price in self.best(side)]
        return "".join(f"{price}{size}" for price, size in levels)

    def event(self) -> list[dict[str, Any]]:
        """Change up to three levels; what leaves the best ten is told no more."""
        told = []
        for _ in range(self.chance.randint(1, 3)):
            side = self.chance.choice("BA")
            price = self.chance.randint(900, 999) + (100 if side == "A" else 0)
            size = self.chance.choice([0, 0, 1, 25, 10**8])
            self.sides[side].pop(price, None)
            if size:
                self.sides[side][price] = size
            units = decimal.Decimal(price).scaleb(-1), decimal.Decimal(size).scaleb(-8)
            told.append(message("S", side, *units, last=False))
        for side in "BA":
            self.sides[side] = {one: self.sides[side][one] for one in self.best(side)}
        checksum = zlib.crc32(self.text().encode())
        return [*told[:-1], {**told[-1], "last": True, "checksum": checksum}]

    def tell(self) -> list[dict[str, Any]]:
        """Return a snapshot."""
        levels = []
        for side in "BA":
            each = ((price, self.sides[side][price]) for price in self.best(side))
            levels.append(" ".join(f"{p / 10} {s / 10**8:.8f}" for p, s in each))
        return snapshot(*levels, zlib.crc32(self.text().encode()))


def test_a_lost_message_is_noticed_and_the_book_unknown_until_a_snapshot() -> None:
    venue = Venue(3)
    told = [message("R")]
    for _ in range(60):
        told += venue.event()
    book = book_of("kraken", venue_depth=10)
    assert last_row(book, told)["gaps"] == 0, "all checksums fit"
    lost = [*told, *venue.event()[1:], *venue.event(), *venue.event()]
    while last_row(book, lost)["status"] != "gap":  # one that was not among the best
        lost = [*lost, *venue.event()]
    assert last_row(book, [*lost, *venue.event()])["status"] == "gap"
    found = [*lost, *venue.event(), *venue.tell(), *venue.event()]
    row = last_row(book, found)
    assert (row["status"], row["gaps"]) in {("open", 1), ("crossed", 1), ("locked", 1)}
    middle = len(lost)
    check_pipeline(book.sink("out"), timed(found), (1, 7, 1000), restarts=[middle])


def test_a_book_without_the_depth_of_its_venue_keeps_levels_that_are_gone() -> None:
    venue = Venue(3)
    told = [message("R"), *(one for _ in range(60) for one in venue.event())]
    assert last_row(book_of("kraken"), told)["gaps"] == 1


def test_levels_that_wait_for_a_snapshot_keep_their_checksums() -> None:
    numbered = rp.OrderBook(
        action="action", sequence="number", rule="dense", checksum="checksum", checksum_rule="okx"
    )

    @rp.record
    class Numbered(Message):
        number: int

    source = rp.Pipeline("test").source("messages", Numbered, out_of_order=10)
    book = source.scan("book", "symbol", step=numbered, settled=True, lateness=20)
    fits = zlib.crc32(b"2:1:3:1")
    told = [
        message("S", "B", 2, 1, number=6),
        message("S", "A", 3, 1, number=7, checksum=fits),
        message("S", "A", 3, 1, number=8, checksum=fits + 1),
        message("B", number=5),
        message("E", number=5),
    ]
    rows = rp.collect(book.sink("out"), [Numbered(**one) for one in timed(told)]).rows()
    assert [row["status"] for row in rows][-1] == "gap", "that of number 8 does not fit"
    check_pipeline(book.sink("out"), timed(told), (1, 2), restarts=[2, 3])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"checksum": "checksum"}, "checksum_rule None: give both"),
        ({"checksum_rule": "okx"}, "checksum is None, and checksum_rule 'okx': give both"),
        ({"checksum": "checksum", "checksum_rule": "nyse"}, "takes one of None, 'kraken', 'okx'"),
        ({"venue_depth": 0}, "venue_depth"),
        ({"venue_depth": 10, "order": "order"}, "the book is by order: leave out one of the two"),
    ],
)
def test_what_no_venue_tells_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        rp.OrderBook(action="action", **given)


def test_floats_have_no_digits_for_a_checksum() -> None:
    floats = SOURCE.derive("floats", near=rp.col("price").cast(float))
    step = rp.OrderBook(price="near", action="action", checksum="checksum", checksum_rule="okx")
    with pytest.raises(PlanError, match="price holds floats"):
        floats.scan("book", "symbol", step=step, settled=True)
