"""Order books: against the reference at every batch size, and the rules of sequence numbers."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError
from ripple.engine.operators import book_scan_rows
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.description import describe
from ripple.testing import check_pipeline, crash_test
from ripple.testing.reference import books as books_in_python
from tests.examples import EXAMPLES, SAMPLED, SCATTERED

SIZES = (1, 7, 1000)
RULES = ("kraken", "okx", "bitfinex")


@rp.record
class Message:
    symbol: str
    action: str | None
    side: str | None
    order_id: int | None
    price: float | None
    units: Annotated[decimal.Decimal, rp.Decimal(10, 2)] | None
    size: int | None
    number: int | None
    before: int | None
    last: bool
    t: rp.Timestamp


SOURCE = Pipeline("test").source("messages", Message, out_of_order=10)
BY_ORDER: dict[str, Any] = {"action": "action", "order": "order_id"}
NUMBERED: dict[str, Any] = {"sequence": "number", "rule": "dense"}


def tops_of(book: rp.OrderBook, ttl: int | None = None, *, settled: bool = True) -> Pipeline:
    return SOURCE.scan("book", "symbol", step=book, settled=settled, lateness=20, ttl=ttl)


def unit(text: str) -> decimal.Decimal:
    return decimal.Decimal(text)


@st.composite
def messages(draw: Any, most: int = 60) -> list[dict[str, Any]]:
    """Messages of two books, mostly in sequence: with gaps, old ones, faults and late ones."""
    found: list[dict[str, Any]] = []
    numbers = {"A": 0, "B": 0}
    for at in range(draw(st.integers(0, most))):
        symbol = draw(st.sampled_from("AAB"))
        step = draw(st.sampled_from([1] * 12 + [0, 2, -1]))
        was = numbers[symbol]
        numbers[symbol] += step
        before = draw(st.sampled_from([was] * 6 + [was - 1, was + 1, numbers[symbol], None]))
        action = draw(st.sampled_from(["A", "S"] * 5 + ["M", "C"] * 3 + list("RBETFUX") + [None]))
        time = 10 * at - draw(st.sampled_from([0, 0, 0, 0, 10, 25, 60]))
        found.append(
            {
                "symbol": symbol,
                "action": action,
                "side": draw(st.sampled_from(["B", "A", "bid", "sell", "B", "A", "?", None])),
                "order_id": draw(st.sampled_from([1, 2, 3, 4, None])),
                "price": draw(
                    st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.0, 2.0, 3.5, None, float("nan")])
                ),
                "units": draw(st.sampled_from([unit("1.25"), unit("-0.5"), unit("2"), None])),
                "size": draw(st.sampled_from([0, 1, 2, 3, 5, 2**62, -1, None])),
                "number": draw(st.sampled_from([numbers[symbol]] * 20 + [None])),
                "before": before,
                "last": draw(st.sampled_from([True, True, False])),
                "t": max(time, 0),
            }
        )
    return found


@st.composite
def books(draw: Any) -> rp.OrderBook:
    by = draw(st.sampled_from([{"action": "action"}, BY_ORDER]))
    rule = draw(st.sampled_from([None, "dense", "linked", "range", "channel"]))
    more: dict[str, Any] = {} if rule is None else {"sequence": "number", "rule": rule}
    if rule in ("linked", "range"):
        more["previous"] = "before"
    if draw(st.booleans()):
        more["last"] = "last"
    show = draw(st.sampled_from(["tops", "levels"]))
    sizes = ["size", "units", *([] if "order" in by else ["price"])]
    if "order" not in by:
        more["venue_depth"] = draw(st.sampled_from([None, 1, 2]))
        if show == "tops" and draw(st.booleans()):
            more |= {"checksum": "order_id", "checksum_rule": draw(st.sampled_from(RULES))}
            sizes = ["size", "units"]
    prices = ["units", "size", *([] if "checksum" in more else ["price"])]
    return rp.OrderBook(
        **by,
        **more,
        size=draw(st.sampled_from(sizes)),
        price=draw(st.sampled_from(prices)) if show == "tops" else "price",
        show=show,
        depth=draw(st.sampled_from([1, 2, 5])),
        begins=draw(st.sampled_from(["empty", "unknown"])),
        strict=draw(st.booleans()),
    )


@settings(max_examples=40 * EXAMPLES // SAMPLED)
@given(
    book=books(),
    happened=messages(),
    ttl=st.sampled_from([None, None, 40]),
    restart=st.integers(0, 60),
    settled=st.booleans(),
    waiting=st.sampled_from([3, 10_000]),
)
def test_books_equal_their_evaluation_from_scratch(
    book: rp.OrderBook, happened: Any, restart: int, waiting: int, **of: Any
) -> None:
    rows = tops_of(book, of["ttl"], settled=of["settled"] or book.show == "levels")
    pipeline = rows.sink("out").also(SOURCE.sink("all"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (book_scan_rows, books_in_python):
            patch.setattr(module, "KEPT_MAX", waiting)
        check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


def message(action: str, number: int = 0, **given: Any) -> dict[str, Any]:
    """Return a message; "B9.5" in ``at`` is a bid at 9.5."""
    place = given.pop("at", "B0")
    row = {"symbol": "A", "action": action, "side": place[0], "order_id": 1, "units": None}
    row |= {"price": float(place[1:]), "size": 1, "number": number, "before": None, "last": True}
    return {**row, **given}


def rows_of(book: rp.OrderBook, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of messages at one time each."""
    whole = [{**one, "t": at} for at, one in enumerate(told)]
    return rp.collect(tops_of(book).sink("out"), [Message(**one) for one in whole]).rows()


