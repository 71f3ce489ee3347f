"""Columnar deltas through the bytes of the wire: nothing lost, nothing believed."""

import io

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from ripple.core.errors import DeltaError
from ripple.core.row_ops import OP
from ripple.engine.changes import Final, Patch, Remove, Set
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.rows import FieldRemove, FieldSet
from tests.engine.changes.convert import of_rows, to_rows
from tests.engine.changes.strategies import LAYOUT, ROW, keyed_deltas, tables, unordered

DELTAS = [
    ("A", Set(ROW)),
    ("B", Patch((FieldSet("price", 2.0), FieldRemove("venue")))),
    ("C", Remove()),
    ("D", Final(ROW | {"symbol": "D"})),
]
BODY = arrow.dumps(of_rows(LAYOUT, DELTAS)).to_pybytes()


@given(st.data())
def test_deltas_come_back_from_bytes_without_their_idle_columns(data):
    layout, *_ = scene = data.draw(tables())
    batch = of_rows(layout, data.draw(keyed_deltas(scene)).items())
    again = layout.conform(arrow.loads(arrow.dumps(layout.without_idle_columns(batch))))
    again.validate(full=True)
    assert again.schema.equals(batch.schema)
    assert unordered(to_rows(layout, again)) == unordered(to_rows(layout, batch))


def test_columns_that_nothing_changed_cost_no_bytes():
    rows = 1000
    patch = pa.record_batch(
        {
            "symbol": [f"S{i}" for i in range(rows)],
            OP: pa.array(np.ones(rows, np.int8)),
            "price": np.arange(float(rows)),
        }
    )
    sent = LAYOUT.without_idle_columns(LAYOUT.conform(patch))
    assert sent.to_pydict() == patch.to_pydict()


@pytest.mark.parametrize("shift", range(8))
def test_bytes_at_any_alignment_can_be_applied(shift):
    table = ColumnTable(LAYOUT)
    sets = of_rows(LAYOUT, DELTAS[:1])
    table.apply(arrow.loads(memoryview(bytes(shift) + arrow.dumps(sets).to_pybytes())[shift:]))
    assert table.rows().to_pylist() == [ROW]


def test_every_flipped_byte_is_refused_or_still_a_batch():
    for at in range(len(BODY)):
        for mask in (0x01, 0x80, 0xFF):
            flipped = BODY[:at] + bytes([BODY[at] ^ mask]) + BODY[at + 1 :]
            table = ColumnTable(LAYOUT)
            try:
                table.apply(arrow.loads(flipped))
            except (DeltaError, EncodingError):
                assert len(table) == 0
            table.check_invariants()


def test_polars_opens_the_bytes():
    assert pl.read_ipc_stream(io.BytesIO(BODY))["price"].to_list() == [1.0, 2.0, None, 1.0]
