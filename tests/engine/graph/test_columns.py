"""Columns by key: writes, when they show, maps and folds over them."""

from __future__ import annotations

import gc
import math
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from ripple.core.errors import GraphError, NodeError, PlanError, SchemaError
from ripple.model import aggregate
from ripple.model.expression import col, when
from ripple.model.records import record
from ripple.model.schema.types import Field, Float, Schema
from ripple.notebook.graph import Graph


@record(version=1)
class Quote:
    bid: float
    ask: float
    venue: str | None = None


def test_rows_show_when_stabilize_ends_as_values_of_cells_do(g):
    price = g.column(float)
    total, count = price.sum(), price.count()
    price["A"] = 1.5
    price.set("B", 2)
    assert (len(price), "A" in price, total.value) == (0, False, 0.0)
    g.stabilize()
    assert (dict(price), total.value, count.value) == ({"A": 1.5, "B": 2.0}, 3.5, 2)
    price["A"] = 5.0
    price.remove("B")
    price["C"] = 7.0
    assert (dict(price), price["A"], price.get("C"), len(price)) == (
        {"A": 1.5, "B": 2.0}, 1.5, None, 2,
    )  # fmt: skip
    assert price.to_arrow().to_pydict() == {"key": ["A", "B"], "value": [1.5, 2.0]}
    g.stabilize()
    assert (dict(price), total.value) == ({"A": 5.0, "C": 7.0}, 12.0)
    with pytest.raises(KeyError):
        price["B"]
    with pytest.raises(KeyError):
        del price["B"]
    assert price.remove("B") is False


def test_a_row_written_to_what_it_was_is_no_change(g):
    price = g.column(float)
    doubled = g.map(price, col("value") * 2)
    price.apply(["A", "B"], [math.nan, -0.0])
    g.stabilize()
    price["A"] = struct.unpack("<d", struct.pack("<q", -1))[0]  # another NaN
    price["B"] = 1.0
    price["B"] = -0.0
    g.stabilize()
    assert g.last_recompute_count == 0
    price["B"] = 0.0
    g.stabilize()
    assert math.copysign(1.0, doubled["B"]) == 1.0


def test_of_a_key_that_is_twice_null_and_then_not_the_value_counts(g):
    column = g.column(float | None)
    column.apply(["A", "A", "B", "B"], [None, 2.0, 3.0, None])
    g.stabilize()
    assert dict(column) == {"A": 2.0, "B": None}


def test_of_a_key_that_is_twice_in_a_batch_the_last_row_counts(g):
    sizes = g.column({"size": int, "note": str | None}, key=int)
    sizes.apply([7, 8, 7], size=[1, 2, 3], note=["a", None, None])
    g.stabilize()
    assert dict(sizes) == {7: {"size": 3, "note": None}, 8: {"size": 2, "note": None}}
    assert sizes.sum("size").value == 5


@pytest.mark.parametrize(
    ("keys", "sizes"),
    [
        (["a", "b"], [1, 2]),
        (np.array(["a", "b"]), np.array([1, 2], np.uint8)),
        (pa.array(["a", "b"]), pa.array([1, 2], pa.int32())),
        (pa.chunked_array([["a"], ["b"]]), pa.chunked_array([[1], [2]])),
        (pa.array(["a", "b"]).dictionary_encode(), (1, 2)),
        (pa.array(["a", "b"], pa.large_string()), pa.array([1, 2])),
    ],
)
def test_batches_come_as_lists_numpy_and_arrow(g, keys, sizes):
    size = g.column(int)
    size.apply(keys, sizes)
    g.stabilize()
    assert dict(size) == {"a": 1, "b": 2}
    assert size.remove_all(keys) == 2
    g.stabilize()
    assert (len(size), len(size.directory)) == (0, 0)


def test_rows_of_a_record_class_are_its_instances(g):
    quotes = g.column(Quote)
    quotes["A"] = Quote(bid=1.0, ask=2.0, venue="X")
    quotes.set("B", bid=3.0, ask=4.0)
    g.stabilize()
    assert dict(quotes) == {"A": Quote(1.0, 2.0, "X"), "B": Quote(3.0, 4.0, None)}
    spread = g.map(quotes, lambda quote: quote.ask - quote.bid)
    assert dict(spread) == {"A": 1.0, "B": 1.0}
    assert quotes.count("venue").value == 1


