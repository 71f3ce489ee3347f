"""One value is one record, or refused; never two, never none."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.formats.arrow import NOT_ONE as NOT_ONE_ARROW
from ripple.connectors.formats.arrow import OTHER_COLUMNS, ArrowValues
from ripple.connectors.formats.contract import TOMBSTONE, batch_of
from ripple.connectors.formats.csv import NOT_ONE, CsvValues
from ripple.connectors.formats.formats import FORMATS, values_of
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.formats.msgpack import NOT_ONE as NOT_ONE_MAP
from ripple.connectors.formats.msgpack import MsgpackValues
from ripple.connectors.record_shape import RecordShape
from ripple.core.codec.arrow import dumps
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Field, Float, Int, Int64, Schema, String
from ripple.world.broker import Read, Record, Records
from tests.connectors.formats.registries import no_registry
from tests.examples import EXAMPLES, SAMPLED

SHAPE = RecordShape(
    Schema("trade", (Field("symbol", String()), Field("price", Float()), Field("size", Int()))),
    {"size": Checks(gt=0)},
)
ROW = {"symbol": "A", "price": 1.5, "size": 2}


def read(values: list[bytes | None], offsets=None, next_offset: int | None = None) -> Read:
    at = np.array(range(10, 10 + len(values)) if offsets is None else offsets, np.int64)
    behind = int(at[-1]) + 1 if next_offset is None else next_offset
    return Read(at, Records.of([Record(None, value) for value in values]), behind)


def told(batch: Batch) -> tuple[dict[int, dict], dict[int, str]]:
    assert batch.span == len(batch.offsets()) + len(batch.rejected)
    assert [bad.offset for bad in batch.rejected] == sorted(bad.offset for bad in batch.rejected)
    assert batch.offsets().tolist() == sorted(batch.offsets().tolist())
    batch.records.validate(full=True)
    rows = dict(zip(batch.offsets().tolist(), batch.records.to_pylist(), strict=True))
    return rows, {bad.offset: bad.reason for bad in batch.rejected}


def test_json_values_are_records_at_their_offsets() -> None:
    good = json.dumps(ROW).encode()
    batch = batch_of(read([good, json.dumps(ROW, indent=1).encode(), good]), JsonValues(SHAPE))
    assert told(batch) == ({10: ROW, 11: ROW, 12: ROW}, {})
    assert batch.row_offsets is None
    assert batch.next_offset == 13


def test_json_values_that_are_none_are_refused_one_by_one() -> None:
    good = json.dumps(ROW).encode()
    values = [
        *(b"", b"  ", good, b"{}" + good, good + b"\n" + good, b"[1]", b'{"symbol": "\xff"}'),
        *(None, b'{"symbol": "a\nb", "price": 1, "size": 1}', b'{"price": 1, "size": 1}'),
        *(b'{"symbol": "A", "price": 1, "size": 0}', good),
    ]
    rows, refused = told(batch := batch_of(read(values), JsonValues(SHAPE)))
    assert rows == {12: ROW, 21: ROW}
    assert refused == {
        **dict.fromkeys((10, 11, 13, 14, 15), "not a JSON record"),
        16: "line is not valid UTF-8",
        17: TOMBSTONE,
        18: "not a JSON record",
        19: "symbol is empty",
        20: "size is not positive",
    }
    assert [bad.raw for bad in batch.rejected] == [
        value or b"" for at, value in enumerate(values, 10) if at not in rows
    ]


def test_csv_values_that_are_none_are_refused_one_by_one() -> None:
    values = [
        *(b"A,1.5,2", b"A,1.5,2\n", b"A,1.5,2\r\n", b"", b"\n", b"#A,1.5,2", b"A,1.5,2\nA,1.5,2"),
        *(b'"A\nB",1.5,2', b'"A",1.5,2', b'"A', b'"B,1.5,2', None, b"A,1.5", b"A,1.5,0"),
        *(b'"a"b,1,2', b'"A""B",1.5,2', b"A,1.5,2"),
    ]
    rows, refused = told(batch := batch_of(read(values), CsvValues(SHAPE)))
    assert rows == {
        **dict.fromkeys((10, 11, 12, 18, 26), ROW),
        15: {**ROW, "symbol": "#A"},
        17: {**ROW, "symbol": "A\nB"},
        25: {**ROW, "symbol": 'A"B'},
    }
    assert refused == {
        **dict.fromkeys((13, 14, 16), NOT_ONE),
        **dict.fromkeys((19, 20, 24), "symbol is badly quoted"),
        21: TOMBSTONE,
        22: "too few fields",
        23: "size is not positive",
    }
    assert [bad.raw for bad in batch.rejected][-2:] == [b"A,1.5,0", b'"a"b,1,2']
    assert {bad.line_number for bad in batch.rejected} == {None}


@pytest.mark.parametrize("kind", [JsonValues, CsvValues])
def test_offsets_with_holes_are_kept(kind) -> None:
    good = b"A,1.5,2" if kind is CsvValues else json.dumps(ROW).encode()
    values = kind(SHAPE)
    batch = batch_of(read([good, b"no", good], [3, 7, 8], 12), values)
    assert told(batch) == ({3: ROW, 8: ROW}, batch_reasons(batch))
    assert [bad.offset for bad in batch.rejected] == [7]
    assert (batch.first_offset, batch.next_offset) == (3, 12)
    # What readers never see has only an end, and so have tombstones alone.
    nothing = batch_of(read([], [], 40), values)
    assert (nothing.span, nothing.first_offset, nothing.next_offset) == (0, 40, 40)
    dead = batch_of(read([None, None]), values)
    assert told(dead) == ({}, {10: TOMBSTONE, 11: TOMBSTONE})
    # A piece of columns is as good as all of them.
    whole = read([good, b"no", good])
    part = Read(whole.offsets[2:], sliced(whole.records, 2), whole.next_offset)
    assert told(batch_of(part, values)) == ({12: ROW}, {})


def batch_reasons(batch: Batch) -> dict[int, str]:
    return {bad.offset: bad.reason for bad in batch.rejected}


def sliced(records: Records, first: int) -> Records:
    return Records(
        records.keys.slice(first), records.values.slice(first), records.timestamps_ms[first:]
    )


CSV_VALUES = st.text('A1,."\n\r# é', max_size=12).map(str.encode)


@settings(max_examples=150 * EXAMPLES // SAMPLED, deadline=None)
@given(st.lists(CSV_VALUES, min_size=1, max_size=8))
def test_csv_values_mean_together_what_each_means_alone(values: list[bytes]) -> None:
    shape = RecordShape(Schema("s", (Field("a", String()), Field("b", String(), optional=True))))
    together = told(batch_of(read(values), CsvValues(shape)))
    alone = [told(batch_of(read([value]), CsvValues(shape))) for value in values]
    assert together == (
        {10 + at: rows[10] for at, (rows, _) in enumerate(alone) if rows},
        {10 + at: refused[10] for at, (_, refused) in enumerate(alone) if refused},
    )


def test_sizes_of_string_columns_do_not_matter() -> None:
    values = pa.array([b"", b"A,1,1"], pa.binary())
    assert CsvValues(SHAPE).batch(values.slice(1)).span == 1
    assert JsonValues(SHAPE).batch(values.slice(2)).span == 0


def stream(**columns: list) -> bytes:
    return dumps(pa.RecordBatch.from_pydict(columns)).to_pybytes()


def test_arrow_values_of_one_row_are_records() -> None:
    good = stream(symbol=["A"], price=[1.5], size=[2], more=[1])
    values = [
        *(
            good,
            b"",
            b"no stream",
            good[:-30],
            stream(symbol=["A", "A"], price=[1, 1], size=[1, 1]),
        ),
        *(stream(symbol=["A"], price=[1.5]), stream(symbol=[1], price=[1.5], size=[2])),
        *(stream(size=[2], price=pa.array([1.5], pa.float32()), symbol=["A"]), None),
        *(
            stream(symbol=["A"], price=[1.5], size=[0]),
            stream(symbol=[None], price=[1.5], size=[2]),
        ),
        good,
    ]
    rows, refused = told(batch_of(read(values), ArrowValues(SHAPE)))
    assert rows == {10: ROW, 17: ROW, 21: ROW}
    assert refused == {
        **dict.fromkeys((11, 12, 13, 14), NOT_ONE_ARROW),
        **dict.fromkeys((15, 16), OTHER_COLUMNS),
        18: TOMBSTONE,
        19: "size is not positive",
        20: NOT_ONE_ARROW,
    }


def test_a_time_in_an_arrow_value_is_no_number_of_a_unit() -> None:
    shape = RecordShape(Schema("Sent", (Field("at", Int64()),)), units=frozenset({"at"}))
    values = [stream(at=[1]), stream(at=pa.array([1], pa.timestamp("ms")))]
    rows, refused = told(ArrowValues(shape).batch(pa.array(values, pa.binary())))
    assert (rows, refused) == ({0: {"at": 1}}, {1: OTHER_COLUMNS})


def test_msgpack_values_that_are_maps_are_records() -> None:
    pack = msgspec.msgpack.encode
    good = pack(ROW)
    values = [
        *(good, pack({**ROW, "more": [1]}), b"", good[:-1], good + good, pack([1]), b"\xc1", None),
        *(
            pack({**ROW, "size": 1.0}),
            pack({**ROW, "size": True}),
            pack({**ROW, "size": 2**64 - 1}),
        ),
        *(pack({**ROW, "price": 1}), pack({**ROW, "symbol": None}), pack({**ROW, "size": 0}), good),
        b"\x91" * 100_000,
    ]
    rows, refused = told(batch_of(read(values), MsgpackValues(SHAPE)))
    assert rows == {10: ROW, 11: ROW, 21: {**ROW, "price": 1.0}, 24: ROW}
    assert refused == {
        **dict.fromkeys((12, 13, 14, 15, 16, 25), NOT_ONE_MAP),
        17: TOMBSTONE,
        **dict.fromkeys((18, 19), "size is not an integer"),
        20: "size does not fit in 64 bits",
        22: "symbol is empty",
        23: "size is not positive",
    }


def test_formats_are_found_by_name() -> None:
    assert {type(values_of(name, SHAPE, no_registry)) for name in FORMATS} == {
        *(JsonValues, CsvValues, MsgpackValues, ArrowValues)
    }
    with pytest.raises(InputError, match="there is no format 'xml': there are json, csv, msgpack"):
        values_of("xml", SHAPE, no_registry)
