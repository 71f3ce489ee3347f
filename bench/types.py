"""Types and functions: decimals, times and records in text, texts and mathematics of columns.

Results are compared before times count. Ours, Arrow and DuckDB have one thread.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

import ripple as rp
from bench.row import Aim, Row, at_least, at_most, beside
from bench.timing import QUICK, in_turns
from ripple.connectors.files.json.source import JsonSource
from ripple.connectors.record_shape import RecordShape
from ripple.engine.machine import Engine
from ripple.model.expression import Expr, col
from ripple.model.records import schema_of
from ripple.model.schema.time_form import TimeForm
from ripple.model.schema.types import FieldType, Float, String

ROWS = 100_000 if QUICK else 1_000_000
BATCH = 65_536
ROUNDS = 3 if QUICK else 7
PATH = "$.actor.login"


def measure() -> list[Row]:
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        return [
            *_decimals(),
            *_times(),
            *_records(Path(folder) / "events.jsonl"),
            *_texts(),
            *_mathematics(),
        ]


def _rates(
    name: str, calls: Mapping[str, Callable[[], object]], rows: int, aim: Aim | None = None
) -> Iterator[Row]:
    """Yield the first call beside the others, in millions of rows a second."""
    seconds = in_turns(calls, rounds=ROUNDS)
    rates = {call: rows / took / 1e6 for call, took in seconds.items()}
    ours = next(iter(rates))
    others = {call: rate for call, rate in rates.items() if call != ours}
    if not others:
        yield Row(name, rates[ours], "M rows/s", aim=aim)
    yield from beside(name, rates[ours], "M rows/s", others, aim)


@rp.record
class Priced:
    symbol: str
    text: str
    size: int


def _folded(price: Expr, *, exact: bool) -> rp.Plan:
    """Return sums of prices and of prices times sizes, as decimals or as floats."""
    kind: Any = rp.Decimal(18, 4) if exact else float
    end: Any = int if exact else float
    units = 10_000 if exact else 1
    return (
        rp.Pipeline("bench")
        .source("trades", Priced)
        .derive("prices", price=(price.cast(kind) * units).cast(end))
        .partition("by", key="symbol")
        .fold("f", sum=rp.sum("price"), turnover=rp.sum(rp.col("price") * rp.col("size")))
        .sink("out")
        .plan()
    )


def _of_38_digits() -> rp.Plan:
    price = rp.col("text").cast(rp.Decimal(38, 4))
    return (
        rp.Pipeline("bench")
        .source("trades", Priced)
        .derive("prices", price=price, turnover=price * rp.col("size"))
        .partition("by", key="symbol")
        .fold("f", sum=rp.sum("price"), turnover=rp.sum("turnover"))
        .sink("out")
        .plan()
    )


def _decimals() -> Iterator[Row]:
    draw = np.random.default_rng(7)
    cents = draw.integers(1_000, 50_000, ROWS)
    batch = pa.RecordBatch.from_pydict(
        {
            "symbol": pa.array([f"S{n:03}" for n in draw.integers(0, 500, ROWS).tolist()]),
            "text": pa.array([f"{n // 100}.{n % 100:02}" for n in cents.tolist()]),
            "size": draw.integers(1, 1_000, ROWS),
        }
    )

    def rows_of(plan: rp.Plan) -> Any:
        engine = Engine(plan)
        engine.apply("trades", batch, ROWS)
        return engine.stabilize()

    exact, floats = (_folded(rp.col("text"), exact=way) for way in (True, False))
    wide = _of_38_digits()
    ours, theirs, widely = (
        {row["symbol"]: row for row in rp.collect(plan, batch).table().to_pylist()}
        for plan in (exact, floats, wide)
    )
    assert len(ours) == len(theirs) == 500
    for symbol, row in ours.items():
        for name, unit in (("sum", 1e4), ("turnover", 1e4)):
            assert widely[symbol][name] * 10_000 == row[name]
            assert abs(row[name] / unit - theirs[symbol][name]) < 1e-9 * theirs[symbol][name]
    calls = {"decimals": lambda: rows_of(exact), "floats": lambda: rows_of(floats)}
    calls |= {"38 digits": lambda: rows_of(wide)}
    name = "sum and turnover, prices in text as decimals"
    yield from _rates(name, calls, ROWS, at_least(0.8, of_ratio=True))


def _times() -> Iterator[Row]:
    draw = np.random.default_rng(8)
    times_ns = 1_704_067_200_000_000_000 + draw.integers(0, 10**13, ROWS) * 1_000
    plain = pa.array(times_ns // 1_000).cast(pa.timestamp("us")).cast(pa.string())
    texts = pc.binary_join_element_wise(pc.replace_substring(plain, " ", "T"), "Z", "")
    form = TimeForm("iso")
    assert np.array_equal(form.parsed(texts)[0].to_numpy(), times_ns)
    frame = pl.DataFrame({"t": texts})
    by_polars = pl.col("t").str.to_datetime("%Y-%m-%dT%H:%M:%S%.6fZ", time_unit="ns")
    assert np.array_equal(frame.select(by_polars.dt.epoch("ns")).to_series().to_numpy(), times_ns)
    calls = {
        "ours": lambda: form.parsed(texts),
        "Polars": lambda: frame.select(by_polars),
        "pyarrow": lambda: texts.cast(pa.timestamp("us", "UTC")),
    }
    yield from _rates("times of ISO 8601 in text", calls, ROWS, at_least(20))


@rp.record
class Actor:
    id: int
    login: str


@rp.record
class Pushed:
    id: str
    actor: Actor
    size: int
    at: int


def _records(path: Path) -> Iterator[Row]:
    with path.open("w") as file:
        for n in range(ROWS):
            actor = {"id": n % 997, "login": f"user{n % 997}", "url": f"/users/{n % 997}"}
            row = {"id": f"{n}", "type": "Push", "actor": actor, "size": n % 7, "at": n * 1_000}
            file.write(json.dumps(row) + "\n")
    shape = RecordShape(schema_of(Pushed))
    options = pa.json.ReadOptions(use_threads=False, block_size=1 << 22)
    wanted = pa.schema(
        {
            "id": pa.string(),
            "actor": pa.struct({"id": pa.int64(), "login": pa.string()}),
            "size": pa.int64(),
            "at": pa.int64(),
        }
    )
    parsing = pa.json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")

    def ours() -> pa.Table:
        batches = JsonSource(path, shape, batch_rows=65_536).batches()
        return pa.Table.from_batches([batch.records for batch in batches])

    def by_arrow() -> pa.Table:
        return pa.json.read_json(path, options, parsing)

    flat = by_arrow().flatten().select(ours().schema.names)
    assert ours().equals(flat.cast(ours().schema))
    calls = {"ours": ours, "pyarrow": by_arrow}
    yield from _rates("nested JSON", calls, ROWS, at_least(1.5, of_ratio=True))


def _texts() -> Iterator[Row]:
    draw = np.random.default_rng(9)
    urls = [
        f"https://{host}.Example.org/shop/item?id={number}&page={number % 9}"
        for host, number in zip(
            draw.choice(["www", "Api", "cdn"], ROWS).tolist(),
            draw.integers(0, 10**6, ROWS).tolist(),
            strict=True,
        )
    ]
    rows = [
        f'{{"type": "Push", "actor": {{"id": {n}, "login": "user{n}"}}, "at": {n * 1_000}}}'
        for n in range(ROWS)
    ]
    table = pa.table({"url": urls, "doc": rows})
    frame = pl.DataFrame(table)
    fields: dict[str, FieldType] = {"url": String(), "doc": String()}
    url, doc, theirs = col("url").str, col("doc").str, pl.col("url").str
    cases: list[tuple[str, Expr, pl.Expr, str]] = [
        ("to_lowercase", url.to_lowercase(), theirs.to_lowercase(), "lower(url)"),
        (
            "split and get",
            url.split("/").list.get(3),
            theirs.split("/").list.get(3),
            "split_part(url, '/', 4)",
        ),
        (
            "extract",
            url.extract("id=([0-9]+)"),
            theirs.extract("id=([0-9]+)"),
            "regexp_extract(url, 'id=([0-9]+)', 1)",
        ),
        (
            "replace_all",
            url.replace_all("/", "::", literal=True),
            theirs.replace_all("/", "::", literal=True),
            "replace(url, '/', '::')",
        ),
        ("slice", url.slice(8, 12), theirs.slice(8, 12), "url[9:20]"),
        (
            "json_path_match",
            doc.json_path_match(PATH),
            pl.col("doc").str.json_path_match(PATH),
            f"doc ->> '{PATH}'",
        ),
    ]
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", table)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    for name, ours, by_polars, by_duckdb in cases:
        bound = ours.bind(fields)
        query = f"select {by_duckdb} as made from given"
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda bound=bound: bound.evaluate(columns).values,
            "Polars": lambda one=by_polars: frame.select(made=one),
            "DuckDB": lambda query=query: connection.sql(query).to_arrow_table(),
        }
        found = calls["ours"]().to_pylist()
        assert found == calls["Polars"]().to_series().to_list(), name
        assert found == calls["DuckDB"]().column("made").to_pylist(), name
        yield from _rates(f".str.{name}", calls, ROWS, at_least(0.5, of_ratio=True))


def _mathematics() -> Iterator[Row]:
    """Yield nanoseconds a row, in batches as a run has them. The aims are CORE-MATH's figures."""
    draw = np.random.default_rng(10)
    x, y = draw.uniform(0.01, 500, BATCH), draw.uniform(-5, 5, BATCH)
    cases: list[tuple[str, Expr, Callable[[], Any], float]] = [
        ("log", col("x").log(), lambda: np.log(x), 7),
        ("log2", col("x").log2(), lambda: np.log2(x), 7),
        ("log10", col("x").log10(), lambda: np.log10(x), 7),
        ("log1p", col("x").log1p(), lambda: np.log1p(x), 7),
        ("exp", col("y").exp(), lambda: np.exp(y), 5.2),
        ("exp2", col("y").exp2(), lambda: np.exp2(y), 5.2),
        ("expm1", col("y").expm1(), lambda: np.expm1(y), 5.2),
        ("pow", col("x") ** col("y"), lambda: np.power(x, y), 25),
    ]
    for name, expr, by_numpy, most in cases:
        bound = expr.bind({"x": Float(), "y": Float()})
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda bound=bound: bound.evaluate({"x": x, "y": y}).values,
            "NumPy": by_numpy,
        }
        # NumPy's results are right but for the last bits; ours are the nearest floats.
        assert np.allclose(calls["ours"](), by_numpy(), rtol=1e-14, atol=0)
        seconds = in_turns(calls, rounds=10 * ROUNDS)
        ours, theirs = (took / BATCH * 1e9 for took in seconds.values())
        row = f"{name}, correctly rounded"
        yield Row(row, ours, "ns/row", "NumPy", theirs, at_most(most))