def test_keys_of_several_parts_are_tuples_and_free_their_parts(g):
    levels = g.column(Schema("level", (Field("size", Float()),)), key={"book": str, "level": int})
    levels.set(("A", 1), size=2.0)
    levels.apply([("A", 2), ("B", -2)], size=[3.0, 4.0])
    levels.apply((["B", "C"], [1, 1]), size=[5.0, 6.0])
    g.stabilize()
    assert dict(levels) == {
        (book, level): {"size": size}
        for book, level, size in [
            ("A", 1, 2.0), ("A", 2, 3.0), ("B", -2, 4.0), ("B", 1, 5.0), ("C", 1, 6.0),
        ]
    }  # fmt: skip
    assert levels.to_arrow().column_names == ["book", "level", "size"]
    assert ("D", 1) not in levels
    assert ("A", 3) not in levels
    levels.remove_all(levels.keys())
    g.stabilize()
    assert len(levels.directory) == 0
    assert len(levels.directory.space.left.index) == 0
    with pytest.raises(SchemaError, match="tuple of 2 parts"):
        levels.set("A", size=1.0)


def test_keys_may_be_bool_and_three_parts(g):
    column = g.column(int, key=(str, bool, str))
    column[("a", True, "b")] = 1
    column[("a", False, "b")] = 2
    g.stabilize()
    assert dict(column) == {("a", True, "b"): 1, ("a", False, "b"): 2}
    with pytest.raises(SchemaError, match="a key must be a bool, not 1"):
        column[("a", 1, "b")]


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (float, "1", "must be a float, not '1'"),
        (float, True, "must be a float, not True"),
        (float, None, "cannot be null"),
        (float, (1 << 53) + 1, "which no float of 64 bits is"),
        (float, 10**400, "which no float of 64 bits is"),
        (int, 1.0, "must be an int, not 1.0"),
        (int, 1 << 63, "must be an int of 64 bits"),
        (int, np.uint64(1 << 63), "must be an int of 64 bits"),
        (int, np.timedelta64(1, "s"), "must be an int, not np.timedelta64"),
        (int, True, "must be an int, not True"),
        (bool, 1, "must be a bool, not 1"),
        (str, 1, "must be a text, not 1"),
        (str, "\ud800", "which has no form in UTF-8"),
        (list[int], [1, 2.5], r"at \[1\] must be an int, not 2.5"),
        ({"a": int}, {"b": 1}, "no field 'b'"),
        ({"a": int}, {}, "'a' cannot be null"),
        ({"a": int}, 5, "a row must have the fields a, unlike 5"),
    ],
)
def test_a_value_that_does_not_fit_changes_nothing(g, schema, value, reason):
    column = g.column(schema)
    with pytest.raises(SchemaError, match=reason):
        column["A"] = value
    assert not column.dirty
    assert len(column.directory) == 0
    arrays = {"a": [5.5]} if isinstance(schema, dict) else {"value": [value]}
    with pytest.raises(SchemaError):
        column.apply(["A"], **arrays)
    assert not column.dirty
    assert len(column.directory) == 0


def test_invalid_key_or_batch_is_refused(g):
    column = g.column(float)
    for keys in ([1], [None], "AB", [b"A"], ["\ud800"], np.array([1.5]), 5, None, {"A": 1}):
        with pytest.raises(SchemaError):
            column.apply(keys, [1.0])
    for key in (1, None, b"A", "\ud800"):
        with pytest.raises(SchemaError, match="a key must be a text"):
            column[key] = 1.0
    with pytest.raises(SchemaError, match="must have 2 values, not 1"):
        column.apply(["A", "B"], [1.0])
    with pytest.raises(SchemaError, match="missing"):
        column.apply(["A"])
    with pytest.raises(SchemaError, match="no field 'price'"):
        column.apply(["A"], price=[1.0])
    numbered = g.column(float, key=int)
    for key in (1.5, 1 << 63, True, np.timedelta64(1, "s")):
        with pytest.raises(SchemaError, match="a key must be an int"):
            numbered[key] = 1.0
        with pytest.raises(SchemaError, match="a key must be an int"):
            numbered.apply([key], [1.0])
    paired = g.column(float, key=(str, int))
    for keys in (5, [5], [("A",)], (["A"],), (["A"], [1, 2]), [("A", 1.5)]):
        with pytest.raises(SchemaError):
            paired.apply(keys, [1.0])
    for refusing in (numbered, paired):
        assert not refusing.dirty
        assert len(refusing.directory) == 0
    assert not column.dirty


