"""Records have the same identity only where every field is the same, bit for bit."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ripple.core.errors import SchemaError
from ripple.core.hashing import mix_of
from ripple.model.row_identity import identities_of, mix_in


def bits(number: int) -> float:
    found: float = struct.unpack("<d", struct.pack("<Q", number))[0]
    return found


PAIR = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float64()))])
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, -1, 1 << 62]),
    (
        pa.float64(),
        [None, 0.0, -0.0, 1.0, bits(0x7FF8 << 48), bits(0xFFF8 << 48), bits((0x7FF8 << 48) + 1)],
    ),
    (pa.bool_(), [None, False, True]),
    (pa.string(), [None, "", "a", "ab", "\0", "a\0"]),
    (pa.list_(pa.int64()), [None, [], [None], [0], [0, 0], [0, 1], [1, 0]]),
    (pa.list_(pa.list_(pa.string())), [None, [], [[]], [["a"]], [["a"], []], [["a", ""]]]),
    (
        PAIR,
        [
            None,
            {"a": None, "b": None},
            {"a": 0, "b": None},
            {"a": None, "b": []},
            {"a": 0, "b": [0.0]},
            {"a": 0, "b": [-0.0]},
        ],
    ),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_each_value_has_an_identity_of_its_own_and_the_same_wherever_it_stands(
    kind: pa.DataType, values: list[Any]
) -> None:
    column = pa.array(values, kind)
    one = pa.RecordBatch.from_arrays([column], ["v"])
    hashes = identities_of(one, ["v"])
    assert len(set(hashes.tolist())) == len(values)
    twice = pa.RecordBatch.from_arrays([pa.concat_arrays([column, column])], ["v"])
    for at in range(len(values)):
        assert identities_of(twice.slice(at, len(values)), ["v"])[-1] == hashes[at - 1]
    assert len(identities_of(one.slice(0, 0), ["v"])) == 0


NANS = [bits(0x7FF8 << 48), bits((0x7FF8 << 48) + 1), bits(0xFFF8 << 48), bits((0x7FF0 << 48) + 1)]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_a_value_is_mixed_into_its_row_by_its_identity(
    kind: pa.DataType, values: list[Any]
) -> None:
    column = pa.array([None, *values], kind).slice(1)
    if kind == pa.float64():
        column = pa.array([None, 0.0, -0.0, 1.0, float("inf"), -float("inf"), bits(0x7FF8 << 48)])
    one = pa.RecordBatch.from_arrays([column], ["v"])
    hashes = np.arange(len(column), dtype=np.uint64)
    mix_in(hashes, column)

    found = np.zeros(len(column), np.uint64)
    mix_in(found, column)
    assert (found.view(np.int64) == identities_of(one, ["v"])).all()
    assert found[0] == hashes[0]
    assert len(set(hashes.tolist())) == len(column)


def test_all_nans_are_one_value_to_a_digest_and_infinities_others() -> None:
    hashes = np.zeros(len(NANS) + 2, np.uint64)
    mix_in(hashes, pa.array([*NANS, bits(0x7FF0 << 48), bits(0xFFF0 << 48)]))
    assert set(hashes[: len(NANS)].tolist()) == {mix_of(0, mix_of(1, 0x7FF8 << 48))}
    assert len(set(hashes.tolist())) == 3


def test_a_value_counts_in_its_field() -> None:
    rows = [(None, 5.0), (5.0, None), (None, None), (5.0, 5.0)]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(one) for one in zip(*rows, strict=True)], ["a", "b"]
    )
    assert len(set(identities_of(batch, ["a", "b"]).tolist())) == 4
    assert len(set(identities_of(batch, ["a"]).tolist())) == 2
    texts = pa.RecordBatch.from_pydict({"a": ["ab", "a"], "b": ["c", "bc"]})
    first, second = identities_of(texts, ["a", "b"])
    assert first != second


def test_value_under_a_null_is_ignored() -> None:
    mask = pa.array([False]).buffers()[1]
    arrays = [
        pa.Array.from_buffers(pa.int64(), 1, [mask, pa.py_buffer(np.array([n]))]) for n in (1, 2)
    ]
    found = [identities_of(pa.RecordBatch.from_arrays([one], ["v"]), ["v"])[0] for one in arrays]
    assert (
        found[0]
        == found[1]
        == identities_of(pa.RecordBatch.from_pydict({"v": pa.array([None], pa.int64())}), ["v"])[0]
    )


def test_a_column_of_no_field_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"v": pa.array([1], pa.int32())})
    with pytest.raises(SchemaError, match="a column of int32"):
        identities_of(batch, ["v"])
