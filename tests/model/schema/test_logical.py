"""Types of values stored as numbers: their properties, and the places that refuse them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Exact

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.records import SCHEMA
from ripple.model.keys.partitioner import key_bytes
from ripple.model.schema import (
    Bytes,
    Date,
    DateTime,
    Decimal,
    Dict,
    Field,
    Int,
    Int64,
    List,
    Option,
    Record,
    Schema,
    String,
    Uuid,
    check_backward,
    check_forward,
    fingerprint,
)
from ripple.model.schema.arrow import from_arrow, to_arrow
from ripple.model.schema.avro import from_avro, to_avro
from ripple.model.schema.columns import fitted
from ripple.model.schema.date_form import DateForm
from ripple.model.schema.json_schema import from_json_schema, to_json_schema
from ripple.model.schema.logical.columns import as_shown, shown, stored, stored_columns, texts_of
from ripple.model.schema.logical.dates import DATE_LEAST, DATE_MOST
from ripple.model.schema.logical.fields import stored_type
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.notation import dumps, loads

NOON = 1_769_860_800_000_000_000  # 2026-01-31
FILL = Schema("fill", (Field("day", Date()), Field("ends", Date(), optional=True)))
EPOCH = dt.date(1970, 1, 1)


@given(st.lists(st.none() | st.dates(), max_size=20), st.sampled_from(["iso", "%F", "%d.%m.%Y"]))
def test_dates_are_read_as_python_writes_them(days: list[dt.date | None], form: str) -> None:
    def written(day: dt.date) -> str:
        if form == "%d.%m.%Y":
            return f"{day.day:02}.{day.month:02}.{day.year:04}"
        return day.isoformat()

    texts = pa.array([None if day is None else written(day) for day in days], pa.string())
    numbers, failed = DateForm(form).parsed(texts)
    assert numbers.to_pylist() == [None if day is None else (day - EPOCH).days for day in days]
    assert not failed.any()
    assert shown(numbers, Date()).to_pylist() == days


@pytest.mark.parametrize(
    "text",
    ["", "2026-1-31", "2026-01-31 ", " 2026-01-31", "2026-01-31T00:00", "20260131", "2026-02-29",
     "2026-13-01", "2026-00-01", "0000-01-01", "-2026-01-31", "2026-01-3x", "2026/01/31"],
)  # fmt: skip
def test_each_letter_of_a_date_is_looked_at(text: str) -> None:
    numbers, failed = DateForm().parsed(pa.array([text, "2024-02-29"]))
    assert failed.tolist() == [True, False]
    assert numbers.to_pylist() == [None, 19_782]


def test_values_are_dates_and_nothing_else() -> None:
    days = [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]
    for given_ in (days, pa.array(days), pa.array(days, pa.date64())):
        found = fitted(given_, Date(), "day")
        assert found.values.tolist()[::2] == [DATE_LEAST, DATE_MOST]
        assert found.valid is not None
        assert found.valid.tolist() == [True, False, True]
    array = np.array(["2026-01-31", "NaT"], "datetime64[D]")
    found = fitted(array, Date(), "day")
    assert found.values[0] == 20_484
    assert found.valid is not None
    assert not found.valid[1]
    assert list(fitted([5, "2026-01-31"], Date(), "day").misfits.values()) == [
        "day must be a date, not 5", "day must be a date, not '2026-01-31'"
    ]  # fmt: skip
    for wrong in (np.array([1]), pa.array([1]), array.astype("datetime64[ns]")):
        with pytest.raises(SchemaError, match="must be a date, not an array of"):
            fitted(wrong, Date(), "day")


def test_columns_in_lists_and_records_are_shown() -> None:
    kind = List(Record((Field("day", Option(Date())), Field("name", String()))))
    stored = pa.array(
        [
            [{"day": 0, "name": "a"}, {"day": None, "name": "b"}],
            None,
            [],
            [{"day": -1, "name": "c"}],
        ],
        pa.list_(pa.struct([("day", pa.int64()), ("name", pa.string())])),
    )
    assert shown(stored.slice(1), kind).to_pylist() == [
        None, [], [{"day": dt.date(1969, 12, 31), "name": "c"}]
    ]  # fmt: skip
    assert shown(stored, kind).to_pylist()[0] == [
        {"day": EPOCH, "name": "a"}, {"day": None, "name": "b"}
    ]  # fmt: skip
    assert stored_type(kind) == List(
        Record((Field("day", Option(Int64())), Field("name", String())))
    )


def test_columns_come_back_as_numbers() -> None:
    days = pa.record_batch({"day": pa.array([EPOCH, None]), "x": pa.array([1, 2])})
    assert stored_columns(days, FILL.fields).column("day").to_pylist() == [0, None]
    assert stored(pa.array(["1970-01-02", None]), Date()).to_pylist() == [1, None]
    assert texts_of(pa.array([0, None, 1 << 40]), Date()).to_pylist() == [
        "1970-01-01", None, str(1 << 40)
    ]  # fmt: skip


QUOTE = Schema("q", (Field("at", DateTime()), Field("sent", DateTime(), optional=True)))
NAMED = Schema("u", (Field("id", Uuid()), Field("of", Uuid(), optional=True)))
BLOBS = Schema("b", (Field("b", Bytes()), Field("of", Bytes(), optional=True)))
WIDE = Schema("w", (Field("p", Decimal(38, 10)), Field("s", Decimal(20, 2), optional=True)))
MONEY = Schema("n", (Field("p", Decimal(19, 4)), Field("s", Decimal.wide(4), optional=True)))
LABELS = Schema("m", (Field("l", Dict(String())), Field("n", Dict(Int()), optional=True)))
PRICED = Schema("t", (Field("p", Decimal(12, 4)), Field("s", Decimal.wide(2), optional=True)))


@pytest.mark.parametrize(
    ("schema", "text", "name"),
    [
        (FILL, "(typ Date)", "d1ba8b5674c8d39a"),
        (QUOTE, "(typ Date_time)", "3898848780b67fd7"),
        (PRICED, "(typ(Decimal 12 4))", "6352d10f94b74ad9"),
        (BLOBS, "(typ Bytes)", "5094874a3ec40a25"),
        (NAMED, "(typ Uuid)", "ec30d246c0b70ece"),
        (WIDE, "(typ(Decimal 38 10))", "b0012ce5da3995ef"),
        (MONEY, "(typ(WideDecimal 19 4))", "dccd9c45a3c19b5e"),
        (MONEY, "(typ(Decimal 19 4))", "dccd9c45a3c19b5e"),
        (LABELS, "(typ(Dict String))", "bf6e5ccb41dfb2be"),
    ],
)
def test_names_are_pinned_and_each_notation_has_them(schema: Schema, text: str, name: str) -> None:
    assert text in dumps(schema)
    assert loads(dumps(schema)) == schema
    assert fingerprint(schema) == name
    assert from_arrow(to_arrow(schema)) == schema
    assert from_avro(to_avro(schema)) == schema
    assert from_json_schema(to_json_schema(schema)) == schema
    assert SCHEMA.loads(SCHEMA.dumps(schema)) == schema


def test_stored_texts_of_wide_decimals_are_pinned() -> None:
    rule = rule_of(Decimal(38, 2))
    values = {
        "0": "80000000000000000000000000000000",
        "-0.01": "7fffffffffffffffffffffffffffffff",
        "1e20": "800000000000021e19e0c9bab2400000",
        "9" * 36 + ".99": "cb3b4ca85a86c47a098a223fffffffff",
    }
    column = pa.array([*values.values(), None])
    assert [rule.number(Exact(text)) for text in values] == [*values.values()]
    assert [rule.value(text) for text in values.values()] == [Exact(text) for text in values]
    assert shown(column, Decimal(38, 2)).to_pylist() == [*map(Exact, values), None]
    assert stored(shown(column, Decimal(38, 2)), Decimal(38, 2)).equals(column)


def test_bytes_of_records_are_pinned() -> None:
    codec = codec_for(FILL)
    assert codec.dumps({"day": 20_484, "ends": -1}).hex() == "fe045001ffff"
    assert codec.loads(codec.dumps({"day": 20_484})) == {"day": 20_484}


def test_times_come_back_as_numbers() -> None:
    times = pa.record_batch({"at": pa.array([NOON])})
    assert key_bytes(times, ("at",)).to_pylist() == [NOON.to_bytes(8, "big")]
    column = shown(pa.array([NOON, None]), DateTime())
    assert stored(column, DateTime()).to_pylist() == [NOON, None]
    assert texts_of(pa.array([NOON, None]), DateTime()).to_pylist() == [
        "2026-01-31T12:00:00.000000000Z", None
    ]  # fmt: skip
    rule = rule_of(DateTime())
    for number in (-(1 << 63), -1, 0, NOON + 1, (1 << 63) - 1):
        assert rule.number(rule.value(number)) == number


def test_decimals_come_back_as_units() -> None:
    with pytest.raises(SchemaError, match="from 1 to 38"):
        loads(dumps(PRICED).replace("12 4", "39 4"))
    units = pa.array([1, -1, None, 10**12 - 1])
    column = shown(units, Decimal(12, 4))
    column.validate(full=True)
    assert column.to_pylist() == [Exact("0.0001"), Exact("-0.0001"), None, Exact("99999999.9999")]
    assert as_shown(units, pa.decimal128(12, 4)) == column
    assert stored(column, Decimal(12, 4)).equals(units)
    assert fitted([Exact("1.5"), 2, True, 1.5], Decimal(3, 1), "p").misfits.keys() == {2, 3}
    rule = rule_of(Decimal(3, 1))
    assert [rule.number(Exact(one)) for one in ("99.9", "100", "0.05", "1e999999", "NaN")] == [
        999, None, None, None, None
    ]  # fmt: skip
    assert rule.numbers(np.array([1.5])) is None


def test_others_have_words_for_it() -> None:
    assert to_arrow(FILL).field("day").type == pa.date32()
    assert from_arrow(pa.schema([("day", pa.date32())]), name="f").fields[0].type == Date()
    avro = {"type": "int", "logicalType": "date", "ripple.type": "Date"}
    assert to_avro(FILL)["fields"][0] == {"name": "day", "type": avro}  # type: ignore[index, call-overload]
    assert from_json_schema(
        {"type": "object", "title": "f", "required": ["day"],
         "properties": {"day": {"type": "string", "format": "date"}}}
    ).fields == (Field("day", String()),)  # fmt: skip


@pytest.mark.parametrize("mark", ["(Decimal ", "(Decimal 4)", "(Decimal x 2)", "(Decimal 40 2)"])
def test_a_mark_of_no_type_is_refused(mark: str) -> None:
    avro = {"name": "x", "type": {"type": "bytes", "ripple.type": mark}}
    text = {"type": "string", "x-ripple-type": mark}
    with pytest.raises(SchemaError):
        from_avro({"type": "record", "name": "f", "fields": [avro]})
    with pytest.raises(SchemaError):
        from_json_schema({"type": "object", "title": "f", "properties": {"x": text}})


@pytest.mark.parametrize("other", [Int64(), String()])
def test_no_other_type_is_wider(other: Int64 | String) -> None:
    changed = Schema("fill", (Field("day", other), FILL.fields[1]))
    assert not check_backward(FILL, changed)
    assert not check_forward(FILL, changed)


def test_columns_are_written_with_all_digits_at_any_depth() -> None:
    from ripple.model.schema.logical.texts import written_table

    time = pa.array([1_769_851_800_000_000_007, None], pa.timestamp("ns", "Etc/UTC"))
    small = pa.array([Exact("0"), Exact("-0.00000001")], pa.decimal128(19, 8))
    wide = pa.array([None, Exact("1e-8")], pa.decimal128(38, 8))
    most = Exact("9" * 15 + ".9999")  # beyond 64 bits
    money = pa.array([most, -most], pa.decimal128(19, 4))
    rows = pa.StructArray.from_arrays(
        [time, small, pa.array([0, None], pa.date32())], ["t", "d", "e"]
    )
    lists = pa.ListArray.from_arrays([0, 2, 2], rows)
    columns = {"t": time, "small": small, "wide": wide, "lists": lists, "n": [1, 2]}
    table = pa.table(columns).slice(0, 2)
    texts = written_table(pa.table({"m": money}).slice(1)).to_pylist()
    assert texts == [{"m": str(-most)}]
    found = written_table(table).to_pylist()
    first = {"t": "2026-01-31T09:30:00.000000007Z", "d": "0.00000000", "e": "1970-01-01"}
    second = {"t": None, "d": "-0.00000001", "e": None}
    assert found == [
        {"t": first["t"], "small": first["d"], "wide": None, "lists": [first, second], "n": 1},
        {"t": None, "small": second["d"], "wide": "0.00000001", "lists": [], "n": 2},
    ]
    (kept,) = written_table(table.slice(1), decimals=False).to_pylist()
    assert (kept["t"], kept["small"], kept["n"]) == (None, Exact("-0.00000001"), 2)


def test_keys_of_stored_texts_are_pinned() -> None:
    keys = pa.record_batch({"id": ["00000001-0000-0000-0000-000000abcdef"], "body": ["00ff"]})
    assert key_bytes(keys, ("id",)).to_pylist() == [b"00000001-0000-0000-0000-000000abcdef"]
    assert key_bytes(keys, ("body",)).to_pylist() == [b"00ff"]
    codec = codec_for(Schema("r", (Field("id", Uuid()), Field("body", Bytes()))))
    value = {"id": "00000001-0000-0000-0000-000000abcdef", "body": "00ff"}
    assert codec.dumps(value).hex() == f"24{value['id'].encode().hex()}0430306666"
    assert codec.loads(codec.dumps(value)) == value