def test_schemas_that_cannot_be_are_refused(g):
    with pytest.raises(SchemaError, match="a key is made of"):
        g.column(float, key=float)
    with pytest.raises(SchemaError, match="rename one"):
        g.column({"key": float})
    with pytest.raises(GraphError, match="not in this graph"):
        g.column(float, key=Graph().column(float))


# --- maps ---


def _pair(g):
    price = g.column(float, name="price")
    size = g.column(int, key=price, name="size")
    price.apply(["A", "B"], [2.0, 3.0])
    size.apply(["B", "C"], [10, 20])
    g.stabilize()
    return price, size


FUNCTIONS = [
    ("expression", col("price") * col("size") * col("fx"), {}),
    ("batch", lambda arrays: arrays["price"] * arrays["size"] * arrays["fx"], {"batch": True}),
    ("each", lambda price, size, fx: price * size * fx, {}),
]


@pytest.mark.parametrize(("_", "function", "options"), FUNCTIONS)
def test_a_map_has_rows_where_all_parents_do_and_a_cell_reaches_all(g, _, function, options):
    price, size = _pair(g)
    fx = g.leaf(1.0, name="fx")
    value = g.map([price, size, fx], function, name="value", **options)
    total = value.sum()
    assert (dict(value), total.value) == ({"B": 30.0}, 30.0)
    price["C"] = 0.5
    size["A"] = 1
    g.stabilize()
    assert dict(value) == {"A": 2.0, "B": 30.0, "C": 10.0}
    fx.set(2.0)
    price.remove("B")
    g.stabilize()
    assert (dict(value), total.value) == ({"A": 4.0, "C": 20.0}, 24.0)
    price.remove("A")
    g.stabilize()
    assert (dict(value), total.value) == ({"C": 20.0}, 20.0)


def test_functions_are_called_for_the_slots_that_changed(g):
    column = g.column(float)
    calls: list = []
    each = g.map(column, lambda v: calls.append(v) or -v)
    sizes: list[int] = []
    batch = g.map(each, lambda a: sizes.append(len(a["value"])) or -a["value"], batch=True)
    column.apply(list("abc"), [1.0, 2.0, 3.0])
    Graph.stabilize(g)
    calls.clear()
    sizes.clear()
    column["b"] = 5.0
    column.remove("c")
    Graph.stabilize(g)
    assert (calls, sizes) == ([5.0], [1])
    assert dict(batch) == {"a": 1.0, "b": 5.0}


def test_nulls_texts_and_bools_go_through_expressions(g):
    rows = g.column({"x": float | None, "name": str, "up": bool})
    rows.apply(["A", "B"], x=[None, 2.0], name=["a", "b"], up=[True, False])
    signed = g.map(rows, when(col("up")).then(1.0).otherwise(-1.0) * col("x"))
    is_a = g.map(rows, col("name") == "a")
    renamed = g.map(rows, col("name"))
    isnull = g.map(rows, col("x").is_null())
    g.stabilize()
    assert dict(signed) == {"A": None, "B": -2.0}
    assert dict(is_a) == {"A": True, "B": False}
    assert dict(renamed) == {"A": "a", "B": "b"}
    assert dict(isnull) == {"A": True, "B": False}
    assert (signed.sum().value, signed.count().value, signed.count("value").value) == (-2.0, 2, 1)
    rows.set("A", x=1.0, name="b", up=True)
    g.stabilize()
    assert (signed["A"], is_a["A"], renamed["A"], isnull["A"]) == (1.0, False, "b", False)


def test_maps_may_have_several_fields_and_maps_above(g):
    price, size = _pair(g)
    stats = g.map(
        [price, size],
        lambda a: {"notional": a["price"] * a["size"], "big": a["size"] > 15},
        batch=True,
        schema={"notional": float, "big": bool},
    )
    labels = g.map(stats, lambda row: f"{row['notional']}{row['big']}", schema=str)
    assert dict(labels) == {"B": "30.0False"}
    size["A"] = 20
    g.stabilize()
    assert dict(labels) == {"A": "40.0True", "B": "30.0False"}
    assert labels.max().value == "40.0True"
    assert g.map(labels, lambda s: s, schema=str).fold(aggregate.count_distinct("value")).value == 2


