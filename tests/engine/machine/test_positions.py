"""Positions of fills: worked examples, an exact invariant, and the reference in fractions."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.engine.machine import Engine
from ripple.engine.operators.state_step import step_of
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.waiting_nodes import PositionScan
from ripple.testing import check_pipeline, crash_test
from tests.examples import EXAMPLES, SAMPLED, SCATTERED

SIZES = (1, 7, 1000)
METHODS = ("average", "fifo", "lifo")


@rp.record
class Fill:
    account: str
    number: int
    quantity: int
    price: Annotated[decimal.Decimal, rp.Decimal(12, 2)]
    fee: Annotated[decimal.Decimal, rp.Decimal(12, 2)] | None
    busted: bool
    at: rp.Timestamp


@rp.record
class Coins:
    """Quantities with more digits than 64 bits have."""

    account: str
    quantity: Annotated[decimal.Decimal, rp.Decimal(38, 8)]
    price: int | None
    at: rp.Timestamp


def start(record: Any = Fill) -> Pipeline:
    return Pipeline("test").source("fills", record, out_of_order=10, reject_future=100_000)


def positions(method: str, base: Pipeline | None = None, **said: Any) -> Pipeline:
    of = rp.Position("quantity", "price", method=method, fee="fee", busted="busted")
    return (base or start()).scan("position", "account", step=of, **({"lateness": 20} | said))


def fill(number: int, quantity: int, price: str, **more: Any) -> dict[str, Any]:
    own = {"account": "a", "number": number, "quantity": quantity, "price": Decimal(price)}
    return own | {"fee": Decimal(1), "busted": False, "at": number} | more


FILLS = [
    fill(1, 100, "10.00"),
    fill(2, 50, "10.60"),
    fill(3, -120, "11.00"),
    fill(4, -80, "10.50"),
    fill(5, 50, "10.00"),
]


def shown(method: str, fills: list[dict[str, Any]], **said: Any) -> list[tuple[Any, ...]]:
    """Return quantity, cost and realized profit of each row, in order, and check the invariant."""
    pipeline = positions(method, **said).sink("out")
    rows = rp.collect(pipeline, source=fills).rows()
    for row in rows:
        assert row["cash"] + row["cost"] == row["realized"]
    rows.sort(key=lambda row: row.get("row_offset", 0))
    return [(row["quantity"], row["cost"], row["realized"]) for row in rows]


def decimals(*rows: tuple[int, str, str]) -> list[tuple[Any, ...]]:
    return [(held, Decimal(cost), Decimal(realized)) for held, cost, realized in rows]


WORKED = {
    "average": [(100, "1000", "0"), (150, "1530", "0"), (30, "306", "96"), (-50, "-525", "105")],
    "fifo": [(100, "1000", "0"), (150, "1530", "0"), (30, "318", "108"), (-50, "-525", "105")],
    "lifo": [(100, "1000", "0"), (150, "1530", "0"), (30, "300", "90"), (-50, "-525", "105")],
}


@pytest.mark.parametrize("method", METHODS)
def test_fills_of_both_directions_and_a_flip(method: str) -> None:
    assert shown(method, FILLS) == decimals(*WORKED[method], (0, "0", "130"))
    assert shown(method, FILLS, show="last") == decimals((0, "0", "130"))
    assert shown(method, [FILLS[at] for at in (0, 2, 3, 4, 1)], show="last") == decimals(
        (0, "0", "130")
    )


def test_a_corrected_price_changes_the_profit() -> None:
    fills = [one | {"price": Decimal("11.10")} if one["number"] == 3 else one for one in FILLS]
    assert shown("average", fills, show="last") == decimals((0, "0", "142"))


@pytest.mark.parametrize(
    ("method", "cost", "realized"), [("average", "-530", "130"), ("fifo", "-525", "135")]
)
def test_a_busted_fill_does_not_count(method: str, cost: str, realized: str) -> None:
    fills = [one | {"busted": one["number"] == 2} for one in FILLS]
    assert shown(method, fills, show="last") == decimals((-50, cost, realized))


@pytest.mark.parametrize(
    ("method", "cost", "realized"), [("average", "-530", "130"), ("fifo", "-525", "135")]
)
def test_a_fill_is_busted_by_a_late_record(method: str, cost: str, realized: str) -> None:
    bust = FILLS[1] | {"busted": True}
    after = decimals((-50, cost, realized))
    assert shown(method, [*FILLS, bust], show="last", version_of="number") == after
    assert shown(method, [bust, *FILLS], show="last", version_of="number") != after


def test_a_fill_is_corrected_in_the_place_of_its_first_record() -> None:
    other = fill(6, -100, "11", at=1)
    fixed = fill(1, 200, "10")
    found = shown("average", [FILLS[0], other, fixed], version_of="number")
    assert found == decimals((200, "2000", "0"), (100, "1000", "100"))
    assert shown("average", [*FILLS, FILLS[2] | {"price": Decimal("11.10")}], show="last",
        version_of="number") == decimals((0, "0", "142"))  # fmt: skip


@pytest.mark.parametrize("settled", [True, False])
def test_a_price_may_have_more_digits_than_the_money(settled: bool) -> None:
    of = rp.Position("price", "quantity", method="fifo", money=rp.Decimal(18, 8))
    pipeline = start(Coins).scan("position", "account", step=of, settled=settled).sink("out")
    fills = [(0, "1e20"), (1, "1e20"), (2, "1.5")]
    told = [Coins("a", Decimal(price), held, at) for at, (held, price) in enumerate(fills)]
    with pytest.warns(rp.LostRecordsWarning, match="1 row of 'position.*cost has more digits"):
        found = rp.collect(pipeline, told).rows()
    assert [(row["quantity"], row["cost"]) for row in found] == [(0, 0), (2, 3)]


def test_the_order_of_fills_of_one_time_decides() -> None:
    buy, sell, again = (
        fill(1, 100, "10"),
        fill(2, -100, "11", at=1),
        fill(3, 100, "12", at=1),
    )
    assert shown("average", [buy, sell, again])[-1:] == decimals((100, "1200", "100"))
    assert shown("average", [buy, again, sell])[-1:] == decimals((100, "1100", "0"))


def test_average_cost_is_rounded_half_to_even_and_keeps_the_rest() -> None:
    fills = [fill(1, 1, "0.10"), fill(2, 2, "0.11"), fill(3, -1, "0.12")]
    assert shown("average", fills)[-1:] == decimals((2, "0.21", "0.01"))
    fills = [fill(1, 1, "0.01"), fill(2, 1, "0.00"), fill(3, -1, "0.01")]
    assert shown("average", fills)[-1:] == decimals((1, "0.01", "0.01"))


def test_the_total_at_a_price_does_not_depend_on_the_method() -> None:
    mark = Decimal("10.20")
    for fills in (FILLS, FILLS[:4], FILLS[:3]):
        totals = set()
        for method in METHODS:
            held, cost, realized = shown(method, fills)[-1]
            totals.add(realized + held * mark - cost)
        assert len(totals) == 1


def test_profit_in_euros_is_of_the_rate_at_each_fill() -> None:
    @rp.record
    class Rate:
        account: str
        rate: Annotated[decimal.Decimal, rp.Decimal(8, 2)]
        at: rp.Timestamp

    fills = start()
    rates = fills.source("rates", Rate)
    euros = (
        positions("average", fills, settled=True)
        .join_asof("rated", rates, on="account", emit="final", lateness=20)
        .derive("euros", euro=rp.col("gain").divide(rp.col("rate"), scale=2))
        .partition("by", key="account")
        .fold("total", euro=rp.sum("euro"), dollars=rp.sum("gain"))
        .sink("out")
    )
    of_day = [
        {"account": "a", "rate": Decimal(rate), "at": at}
        for at, rate in ((1, "1.10"), (3, "1.20"), (4, "1.25"))
    ]
    (row,) = rp.collect(euros, source={"fills": FILLS, "rates": of_day}).rows()
    assert (row["euro"], row["dollars"]) == (Decimal("107.20"), Decimal(130))


@rp.record
class Event:
    """A fill, or a split."""

    account: str
    number: int
    quantity: int | None
    price: Annotated[decimal.Decimal, rp.Decimal(12, 2)] | None
    new: int | None
    old: int | None
    at: rp.Timestamp


def event(at: int, quantity: int | None, price: str | None, *split: int | None) -> dict[str, Any]:
    new, old = split or (None, None)
    exact = None if price is None else Decimal(price)
    ratio = {"quantity": quantity, "price": exact, "new": new, "old": old}
    return {"account": "a", "number": at} | ratio | {"at": at}


def with_splits(method: str, **said: Any) -> Pipeline:
    of = rp.Position("quantity", "price", method=method, split=("new", "old"))
    return start(Event).scan("position", "account", step=of, **({"lateness": 20} | said))


def after(method: str, *events: dict[str, Any], **said: Any) -> list[tuple[Any, ...]]:
    """Return quantity, cost and realized profit of each row, in order, and check the invariant."""
    rows = rp.collect(
        with_splits(method, settled=True, **said).sink("out"), source=[*events]
    ).rows()
    assert all(row["cash"] + row["cost"] == row["realized"] for row in rows)
    return [(row["quantity"], row["cost"], row["realized"]) for row in rows]


@pytest.mark.parametrize("method", METHODS)
def test_a_split_leaves_cost_and_profit(method: str) -> None:
    bought = [event(1, 100, "10.00"), event(2, 50, "10.60")]
    found = after(method, *bought, event(3, None, None, 2, 1), event(4, -120, "5.50"))
    paid = {"average": "612", "fifo": "600", "lifo": "630"}[method]
    left = Decimal(1530) - Decimal(paid)
    assert found[1:] == [
        (150, Decimal(1530), 0),
        (300, Decimal(1530), 0),
        (180, left, 660 - Decimal(paid)),
    ]


@pytest.mark.parametrize(
    ("method", "cost", "gain"),
    # Half a share is sold: of 151.5 that cost 1012, of the 1.5 oldest ones, or of the 150 newest.
    [("average", "1008.66", "-1.34"), ("fifo", "1008.00", "-2.00"), ("lifo", "1008.67", "-1.33")],
)
def test_the_part_of_a_share_is_sold_at_the_price_of_the_split(
    method: str, cost: str, gain: str
) -> None:
    bought = [event(1, 1, "12.00"), event(2, 100, "10.00")]
    found = after(method, *bought, event(3, None, "4.00", 3, 2))
    assert found[-1] == (151, Decimal(cost), Decimal(gain))
    short = after(method, event(1, -101, "10.00"), event(3, None, "4.00", 3, 2))
    assert short[-1] == (-151, Decimal("-1006.67"), Decimal("1.33"))


def test_lots_have_whole_shares_after_a_split_and_all_of_the_cost() -> None:
    bought = [event(1, 5, "1.00"), event(2, 5, "2.00"), event(3, 10, "3.00")]
    merged = event(4, None, None, 1, 10)
    assert after("fifo", *bought, merged, event(5, -1, "50.00"))[-2:] == [
        (2, Decimal("45.00"), 0),
        (1, Decimal("30.00"), Decimal("35.00")),
    ]
    assert after("lifo", *bought, merged, event(5, -1, "50.00"))[-1] == (
        1,
        Decimal("15.00"),
        Decimal("20.00"),
    )
    (_, _, _, gone) = after(
        "fifo", *bought[:2], event(3, -1, "1.00"), event(4, None, "7.00", 1, 10)
    )
    assert gone == (0, 0, Decimal("-7.70"))


def test_a_split_that_becomes_known_late_corrects_the_fills_behind_it() -> None:
    bought, sold = event(1, 100, "10.00"), event(5, -150, "6.00")
    split = event(3, None, None, 2, 1)
    pipeline = with_splits("average", show="last").sink("out")
    engine = Engine(pipeline.plan())

    def last(*events: dict[str, Any]) -> tuple[int, Decimal]:
        engine.apply("fills", list(events))
        (row,) = engine.stabilize().outputs["out"].to_pylist()
        return row["quantity"], row["realized"]

    assert last(bought, sold) == (-50, -40000)
    assert last(split) == (50, 15000)
    check_pipeline(pipeline, [bought, sold, split], SIZES)


def test_a_split_without_a_ratio_or_a_price_is_named_and_changes_nothing() -> None:
    engine = Engine(with_splits("fifo", show="last", lateness=0).sink("out").plan())
    odd = [event(2, None, None, 3, None), event(3, None, None, 0, 1), event(4, None, None, 1, 2)]
    engine.apply("fills", [event(1, 101, "1.00"), *odd, event(90, 1, "1.00")])
    (row,) = engine.stabilize().outputs["out"].to_pylist()
    assert row["quantity"] == 102
    assert [one.reason for one in engine.uncomputable["position"].rows] == [
        "ValueError: a split is of 3 for None: both must be whole numbers above 0",
        "ValueError: a split is of 0 for 1: both must be whole numbers above 0",
        "ValueError: a split leaves a part of a unit, and the row has no price for it",
    ]


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    method=st.sampled_from(METHODS),
    said=st.sampled_from([{"settled": True}, {}, {"show": "last"}]),
    happened=st.lists(
        st.builds(
            lambda quantity, cents, split, at: event(
                at, quantity, cents and str(Decimal(cents).scaleb(-2)), *split
            ),
            st.integers(-30, 30),
            st.integers(1, 1100) | st.none(),
            st.sampled_from([(), (), (), (2, 1), (3, 2), (1, 10), (7, 3), (0, 1), (1, None)]),
            st.integers(0, 60),
        ),
        max_size=30,
    ),
)
def test_splits_equal_those_in_fractions(method: str, said: Any, happened: Any) -> None:
    pipeline = with_splits(method, **said).sink("out")
    check_pipeline(pipeline, happened, SIZES, restarts=[len(happened) // 2])


# Random fills: of two accounts, late by up to 30, with few prices so that costs are rounded.
quantities = st.one_of(st.integers(-3, 3), st.integers(-200, 200), st.just(2**62))
fills = st.lists(
    st.builds(
        lambda account, quantity, cents, fee, busted, at: (
            fill(0, quantity, str(Decimal(cents).scaleb(-2)), account=account, busted=busted, at=at)
            | {"fee": fee if fee is None else Decimal(fee).scaleb(-2)}
        ),
        st.sampled_from("ab"),
        quantities,
        st.integers(-5, 1100),
        st.one_of(st.integers(-2, 5), st.integers(-2, 5), st.none()),
        st.sampled_from([False, False, False, True]),
        st.integers(0, 120) | st.integers(0, 9).map(lambda at: 10 * at),
    ),
    max_size=40,
)


def with_total(rows: Pipeline) -> Pipeline:
    total = rows.partition("by", key="quantity").fold("n", n=ra.count(), paid=ra.sum("fees"))
    return rows.sink("out").also(total.sink("n-out"))


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    method=st.sampled_from(METHODS),
    said=st.fixed_dictionaries({"ttl": st.sampled_from([None, 30])}).flatmap(
        lambda ttl: st.sampled_from([{"settled": True} | ttl, ttl, {"show": "last"} | ttl])
    ),
    lots=st.sampled_from([1, 3, 1000]),
    happened=fills,
    restart=st.integers(0, 40),
)
def test_positions_equal_those_in_fractions(
    method: str, said: Any, lots: int, happened: Any, restart: int
) -> None:
    of = rp.Position("quantity", "price", method=method, fee="fee", busted="busted", lots=lots)
    said = said | ({"version_of": "number"} if lots == 1000 else {})
    rows = start().scan("position", "account", step=of, lateness=20, **said)
    check_pipeline(with_total(rows), happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(
    method=st.sampled_from(METHODS),
    show=st.sampled_from(["rows", "last"]),
    happened=st.lists(
        st.tuples(st.integers(-(10**12), 10**30), st.one_of(st.none(), st.integers(-3, 10**7))),
        max_size=20,
    ),
)
def test_wide_positions_equal_those_in_fractions(method: str, show: str, happened: Any) -> None:
    of = rp.Position("quantity", "price", method=method)
    rows = start(Coins).scan("position", "account", step=of, lateness=20, show=show)
    events = [
        {"account": "a", "quantity": Decimal(q).scaleb(-8), "price": price, "at": at * 7 % 25}
        for at, (q, price) in enumerate(happened)
    ]
    check_pipeline(rows.sink("out"), events, SIZES, restarts=[len(events) // 2])


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(
    method=st.sampled_from(METHODS),
    happened=st.lists(st.tuples(st.integers(-50, 50), st.integers(-5, 999)), max_size=60),
)
def test_cash_and_cost_are_the_profit_after_each_fill(method: str, happened: Any) -> None:
    node = positions(method).sink("out").plan().scans[0]
    assert isinstance(node, PositionScan)
    step = step_of(node)
    state, paid = step.state_of(node.initial), 0
    for quantity, price in happened:
        state, row = step.call(state, (quantity, price, 0, False))
        assert row is not None
        held, cost, realized, _, cash, _ = row
        paid += quantity * price
        assert (cash, cash + cost) == (-paid, realized)
        assert cost == 0 if held == 0 else True
        if method != "average":
            assert (sum(state[5]), sum(state[6])) == (held, cost)
            assert all((lot > 0) == (held > 0) for lot in state[5])


def test_a_fill_that_cannot_be_computed_is_named_and_changes_nothing() -> None:
    engine = Engine(positions("fifo", show="last", lateness=0).sink("out").plan())
    rows = [fill(1, 1, "1"), fill(2, 2**62, "10"), fill(3, 1, "2") | {"fee": None}]
    engine.apply("fills", [*rows, fill(90, 1, "3")])
    found = engine.stabilize().outputs["out"].to_pylist()
    assert [(row["quantity"], row["cost"]) for row in found] == [(2, 400)]
    reasons = [row.reason for row in engine.uncomputable["position"].rows]
    assert "cost has more digits than its type: name a wider one as money=" in reasons[0]
    assert "a fill has no fee: .derive 0 for it" in reasons[1]


@pytest.mark.parametrize("method", METHODS)
def test_positions_survive_crashes(method: str) -> None:
    happened = [
        fill(0, (at * 7) % 5 - 2, f"1.0{at % 7}", account=account, at=30 * at)
        for at in range(8)
        for account in "ab"
    ]
    rows = positions(method, show="last", lateness=50, ttl=300)
    crash_test(with_total(rows), happened, seeds=range(1), every=SCATTERED, pairs=1)


def test_bad_uses_are_told_what_to_write() -> None:
    @rp.record
    class Odd:
        account: str
        quantity: float
        size: int
        price: Annotated[decimal.Decimal, rp.Decimal(12, 2)]
        cost: str
        at: rp.Timestamp

    def refused(
        quantity: Any = "size", price: Any = "price", key: Any = "account", **of: Any
    ) -> str:
        said = {"method": "fifo"} | of
        with pytest.raises(PlanError) as raised:
            start(Odd).scan("s", key, step=rp.Position(quantity, price, **said))
        return str(raised.value)

    assert "method is 'FIFO': it must be 'average', 'fifo' or 'lifo'" in refused(method="FIFO")
    assert "'quantity' is float, and positions are exact" in refused("quantity")
    assert "busted: 'size' is no bool" in refused(busted="size")
    assert "there is no field 'other'" in refused(price="other")
    assert "have up to 2 digits behind the point" in refused(money=rp.Decimal(18, 1))
    assert "money takes a type such as rp.Decimal(38, 6)" in refused(money=2)
    with pytest.raises(PlanError, match="state is given"):
        start(Odd).scan("s", "account", step=rp.Position("size", "price", method="fifo"), state=Odd)
    assert "lots must be" in refused(lots=0)
    assert "lots=3" in repr(rp.Position("size", "price", method="fifo", lots=3))
    assert "the key 'cost' has the name of a field of rp.Position" in refused(key="cost")
