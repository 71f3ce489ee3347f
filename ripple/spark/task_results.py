"""The results of a task's engine: rows once each, dead letters, and a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.causes import Causes
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.spark import packets
from ripple.spark.packets import Packet, packets_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ripple.engine.machine import Changes
    from ripple.engine.machine.partition import Partition
    from ripple.model.batch import Rejected
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.draft import Part, PartFolder

LETTERS_MAX = 1 << 14


@dataclass(frozen=True, slots=True)
class WantedResults:
    """The requested results of a replay: outputs, and whether windows end with the input.

    folders: the folders of outputs that tasks write themselves.
    """

    outputs: tuple[str, ...]
    closes: bool = True
    folders: Mapping[str, PartFolder] = field(default_factory=dict)


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
                    "reason": bad.cause,
                    "raw": bad.raw,
                }
            )

    def changed(self, changes: Changes) -> Iterator[Packet]:
        """Yield new final rows, such as all events, and dead letters if many."""
        if len(self._letters) >= LETTERS_MAX:
            yield from self._given_letters()
        for output in self._here:
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
            if table.num_rows:
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