def test_parents_that_do_not_fit_are_refused(g):
    price, _ = _pair(g)
    other = g.column(float, name="price")
    with pytest.raises(GraphError, match="different keys"):
        g.map([price, other], col("price"))
    with pytest.raises(GraphError, match="needs a name"):
        g.map([price, g.leaf(1.0)], col("price"))
    with pytest.raises(GraphError, match="rename one"):
        g.map([price, g.leaf(1.0, name="price")], col("price"))
    with pytest.raises(PlanError, match=r"no field 'prize'.*Did you mean 'price'"):
        g.map(price, col("prize"))
    with pytest.raises(GraphError, match="must be a column among the parents"):
        g.map([g.leaf(1.0)], col("x"))
    with pytest.raises(GraphError, match="no equal"):
        g.map(price, col("price"), equal=lambda a, b: a == b)
    assert len(g) == 6, "three columns, three leaves"


# --- failures ---


class _Moody:
    def __init__(self):
        self.fails = False

    def __call__(self, value):
        if self.fails and value == 3.0:
            raise ValueError("no luck")
        return value * 2.0


def test_a_failed_map_keeps_its_rows_names_itself_and_is_retried(g):
    moody = _Moody()
    column = g.column(float)
    doubled = g.map(column, moody, name="doubled")
    other = column.sum()
    totals = [doubled.sum(), doubled.fold(0.0, lambda t, v: t + v, lambda t, v: t - v)]
    column.apply(list("ab"), [1.0, 2.0])
    g.stabilize()
    moody.fails = True
    column.apply(list("abc"), [5.0, 3.0, 4.0])
    with pytest.raises(NodeError, match=r"column_map 'doubled'.*no luck"):
        Graph.stabilize(g)
    assert dict(doubled) == {"a": 2.0, "b": 4.0}
    assert [t.value for t in totals] == [6.0, 6.0]
    column.remove("a")
    column["c"] = 6.0
    with pytest.raises(NodeError):
        Graph.stabilize(g)
    moody.fails = False
    Graph.stabilize(g)
    g.check_invariants()
    assert dict(doubled) == {"b": 6.0, "c": 12.0}
    assert ([t.value for t in totals], other.value) == ([18.0, 18.0], 9.0)
    assert len(column.directory) == 2, "the slot of the removed key is free"


def test_a_function_that_fails_at_once_leaves_no_node(g):
    column = g.column(float)
    column["A"] = 3.0
    g.stabilize()
    moody = _Moody()
    moody.fails = True
    with pytest.raises(NodeError, match="no luck"):
        g.map(column, moody)
    with pytest.raises(NodeError, match="must be a float"):
        g.map(column, str)
    with pytest.raises(NodeError, match="must have 1 values, not 2"):
        g.map(column, lambda a: np.array([1.0, 2.0]), batch=True)
    assert len(g) == 1


