"""Records go where Kafka's default partitioner sends their keys, in their order."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.core.hashing import partition_of
from ripple.model.keys.partitioner import key_bytes, partitioned
from tests.examples import EXAMPLES, SAMPLED

COLUMNS = {
    "s": (st.text(max_size=5), pa.string(), str.encode),
    "i": (st.integers(-(1 << 63), (1 << 63) - 1), pa.int64(), struct.Struct(">q").pack),
    "f": (st.floats(allow_nan=False), pa.float64(), struct.Struct(">d").pack),
    "b": (st.booleans(), pa.bool_(), struct.Struct(">?").pack),
}


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(st.data(), st.lists(st.sampled_from("sifb"), min_size=1, max_size=3), st.integers(1, 9))
def test_every_record_is_where_its_key_says(
    data: st.DataObject, key: list[str], count: int
) -> None:
    rows = data.draw(st.integers(0, 12))
    skipped = data.draw(st.integers(0, rows))
    arrays = [
        pa.array(data.draw(st.lists(values, min_size=rows, max_size=rows)), kind)
        for values, kind, _ in COLUMNS.values()
    ]
    records = pa.record_batch([*arrays, pa.array(range(rows))], names=[*COLUMNS, "row"])
    records = records.slice(skipped)

    def bytes_of(row: dict) -> bytes:
        parts = [COLUMNS[name][2](row[name]) for name in key]
        if len(parts) == 1:
            return parts[0]
        return b"".join(struct.pack(">i", len(part)) + part for part in parts)

    assert key_bytes(records, key).to_pylist() == [bytes_of(row) for row in records.to_pylist()]
    expected: dict[int, list[dict]] = {}
    for row in records.to_pylist():
        expected.setdefault(partition_of(bytes_of(row), count), []).append(row)
    found = {number: part.to_pylist() for number, part in partitioned(records, key, count)}
    assert found == expected
    assert list(found) == sorted(found)


def test_keys_that_cannot_be_are_refused() -> None:
    records = pa.record_batch({"k": ["a", None], "l": [[1], [2]]})
    with pytest.raises(SchemaError, match="'k' is none in 1 records"):
        partitioned(records, ["k"], 4)
    with pytest.raises(SchemaError, match="no key column 'x'"):
        partitioned(records, ["x"], 4)
    with pytest.raises(SchemaError, match="'l' is list"):
        partitioned(records, ["l"], 4)
    with pytest.raises(SchemaError, match="0 partitions"):
        partitioned(records, ["k"], 0)