def shown(book: rp.OrderBook, told: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (status, bid, bid size, ask, ask size) of each row."""
    names = ("status", "bid", "bid_size", "ask", "ask_size")
    return [tuple(row[name] for name in names) for row in rows_of(book, told)]


NONE = (None,) * 4
BY_LEVEL = rp.OrderBook(action="action", **NUMBERED)


def test_a_gap_makes_the_book_unknown_until_the_next_snapshot() -> None:
    told = [
        message("R", 5),
        message("S", 6, at="B9", size=4),
        message("S", 8, at="A10", size=3),
        message("S", 9, at="A11", size=2),
        message("B", 8),
        message("S", 8, at="B9", size=4),
        message("E", 8),
    ]
    with pytest.warns(rp.LostRecordsWarning, match="a gap"):
        found = shown(BY_LEVEL, told)
    assert found == [
        ("open", *NONE),
        ("open", 9.0, 4, None, None),
        ("gap", *NONE),
        ("loading", *NONE),
        ("open", 9.0, 4, 11.0, 2),
    ]


def test_without_its_rule_a_book_would_be_wrong_and_say_nothing() -> None:
    told = [message("R", 1), message("S", 2, at="B9"), message("S", 4, at="B8")]
    without = rp.OrderBook(action="action")
    assert shown(without, told)[-1] == ("open", 9.0, 1, None, None)
    with pytest.warns(rp.LostRecordsWarning, match="a gap"):
        assert shown(BY_LEVEL, told)[-1] == ("gap", *NONE)


@pytest.mark.parametrize(
    ("rule", "numbers", "gaps"),
    [
        ("dense", [(1, 0), (2, 0), (2, 0), (3, 0)], 0),
        ("dense", [(1, 0), (3, 0)], 1),
        ("channel", [(1, 0), (900, 0), (900, 0), (905, 0)], 0),
        ("channel", [(5, 0), (4, 0)], 1),
        ("linked", [(1, 0), (9, 1), (20, 9), (20, 20), (9, 1)], 0),
        ("linked", [(1, 0), (9, 1), (20, 8)], 1),
        ("linked", [(5, 0), (9, 3), (11, 9)], 0),  # the first one after a snapshot may overlap it
        ("linked", [(5, 0), (9, 3), (11, 8)], 1),
        ("linked", [(5, 0), (9, 5), (2, 9)], 0),  # numbers that begin anew name the last one
        ("range", [(5, 0), (9, 4), (12, 10), (11, 10)], 0),
        ("range", [(5, 0), (9, 7)], 1),
        ("range", [(5, 0), (9, 6), (12, 9)], 1),
    ],
)
def test_sequence_rules_have_the_gaps_of_their_venue(
    rule: str, numbers: list[tuple[int, int]], gaps: int
) -> None:
    of: dict[str, Any] = {"previous": "before"} if rule in ("linked", "range") else {}
    book = rp.OrderBook(action="action", sequence="number", rule=rule, **of)
    told = [
        message("S" if at else "R", number, before=before, at=f"B{at}")
        for at, (number, before) in enumerate(numbers)
    ]
    whole = [{**one, "t": at} for at, one in enumerate(told)]
    plan = tops_of(book).sink("out")
    check_pipeline(plan, whole, (1, 1000))
    rows = rows_of(book, told) if not gaps else []
    assert all(row["gaps"] == 0 for row in rows)
    if gaps:
        with pytest.warns(rp.LostRecordsWarning, match="a gap"):
            assert rows_of(book, told)[-1]["gaps"] == gaps


def test_an_event_of_several_messages_is_looked_at_at_its_end() -> None:
    book = rp.OrderBook(action="action", last="last", **NUMBERED)
    told = [
        message("R", 1),
        message("S", 2, at="B9", last=False),
        message("S", 2, at="A9.5", last=False),
        message("S", 2, at="B9.25"),
        message("S", 3, at="B9.25", size=0),
    ]
    assert shown(book, told) == [
        ("open", *NONE), ("open", 9.25, 1, 9.5, 1), ("open", 9.0, 1, 9.5, 1),
    ]  # fmt: skip


def test_locked_and_crossed_books_are_said_and_not_mended() -> None:
    told = [
        message("R"), message("S", at="B9"), message("S", at="A10"), message("S", at="A9"),
        message("S", at="A8"), message("S", at="A8", size=0), message("S", at="A9", size=0),
    ]  # fmt: skip
    found = shown(rp.OrderBook(action="action"), told)
    assert [row[0] for row in found] == [
        "open",
        "open",
        "open",
        "locked",
        "crossed",
        "locked",
        "open",
    ]
    assert found[4] == ("crossed", 9.0, 1, 8.0, 1)


def test_orders_of_a_level_add_up() -> None:
    book = rp.OrderBook(
        **BY_ORDER, show="levels", depth=2, begins="empty", price="size", size="units"
    )
    told = [
        message("A", order_id=1, size=9, units=unit("1.5")),
        message("A", order_id=2, size=9, units=unit("2.25")),
        message("C", order_id=1, units=unit("0.5")),
        message("A", order_id=3, size=8, units=unit("1")),
        message("A", order_id=4, size=10, units=unit("1")),
        message("M", order_id=2, size=8, units=unit("1")),
        message("C", order_id=1, units=None),
    ]
    found = [(row["t"], row["price"], row["size"], row["orders"]) for row in rows_of(book, told)]
    zero = unit("0.00")
    assert found == [
        (0, 9, unit("1.50"), 1),
        (1, 9, unit("3.75"), 2),
        (2, 9, unit("3.25"), 2),
        (3, 8, unit("1.00"), 1),
        (4, 8, zero, 0), (4, 10, unit("1.00"), 1),
        (5, 9, unit("1.00"), 1),
        (6, 8, unit("2.00"), 2), (6, 9, zero, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (message("A", side="?"), "side"),
        (message("A", side=None), "side"),
        (message("A", size=-1), "size"),
        (message("A", size=0), "size"),
        (message("A", price=float("nan")), "price"),
        (message("A", price=None), "price"),
        (message("A", order_id=None), "order is null"),
        (message("A", order_id=7), "in the book already"),
        (message("C", order_id=8), "not in the book"),
        (message("M", order_id=8), "not in the book"),
        (message("A", order_id=9, size=2**63 - 1), "over 64 bits"),
        (message("M", order_id=6, size=2**63 - 1), "over 64 bits"),
        (message("S"), "the action is none of"),
        (message("?"), "the action is none of"),
        (message("E"), "not begun"),
    ],
)
def test_a_message_that_cannot_be_applied_is_counted_and_named(
    bad: dict[str, Any], why: str
) -> None:
    told = [message("R"), message("A", order_id=7), message("A", order_id=6, at="B1"), bad]
    for strict, gaps in ((False, 0), (True, 1)):
        book = rp.OrderBook(**BY_ORDER, strict=strict)
        with pytest.warns(rp.LostRecordsWarning, match=why):
            last = rows_of(book, told)[-1]
        assert (last["status"], last["gaps"]) == ("gap" if strict else "open", gaps)
        if not strict:
            assert (last["bid"], last["bid_size"]) == (1.0, 1)


@rp.record
class Deep:
    """A message with as many levels as ``count``, each better than the one before, and a size."""

    symbol: str
    count: int
    size: Annotated[decimal.Decimal, rp.Decimal(18)]
    t: rp.Timestamp


DEEP = Pipeline("test").source("messages", Deep)


@rp.record
class Part:
    symbol: str
    action: str
    side: str
    order_id: int
    price: int
    size: Annotated[decimal.Decimal, rp.Decimal(18)]
    t: rp.Timestamp


def parts(of: Deep) -> list[dict[str, Any]]:
    own = {"symbol": of.symbol, "action": "A", "side": "B", "size": of.size, "t": of.t}
    return [{**own, "order_id": of.t + at, "price": at} for at in range(of.count)]


def test_sums_of_sizes_have_digits_for_them(tmp_path: Path) -> None:
    book = rp.OrderBook(**BY_ORDER, size="units", begins="empty")
    told = [message("A", order_id=at, units=unit("99999999.99")) for at in range(3)]
    file = tmp_path / "tops.csv"
    rp.run(tops_of(book).sink("out"), source=[Message(**one, t=0) for one in told], sink=file)
    assert "299999999.97" in file.read_text()
    large = [Deep("a", 1, unit("6e17"), at) for at in range(3)]
    tops = DEEP.flat_map("parts", parts, into=Part).scan(
        "book", "symbol", step=rp.OrderBook(**BY_ORDER, begins="empty"), settled=True
    )
    with pytest.warns(rp.LostRecordsWarning, match="2 rows of 'book'.*18 digits"):
        assert [row["bid_size"] for row in rp.collect(tops.sink("out"), large)] == [unit("6e17")]


def test_levels_beyond_the_rows_of_a_record_are_shown_with_the_next_message() -> None:
    book = rp.OrderBook(**BY_ORDER, begins="empty", show="levels", depth=10)
    levels = (
        DEEP.flat_map("parts", parts, into=Part)
        .scan("book", "symbol", step=book, settled=True)
        .partition("by-level", key=["symbol", "side", "price"])
        .fold("levels", size=rp.last("size"))
        .filter("there", rp.col("size") > unit("0"))
        .sink("out")
    )
    told = [Deep("a", 6_000, unit("1"), 1), Deep("a", 1, unit("1"), 10_000)]
    with pytest.warns(rp.LostRecordsWarning, match="more than 10000 rows"):
        found = rp.collect(levels, told).rows()
    assert sorted(row["price"] for row in found) == [*range(5_990, 6_000)]


def test_snapshots_need_no_number_of_the_message_before() -> None:
    for rule in ("linked", "range"):
        told = [
            message("B", 10), message("S", 12, at="B8", before=10), message("S", 10, at="B7"),
            message("E", 10), message("S", 14, at="B9", before=12 + (rule == "range")),
        ]  # fmt: skip
        told = [{**one, "before": one["before"] or None} for one in told]
        book = rp.OrderBook(action="action", sequence="number", rule=rule, previous="before")
        assert [row["bid"] for row in rows_of(book, told)] == [None, 8.0, 9.0]


def test_messages_that_wait_for_a_snapshot_are_bounded() -> None:
    told = [message("S", number, at="B9") for number in range(1, 10_004)]
    enough, old = ([message("B", number), message("E", number)] for number in (3, 2))
    assert shown(BY_LEVEL, told + enough)[-1] == ("open", 9.0, 1, None, None)
    with pytest.warns(rp.LostRecordsWarning, match="could not be kept"):
        assert shown(BY_LEVEL, told + old)[-1] == ("gap", *NONE)


def test_a_late_message_is_applied_at_its_own_place() -> None:
    book = rp.OrderBook(action="action", **NUMBERED)
    told = [message("R", 1, t=0), message("S", 3, at="B8", t=12), message("S", 2, at="B9", t=8)]
    found = rp.collect(tops_of(book).sink("out"), [Message(**one) for one in told]).rows()
    assert [(row["t"], row["status"], row["bid"]) for row in found] == [
        (0, "open", None), (8, "open", 9.0),
    ]  # fmt: skip


def test_a_late_message_corrects_the_rows_behind_it() -> None:
    book = rp.OrderBook(action="action", begins="empty")
    keyed = tops_of(book, settled=False).partition("by", key="t")
    folded = keyed.fold("bids", bid=rp.max("bid"), n=rp.count()).sink("out")
    told = [message("S", at="B8", t=10), message("S", at="B9", size=0, t=12)]
    told += [message("S", at="B9", t=5), message("S", at="B9.5", t=13)]
    counted: dict[int, dict[int, float]] = {}
    for count in (2, 3, 4):
        rows = rp.collect(folded, [Message(**one) for one in told[:count]]).rows()
        counted[count] = {row["t"]: row["bid"] for row in rows}
    assert counted == {
        2: {10: 8.0}, 3: {5: 9.0, 12: 8.0}, 4: {5: 9.0, 12: 8.0, 13: 9.5},
    }  # fmt: skip
    check_pipeline(folded, told, SIZES, restarts=[3])


@pytest.mark.parametrize("settled", [True, False])
def test_books_survive_crashes(settled: bool) -> None:
    told = [message("B", 1), message("A", 1, order_id=9, at="A99"), message("E", 1)]
    told += [message("A", at + 2, order_id=at, at=f"B{at % 5}") for at in range(5)]
    told += [message("C", 7, order_id=4), message("A", 9, order_id=11), message("R", 9)]
    happened = [{**one, "t": 10 * at} for at, one in enumerate(told)]
    book = rp.OrderBook(**BY_ORDER, **NUMBERED, depth=2)
    crash_test(
        tops_of(book, settled=settled).sink("out"),
        happened,
        seeds=range(1),
        every=SCATTERED,
        pairs=1,
    )


def test_the_table_of_levels_is_a_fold_of_their_changes() -> None:
    book = rp.OrderBook(
        action="action", price="size", size="units", show="levels", depth=100, begins="empty"
    )
    keyed = tops_of(book).partition("by-level", key=["symbol", "side", "price"])
    levels = keyed.fold("levels", size=rp.last("size")).filter("there", rp.col("size") > unit("0"))
    told = [
        {**message("S", size=at % 7, side="BA"[at % 2], units=unit(str(at * 5 % 3))), "t": at}
        for at in range(40)
    ]
    check_pipeline(levels.sink("out"), told, SIZES, restarts=[20])
    found = rp.collect(levels.sink("out"), [Message(**one) for one in told]).rows()
    last = {(one["side"], one["size"]): one["units"] for one in told}
    expected = {place: size for place, size in last.items() if size}
    assert {(row["side"], row["price"]): row["size"] for row in found} == expected


def test_tops_are_joined_to_trades_as_of_their_time() -> None:
    trades = Pipeline("test").source("trades", Message, out_of_order=10)
    tops = tops_of(rp.OrderBook(action="action", **NUMBERED))
    joined = trades.join_asof("with-top", tops, on="symbol", lateness=20, emit="final").sink("out")
    told = [message("R", 1, t=0), message("S", 2, at="B9", t=10), message("S", 4, at="B9", t=30)]
    asked = [message("T", t=at) for at in (5, 15, 35)]
    given = {
        "trades": [Message(**one) for one in asked],
        "messages": [Message(**one) for one in told],
    }
    with pytest.warns(rp.LostRecordsWarning, match="a gap"):
        found = rp.collect(joined, given).rows()
    assert [(row["status"], row["bid"]) for row in found] == [
        ("open", None), ("open", 9.0), ("gap", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rp.OrderBook(action="action", rule="dense"), "sequence is missing"),
        (lambda: rp.OrderBook(action="action", rule="naive", sequence="number"), "rule is 'naive'"),
        (lambda: rp.OrderBook(action="action", previous="before"), "is for rule"),
        (lambda: rp.OrderBook(order="order_id"), "action is missing"),
        (rp.OrderBook, "begins='empty'"),
        (lambda: rp.OrderBook(action="action", depth=101), "1 to 100"),
        (lambda: tops_of(rp.OrderBook(action="action", price="symbol")), "price takes an integer"),
        (lambda: tops_of(rp.OrderBook(action="action", last="size")), "last takes a boolean"),
        (lambda: tops_of(rp.OrderBook(**BY_ORDER, size="price")), "size holds floats"),
        (lambda: tops_of(rp.OrderBook(action="action", side="symbol")), "'symbol' is the key"),
        (lambda: tops_of(rp.OrderBook(action="action", side="sid")), "sid"),
        (
            lambda: tops_of(rp.OrderBook(action="action", show="levels"), settled=False),
            "say settled=True",
        ),
        (
            lambda: SOURCE.scan("b", "symbol", step=rp.OrderBook(action="action"), show="last"),
            "a row for each change",
        ),
        (
            lambda: SOURCE.scan(
                "b", "symbol", step=rp.OrderBook(action="action"), into=Message, settled=True
            ),
            "into is given",
        ),
    ],
)
def test_a_book_at_fault_is_refused_in_one_line(make: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_plan_says_what_a_book_is() -> None:
    book = rp.OrderBook(**BY_ORDER, **NUMBERED, depth=3)
    text = describe(tops_of(book).sink("out").plan())
    assert "scan book: book by order, sequence dense, begins unknown, tops of 3, by symbol" in text
    keys = {
        tops_of(one).sink("out").plan().steps[0].node_key
        for one in (book, rp.OrderBook(**BY_ORDER, **NUMBERED), BY_LEVEL)
    }
    assert len(keys) == 3