def test_an_expression_that_cannot_be_computed_names_node_and_key(g):
    column = g.column(int)
    inverse = g.map(column, 12 // col("value"), name="inverse")
    total = inverse.sum()
    column.apply(list("ab"), [3, 4])
    g.stabilize()
    column["b"] = 0
    with pytest.raises(NodeError, match=r"'inverse'.*division by zero in .* for the key 'b'"):
        Graph.stabilize(g)
    assert (dict(inverse), total.value) == ({"a": 4, "b": 3}, 7)
    column.apply(list("acd"), [0, 6, 2])
    with pytest.raises(NodeError, match="for the key 'b'"):
        Graph.stabilize(g)
    column.remove("b")
    column["a"] = 1
    g.stabilize()
    assert (dict(inverse), total.value) == ({"a": 12, "c": 2, "d": 6}, 20)


def test_a_fold_whose_function_fails_is_retried_from_what_it_had(g):
    column = g.column(float)
    mood = {"fails": False}

    def add(total, value):
        if mood["fails"]:
            raise ValueError("no luck")
        return (*total, value)

    def remove(total, value):
        at = total.index(value)
        return total[:at] + total[at + 1 :]

    values = column.fold((), add, remove, name="values", equal=lambda a, b: sorted(a) == sorted(b))
    custom = column.fold(
        aggregate.custom(
            "value",
            init=lambda: 0,
            add=lambda s, v: add((), v) and s + int(v),
            remove=lambda s, v: s - int(v),
            result=lambda s: s,
            type=int,
        ),
        name="custom",
    )
    column.apply(list("ab"), [1.0, 2.0])
    g.stabilize()
    mood["fails"] = True
    column["a"] = 5.0
    for _ in range(2):
        with pytest.raises(NodeError, match="no luck"):
            Graph.stabilize(g)
        assert (sorted(values.value), custom.value) == ([1.0, 2.0], 3)
        column["b"] = 7.0
    mood["fails"] = False
    g.stabilize()
    assert (sorted(values.value), custom.value) == ([5.0, 7.0], 12)


def test_writing_from_a_function_or_to_a_removed_column_is_refused(g):
    column = g.column(float)
    leaf = g.leaf(1.0)
    writes = [
        lambda: column.set("A", 1.0),
        lambda: column.apply(["A"], [1.0]),
        lambda: column.remove("A"),
        lambda: column.remove_all(["A"]),
    ]
    for write in writes:
        with pytest.raises(NodeError, match="functions only compute"):
            g.map(leaf, lambda _, write=write: write())
    g.remove(column)
    for write in writes:
        with pytest.raises(GraphError, match="cannot be written"):
            write()


# --- folds ---


def test_folds_are_those_of_the_rows_left(g):
    column = g.column({"price": float, "size": int})
    folds = {
        "sum": column.sum("price"),
        "sizes": column.sum("size"),
        "min": column.min("price"),
        "max": column.max("size"),
        "mean": column.mean("price"),
        "count": column.count(),
        "vwap": column.fold(aggregate.vwap("price", "size")),
        "stddev": column.fold(aggregate.stddev(col("price") * 2)),
        "top": column.fold(aggregate.top_k("size", 2)),
    }
    assert {name: cell.value for name, cell in folds.items()} == {
        "sum": 0.0, "sizes": 0, "min": None, "max": None, "mean": None, "count": 0,
        "vwap": None, "stddev": None, "top": [],
    }  # fmt: skip
    column.apply(list("abc"), price=[0.1, 0.2, 1e300], size=[1, 2, 3])
    g.stabilize()
    column.remove("c")
    g.stabilize()
    assert folds["sum"].value == math.fsum([0.1, 0.2])
    assert folds["mean"].value == math.fsum([0.1, 0.2]) / 2
    assert folds["vwap"].value == float((Fraction(0.1) + Fraction(0.4)) / 3)
    assert [folds[n].value for n in ("sizes", "min", "max", "count", "top")] == [
        3, 0.1, 2, 2, [2, 1],
    ]  # fmt: skip
    doubled = g.map2(folds["sum"], folds["count"], lambda s, n: s / n)
    assert doubled.value == folds["mean"].value


def test_sums_survive_nan_infinity_and_what_does_not_fit_64_bits(g):
    floats = g.column(float)
    total = floats.sum()
    floats.apply(list("abcd"), [math.nan, math.inf, -math.inf, 0.5])
    g.stabilize()
    assert math.isnan(total.value)
    floats.remove_all(["a", "c"])
    g.stabilize()
    assert total.value == math.inf
    floats.remove("b")
    g.stabilize()
    assert total.value == 0.5
    ints = g.column(int)
    whole = ints.sum()
    ints.apply(list("ab"), [2**63 - 1, 2**63 - 1])
    g.stabilize()
    assert whole.value == 2**64 - 2
    ints.remove("a")
    g.stabilize()
    assert whole.value == 2**63 - 1


def test_folds_that_make_no_sense_are_refused(g):
    column = g.column({"price": float, "name": str})
    with pytest.raises(GraphError, match="of which field"):
        column.sum()
    with pytest.raises(PlanError, match="needs a number"):
        column.sum("name")
    with pytest.raises(PlanError, match="no field 'prize'"):
        column.max("prize")
    with pytest.raises(PlanError, match="event times"):
        column.fold(aggregate.last("price"))
    with pytest.raises(GraphError, match="add and remove"):
        column.fold(0.0)


def test_a_batch_function_may_only_read_what_it_is_given(g):
    column = g.column({"price": float, "size": int | None, "name": str})
    column.set("A", price=1.0, size=2, name="x")
    column.set("B", price=3.0, name="y")
    g.stabilize()

    def doubled(d):
        d["price"] *= 2
        return d["price"]

    def named(d):
        d["name"][0] = "z"
        return d["price"]

    for function in (doubled, named, lambda d: d["size"].fill(1), lambda d: d["price"].sort()):
        with pytest.raises(NodeError, match=r"read-only.*compute new arrays.*copy\(\)"):
            g.map(column, function, batch=True)
    schema = {"price": float, "size": int | None, "name": str}
    passed_on = g.map(column, lambda d: d, batch=True, schema=schema)
    assert dict(passed_on) == dict(column) == {
        "A": {"price": 1.0, "size": 2, "name": "x"},
        "B": {"price": 3.0, "size": None, "name": "y"},
    }  # fmt: skip


def test_lists_of_one_length_are_values_and_no_matrix(g):
    column = g.column({"xs": list[int]})
    column.apply(["A", "B"], xs=[[1, 2], [3, 4]])
    g.stabilize()
    first = g.map(column, lambda d: [xs[0] for xs in d["xs"]], batch=True, schema=int)
    assert dict(first) == {"A": 1, "B": 3}


# --- the graph ---


def test_nodes_made_while_a_column_is_dirty_agree_with_the_rows_that_show(g):
    column = g.column({"x": float | None, "s": str})
    column.apply(list("abc"), x=[1.0, 2.0, None], s=list("pqr"))
    g.stabilize()
    column.set("a", x=10.0, s="z")
    column.remove("b")
    column.set("d", x=4.0, s="t")
    made = [
        g.map(column, col("x") * 2),
        g.map(column, lambda row: row["s"], schema=str),
        g.map(column, lambda a: a["s"], batch=True, schema=str),
    ]
    folds = [column.sum("x"), column.count(), column.max("s"), made[0].sum()]
    xs = column.fold((), lambda t, r: (*t, r["x"]), lambda t, r: t, approximate=True)
    assert [list(dict(m).values()) for m in made] == [[2.0, 4.0, None], list("pqr"), list("pqr")]
    assert ([f.value for f in folds], xs.value) == ([3.0, 3, "r", 6.0], (1.0, 2.0, None))
    g.check_invariants()
    g.stabilize()
    assert [dict(m) for m in made] == [
        {"a": 20.0, "c": None, "d": 8.0},
        {"a": "z", "c": "r", "d": "t"},
        {"a": "z", "c": "r", "d": "t"},
    ]
    assert [f.value for f in folds] == [14.0, 3, "z", 28.0]


def test_a_bind_makes_maps_and_folds_of_columns(g):
    price, size = _pair(g)
    which = g.leaf("price")
    made = {"price": price, "size": size}

    def choose(name):
        return g.map(made[name], lambda v: v * 2.0).sum()

    chosen = g.bind(which, choose)
    assert chosen.value == 10.0
    which.set("size")
    price["B"] = 7.0
    g.stabilize()
    assert chosen.value == 60.0
    size["B"] = 1
    which.set("price")
    g.stabilize()
    assert chosen.value == 18.0
    nodes = len(g)
    price["A"] = 0.0
    g.stabilize()
    assert (chosen.value, len(g)) == (14.0, nodes)


def test_a_bind_takes_what_it_made_away_while_rows_come_and_go(g):
    price, _ = _pair(g)
    count = price.count()
    chosen = g.bind(count, lambda n: g.map(price, lambda v: v * n).sum())
    for i in range(20):
        price[f"{i}"] = 1.0
        price.remove(f"{i - 3}")
        g.stabilize()
        assert chosen.value == math.fsum(v * len(price) for _, v in price)
    assert len(g) == 7, "two columns, a count, two of the bind, a map, its sum"


def test_an_output_reports_the_rows_that_changed(g):
    column = g.column(float, name="price")
    doubled = g.output(g.map(column, col("price") * 2))
    heard: list = []
    doubled.observe(lambda change: heard.append((change.old, change.new)))
    column.apply(list("ab"), [1.0, 2.0])
    (change,) = g.stabilize()
    assert (change.node, change.old, change.new) == (doubled, {}, {"a": 2.0, "b": 4.0})
    column["a"] = 5.0
    column.remove("b")
    g.stabilize()
    assert heard[1:] == [({"a": 2.0, "b": 4.0}, {"a": 10.0})]
    column["a"] = 5.0
    assert g.stabilize() == ()


def test_changes_of_outputs_before_and_after_a_failure_are_reported_together(g):
    column = g.column(float)
    g.output(column)
    moody = _Moody()
    g.map(column, moody)
    column["a"] = 1.0
    g.stabilize()
    moody.fails = True
    column.apply(["a", "b"], [2.0, 3.0])
    with pytest.raises(NodeError):
        Graph.stabilize(g)
    column.apply(["b", "c"], [4.0, 5.0])
    (change,) = g.stabilize()
    assert change.old == {"a": 1.0}
    assert change.new == {"a": 2.0, "b": 4.0, "c": 5.0}


def test_columns_that_share_keys_free_a_slot_when_none_has_a_row(g):
    price, size = _pair(g)
    price.remove("B")
    g.stabilize()
    assert len(price.directory) == 3
    size.remove("B")
    g.stabilize()
    assert len(price.directory) == 2
    g.remove(size)
    price["D"] = 1.0
    g.stabilize()
    assert price.directory.keys_at(price.present_slots()) == ["A", "D"]
    assert len(price.directory) == 2


def test_nodes_know_their_kinds_and_row_counts(g):
    price, size = _pair(g)
    total = g.map([price, size], col("price") * col("size"), name="notional").sum(name="total")
    nodes = [(n.kind(), getattr(n, "row_count", None), n.height) for n in g.nodes]
    assert nodes == [
        ("column", 2, 0),
        ("column", 2, 0),
        ("column_map", 1, 1),
        ("column_fold", None, 2),
    ]
    assert g.nodes[total.id].value_sexp() == "30.0"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a b", "a b"), (True, "true"), (None, []), (7, "7"), (object(), None)],
)
def test_value_sexp_of_plain_scalars_needs_no_serializer(g, value, expected):
    assert g.leaf(value).value_sexp() == expected


