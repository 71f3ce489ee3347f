"""Sets of rows: the bytes that Deephaven's own server writes, and whatever else may come."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.client.flight.barrage.rowset import NONE, RANGES_MAX, RowSet
from ripple.client.flight.errors import FlightError

# As ExternalizableRowSetUtils of deephaven-server 42.7 wrote them.
WRITTEN = [
    ([(0, 62)], "1c0200c220"),
    ([(0, 2**63 - 2)], "0c000b020000000000008020"),
    ([(0, 0)], "0c0020"),
    ([(127, 127), (129, 129)], "1c027f0220"),
    ([(0, 32766)], "14020000028020"),
    ([(0, 32767)], "0c0009018020"),
    ([(5, 5), (7, 7), (9, 9)], "1c0305020220"),
    ([(1, 40000), (50000, 50000)], "0c010ac163ffff09102720"),
    ([(133, 133), (135, 137), (424, 424)], "140485000200feff1f0120"),
    ([(2, 2), (32569, 32569), (32571, 32572), (746430, 746430)],
     "14020200377f1c0202ff0a82e40a0020"),
    ([(1, 1), (130, 131), (133, 133), (8589934725, 8589934725)],
     "1402010081001c02ff020b000000000200000020"),
    ([(1, 1), (32989, 32990), (32992, 32992), (33140, 33140)], "0c010adc8000001403ffff0200940020"),
    ([(1, 2), (8589934594, 8589934594), (8589967328, 8589967328), (8589967355, 8589967355)],
     "1c0201ff0b000000000200000009de7f0c1b20"),
]  # fmt: skip


def of(ranges: list[tuple[int, int]]) -> RowSet:
    firsts, lasts = zip(*ranges, strict=True)
    return RowSet(np.array(firsts, np.int64), np.array(lasts, np.int64))


@pytest.mark.parametrize(("ranges", "written"), WRITTEN)
def test_a_set_has_the_bytes_of_deephavens_server(
    ranges: list[tuple[int, int]], written: str
) -> None:
    assert of(ranges).encode().hex() == written
    read = RowSet.decode(bytes.fromhex(written))
    assert list(zip(read.firsts.tolist(), read.lasts.tolist(), strict=True)) == ranges


STEPS = st.one_of(st.integers(1, 3), st.integers(1, 300), st.integers(32_000, 34_000),
                  st.integers(1, 2**40))  # fmt: skip


@given(st.lists(STEPS, max_size=60))
def test_row_set_round_trip(steps: list[int]) -> None:
    numbers = np.cumsum(np.array(steps, np.int64))
    rows = RowSet.of(numbers)
    read = RowSet.decode(rows.encode())
    assert read.numbers().tolist() == numbers.tolist()
    assert len(read) == len(numbers)


@given(st.lists(st.integers(0, 50), unique=True), st.integers(0, 60))
def test_positions_are_cut_off_and_mirrored(numbers: list[int], size: int) -> None:
    rows = RowSet.of(np.array(sorted(numbers), np.int64)).within(size)
    kept = sorted(n for n in numbers if n < size)
    assert rows.numbers().tolist() == kept
    assert rows.mirrored(size).numbers().tolist() == sorted(size - 1 - n for n in kept)


@given(st.binary(max_size=60))
def test_whatever_comes_is_a_set_or_is_refused(data: bytes) -> None:
    try:
        rows = RowSet.decode(data)
    except FlightError:
        return
    assert RowSet.decode(rows.encode()).firsts.tolist() == rows.firsts.tolist()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "its end is missing"),
        (b"\x0c\x00", "its end is missing"),
        (b"\x12\xff\xff\xff\x7f\x20", "its end is missing"),  # says that 2^31 - 1 numbers follow
        (b"\x0c\xff\x20", "a range has no beginning"),
        (b"\x0c\x05\x0c\x00\x20", "do not ascend"),
        (b"\x0b" + (2**63 - 1).to_bytes(8, "little") + b"\x0c\x05\x20", "more than 63 bits"),
        (b"\x38\x20", "unknown command 56"),
        (b"\x20\x20", "it has trailing bytes"),
        (
            b"\x12" + (RANGES_MAX + 1).to_bytes(4, "little") + b"\2\0" * (RANGES_MAX + 1) + b"\x20",
            f"more than {RANGES_MAX} ranges",
        ),
    ],
)
def test_invalid_row_set_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(FlightError, match=problem):
        RowSet.decode(data)


def test_a_set_of_all_rows_that_there_could_be_costs_nothing() -> None:
    tracemalloc.start()
    rows = RowSet.decode(bytes.fromhex("0c000b020000000000008020"))
    assert rows.within(10).numbers().tolist() == list(range(10))
    assert rows.within(10).mirrored(10).numbers().tolist() == list(range(10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 16
    assert not len(NONE)
    assert rows.firsts.tolist() == [0]
