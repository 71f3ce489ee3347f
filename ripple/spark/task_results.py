"""The results of a task's engine: rows once each, dead letters, and a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.dead_letter import file_text
from ripple.core.causes import Causes
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP, with_named_ops
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.engine.operators.arrow_types import shown_fields
from ripple.model.schema.types import DateTime, bare_type
from ripple.spark import packets
from ripple.spark.options import BATCH_ROWS
from ripple.spark.packets import Packet, packets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ripple.engine.machine import Changes
    from ripple.engine.machine.partition import Partition
    from ripple.model.batch import Rejected
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.draft import Part, PartFolder

LETTERS_MAX = 1 << 14
PARTITION, CUT = "partition", "cut"


def changes_schema(plan: Plan, output: str) -> pa.Schema:
    """Return the columns of changes: the partition, its records until then, ``op``, the row.

    Raises OutputError for a field of the name ``partition`` or ``cut``.
    """
    fields = shown_fields(plan.output(output).fields)
    for name in (PARTITION, CUT):
        if any(one.name == name for one in fields):
            raise OutputError(f"{output} has a field {name!r}, which changes have of their own")
    own = [pa.field(PARTITION, pa.int32()), pa.field(CUT, pa.int64()), pa.field(OP, pa.string())]
    return pa.schema([*own, *(one.with_nullable(True) for one in fields)])


def times_beside(plan: Plan, output: str) -> dict[str, str]:
    """Return the times in nanoseconds of an output, and names for TIMESTAMPs beside them.

    Raises OutputError for a name that is taken.
    """
    fields = plan.output(output).fields
    names = [one.name for one in fields]
    events = {source.time_field for source in plan.sources}
    events |= {one.name for one in fields if bare_type(one.type) == DateTime()}
    found = {name: name.removesuffix("_ns") for name in names if name.endswith("_ns")}
    found |= {name: f"{name}_time" for name in names if name in events and name not in found}
    for name, beside in found.items():
        if not beside or beside in names:
            raise OutputError(f"{output} has a field {beside!r}: no TIMESTAMP of {name} beside it")
    return found


@dataclass(frozen=True, slots=True)
class WantedResults:
    """The requested results of a replay: outputs, and whether windows end with the input.

    folders: the folders of outputs that tasks write themselves. changes: whether the rows wanted
    are changes, with their partition and cut, in place of last rows. every: the records that are
    applied before changes are looked at.
    """

    outputs: tuple[str, ...]
    closes: bool = True
    folders: Mapping[str, PartFolder] = field(default_factory=dict)
    changes: bool = False
    every: int = BATCH_ROWS


class Results:
    """Yields the results of a task's engine."""

    def __init__(self, plan: Plan, engine: Partition, wanted: WantedResults, number: int) -> None:
        self._plan = plan
        self._engine = engine
        self._wanted = wanted
        self._number = number
        self._letters: list[dict[str, Any]] = []
        self._causes = Causes()
        self._rows: Counter[str] = Counter()
        self._parts: dict[str, Part] = {}
        self._here = () if isinstance(engine, Router) else tuple(engine.digests)

    def refuse(self, name: str, rejected: Iterable[Rejected]) -> None:
        """Take rejected records of an input."""
        for bad in rejected:
            self._causes.add(bad.cause)
            self._letters.append(
                {
                    "source": name,
                    "offset": bad.offset,
                    "line_number": bad.line_number,
                    "file": file_text(bad.file),
                    "reason": bad.cause,
                    "raw": bad.raw,
                }
            )

    def changed(self, changes: Changes) -> Iterator[Packet]:
        """Yield new final rows, such as all events, and dead letters if many."""
        if len(self._letters) >= LETTERS_MAX:
            yield from self._given_letters()
        for output in self._here:
            if self._wanted.changes:
                yield from self._given_changes(output, changes.outputs[output])
                continue
            is_stream = self._plan.output(output).is_stream
            rows = changes.outputs[output] if is_stream else changes.final.get(output)
            if rows is not None and rows.num_rows:
                yield from self._given(output, rows)

    def end(self) -> Iterator[Packet]:
        """Yield the remaining rows, the dead letters and the report."""
        if self._letters:
            yield from self._given_letters()
        for output in self._here:
            table = self._engine.table(output)
            if table.num_rows and not self._wanted.changes:
                yield from self._given(output, table)
        for part in self._parts.values():
            part.finish()
        yield Packet(packets.REPORT, stage=self._stage, sender=self._number, about=self._report())

    @property
    def _stage(self) -> int:
        return -1 if isinstance(self._engine, Router) else self._engine.stage or 0

    def _given(self, output: str, rows: pa.RecordBatch | pa.Table) -> Iterator[Packet]:
        self._rows[output] += rows.num_rows
        folder = self._wanted.folders.get(output)
        if folder is not None:
            if output not in self._parts:
                self._parts[output] = folder.begin(self._stage, self._number)
            self._parts[output].add(rows)
        elif output in self._wanted.outputs:
            packet = Packet(packets.ROWS, output, self._stage, sender=self._number)
            yield from packets_of(rows, packet)

    def _given_changes(self, output: str, rows: pa.RecordBatch) -> Iterator[Packet]:
        if not rows.num_rows or output not in self._wanted.outputs:
            return
        named = with_named_ops(rows)
        own = [
            pa.array([value] * rows.num_rows, kind)
            for value, kind in (
                (self._number, pa.int32()),
                (sum(self._engine.cut.values()), pa.int64()),
            )
        ]
        whole = pa.RecordBatch.from_arrays(
            [*own, *named.columns], [PARTITION, CUT, *named.schema.names]
        )
        packet = Packet(packets.ROWS, output, self._stage, sender=self._number)
        yield from packets_of(whole, packet)

    def _given_letters(self) -> Iterator[Packet]:
        rows = pa.RecordBatch.from_pylist(self._letters, packets.LETTER)
        self._letters.clear()
        yield from packets_of(rows, Packet(packets.LETTERS, sender=self._number))

    def _report(self) -> dict[str, Any]:
        engine = self._engine
        digests = {output: engine.digests[output] for output in self._here}
        unanswered = engine.unanswered() if isinstance(engine, Engine) else {}
        return {
            "stage": self._stage,
            "partition": self._number,
            "cut": dict(engine.cut),
            "watermark_ns": engine.watermark_ns,
            "counters": engine.counters.as_dict(),
            "letters": dict(self._causes),
            "rows": {output: self._rows[output] for output in self._here},
            "digests": digests,
            "unanswered": sum(rows.num_rows for rows in unanswered.values()),
            "uncomputable": {name: one.count for name, one in engine.uncomputable.items()},
        }