def test_serializer_gives_the_sexp_of_a_record(g):
    assert g.leaf((1, 2), serializer=lambda v: [str(x) for x in v]).value_sexp() == ["1", "2"]


# --- memory ---


def test_a_million_keys_that_came_and_went_leave_nothing(g):
    """Two columns, three kinds of maps and folds; 10 rounds of 100,000 keys never seen before."""
    price = g.column(float, name="price")
    size = g.column(int, key=price, name="size")
    notional = g.map([price, size], col("price") * col("size"))
    above = g.map(notional, lambda a: -a["value"], batch=True)
    folds = [above.sum(), above.max(), notional.count(), size.sum()]
    columns = (price, size, notional, above)

    def held():
        return sum(c.nbytes for c in columns) + price.directory.nbytes

    before, peaks = held(), []
    for turn in range(10):
        keys = [f"a key that is longer than sixteen bytes {turn} {i}" for i in range(100_000)]
        price.apply(keys, np.arange(100_000) / 3)
        size.apply(keys, np.arange(100_000))
        Graph.stabilize(g)
        assert folds[2].value == 100_000
        peaks.append(held())
        price.remove_all(keys)
        Graph.stabilize(g)
        assert [f.value for f in folds[:3]] == [0.0, None, 0]
        size.remove_all(keys)
        Graph.stabilize(g)
        assert len(price.directory) == 0
        assert held() <= before
    assert max(peaks[1:]) <= peaks[0] + 16 * 100_000 / 100, "slots are recycled"


def test_a_sliding_set_of_keys_keeps_its_slots(g):
    price = g.column(float)
    doubled = g.map(price, col("value") * 2)
    total = doubled.sum()
    for i in range(3_000):
        price[f"{i}"] = 1.0
        price.remove(f"{i - 20}")
        Graph.stabilize(g)
    assert (total.value, len(doubled)) == (40.0, 20)
    assert price.directory.space.capacity == 64
    g.check_invariants()


def test_a_graph_of_columns_that_is_forgotten_is_collected():
    class Payload:
        alive = 0

        def __init__(self):
            Payload.alive += 1

        def __del__(self):
            Payload.alive -= 1

    def build():
        payload = Payload()
        g = Graph()
        column = g.column(float)
        g.map(column, lambda v: payload and v).sum()
        column["A"] = 1.0
        g.stabilize()

    build()
    gc.collect()
    assert Payload.alive == 0
