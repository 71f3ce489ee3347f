"""Columnar deltas as bytes: nothing lost, nothing believed."""

import io

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.delta import Patch, Remove, Set
from ripple.delta.column_table import ColumnTable
from ripple.delta.convert import of_rows, to_rows
from ripple.delta.ipc import decode, encode
from ripple.delta.layout import OP
from ripple.delta.rows import FieldRemove, FieldSet
from ripple.errors import DeltaError, LimitError
from tests.delta.test_columns import LAYOUT, ROW, keyed_deltas, tables, unordered

DELTAS = [
    ("A", Set(ROW)),
    ("B", Patch((FieldSet("price", 2.0), FieldRemove("venue")))),
    ("C", Remove()),
]
BATCH = of_rows(LAYOUT, DELTAS)


@given(st.data())
def test_bytes_round_trip_gives_the_same_deltas(data):
    scene = data.draw(tables())
    batch = of_rows(scene[0], data.draw(keyed_deltas(scene)).items())
    again = decode(scene[0], encode(batch))
    assert again.schema.equals(batch.schema)
    assert unordered(to_rows(scene[0], again)) == unordered(to_rows(scene[0], batch))


def test_columns_that_nothing_changed_cost_no_bytes():
    n = 1000
    patch = LAYOUT.conform(
        pa.record_batch(
            {
                "symbol": [f"S{i}" for i in range(n)],
                OP: pa.array(np.ones(n, np.int8)),
                "price": np.arange(float(n)),
            }
        )
    )
    stream = pa.ipc.open_stream(encode(patch))
    assert stream.schema.names == ["symbol", OP, "price"]
    assert decode(LAYOUT, encode(patch)).equals(patch)


def test_decoded_values_lie_in_the_received_buffer():
    data = encode(BATCH)
    values = decode(LAYOUT, data).column("price").buffers()[1]
    assert data.address <= values.address < data.address + data.size


@pytest.mark.parametrize("shift", range(1, 8))
def test_bytes_at_any_alignment_can_be_applied(shift):
    data = memoryview(bytes(shift) + encode(of_rows(LAYOUT, DELTAS[:1])).to_pybytes())[shift:]
    table = ColumnTable(LAYOUT)
    table.apply(decode(LAYOUT, data))
    assert table.rows().to_pylist() == [dict(sorted(ROW.items(), key=lambda i: i[0] != "symbol"))]


def test_polars_opens_the_bytes():
    assert pl.read_ipc_stream(io.BytesIO(encode(BATCH).to_pybytes()))["price"].to_list() == [
        1.0,
        2.0,
        None,
    ]


def test_every_truncation_is_refused():
    data = encode(BATCH).to_pybytes()
    whole = unordered(to_rows(LAYOUT, BATCH))
    for size in range(len(data)):
        try:
            batch = decode(LAYOUT, data[:size])
        except DeltaError:
            continue
        # Only the mark at the very end may be missing.
        assert size >= len(data) - 8
        assert unordered(to_rows(LAYOUT, batch)) == whole


def test_every_flipped_byte_is_refused_or_decodes_to_something():
    data = encode(BATCH).to_pybytes()
    for at in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            flipped = data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
            try:
                ColumnTable(LAYOUT).apply(decode(LAYOUT, flipped))
            except (DeltaError, LimitError):
                continue


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_buffers_are_refused_before_they_are_inflated(codec):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, BATCH.schema, options=options) as writer:
        writer.write_batch(BATCH)
    with pytest.raises(DeltaError, match="compressed"):
        decode(LAYOUT, sink.getvalue())


def test_two_batches_are_refused():
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, BATCH.schema) as writer:
        writer.write_batch(BATCH)
        writer.write_batch(BATCH)
    with pytest.raises(DeltaError, match="one record batch"):
        decode(LAYOUT, sink.getvalue())


def test_dictionaries_are_refused():
    batch = pa.record_batch({"symbol": pa.array(["A"]).dictionary_encode()})
    with pytest.raises(DeltaError, match="dictionary"):
        decode(LAYOUT, encode_any(batch))


def test_more_rows_than_the_limit_are_refused():
    with pytest.raises(LimitError, match="rows_max=2"):
        decode(LAYOUT, encode(BATCH), rows_max=2)


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\xff\xff\xff\xff\0\0\0\0", b"x" * 100])
def test_other_bytes_are_refused(data):
    with pytest.raises(DeltaError):
        decode(LAYOUT, data)


def encode_any(batch):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
