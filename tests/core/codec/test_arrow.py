"""Record batches from a peer: whole and valid, or refused; nothing else escapes from Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from tests.examples import EXAMPLES, SAMPLED

BATCH = pa.record_batch(
    {
        "key": [f"SYM{n:04d}" for n in range(20)],
        "op": pa.array([0, 1] * 10, pa.int8()),
        "vwap": [1.5, None] * 10,
        "open": [True, False] * 10,
        "at": pa.array(range(20), pa.timestamp("ns", "UTC")),
        "tags": [["a", None], []] * 10,
        "leg": [{"x": 1, "y": "z"}, None] * 10,
    }
)
BODY = arrow.dumps(BATCH).to_pybytes()


def _stream(*batches: pa.RecordBatch, **options) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("shift", range(9))
def test_a_batch_comes_back_from_any_place_in_a_buffer(shift: int) -> None:
    body = memoryview(bytes(shift) + BODY)[shift:]
    batch = arrow.loads(body, BATCH.schema)
    assert batch.equals(BATCH)
    buffers = [buffer for column in batch for buffer in column.buffers() if buffer is not None]
    assert all(buffer.address % 8 == 0 for buffer in buffers)


def test_an_empty_batch_and_one_without_rows_come_back() -> None:
    for batch in (BATCH.slice(0, 0), BATCH.slice(3, 4)):
        assert arrow.loads(arrow.dumps(batch)).equals(batch)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_arrows_own_compression_is_refused_unopened(codec: str) -> None:
    with pytest.raises(EncodingError, match="compress the frame"):
        arrow.loads(_stream(BATCH, compression=codec))


@pytest.mark.parametrize(
    ("array", "name"),
    [
        (pa.nulls(3), "null"),
        (pa.array([1], pa.timestamp("ns", "Nowhere")), "timestamp"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "dictionary"),
        (pa.array([b"ab"], pa.binary(2)), "fixed_size_binary"),
        (pa.array([{}, {}], pa.struct([])), "struct"),
        (pa.array([[None]], pa.list_(pa.null())), "null"),
    ],
)
def test_columns_of_other_types_are_refused(array: pa.Array, name: str) -> None:
    with pytest.raises(EncodingError, match=f"columns of type {name}"):
        arrow.loads(_stream(pa.record_batch({"x": array})))


def test_columns_nested_without_end_are_refused() -> None:
    kind = pa.int64()
    for _ in range(arrow.NESTING_MAX):
        kind = pa.list_(kind)
    with pytest.raises(EncodingError, match="nested deeper"):
        arrow.loads(_stream(pa.record_batch({"x": pa.array([], kind)})))


def test_columns_other_than_the_announced_are_refused() -> None:
    fewer = BATCH.select(["key", "op"])
    with pytest.raises(EncodingError, match="instead of key, op"):
        arrow.loads(BODY, fewer.schema)
    retyped = pa.schema([pa.field("key", pa.string()), pa.field("op", pa.int16())])
    with pytest.raises(EncodingError, match=r"op: int8> instead of .*op: int16"):
        arrow.loads(_stream(fewer), retyped)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not Arrow at all, but long enough to look at",
        BODY + b"x",
        _stream(BATCH, BATCH),
        BODY[: len(BODY) // 2],
        b"\xff" * 64,
    ],
)
def test_body_without_exactly_one_batch_is_refused(body: bytes) -> None:
    with pytest.raises(EncodingError):
        arrow.loads(body)


@given(st.lists(st.tuples(st.integers(0, len(BODY) - 1), st.integers(0, 255)), max_size=4))
@settings(max_examples=48 * EXAMPLES // SAMPLED)
def test_damaged_bytes_are_refused_or_a_valid_batch(changes) -> None:
    body = bytearray(BODY)
    for place, byte in changes:
        body[place] = byte
    try:
        batch = arrow.loads(bytes(body))
    except EncodingError:
        return
    batch.to_pylist()


def test_every_truncation_is_refused() -> None:
    end = len(BODY) - 8  # the last eight bytes only say that the stream has ended
    for length in range(end):
        with pytest.raises(EncodingError):
            arrow.loads(BODY[:length])


def test_rows_that_cost_no_bytes_are_not_believed() -> None:
    none = pa.RecordBatch.from_struct_array(pa.array([{}] * 1_000_000, pa.struct([])))
    with pytest.raises(EncodingError, match="1000000 rows in"):
        arrow.loads(_stream(none))
