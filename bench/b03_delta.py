"""B-03: deltas. One by one as objects, and by the ten thousand as columns beside a dict loop.

The columnar figures are for a table of four columns (symbol, vwap, volume, count), each delta a
Patch of two of them, at as many keys as one worker is meant to hold and at far more. Carrying is
encoding to Arrow IPC bytes and decoding them with every check that a stranger's bytes get.
"""

from __future__ import annotations

import timeit
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.delta import FieldSet, Patch, Set, apply, columns, diff, to_sexp
from ripple.delta.column_table import ColumnTable
from ripple.delta.layout import OP, Layout
from ripple.delta.text import value_to_sexp
from ripple.schema.record import Timestamp, record
from ripple.schema.types import Field, Float, Int64, Schema, String
from ripple.sexp import dumps
from ripple.wire import arrow
from ripple.wire.bin_prot import codec_for
from ripple.wire.records import delta_of

if TYPE_CHECKING:
    from collections.abc import Callable

DELTAS = 10_000
TURNS = 20
KEYS = (10_000, 1_000_000)
BOOK_BYTES_RATIO = 8.9


@record
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: Timestamp
    venue: str


def measure() -> list[dict[str, Any]]:
    """Return rows of name, value, unit, versus and ratio (above 1: better than the other)."""
    rows = [*_one(), *_bytes()]
    for keys in KEYS:
        rows += _columns(keys)
    return rows


def _one() -> list[dict[str, Any]]:
    old = Trade("AAPL", 150.25, 200, 1709000001000000000, "XNAS")
    new = replace(old, price=150.3)
    delta = diff(old, new)
    assert delta == Patch((FieldSet("price", 150.3),))
    before, after = vars(old), vars(new)
    compared = _seconds(lambda: {k: v for k, v in after.items() if before[k] != v}) * 1e9
    replaced = _seconds(lambda: replace(old, price=150.3)) * 1e9
    found = _seconds(lambda: diff(old, new)) * 1e9
    applied = _seconds(lambda: apply(delta, old)) * 1e9
    return [
        _row("diff, one field of a trade", found, "ns", "dict comprehension", compared / found),
        _row("apply, one field", applied, "ns", "dataclasses.replace", replaced / applied),
    ]


def _bytes() -> list[dict[str, Any]]:
    """Patch against Set on a record of 20 fields of which 2 changed."""
    kinds = [String(), Int64(), Float(), Float()] * 5
    schema = Schema("wide", tuple(Field(f"field_{i:02d}", k) for i, k in enumerate(kinds)))
    samples = {String: "AAPL-XNAS", Int64: 1709000001000000000, Float: 150.25}
    old = {field.name: samples[type(field.type)] for field in schema.fields}
    new = old | {"field_02": 150.5, "field_07": 99.75}
    patch = diff(old, new, schema=schema)
    assert isinstance(patch, Patch)
    # The original's patches hold S-expressions, in bin_prot as well.
    printed = Patch(tuple(FieldSet(op.name, value_to_sexp(op.value)) for op in patch.ops))  # type: ignore[union-attr]  # no other kind of operation here
    codec = delta_of(codec_for(schema))
    sizes = {
        "bin_prot": (len(codec.dumps(Set(new))), len(codec.dumps(printed))),
        "S-expression": (len(dumps(to_sexp(Set(new), schema))), len(dumps(to_sexp(patch, schema)))),
    }
    return [
        _row(f"Patch, 2 of 20 fields, {form}", patched, "bytes", f"Set, {whole} bytes; book "
             f"{BOOK_BYTES_RATIO}", whole / patched)
        for form, (whole, patched) in sizes.items()
    ]  # fmt: skip


def _columns(keys: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(3)
    symbols = np.array([f"SYM{i:07d}" for i in range(keys)])
    layout = Layout(
        pa.schema(
            [
                pa.field("symbol", pa.string(), nullable=False),
                pa.field("vwap", pa.float64(), nullable=False),
                pa.field("volume", pa.int64(), nullable=False),
                pa.field("count", pa.int64(), nullable=False),
            ]
        ),
        ("symbol",),
    )
    whole = {"symbol": symbols, OP: np.zeros(keys, np.int8), "vwap": draw.random(keys)}
    whole |= {"volume": np.arange(keys), "count": np.arange(keys)}
    table = ColumnTable(layout)
    table.apply(pa.record_batch(whole))
    # Other keys each time: the same ten thousand would soon all lie in the cache.
    batches = cycle([_patches(layout, draw, symbols) for _ in range(TURNS)])
    plain = {symbol: {"vwap": 0.0, "volume": 0, "count": 0} for symbol in symbols.tolist()}
    listed = cycle([_listed(next(batches)) for _ in range(TURNS)])

    def loop() -> None:
        for symbol, changes in next(listed):
            plain[symbol].update(changes)

    def carry() -> None:
        body = arrow.dumps(layout.without_idle_columns(next(batches)))
        layout.conform(arrow.loads(body))

    old = table.rows().slice(0, DELTAS)
    new = columns.apply(layout, old, layout.conform(pa.record_batch(
        {"symbol": old.column("symbol"), OP: np.ones(DELTAS, np.int8), "vwap": draw.random(DELTAS)}
    )))  # fmt: skip
    dict_rate = _rate(loop)
    works: dict[str, Callable[[], object]] = {
        "encode and decode": carry,
        "apply": lambda: table.apply(next(batches)),
        "compose": lambda: columns.compose(layout, next(batches), next(batches)),
        "diff": lambda: columns.diff(layout, old, new),
    }
    versus = f"dict loop, {dict_rate:.1f} M/s"
    return [
        _row(f"columns, {keys:,} keys: {name}", rate, "M deltas/s", versus, rate / dict_rate)
        for name, work in works.items()
        for rate in (_rate(work),)
    ]


def _patches(layout: Layout, draw: np.random.Generator, symbols: Any) -> pa.RecordBatch:
    some = {"symbol": draw.choice(symbols, DELTAS, replace=False), OP: np.ones(DELTAS, np.int8)}
    some |= {"vwap": draw.random(DELTAS), "volume": np.arange(DELTAS)}
    return layout.conform(pa.record_batch(some))


def _listed(deltas: pa.RecordBatch) -> list[tuple[str, dict[str, Any]]]:
    fields = deltas.select(["vwap", "volume"]).to_pylist()
    return list(zip(deltas.column("symbol").to_pylist(), fields, strict=True))


def _rate(work: Callable[[], object]) -> float:
    """Return millions of deltas a second."""
    return DELTAS / _seconds(work) / 1e6


def _seconds(work: Callable[[], object]) -> float:
    """Return the best of several repetitions of about 20 ms each."""
    timer = timeit.Timer(work)
    number, _ = timer.autorange(None)
    number = max(1, number // 10)
    return min(timer.repeat(repeat=7, number=number)) / number


def _row(name: str, value: float, unit: str, versus: str, ratio: float) -> dict[str, Any]:
    return {
        "name": f"B-03 {name}",
        "value": round(value, 2),
        "unit": unit,
        "versus": versus,
        "ratio": round(ratio, 2),
    }
