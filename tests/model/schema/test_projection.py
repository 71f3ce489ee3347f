"""Values that another version wrote arrive under the names that they were written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.model.schema import (
    Case,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Option,
    Record,
    Schema,
    String,
    Variant,
)
from ripple.model.schema.compat import check_readable
from ripple.model.schema.projection import project
from tests.model.schema.trade import shuffled_fields
from tests.strategies import evolved, records, schemas, values

if TYPE_CHECKING:
    import random


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN and the order of a record's fields counts."""
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right or (left != left and right != right)  # noqa: PLR0124  # only NaN differs from itself


def at(value: Any, kind: FieldType) -> Any:
    """Sort a value's fields as ``kind`` has them: the obvious twin of a projection."""
    match kind:
        case Option():
            return None if value is None else at(value, kind.of)
        case List():
            return [at(item, kind.of) for item in value]
        case Record():
            return at_fields(value, kind.fields)
        case Variant():
            args = next(case.args for case in kind.cases if case.name == value[0])
            return (value[0], *map(at, value[1:], args))
    return value


def at_fields(value: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, Any]:
    return {
        field.name: at(value[field.name], field.type)
        for field in fields
        if field.name in value and (value[field.name] is not None or not field.optional)
    }


@given(st.data(), schemas(), st.randoms(use_true_random=False))
def test_shuffled_fields_and_cases_never_swap_values(
    data: st.DataObject, writer: Schema, rng: random.Random
) -> None:
    reader = Schema(writer.name, shuffled_fields(writer.fields, rng))
    record = data.draw(records(writer))
    projected = project(writer, reader)(record)
    assert same(projected, at_fields(record, reader.fields))
    assert same(project(reader, writer)(projected), record)


@given(st.data())
def test_two_swapped_fields_of_one_type_keep_their_values(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([Int(), Float(), String(), List(Int())]))
    names = data.draw(st.lists(st.text("abcdef", min_size=1), min_size=2, max_size=6, unique=True))
    fields = [Field(name, kind) for name in names]
    left, right = data.draw(st.permutations(range(len(names))))[:2]
    swapped = list(fields)
    swapped[left], swapped[right] = fields[right], fields[left]
    writer, reader = Schema("t", tuple(fields)), Schema("t", tuple(swapped))

    # Positional decoding, as bytes are: the n-th value belongs to the writer's n-th field.
    sent = [data.draw(values(kind)) for _ in names]
    decoded = dict(zip([field.name for field in writer.fields], sent, strict=True))
    received = project(writer, reader)(decoded)
    assert list(received) == [field.name for field in swapped]
    for name, value in zip(names, sent, strict=True):
        assert same(received[name], value)


@given(st.data(), schemas())
def test_projection_exists_exactly_for_what_is_readable_and_equals_the_twin(
    data: st.DataObject, writer: Schema
) -> None:
    reader = data.draw(evolved(writer))
    event("readable" if check_readable(reader, writer) else "unreadable")
    if check_readable(reader, writer):
        record = data.draw(records(writer))
        assert same(project(writer, reader)(record), at_fields(record, reader.fields))
    else:
        with pytest.raises(SchemaError):
            project(writer, reader)


V1 = Schema(
    "order",
    (
        Field("size", Int()),
        Field("old", String()),
        Field("note", String(), optional=True),
        Field("legs", List(Record((Field("a", Int()), Field("b", Int()))))),
        Field("side", Variant((Case("BUY", (Record((Field("p", Int()), Field("q", Int()))),)),))),
    ),
)
V2 = Schema(
    "order",
    (
        Field("fee", Float(), optional=True),
        Field("note", String(), optional=True),
        Field("legs", List(Option(Record((Field("b", Int()), Field("a", Int64())))))),
        Field(
            "side",
            Variant(
                (
                    Case("SELL"),
                    Case("BUY", (Record((Field("q", Int()), Field("p", Int()))),)),
                )
            ),
        ),
        Field("size", Option(Int64())),
    ),
    2,
)


def test_record_of_an_older_version_is_read_by_name_at_every_depth() -> None:
    record = {
        "size": 5,
        "old": "dropped",
        "legs": [{"a": 1, "b": 2}],
        "side": ("BUY", {"p": 3, "q": 4}),
    }
    read = project(V1, V2)(record)
    assert same(read, {"legs": [{"b": 2, "a": 1}], "side": ("BUY", {"q": 4, "p": 3}), "size": 5})
    assert project(V1, V2)({**record, "note": None}) == read
    assert project(V1, V2)({**record, "note": "hi"}) == {"note": "hi", **read}


def test_unchanged_parts_are_passed_on_not_copied() -> None:
    record = {"size": 5, "old": "x", "legs": [], "side": ("BUY", {"p": 1, "q": 2})}
    assert project(V1, V1)(record) is record


def test_unreadable_writer_is_refused_with_every_reason() -> None:
    with pytest.raises(SchemaError) as caught:
        project(V2, V1)
    message = str(caught.value)
    assert message.startswith("order/v1 cannot read order/v2: ")
    for part in ("order.size", "missing field old", "order.legs.[]", "order.side.SELL"):
        assert part in message
