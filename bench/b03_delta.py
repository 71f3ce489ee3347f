"""B-03: deltas. One by one as objects, and by the ten thousand as columns beside a dict loop.

The columnar figures are for a table of four columns (symbol, vwap, volume, count), each delta a
Patch of two of them, at as many keys as one worker is meant to hold and at far more. Carrying is
encoding to Arrow IPC bytes and decoding them with every check that a stranger's bytes get.

Bytes. With 2 of 20 fields changed, a Patch can be at most 20 / 2 = 10 times smaller than a Set,
and only if the values outweigh the rest. In bin_prot a text of v bytes costs v + 1 in a Set and
v + 12 in a Patch with names of 8 letters (tags, name, length), so the ratio is
20 (v + 1) / (2 (v + 12) + 2). The book's 8.9 is that of texts of about 90 bytes; numbers, the
usual case, give about 5. Both are measured.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench.row import Row, at_least
from bench.timing import in_turns
from ripple.core.codec import arrow
from ripple.core.row_ops import OP
from ripple.core.sexp import dumps
from ripple.engine.changes import FieldSet, Patch, Set, apply, columns, diff
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import Layout
from ripple.engine.changes.text import value_to_sexp
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.records import delta_of
from ripple.model.records.record import Timestamp, record
from ripple.model.schema.types import Field, Float, Int64, Schema, String

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.core.sexp import Sexp

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


def measure() -> list[Row]:
    return [*_one(), *_bytes(), *(row for keys in KEYS for row in _columns(keys))]


def _one() -> list[Row]:
    old = Trade("AAPL", 150.25, 200, 1709000001000000000, "XNAS")
    new = replace(old, price=150.3)
    delta = diff(old, new)
    assert delta == Patch((FieldSet("price", 150.3),))
    before, after = vars(old), vars(new)
    calls: dict[str, Callable[[], object]] = {
        "comparison": lambda: {k: v for k, v in after.items() if before[k] != v},
        "replace": lambda: replace(old, price=150.3),
        "diff": lambda: diff(old, new),
        "apply": lambda: apply(delta, old),
    }
    ns = {name: seconds * 1e9 for name, seconds in in_turns(calls).items()}
    return [
        Row("diff, one field of a trade", ns["diff"], "ns", "dict comprehension", ns["comparison"]),
        Row("apply, one field", ns["apply"], "ns", "dataclasses.replace", ns["replace"]),
    ]


def _bytes() -> list[Row]:
    """Patch against Set on records of 20 fields of which 2 changed."""
    numbers: list[Any] = ["AAPL-XNAS", 1709000001000000000, 150.25, 150.25] * 5
    return [
        *_sizes("mostly numbers", numbers, {"field_02": 150.5, "field_07": 99.75}),
        *_sizes("texts of 90", ["x" * 90] * 20, {"field_02": "y" * 90, "field_07": "z" * 90}),
    ]


def _sizes(label: str, values: list[Any], changes: dict[str, Any]) -> list[Row]:
    kinds = {str: String(), int: Int64(), float: Float()}
    old = {f"field_{i:02d}": value for i, value in enumerate(values)}
    schema = Schema("wide", tuple(Field(name, kinds[type(held)]) for name, held in old.items()))
    patch, whole = diff(old, old | changes, schema=schema), Set(old | changes)
    assert isinstance(patch, Patch)
    codec = delta_of(codec_for(schema))
    told = Patch(tuple(FieldSet(name, value_to_sexp(changes[name])) for name in changes))
    sizes = {
        "bin_prot": (len(codec.dumps(whole)), len(codec.dumps(told))),
        "S-expression": (
            len(dumps(["Set", value_to_sexp(whole.value)])),
            len(dumps(["Patch", [_told(op) for op in patch.ops]])),
        ),
    }
    versus = f"Set; the book says 1/{BOOK_BYTES_RATIO}"
    return [
        Row(f"Patch, 2 of 20 fields, {label}, {form}", patched, "bytes", versus, in_full)
        for form, (in_full, patched) in sizes.items()
    ]


def _told(op: FieldSet) -> Sexp:
    return ["Field_set", ["field_name", op.name], ["value", value_to_sexp(op.value)]]


def _columns(keys: int) -> list[Row]:
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
    loops = "dict loop"
    calls: dict[str, Callable[[], object]] = {
        loops: loop,
        "encode and decode": carry,
        "apply": lambda: table.apply(next(batches)),
        "compose": lambda: columns.compose(layout, next(batches), next(batches)),
        "diff": lambda: columns.diff(layout, old, new),
    }
    rates = {name: DELTAS / seconds / 1e6 for name, seconds in in_turns(calls).items()}
    loop_rate = rates.pop(loops)
    aims = {"encode and decode": at_least(10)}
    return [
        Row(f"columns, {keys:,} keys: {name}", rate, "M/s", loops, loop_rate, aims.get(name))
        for name, rate in rates.items()
    ]


def _patches(layout: Layout, draw: np.random.Generator, symbols: Any) -> pa.RecordBatch:
    some = {"symbol": draw.choice(symbols, DELTAS, replace=False), OP: np.ones(DELTAS, np.int8)}
    some |= {"vwap": draw.random(DELTAS), "volume": np.arange(DELTAS)}
    return layout.conform(pa.record_batch(some))


def _listed(deltas: pa.RecordBatch) -> list[tuple[str, dict[str, Any]]]:
    fields = deltas.select(["vwap", "volume"]).to_pylist()
    return list(zip(deltas.column("symbol").to_pylist(), fields, strict=True))
