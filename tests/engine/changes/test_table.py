"""The row table: all or nothing, and its own snapshot and changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import DeltaError
from ripple.engine.changes import FieldSet, Patch, Remove, Set, Table
from ripple.model.schema.types import Field, Float, Int, Schema
from tests.engine.changes.strategies import frozen, records

SCHEMA = Schema(
    "bar",
    (
        Field("open", Float()),
        Field("high", Float()),
        Field("low", Float()),
        Field("close", Float()),
        Field("count", Int(), optional=True),
    ),
)
BAR = {"open": 1.0, "high": 1.0, "low": 1.0, "close": 1.0}
keyed = st.dictionaries(st.sampled_from("abcd"), records(SCHEMA.fields))


def table_of(rows):
    table = Table(SCHEMA)
    table.apply((key, Set(value)) for key, value in rows.items())
    return table


@pytest.mark.parametrize(
    "bad",
    [
        ("z", Patch((FieldSet("open", 1.0),))),
        ("a", Patch((FieldSet("nope", 1.0),))),
        ("a", Patch((FieldSet("open", "1"),))),
        ("a", Set({"open": 1.0})),
    ],
)
def test_delta_that_does_not_fit_leaves_the_table_unchanged(bad):
    table = table_of({"a": BAR})
    good = [
        ("a", Patch((FieldSet("open", 2.0),))),
        ("b", Set(BAR)),
        ("a", Remove()),
        ("a", Set(BAR)),
    ]
    with pytest.raises(DeltaError, match=f"key '{bad[0]}'"):
        table.apply([*good, bad])
    assert dict(table) == {"a": BAR}


def test_deltas_of_one_key_apply_in_order():
    table = table_of({})
    table.apply([("a", Set(BAR)), ("a", Patch((FieldSet("count", 2),))), ("b", Set(BAR))])
    assert table["a"] == BAR | {"count": 2}
    table.apply([("a", Remove()), ("b", Remove()), ("b", Set(BAR))])
    assert list(table) == ["b"]


@given(keyed)
def test_a_snapshot_leads_to_the_same_table(rows):
    copy = Table(SCHEMA)
    copy.apply(table_of(rows).snapshot())
    assert frozen(dict(copy)) == frozen(rows)
