"""Aggregates with rows as their result: schema, nulls, ties, and refusals."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.core.errors import PlanError
from ripple.model.aggregate.best import BestOf
from ripple.model.aggregate.best_columns import strip
from ripple.model.aggregate.one_row import OneRowOf
from ripple.model.aggregate.single import Accumulator, as_python
from ripple.model.schema.types import Bool, Field, Float, Int64, List, Option, Record, String
from ripple.testing import check_pipeline, crash_test
from tests.examples import EXAMPLES, SPARSE, THINNED
from tests.model.aggregate.aggregate_twin import slots


@rp.record(version=1)
class Bid:
    auction: str
    bidder: str | None
    price: float | None
    size: int
    is_open: bool
    t: rp.Timestamp


BIDS = rp.Pipeline("bids").source("bids", Bid, out_of_order="1s")
BY_AUCTION = BIDS.partition("by-auction", key="auction")
ROWS: dict[str, Any] = {
    "last": rp.last_row(["bidder", "is_open"]),
    "first": rp.first_row(Bid.price),
    "best": rp.arg_max("price", ["bidder", "size"]),
    "by_name": rp.arg_min("bidder", "t"),
    "twice": rp.arg_max(rp.col("size") * 2, ["t", "bidder"]),
    "top": rp.top_rows(2, "price", ["bidder", "size"]),
    "names": rp.top_rows(3, "bidder", "price"),
}

bids = st.lists(
    st.fixed_dictionaries({
        "auction": st.sampled_from("AB"),
        "bidder": st.sampled_from([None, "", "abcdefgh", "abcdefghi", "abcdefghij", "é"]),
        "price": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, -math.inf]),
        "size": st.integers(-1, 1),
        "is_open": st.booleans(),
        "t": st.integers(0, 4),
    }),
    max_size=20,
)  # fmt: skip


@settings(max_examples=4 * EXAMPLES)
@given(events=bids)
def test_rows_of_events_equal_the_reference(events: list[dict[str, Any]]) -> None:
    check_pipeline(BY_AUCTION.fold("rows", **ROWS).sink("out"), events, restarts=[len(events) // 2])


@settings(max_examples=4 * EXAMPLES)
@given(events=bids)
def test_rows_of_a_table_are_told_apart_by_its_key(events: list[dict[str, Any]]) -> None:
    table = (
        BIDS.derive("named", who=rp.col("bidder").fill_null("?"))
        .partition("by-bidder", key=("auction", "who"))
        .fold("each", price=rp.last_row("price"), n=rp.count(), bidder=rp.last("bidder"))
    )
    over = {
        "dearest": rp.arg_max("price", ["who", "n"]),
        "rarest": rp.arg_min("n", "who"),
        "top": rp.top_rows(2, "n", ["auction", "who", "price"]),
        "named": rp.arg_max("bidder", "price"),
    }
    pipeline = table.partition("by-auction", key="auction").fold("over", **over).sink("out")
    check_pipeline(pipeline, events, restarts=[len(events) // 2])


def test_rows_survive_every_crash() -> None:
    events = [
        {"auction": "A", "bidder": f"b{i % 3}", "price": float(i % 4), "size": i, "is_open": True,
         "t": i * 7 % 5} for i in range(10)
    ]  # fmt: skip
    pipeline = BY_AUCTION.fold("rows", **ROWS).sink("out")
    crash_test(pipeline, events, seeds=range(5 * EXAMPLES // THINNED), pairs=1, every=SPARSE**2)


def test_sources_without_event_time_order_ties_by_offset() -> None:
    @rp.record(version=1)
    class Named:
        key: str
        value: int
        name: str

    pipeline = (
        rp.Pipeline("p").source("s", Named).partition("by-key", key="key")
        .fold("f", most=rp.arg_max("value", "name"), top=rp.top_rows(2, "value", "name")).sink("o")
    )  # fmt: skip
    events = [{"key": "k", "value": v, "name": n} for v, n in ((1, "a"), (2, "b"), (2, "c"))]
    check_pipeline(pipeline, events, restarts=(2,))
    engine = rp.Engine(pipeline.plan())
    columns = {name: [event[name] for event in events] for name in events[0]}
    engine.apply("s", pa.RecordBatch.from_pydict(columns), 3)
    (row,) = engine.stabilize().outputs["o"].to_pylist()
    assert (row["most"], row["top"]) == ("b", ["b", "c"])


def fields_of(**aggregates: Any) -> dict[str, Any]:
    plan = BY_AUCTION.fold("f", **aggregates).sink("out").plan()
    return {field.name: field.type for field in plan.folds[0].row}


def test_one_field_is_one_column_and_several_are_one_each() -> None:
    fields = fields_of(**ROWS)
    assert list(fields) == [
        "auction", "last_bidder", "last_is_open", "first", "best_bidder", "best_size", "by_name",
        "twice_t", "twice_bidder", "top", "names",
    ]  # fmt: skip
    record = Record((Field("bidder", Option(String())), Field("size", fields["best_size"].of)))
    assert (fields["top"], fields["names"]) == (List(record), List(Option(Float())))


def test_a_field_is_null_only_if_it_or_what_decides_can_be() -> None:
    fields = fields_of(**ROWS)
    assert fields["last_is_open"] == Bool()
    assert fields["twice_t"] == Int64()
    for name in ("last_bidder", "first", "best_size", "by_name", "twice_bidder"):
        assert isinstance(fields[name], Option)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rp.last_row([]), "last_row: name the fields to show"),
        (lambda: rp.last_row(rp.col("a") + 1), "give an expression a name with .derive"),
        (lambda: rp.arg_max("price", ["size", "size"]), "the field 'size' is named twice"),
        (lambda: rp.top_rows(0, "price", "size"), "top_rows: n must be a whole number from 1"),
        (lambda: rp.top_rows(2**40, "price", "size"), "n must be .* from 1 to 1000000, not"),
        (lambda: rp.top_k("price", 2**40), "top_k: k must be .* from 1 to 1000000, not 1099"),
        (lambda: rp.first_row(3), "fields are names of fields, not 3"),
    ],
)
def test_nonsense_is_refused_when_it_is_written(make: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        make()


def test_a_list_is_no_field_of_a_row() -> None:
    with pytest.raises(PlanError, match=r"arg_max\(a, b\) needs numbers, texts or booleans"):
        ra.arg_max("a", "b").bind((Float(), List(Float())))


@pytest.mark.parametrize("make", [rp.first_row, rp.last_row])
def test_the_ends_of_time_are_refused_over_a_table(make: Any) -> None:
    table = BY_AUCTION.fold("f", n=rp.count()).partition("all", key=())
    with pytest.raises(PlanError, match=r"rows of a table are replaced.*use arg_max"):
        table.fold("g", row=make("n"))


def test_an_accumulator_takes_nulls_of_fields_and_not_of_what_decides() -> None:
    best = Accumulator(ra.arg_max("x", "y"), (Float(), Option(String())))
    best.add(1.0, "a", 1, 1)
    best.add(2.0, None, 2, 2)
    assert best.result() is None
    best.remove(2.0, None, 2, 2)
    assert best.result() == "a"
    with pytest.raises(rp.SchemaError, match="a value is None"):
        best.add(None, "a", 3, 3)


def test_rows_at_one_place_are_told_apart_by_their_fields() -> None:
    aggregate = ra.last_row(["x", "y"])
    for retractable in (False, True):
        bound = aggregate.bind((Option(Float()), String()))
        results = []
        for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
            state = bound.state(retractable=retractable)
            state.resize(1)
            for at in order:
                x = pa.array([[None, 1.0, 1.0][at]], pa.float64())
                state.add(slots(0), x, pa.array([["z", "b", "a"][at]]), slots(5), slots(6))
            results.append([as_python(values[0]) for values, _ in state.results(slots(0))])
        assert results == [[1.0, "b"]] * 3


@pytest.mark.parametrize("aggregate", [ra.first("x"), ra.last("x"), ra.min("x"), ra.max("x")])
def test_texts_of_a_stream_are_read_from_dumps_that_hold_all_of_them(aggregate: Any) -> None:
    bound = aggregate.bind((String(),))
    every, best = bound.state(retractable=True), bound.state(retractable=False)
    place = (slots(3, 1, 2), slots(0, 1, 2)) if aggregate.ordered else ()
    for state in (every, best):
        state.resize(1)
        state.add(slots(0, 0, 0), pa.array(["bb", "a", "ccccccccccccc"]), *place)
    loaded = bound.state(retractable=False)
    loaded.resize(1)
    loaded.load(slots(0), every.dump(slots(0)))
    assert loaded.dump(slots(0)) == best.dump(slots(0))
    every.load(slots(0), best.dump(slots(0)))
    texts = [*map(as_python, every.result(slots(0))[0])]
    assert texts == best.result(slots(0))[0].to_pylist()


@settings(max_examples=4 * EXAMPLES)
@given(data=st.data(), by=st.sampled_from(["", "i", "s"]), largest=st.booleans())
def test_one_row_a_slot_is_the_best_of_several(data: st.DataObject, by: str, largest: bool) -> None:
    # Of a slot with one row texts are kept, of several rows there are copies.
    how = {"by": by, "largest": largest and bool(by), "latest": not by, "kinds": "si"}
    one, best = OneRowOf(**how), BestOf(limit=1, **how)
    both = one, best
    for state in both:
        state.resize(3)
    empty = one.nbytes
    text = st.sampled_from([None, "", "a", "b" * 9, "é"])
    step = st.tuples(st.integers(0, 2), st.integers(0, 2), text, st.integers(0, 1))
    for kind, at, word, place in data.draw(st.lists(step, max_size=12)):
        for state in both:
            if kind == 0:
                state.merge(slots(at), slots((at + 1) % 3))
            elif kind == 1:
                state.clear(slots(at))
            else:
                fields = [strip(pa.array([word, "c"]), String()), strip([1, 0], Int64())]
                values = {
                    "": None,
                    "i": strip([place, 0], Int64()),
                    "s": strip(pa.array([word or "", "a"]), String()),
                }
                state.add(slots(at, at), values[by], fields, slots(place, 0), slots(0, 0))
    assert as_lists(one.encode(slots(0, 1, 2))) == as_lists(best.encode(slots(0, 1, 2)))
    one.clear(slots(0, 1, 2))
    assert one.nbytes == empty


def as_lists(value: Any) -> Any:
    """Return arrays in tuples and lists as lists, so that they can be compared."""
    if isinstance(value, (tuple, list)):
        return [as_lists(one) for one in value]
    return value if value is None else value.tolist()
