"""Rows of Parquet files that tasks read in order: those that Spark would give, in Spark's order."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.spark.dataframe import scan as scanning
from ripple.spark.dataframe.scan import Scan, scan_of

TYPES = {"symbol": pa.string(), "price": pa.float64(), "t": pa.int64()}
ORDER = ("t", "symbol", "price")


def rows_of(count: int, times: int) -> list[dict[str, Any]]:
    chance = random.Random(count)
    prices = [0.0, -0.0, math.nan, -math.inf, math.inf, -1.5, 2.5, None]
    return [
        {
            "symbol": chance.choice(["B", "A", None, "Ä", ""]),
            "price": chance.choice(prices),
            "t": chance.randrange(times),
        }
        for _ in range(count)
    ]


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    def rank(row: dict[str, Any]) -> Any:
        price = row["price"]
        number = 0.0 if price is None else math.inf if math.isnan(price) else price
        is_nan = price is not None and math.isnan(price)
        sign = math.copysign(1, price) if price == 0 else 0
        text = (row["symbol"] is not None, (row["symbol"] or "").encode())
        return row["t"], text, (price is not None, is_nan, number), sign

    return [repr(row) for row in sorted(rows, key=rank)]


def written(folder: Path, rows: list[dict[str, Any]], files: int, group: int) -> list[str]:
    paths = []
    for number in range(files):
        paths.append(str(folder / f"{number}.parquet"))
        own = rows[number * len(rows) // files : (number + 1) * len(rows) // files]
        whole = pa.Table.from_pylist(own, pa.schema(list(TYPES.items())))
        pq.write_table(whole, paths[-1], row_group_size=group)
    return paths


def scan_at(paths: list[str], tasks: int = 1) -> Scan:
    names = {f"of_{name}": name for name in TYPES}
    found = scan_of(paths, TYPES, order=ORDER, names=names, key=("symbol",), tasks=tasks)
    assert found is not None
    return found


def read(scan: Scan, number: int = 0) -> list[dict[str, Any]]:
    return [
        {name.removeprefix("of_"): value for name, value in row.items()}
        for batch in scan.batches(number)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("times", [1, 40, 10_000])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_are_in_the_order_that_spark_gives_them(
    tmp_path: Path, times: int, is_sorted: bool
) -> None:
    rows = rows_of(400, times)
    if is_sorted:
        rows.sort(key=lambda row: row["t"])
    scan = scan_at(written(tmp_path, rows, 3, 37))
    assert [repr(row) for row in read(scan)] == in_order(rows)
    assert scan.rows == 400


def test_texts_in_codes_are_divided_as_texts_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(1)
    keys = [None, "", *("-".join(f"{chance.choice('aAbB')}{at}" for at in range(9)) * 3)]
    rows = [{"symbol": chance.choice(keys), "price": 1.0, "t": at} for at in range(2000)]
    scan = scan_at(written(tmp_path, rows, 2, 700), tasks=3)
    for one in (scan, replace(scan, uuids=("symbol",))):
        with pq.ParquetFile(scan.pieces[0].path) as file:
            assert scanning._coded(file) == ["symbol"]
        coded = [read(one, number) for number in range(3)]
        with monkeypatch.context() as patch:
            patch.setattr(scanning, "_TEXT_BYTES", 0)
            assert [read(one, number) for number in range(3)] == coded
        assert all(coded)


def test_each_key_is_in_one_task_in_order(tmp_path: Path) -> None:
    rows = rows_of(300, 50)
    scan = scan_at(written(tmp_path, rows, 2, 50), tasks=3)
    parts = [read(scan, number) for number in range(3)]
    assert sorted(repr(row) for part in parts for row in part) == sorted(map(repr, rows))
    for part in parts:
        assert [repr(row) for row in part] == in_order(part)
    homes = [{row["symbol"] for row in part} for part in parts]
    assert sum(map(len, homes)) == len(set.union(*homes))
    assert sum(bool(home) for home in homes) > 1


def test_a_range_of_time_reads_the_row_groups_that_it_needs(tmp_path: Path) -> None:
    rows = sorted(rows_of(400, 1000), key=lambda row: row["t"])
    whole = scan_at(written(tmp_path, rows, 1, 50))
    scan = whole.within(200, 300)
    assert 0 < len(scan.pieces) < len(whole.pieces)
    assert scan.rows is None
    expected = in_order([row for row in rows if 200 <= row["t"] < 300])
    assert [repr(row) for row in read(scan)] == expected


def test_one_task_reads_all_where_there_are_few_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(300, 50)
    scan = scan_at(written(tmp_path, rows, 2, 50), tasks=3)
    assert scan.by_one_task(299) is None
    whole = scan.by_one_task(300)
    assert whole is not None
    assert [repr(row) for row in read(whole)] == in_order(rows)
    monkeypatch.setattr(scanning, "HELD_BYTES_MAX", 100)
    assert scan.by_one_task(300) is None


def test_groups_that_follow_each_other_are_not_held(tmp_path: Path) -> None:
    rows = sorted(rows_of(2000, 100_000), key=lambda row: row["t"])
    apart = scan_at(written(tmp_path, rows, 4, 50))
    sizes = [batch.num_rows for batch in apart.batches(0)]
    random.Random(1).shuffle(rows)
    mixed = scan_at(written(tmp_path, rows, 4, 50))
    assert apart.held_bytes * 8 < mixed.held_bytes
    assert sum(sizes) == 2000
    assert max(sizes) <= 100


def test_spark_reads_what_cannot_be_read_in_order_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(100, 10)

    def scan(paths: list[str], types: dict[str, pa.DataType], tasks: int = 1, **more: Any) -> Any:
        names = {name: name for name in types}
        key = more.get("key", ("symbol",))
        return scan_of(paths, types, order=("t",), names=names, key=key, tasks=tasks)

    paths = written(tmp_path, rows, 2, 50)
    assert scan(paths, TYPES) is not None
    assert scan(paths, {**TYPES, "price": pa.float32()}) is None, "a column of another type"
    assert scan(paths, {**TYPES, "size": pa.int64()}) is None, "a missing column"
    assert scan([*paths, str(tmp_path / "none")], TYPES) is None, "a missing file"
    assert scan(paths, {**TYPES, "price": pa.decimal128(9, 2)}) is None, "another order of values"
    assert scan(paths, TYPES, tasks=2, key=("price",)) is None, "0.0 and -0.0 are one key"
    assert scan(paths * 501, TYPES) is None, "too many footers"
    for column, change in (("t", {"write_statistics": False}), ("t", {})):
        whole = pa.Table.from_pylist([*rows, {**rows[0], column: None}][bool(change) :])
        path = str(tmp_path / "other.parquet")
        pq.write_table(whole, path, **change)
        assert scan([path], TYPES) is None, "times that are unknown, or null"
    monkeypatch.setattr(scanning, "HELD_BYTES_MAX", 100)
    assert scan(paths, TYPES) is None, "too many rows at once"
