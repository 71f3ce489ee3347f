"""Reading CSV and writing rows, beside pyarrow, Polars and plain Python in the same run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv

from bench.row import Row, beside
from bench.timing import QUICK, in_turns
from ripple.connectors.contract import NOWHERE
from ripple.connectors.files.csv.format import TRADES
from ripple.connectors.files.csv.reader import CsvReader
from ripple.connectors.files.csv.source import BLOCK_BYTES, LINE_LENGTH_BYTES_MAX, CsvSource
from ripple.connectors.files.text.sink import TextFormat, TextSink
from ripple.connectors.line_blocks import line_blocks
from ripple.connectors.raw_input import open_input
from ripple.connectors.synthetic.source import SyntheticSource
from ripple.connectors.target import open_target

TRADE_COUNT = 200_000 if QUICK else 1_000_000
ROW_COUNT = 50_000 if QUICK else 200_000
REPEATS = 3


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return [*_parsing(Path(folder) / "trades.csv"), *_formatting()]


def _compared(
    ours: dict[str, Callable[[], object]],
    others: dict[str, Callable[[], object]],
    unit: str,
    count: int,
) -> list[Row]:
    """Set each of ours beside each of the others, in millions of rows a second."""
    rates = {
        name: count / seconds / 1e6
        for name, seconds in in_turns({**ours, **others}, rounds=REPEATS).items()
    }
    compared = {name: rates[name] for name in others}
    return [row for name in ours for row in beside(name, rates[name], unit, compared)]


def _parsing(path: Path) -> list[Row]:
    sink = TextSink(open_target(path))
    for batch in SyntheticSource(TRADE_COUNT, batch_rows=100_000).batches():
        sink.write(batch.records, NOWHERE)
    sink.commit(NOWHERE)
    sink.close()

    def ours(batch_rows: int | None) -> Callable[[], None]:
        def read() -> None:
            seen = sum(
                batch.records.num_rows for batch in CsvSource(path, batch_rows=batch_rows).batches()
            )
            assert seen == TRADE_COUNT

        return read

    def parse_only() -> None:
        reader = CsvReader(TRADES, "bench", LINE_LENGTH_BYTES_MAX)
        raw = open_input(path)
        for _ in reader.read(line_blocks(raw, BLOCK_BYTES, LINE_LENGTH_BYTES_MAX)):
            pass
        raw.close()

    names = TRADES.arrow_schema().names
    options = {
        "read_options": pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=dict(zip(names, TRADES.arrow_schema().types, strict=True))
        ),
    }

    def split_loop() -> None:
        with path.open() as file:
            for line in file:
                symbol, price, size, time, venue = line.rstrip("\n").split(",")
                (symbol, float(price), int(size), int(time), venue)

    dtypes = [pl.String, pl.Float64, pl.Int64, pl.Int64, pl.String]
    threads = pl.thread_pool_size()
    return _compared(
        {
            "CSV source, parsing in the caller's thread": parse_only,
            "CSV source, batches of 1,000": ours(1000),
            "CSV source, batches of 16,384": ours(16_384),
        },
        {
            "pyarrow.csv, one thread, no checks": lambda: pyarrow.csv.read_csv(path, **options),
            f"Polars read_csv, {threads} threads, no checks": lambda: pl.read_csv(
                path, has_header=False, new_columns=names, schema_overrides=dtypes
            ),
            "Python split loop": split_loop,
        },
        "M trades/s",
        TRADE_COUNT,
    )


def _formatting() -> list[Row]:
    random = np.random.default_rng(7)
    rows = pa.record_batch(
        {
            "symbol": pa.array([f"SYM{i % 100:04}" for i in range(ROW_COUNT)]),
            "vwap": pa.array(100 + 50 * random.random(ROW_COUNT)),
            "total_volume": pa.array(random.integers(1, 10**8, ROW_COUNT)),
            "trade_count": pa.array(random.integers(1, 10**6, ROW_COUNT)),
        }
    )

    def ours(text_format: TextFormat, batch_rows: int) -> Callable[[], None]:
        def write() -> None:
            sink = TextSink(open_target(os.devnull), text_format)
            for first in range(0, ROW_COUNT, batch_rows):
                sink.write(rows.slice(first, batch_rows), NOWHERE)
            sink.commit(NOWHERE)
            sink.close()

        return write

    def format_loop() -> None:
        with open(os.devnull, "w") as file:
            columns = (column.to_pylist() for column in rows.columns)
            for symbol, vwap, volume, count in zip(*columns, strict=True):
                file.write(f"{symbol},{vwap:.4f},{volume},{count}\n")

    four = TextFormat(decimals={"vwap": 4})
    json_lines = TextFormat("json", decimals={"vwap": 4})
    return _compared(
        {
            "CSV sink, batches of 16,384": ours(four, 16_384),
            "CSV sink, batches of 100": ours(four, 100),
            "CSV sink, shortest floats": ours(TextFormat(), 16_384),
            "JSON lines sink, batches of 16,384": ours(json_lines, 16_384),
        },
        {
            "pyarrow write_csv, shortest floats": lambda: pyarrow.csv.write_csv(rows, os.devnull),
            "Python f-string loop": format_loop,
        },
        "M rows/s",
        ROW_COUNT,
    )
