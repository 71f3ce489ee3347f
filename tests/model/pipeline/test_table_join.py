"""Joins of tables as they are declared: fields, keys of nodes, stages, and every refusal."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division, undivided_why
from ripple.model.pipeline.drawing import drawing
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.nodes import Fields, TableJoin, type_of
from ripple.model.pipeline.stages import key_of
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.types import Option


@rp.record(version=1)
class Order:
    order: str
    shop: str
    customer: int | None
    price: float
    t: rp.Timestamp


@rp.record(version=1)
class Customer:
    customer: int
    name: str | None
    limit: float


START = rp.Pipeline("shop")
ORDERS = START.source("orders", Order, time="t")
CUSTOMERS = START.table("customers", Customer, key="customer")
NEWEST = ORDERS.partition("by", key="order").fold("newest", row=rp.last_row(["customer", "price"]))
COUNTS = ORDERS.partition("by-2", key="order").fold("counts", price=rp.sum("price"))


def bars(name: str, of: Pipeline = ORDERS, size: int = 10, **lateness: Any) -> Pipeline:
    window = rp.Tumbling(size)
    keyed = of.partition(f"by-{name}", key="order")
    return keyed.window(f"w-{name}", window, **lateness).fold(name, n=rp.count())


def named(fields: Fields) -> dict[str, bool]:
    return {field.name: isinstance(type_of(field), Option) for field in fields}


def test_a_row_has_the_key_then_the_left_then_the_right() -> None:
    expected = {"order": False, "row_customer": True, "row_price": True, "price": False}
    found = NEWEST.join("j", COUNTS, on="order").fields
    assert {**named(found), "row_price": True} == expected
    full = NEWEST.join("j", COUNTS, on=["order"], how="full").fields
    assert named(full)["price"] is True
    assert named(full)["order"] is False
    again = COUNTS.join("j", COUNTS, on="order", suffix="_2")
    assert list(named(again.fields)) == ["order", "price", "price_2"]


def test_a_plan_names_both_inputs_and_what_is_kept() -> None:
    keyed = NEWEST.derive("who", customer=rp.col("row_customer"))
    plan = keyed.join("named", CUSTOMERS, on="customer", how="left").sink("out").plan()
    (join,) = plan.table_joins
    assert isinstance(join, TableJoin)
    assert not join.is_by_key
    assert next(node.inputs for node in plan.nodes if node.of is join) == ("who", "customers.rows")
    assert not plan.is_chain
    text = plan.describe()
    assert "left who\n    right customers.rows" in text
    assert "left, customer = customer: the key of customers.rows" in text
    kept = {one.name: one for one in keeping(plan)}
    assert kept["named"].kind == "join"
    assert kept["named"].keeps == (
        "a row as long as 'newest' and 'customers.newest' have those that it is made of; a change "
        "of one row of 'customers.newest' changes all rows that name it"
    )
    drawn = drawing(plan)
    (node,) = (one for one in drawn["nodes"] if one["id"] == "named")
    assert node["kind"] == "join"
    edges = {edge["side"]: edge["from"] for edge in drawn["edges"] if edge["to"] == "named"}
    assert edges == {"left": "who", "right": "customers.rows"}


@rp.record(version=1)
class Offer:
    offer: int
    shop: str
    customer: int | None
    price: float


OFFERS = START.table("offers", Offer, key=["shop", "offer"])
PLACED = ORDERS.partition("by-3", key="order").fold(
    "placed", shop=rp.last("shop"), customer=rp.last("customer"), price=rp.last("price")
)


def test_a_pair_of_rows_has_the_keys_of_both() -> None:
    pairs = PLACED.join("pairs", OFFERS, on="customer")
    assert list(named(pairs.fields)) == [
        "order", "shop_right", "offer", "shop", "customer", "price", "price_right"
    ]  # fmt: skip
    plan = pairs.sink("out").plan()
    (join,) = plan.table_joins
    assert join.is_many
    assert [field.name for field in join.row_key] == ["order", "shop_right", "offer"]
    assert "inner, customer = customer: many to many" in plan.describe()
    kept = {one.name: one for one in keeping(plan)}
    assert kept["pairs"].keeps == (
        "a row as long as 'placed' and 'offers.newest' have those that it is made of, one for each "
        "pair; a change of a row changes all its pairs"
    )
    both = PLACED.join("pairs", OFFERS, on=["customer", "shop"]).sink("out").plan()
    assert [field.name for field in both.table_joins[0].row_key] == ["order", "offer"]
    assert both.table_joins[0].node_key != join.node_key
    why = "rows of offers.newest, which pairs looks for, may be in any of them: let one field"
    with pytest.raises(PlanError, match=why):
        need_one_division(plan, "a cluster")
    need_one_division(plan, "a cluster", is_one=True)


def test_rows_without_a_partner_are_told_from_pairs_by_the_end_of_their_key() -> None:
    left = PLACED.join("pairs", OFFERS, on="customer", how="left").sink("out").plan()
    join = left.fold("pairs")
    assert isinstance(join, TableJoin)
    assert [one.name for one in join.key] == ["order", "shop_right", "offer", "sides"]
    assert [one.name for one in join.left_key] == ["order"]
    assert "customer_right" not in [one.name for one in join.row]
    full = PLACED.join("pairs", OFFERS, on="customer", how="full").sink("out").plan()
    assert [one.name for one in full.fold("pairs").key] == [one.name for one in join.key]
    nullable = {one.name for one in full.fold("pairs").row if isinstance(type_of(one), Option)}
    assert nullable >= {"price", "customer_right"}
    assert key_of(full.fold("pairs")) == ()


def test_pairs_are_in_the_partition_of_a_field_in_both_keys() -> None:
    by = ORDERS.partition("by-4", key=["shop", "order"]).fold("placed-at", n=rp.count())
    of = ORDERS.partition("by-5", key=["shop", "t"]).fold("served", m=rp.count())
    plan = by.join("pairs", of, on="shop").sink("out").plan()
    assert [field.name for field in plan.table_joins[0].row_key] == ["shop", "order", "t"]
    need_one_division(plan, "a cluster")
    (stage,) = stages_of(plan)
    assert stage.key == ("shop",)


def test_keys_of_nodes_tell_sides_and_ways_apart() -> None:
    def key(join: Pipeline) -> str:
        return join.sink("out").plan().table_joins[0].node_key

    base = NEWEST.join("j", COUNTS, on="order")
    assert key(base).startswith("orders/by/newest/j#")
    others = [
        NEWEST.join("j", COUNTS, on="order", how="left"),
        COUNTS.join("j", NEWEST, on="order"),
        NEWEST.join("j", COUNTS.filter("some", rp.col("price") > 1), on="order"),
        NEWEST.filter("few", rp.col("row_price") > 1).join("j", COUNTS, on="order"),
    ]
    keys = {key(one).rpartition("#")[2] for one in (base, *others)}
    assert len(keys) == 5
    alone = NEWEST.sink("alone").plan()
    beside = NEWEST.sink("alone").also(base.sink("out")).plan()
    assert set(alone.node_keys) <= set(beside.node_keys)


WINDOWS = ["order", "window_start_ns"]
MORE = START.source("more", Order, time="t")
OTHER = rp.Pipeline("other").table("customers", Customer, key="customer")
TO_CUSTOMER = {"right_on": "customer"}

REFUSED: list[tuple[Pipeline, Any, dict[str, Any], str]] = [
    (NEWEST, ORDERS, {"on": "order"}, "on the right, tables are joined, and these are events"),
    (ORDERS, NEWEST, {"on": "order"}, "these are events: join them with .join_asof"),
    (NEWEST.partition("k", key="order"), NEWEST, {"on": "order"}, "on their way into a fold"),
    (NEWEST, 3, {"on": "order"}, "joins another branch of the pipeline, not 3"),
    (NEWEST, COUNTS, {}, "by which fields rows belong together"),
    (NEWEST, COUNTS, {"on": []}, "tables are not crossed"),
    (NEWEST, COUNTS, {"on": "order", "left_on": "order"}, "leave left_on= and right_on= out"),
    (NEWEST, COUNTS, {"left_on": "order", "right_on": WINDOWS[:1] * 2}, "names 'order' twice"),
    (NEWEST, COUNTS, {"left_on": "order", "right_on": ["order", "price"]}, "and right_on= 2"),
    (NEWEST, COUNTS, {"on": "order", "how": "cross"}, "how is 'cross': it must be one of inner"),
    (NEWEST, COUNTS, {"on": "nothing"}, "there is no field 'nothing'"),
    (NEWEST, COUNTS, {"on": 3}, "on of 'newest' must be the name of a field or an expression"),
    (NEWEST, COUNTS, {"on": ["order"] * 2}, "the on names 'order' twice"),
    (NEWEST, COUNTS, {"left_on": "order", "right_on": "price"}, "the key of 'counts' is order"),
    (
        NEWEST,
        CUSTOMERS,
        {"left_on": "row_customer", "how": "full"} | TO_CUSTOMER,
        "the key of both",
    ),
    (NEWEST, CUSTOMERS, {"left_on": "row_price"} | TO_CUSTOMER, "and NaN with NaN: use text or"),
    (NEWEST, CUSTOMERS, {"left_on": "order"} | TO_CUSTOMER, "'order' is string in 'newest' and"),
    (COUNTS, COUNTS, {"on": "order", "suffix": "."}, "suffix is '.': it must be letters, digits"),
    (bars("a"), COUNTS, {"on": "order"}, "of 'a' leave when their windows are over, those of"),
    (
        bars("a"),
        bars("b"),
        {"left_on": "order", "right_on": "order"},
        "rows of 'a' leave when their windows are over, and the join names the wh",
    ),
    (
        PLACED.derive("s", sides=rp.lit("both")),
        OFFERS,
        {"on": "customer", "how": "left"},
        "'sides' is the name of a field of the left side, and of the key of these rows with",
    ),
    (
        bars("a"),
        OFFERS,
        {"left_on": "n", "right_on": "customer"},
        "rows of 'a' leave when their windows are over, and the join names the whole key of n",
    ),
    (bars("a"), bars("b", size=5), {"on": WINDOWS}, "over at other times"),
    (bars("a"), bars("b", lateness=3), {"on": WINDOWS}, "over at other times"),
    (bars("a"), bars("b", MORE), {"on": WINDOWS}, "over at other times"),
    (NEWEST, OTHER, {"left_on": "row_customer"} | TO_CUSTOMER, "'other' is another pipeline"),
]


@pytest.mark.parametrize(("left", "right", "given", "why"), REFUSED)
def test_the_step_says_why_and_what_to_do(
    left: Pipeline, right: Any, given: dict[str, Any], why: str
) -> None:
    with pytest.raises(PlanError, match=f"^join 'j': (.* )?{re.escape(why)}"):
        left.join("j", right, **given)


def test_sessions_and_windows_that_are_not_compared_are_refused() -> None:
    by = ORDERS.partition("p", key="order")
    sessions = by.window("w", rp.Session(5)).fold("sessions", n=rp.count())
    with pytest.raises(PlanError, match="the sessions of 'sessions' move when they merge"):
        sessions.join("j", sessions, on=["order", "window_start_ns"])
    left = bars("a")
    over = left.partition("q", key="window_start_ns").fold("over", n=rp.sum("n"))
    lasting = COUNTS.derive("then", at=rp.lit(0))
    with pytest.raises(PlanError, match="rows of 'over' leave when their windows are over"):
        lasting.join("j", over, left_on="at", right_on="window_start_ns")
    joined = left.join("j", over, on="window_start_ns").sink("out").plan()
    assert joined.frees(joined.fold("j"))


def sides(key: str | None, other: str | None) -> Pipeline:
    p = rp.Pipeline("two")
    one = p.source("one", Order, time="t", key=key).partition("a", key="order")
    two = p.source("two", Order, time="t", key=other).partition("b", key="order")
    left, right = one.fold("left", n=rp.count()), two.fold("right", m=rp.count())
    return left.join("j", right, on="order").sink("out")


def test_sides_meet_in_partitions_where_the_fields_that_divide_them_are_joined() -> None:
    plan = sides("order", "order").plan()
    assert undivided_why(plan) is None
    (stage,) = stages_of(plan)
    assert stage.key == ("order",)
    need_one_division(plan, "a cluster")
    assert undivided_why(sides("order", "shop").plan()) is not None
    alone = ORDERS.partition("p", key="order")
    branches = alone.fold("x", n=rp.count()).join("j", COUNTS, on="order").sink("out").plan()
    assert [stage.folds for stage in stages_of(branches)] == [("x", "counts", "j")]
    need_one_division(branches, "a cluster")


def test_a_cluster_refuses_rows_that_may_be_anywhere() -> None:
    keyed = NEWEST.derive("who", customer=rp.col("row_customer"))
    plan = keyed.join("named", CUSTOMERS, on="customer").sink("out").plan()
    why = "rows of customers.newest, which named looks for, may be in any of them: let one field"
    with pytest.raises(PlanError, match=why):
        need_one_division(plan, "a cluster")


def test_one_partition_of_a_cluster_has_the_rows_of_any() -> None:
    keyed = NEWEST.derive("who", customer=rp.col("row_customer"))
    plan = keyed.join("named", CUSTOMERS, on="customer").sink("out").plan()
    need_one_division(plan, "a cluster", is_one=True)
    divided = {"orders": None, "customers": ("customer",)}
    need_one_division(plan, "a cluster", divided, is_one=True)
    with pytest.raises(PlanError, match=r"which named looks for, .* in one partition \(--part"):
        need_one_division(plan, "a cluster", divided)
    for known in (None, (), ("name",)):
        why = r"^pipeline 'shop': .* the table 'customers', .* say \?key=customer in its URI, or"
        with pytest.raises(PlanError, match=why):
            need_one_division(plan, "a cluster", divided | {"customers": known}, is_one=True)
