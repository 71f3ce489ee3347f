"""Constants and joins with them as they are declared: fields, keys of nodes, and every refusal."""

from __future__ import annotations

import decimal
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.drawing import drawing
from ripple.model.pipeline.given_rows import CONSTANT_BYTES_MAX
from ripple.model.pipeline.nodes import type_of
from ripple.model.schema.types import Option


@rp.record(version=1)
class Trade:
    symbol: str
    lot: int | None
    price: float
    at: rp.Timestamp


@dataclass
class Instrument:
    symbol: str
    lot: int
    name: str | None


ROWS = [{"symbol": "B", "lot": 2, "name": None}, {"symbol": "A", "lot": 1, "name": "aa"}]
INSTRUMENTS = rp.constant("instruments", ROWS, key="symbol")
TRADES = rp.Pipeline("desk").source("trades", Trade, key="symbol")


def node_keys(constant: rp.Constant, **join: Any) -> list[str]:
    joined = TRADES.join("named", constant, on="symbol", **join)
    folded = joined.partition("by", key="symbol").fold("sums", price=rp.sum("price")).sink("out")
    return list(folded.plan().node_keys)


def test_rows_of_any_form_are_the_same_constant() -> None:
    forms: list[Any] = [
        [Instrument(**row) for row in ROWS],  # type: ignore[arg-type]
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS[::-1]),
        pa.concat_tables([pa.Table.from_pylist([row], pa.schema(SCHEMA)) for row in ROWS]),
    ]
    found = {
        rp.constant("instruments", rows, key=["symbol"]).rows.to_pylist()[0]["name"]
        for rows in forms
    }
    assert found == {"aa"}
    arrow = {rp.constant("instruments", rows, key="symbol").digest for rows in forms[1:]}
    assert len(arrow) == 1
    assert rp.constant("instruments", ROWS[::-1], key="symbol") == INSTRUMENTS
    assert pickle.loads(pickle.dumps(INSTRUMENTS)) == INSTRUMENTS


SCHEMA = {"symbol": pa.large_string(), "lot": pa.int64(), "name": pa.string()}


def test_fields_of_the_constant_follow_those_of_the_row() -> None:
    def fields(how: Any) -> dict[str, bool]:
        joined = TRADES.join("named", INSTRUMENTS, on="symbol", how=how)
        return {one.name: isinstance(type_of(one), Option) for one in joined.fields[4:]}

    assert fields("inner") == {"lot_right": False, "name": True}
    assert fields("left") == {"lot_right": True, "name": True}
    plan = TRADES.join("named", INSTRUMENTS, on="symbol").sink("out").plan()
    assert "inner, on symbol, with constant instruments, 2 rows of" in plan.describe()
    (node,) = (node for node in drawing(plan)["nodes"] if node["id"] == "named")
    assert node["kind"] == "constant"


def test_it_stands_wherever_fields_are_derived() -> None:
    keyed = TRADES.partition("by", key="symbol").join("named", INSTRUMENTS, on="symbol")
    folded = keyed.fold("lots", most=rp.max("lot_right"))
    plan = folded.join("of-results", INSTRUMENTS, on="symbol").sink("out").plan()
    assert [step.name for step in plan.folds[0].steps] == ["of-results"]


def test_other_rows_change_the_keys_of_what_is_behind() -> None:
    before = node_keys(INSTRUMENTS)
    assert before == node_keys(rp.constant("other-name", ROWS[::-1], key="symbol"))
    other = node_keys(rp.constant("instruments", [*ROWS[1:]], key="symbol"))
    same = [one == two for one, two in zip(before, other, strict=True)]
    assert same[0] is True  # the source
    assert not any(same[1:-1])
    assert before != node_keys(INSTRUMENTS, how="left")


def test_fields_compared_the_other_way_round_change_the_keys() -> None:
    rows = [{"x": 1, "y": 2, "v": 7}, {"x": 3, "y": 4, "v": 8}]  # in one order by either key

    def key_of(*right_on: str) -> str:
        pairs = rp.constant("pairs", rows, key=right_on)
        joined = TRADES.join("paired", pairs, left_on=("lot", "at"), right_on=right_on)
        return joined.sink("out").plan().node_keys[1]

    assert key_of("x", "y") != key_of("y", "x")


