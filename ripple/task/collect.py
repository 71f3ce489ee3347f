"""A one-shot run with its rows in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.contract import BasicSink
from ripple.connectors.dead_letter import DeadLetters, letter_of
from ripple.core.arguments import need_bool, need_whole
from ripple.core.calls import called
from ripple.core.errors import LimitError
from ripple.core.row_ops import with_named_ops
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import layout_of
from ripple.engine.machine import Engine
from ripple.model.schema.logical.showing import map_names, showing
from ripple.task.arguments import plan_of
from ripple.task.one_shot_run import run_once
from ripple.task.result import Result
from ripple.task.settings import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ripple.connectors.contract import Commit
    from ripple.model.batch import Rejected
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan

BYTES_MAX = 1 << 30
LETTERS_MAX = 10_000


@called("rp.collect", "pipeline")
def collect(
    pipeline: Pipeline | Plan,
    source: Any,
    *,
    output: str | None = None,
    changes: bool = False,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    strict: bool = False,
    max_rejected: int | str | None = None,
    progress: bool = False,
    max_bytes: int = BYTES_MAX,
) -> Result:
    """Run a pipeline over a whole source, and return the rows of its outputs.

    source, batch_rows, header, strict, max_rejected, progress: as ``rp.run`` takes them. output:
    the name of the only one to keep; all are by default. A result has each key's last row.
    changes: whether to keep all changes, too. max_bytes: of the rows in memory, 1 GiB by default.
    The first 10,000 rejected records are in ``result.rejected``.

    Raises LimitError if the rows need more memory, and as ``rp.run`` does.
    """
    plan = plan_of(pipeline)
    need_bool("changes", changes)
    need_whole("max_bytes", max_bytes, 1)
    outputs = plan.outputs if output is None else (plan.output(output),)
    memory = _Memory(max_bytes)
    kept = {one.name: _Kept(one, memory, keeps_changes=changes) for one in outputs}
    letters = _KeptLetters()
    ended = run_once(
        plan,
        source=source,
        sink=kept,
        batch_rows=batch_rows,
        header=header,
        dead_letters=letters,
        strict=strict,
        max_rejected=max_rejected,
        progress=progress,
    )
    report = ended.warn(stacklevel=3, kept_in="result.rejected")
    shown: dict[str, pa.Schema] = {}
    if any(one.schema is None for one in kept.values()):
        with_none = Engine(plan).stabilize().outputs
        shown = {name: with_none[name].schema for name in kept}
    return Result(
        {name: one.table(shown.get(name)) for name, one in kept.items()},
        changes={name: one.changed(shown.get(name)) for name, one in kept.items()}
        if changes
        else None,
        report=report,
        rejected=letters.table(),
    )


class _Memory:
    """The bytes that all outputs of a run may hold."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._held: dict[str, int] = {}

    def holds(self, output: str, length_bytes: int, rows: int) -> None:
        """Note the bytes of an output. Raises LimitError if all hold too much."""
        self._held[output] = length_bytes
        if sum(self._held.values()) > self._bytes_max:
            raise LimitError(
                f"rp.collect holds more than {self._bytes_max:,} bytes, with {rows:,} rows of "
                f"{output!r}: fold further, give max_bytes=, or write to a file, as in "
                "rp.run(..., sink='rows.parquet')"
            )


class _Kept(BasicSink):
    """The rows of one output: each key's last one, or all of events; and the changes, if asked."""

    takes_stored = True  # see OutputStatus

    def __init__(self, output: Output, memory: _Memory, *, keeps_changes: bool) -> None:
        self.name = output.name
        self._is_stream = output.is_stream
        maps = map_names(output.fields, ())
        self._show: Callable[[pa.RecordBatch], pa.RecordBatch] = (
            showing(output.fields, maps) or _as_it_is
        )
        self._memory = memory
        self._batches: list[pa.RecordBatch] | None = (
            [] if keeps_changes or output.is_stream else None
        )
        self._table: ColumnTable | None = None
        self.schema: pa.Schema | None = None
        self._rows = self._bytes = 0

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Keep the changes."""
        self.schema = changes.schema
        self._rows += changes.num_rows
        self._bytes += changes.nbytes
        held_bytes = 0
        if self._batches is not None:
            self._batches.append(changes)
            held_bytes = self._bytes
        if not self._is_stream:
            if self._table is None:
                self._table = ColumnTable(layout_of(changes.schema))
            self._table.apply(changes)
            held_bytes += self._bytes * len(self._table) // self._rows
        self._memory.holds(self.name, held_bytes, self._rows)

    def table(self, schema: pa.Schema | None) -> pa.Table:
        """Return the rows. schema: of the changes, where there are none."""
        schema = self.schema or schema
        if self._is_stream:
            batches = self._batches or [pa.RecordBatch.from_pylist([], schema)]
            return pa.Table.from_batches([self._show(batch) for batch in batches])
        table = self._table or ColumnTable(layout_of(schema))
        rows, keys = pa.Table.from_batches([table.rows()]), table.layout.keys
        if keys:
            # As they are stored, in the order of the values; maps have no order.
            rows = rows.sort_by([(name, "ascending") for name in keys])
        schema = self._show(pa.RecordBatch.from_pylist([], rows.schema)).schema
        return pa.Table.from_batches(map(self._show, rows.to_batches()), schema)

    def changed(self, schema: pa.Schema | None) -> pa.Table:
        """Return the changes with ``op`` as text. schema: as of ``table``."""
        schema = self.schema or schema
        held = self._batches or [pa.RecordBatch.from_pylist([], schema)]
        batches = [self._show(batch) for batch in held]
        if self._is_stream:
            return pa.Table.from_batches(batches)
        return pa.Table.from_batches([with_named_ops(batch) for batch in batches])


def _as_it_is(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


class _KeptLetters(DeadLetters):
    """Rejected records in memory, the first LETTERS_MAX of them; all are counted."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[dict[str, Any]] = []

    def write(self, source: str, rejected: Iterable[Rejected]) -> None:
        """Count and hold records of ``source``."""
        for record in rejected:
            self.counts.add(record.cause)
            if len(self._held) < LETTERS_MAX:
                letter = letter_of(source, record)
                self._held.append({**letter, "record": letter.get("raw")})

    def table(self) -> pa.Table:
        """Return the records as rows. file: null unless the source is several files."""
        fields = [
            ("source", pa.string()),
            ("offset", pa.int64()),
            ("line_number", pa.int64()),
            ("file", pa.string()),
            ("reason", pa.string()),
            ("record", pa.string()),
        ]
        return pa.Table.from_pylist(self._held, pa.schema(fields))