@pytest.mark.parametrize(
    ("rows", "key", "said"),
    [
        ([], "a", "not an empty list, which tells no fields"),
        ((), "a", "not an empty list, which tells no fields"),
        (5, "a", "it takes an Arrow table, or a list of dicts or records, not 5"),
        (np.array([1, 2]), "a", "it takes an Arrow table, or a list of dicts or records, not "),
        ([{1: 2}], "a", "the name of a field of schema constant must be a text, not 1"),
        ([{}], "a", "a schema has no fields"),
        ([{"a": 1}, {"a": 1}], "a", "rows 0 and 1 have one key, a=1"),
        ([{"a": 1, "b": "x"}] * 2, ["a", "b"], "rows 0 and 1 have one key, a=1, b='x'"),
        ([{"a": None}, {"a": 1}], "a", "row 0: the key 'a' is null"),
        ([{"a": 1, "b": [1]}], "a", "row 0: 'b' is [1], and a constant of dicts holds"),
        ([{"a": 1, "b": decimal.Decimal(1)}], "a", "and frames, say how many digits decimals have"),
        ([{"a": 1, "b": 1}, {"a": 2, "b": 0.5}], "a", "row 1: 'b' is float, and int in a row"),
        ([{"a": 1, "b": None}], "a", "'b' is null in each row"),
        ([{"a": 1}, {"b": 1}], "a", "row 1 is {'b': 1}, and not a dict of a"),
        ([{"a": 1}, Instrument("A", 1, None)], "a", "row 1 is Instrument"),
        ([Instrument("A", 1, None), {"a": 1}], "a", "row 1 is {'a': 1}, and row 0 a Instrument"),
        ([Instrument("A", None, None)], "symbol", "row 0: the field 'lot'"),  # type: ignore[arg-type]
        ([{"a": 2**70}], "a", "row 0: the field 'a' must be an int of 64 bits"),
        ([{"a": "\ud800"}], "a", "row 0: the field 'a'"),
        ([{"a": 0.5}], "a", "the key 'a' is float: choose a text, an integer, a bool, a date"),
        ([{"a": 1}], "b", "there is no field 'b'"),
        ([{"a": 1}], None, "a row is found by its key: name a field with key=, not None"),
        ([{"a": 1}], ["a", "a"], "the key names 'a' twice"),
        (pa.table({"a": np.arange(CONSTANT_BYTES_MAX // 8 + 1)}), "a", "(CONSTANT_BYTES_MAX)"),
        ([{"a": 1, "a b": 2}], "a", "the field 'a b' is no Python name"),
        (pa.table({"a": [1], "b": [[1]]}), "a", "'b' is list, and a constant holds single values"),
    ],
)
def test_rows_that_are_no_constant_are_refused(rows: Any, key: Any, said: str) -> None:
    with pytest.raises(PlanError, match=f"^constant 'c': .*{re.escape(said)}"):
        rp.constant("c", rows, key=key)


def test_an_endless_stream_of_rows_is_read_no_further_than_the_limit() -> None:
    piece = pa.record_batch({"a": np.arange(CONSTANT_BYTES_MAX // 80)})
    read = []

    def endless() -> Iterator[pa.RecordBatch]:
        while len(read) < 100:
            read.append(piece)
            yield piece

    stream = pa.RecordBatchReader.from_batches(piece.schema, endless())
    with pytest.raises(PlanError, match=r"\(CONSTANT_BYTES_MAX\)"):
        rp.constant("c", stream, key="a")
    assert 20 <= len(read) < 25
    stream = pa.RecordBatchReader.from_batches(piece.schema, [piece])
    assert rp.constant("c", stream, key="a").rows.num_rows == piece.num_rows


@pytest.mark.parametrize(
    ("join", "said"),
    [
        ({}, "it says not by which fields rows belong together"),
        ({"on": "symbol", "how": "full"}, "it must be 'inner' or 'left'"),
        ({"on": "lot"}, "the key of the constant 'instruments' is symbol, and the join names lot"),
        ({"left_on": "at", "right_on": "symbol"}, "'at' is int64 in 'trades' and 'symbol' is"),
        ({"left_on": "price", "right_on": "symbol"}, "'price' is a float"),
        ({"on": "symbol", "suffix": ""}, "suffix is '': it must be letters, digits"),
    ],
)
def test_joins_that_do_not_fit_are_refused(join: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError, match=f"^join 'j': .*{re.escape(said)}"):
        TRADES.join("j", INSTRUMENTS, **join)


def test_a_join_of_events_with_a_table_names_the_constant_as_a_way() -> None:
    with pytest.raises(PlanError, match=r"joined to events as rp\.constant\(\.\.\.\)"):
        TRADES.join("j", TRADES, on="symbol")
