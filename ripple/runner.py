"""One partition's life: read, apply, stabilize, emit."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ripple.batch import Batch, Marker, Rejected
from ripple.connectors.contract import MarkedSource, Sink, is_source
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.locate import open_sink, open_source
from ripple.connectors.target import open_target
from ripple.engine import Engine
from ripple.errors import InputError, LostRecordsWarning, OutputError, PlanError
from ripple.pipeline.builder import Pipeline
from ripple.pipeline.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.engine import RejectedRow, Uncomputable

BATCH_ROWS = 1000
_REASONS_TOLD = 5


@dataclass(slots=True)
class Report:
    """What a run did.

    stabilizations: one per batch, and one more if windows closed when the input ended.
    watermark_ns: of the events, before the input was declared at its end.
    consumed: records read, each of which was applied, is very late or was rejected. mildly_late,
    future: how many of those applied were. rejected: the others by reason; letters: the file that
    has them, None if they were only counted. uncomputable: per fold that has some, the rows that
    are absent at the end because they cannot be computed.
    """

    stabilizations: int = 0
    rows_out: int = 0
    watermark_ns: int = 0
    consumed: int = 0
    applied: int = 0
    mildly_late: int = 0
    very_late: int = 0
    future: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    letters: str | None = None
    uncomputable: Mapping[str, Uncomputable] = field(default_factory=dict)


class Runner:
    """Drives an engine from a source to sinks until the source ends.

    One call of ``run`` per runner. When it raises, the sinks were aborted: a file is as it was.
    Dead letters are kept even then, so that the reason can be read.
    """

    def __init__(
        self,
        engine: Engine,
        source: MarkedSource,
        sinks: Mapping[str, Sink],
        *,
        dead_letters: DeadLetters | None = None,
        strict: bool = False,
        on_batch: Callable[[Engine, Report], None] | None = None,
    ) -> None:
        """Connect the parts.

        sinks: per output of the plan; an output without one is computed and not written. strict:
        raise InputError at the first record that is malformed or cannot be processed. on_batch:
        called after each batch, for progress.
        """
        if not is_source(source):
            raise InputError(f"a runner reads a source, not {type(source).__name__}: see run()")
        _check_outputs(engine.plan, sinks)
        self._engine = engine
        self._source = source
        self._sinks = sinks
        self._dead_letters = dead_letters or DeadLetters()
        self._strict = strict
        self._on_batch = on_batch
        self.report = Report(letters=self._dead_letters.place)

    def run(self) -> Report:
        """Process the whole source, close all windows, and finish the sinks."""
        try:
            for entry in self._source.batches():
                self._take(entry)
                self._emit()
                self.report.stabilizations += 1
            self.report.watermark_ns = self._engine.watermark_ns
            self._engine.close()
            self.report.stabilizations += self._emit()
            self.report.uncomputable = self._engine.uncomputable
            for sink in self._sinks.values():
                sink.finish()
        except BaseException as error:
            for sink in self._sinks.values():
                sink.abort()
            for end in (self._source.close, self._dead_letters.finish):
                try:
                    end()
                except Exception as other:  # why the run failed comes first
                    error.add_note(f"and then: {other}")
            raise
        with ExitStack() as ending:
            ending.callback(self._dead_letters.finish)
            ending.callback(self._source.close)
        return self.report

    def _take(self, entry: Batch | Marker) -> None:
        """Feed a batch or a marker to the engine; dead-letter what it cannot use."""
        name = self._engine.plan.source.name
        if isinstance(entry, Marker):
            self._engine.advance(name, entry.watermark_ns, entry.next_offset)
            return
        self._reject(entry.rejected)
        offsets = entry.offsets()
        failed = self._engine.apply(
            name, entry.records, entry.next_offset, offsets, len(entry.rejected)
        )
        if failed:
            self._reject([_letter(entry.records, int(offsets[bad.row]), bad) for bad in failed])

    def _emit(self) -> bool:
        """Bring the views up to date and write what changed; return whether anything did."""
        changes = self._engine.stabilize()
        for name, rows in changes.outputs.items():
            sink = self._sinks.get(name)
            if sink is not None and rows.num_rows:
                self.report.rows_out += rows.num_rows
                sink.write(rows)
        self._count()
        if self._on_batch is not None:
            self._on_batch(self._engine, self.report)
        return any(rows.num_rows for rows in changes.outputs.values())

    def _reject(self, rejected: list[Rejected] | tuple[Rejected, ...]) -> None:
        if not rejected:
            return
        told = rejected[:1] if self._strict else rejected
        self.report.rejected.update(bad.reason for bad in told)
        self._dead_letters.write(self._source.name, told)
        if self._strict:
            first = rejected[0]
            raise InputError(f"{self._source.name}, {first.place}: {first.reason}")

    def _count(self) -> None:
        counters = self._engine.counters
        self.report.consumed, self.report.applied = counters.consumed, counters.applied
        self.report.mildly_late, self.report.very_late = counters.mildly_late, counters.very_late
        self.report.future = counters.future


def run(
    pipeline: Pipeline | Plan,
    *,
    source: Any,
    sink: Any,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    dead_letters: str | os.PathLike[str] | DeadLetters | None = None,
    strict: bool = False,
    on_batch: Callable[[Engine, Report], None] | None = None,
) -> Report:
    """Run a pipeline in this process over a whole source.

    source: a path, ``-``, ``log:DIR/TOPIC``, ``synthetic:N``; an Arrow table, a data frame, a list
    or an iterator of batches, of mappings or of instances of a record class; or a source.
    sink: a path, ``-``, ``log:DIR/TOPIC`` or a sink, or a mapping of output names to those when the
    pipeline has several outputs.
    dead_letters: a file for rejected records, as lines of JSON, or what takes them. Without it, and
    for records that came too late, a LostRecordsWarning at the end says how many did not count.
    strict: raise InputError at the first that is rejected, with nothing written to files.
    Views are brought up to date, and changes written, every ``batch_rows`` records.
    """
    plan = _plan_of(pipeline)
    engine = Engine(plan)
    with ExitStack() as opened:
        given = open_source(
            source,
            plan.source.schema,
            name=plan.source.name,
            checks=plan.source.checks,
            batch_rows=batch_rows,
            header=header,
        )
        opened.callback(given.close)
        sinks = open_sinks(plan, _by_output(plan, sink))
        for one in sinks.values():
            opened.callback(one.abort)
        letters = (
            DeadLetters(open_target(dead_letters))
            if isinstance(dead_letters, (str, os.PathLike))
            else dead_letters
        )
        opened.pop_all()
    runner = Runner(engine, given, sinks, dead_letters=letters, strict=strict, on_batch=on_batch)
    report = runner.run()
    lost = _lost(report, are_kept=dead_letters is not None)
    if lost:
        warnings.warn(f"pipeline {plan.name!r}: {lost}", LostRecordsWarning, stacklevel=2)
    return report


def _plan_of(pipeline: Any) -> Plan:
    if isinstance(pipeline, Pipeline):
        return pipeline.plan()
    if not isinstance(pipeline, Plan):
        raise PlanError(f"what runs is a Pipeline or its plan, not {type(pipeline).__name__}")
    return pipeline


def _lost(report: Report, *, are_kept: bool) -> str:
    """Say how many records did not count and are not kept; "" if there are none."""
    parts = []
    if report.rejected and not are_kept:
        told = [f"{why}: {count}" for why, count in report.rejected.most_common(_REASONS_TOLD)]
        more = [] if len(report.rejected) <= _REASONS_TOLD else ["..."]
        reasons = ", ".join([*told, *more])
        parts.append(f"{report.rejected.total()} rejected ({reasons}; dead_letters= keeps them)")
    if report.very_late:
        parts.append(f"{report.very_late} too late for their windows")
    return f"of {report.consumed} records, some do not count: {', '.join(parts)}" if parts else ""


def open_sinks(plan: Plan, places: Mapping[str, Any]) -> dict[str, Sink]:
    """Open a sink for each named output; if one cannot be opened, the others are given up."""
    _check_outputs(plan, places)
    with ExitStack() as opened:
        sinks: dict[str, Sink] = {}
        for name, place in places.items():
            sinks[name] = open_sink(place, plan, name)
            opened.callback(sinks[name].abort)
        opened.pop_all()
    return sinks


def _check_outputs(plan: Plan, named: Iterable[str]) -> None:
    outputs = [output.name for output in plan.outputs]
    for name in named:
        if name not in outputs:
            raise OutputError(f"no output {name!r}: the pipeline has {', '.join(outputs)}")


def _by_output(plan: Plan, sink: Any) -> Mapping[str, Any]:
    if isinstance(sink, Mapping):
        return sink
    if len(plan.outputs) > 1:
        names = ", ".join(repr(output.name) for output in plan.outputs)
        raise OutputError(f"the pipeline has the outputs {names}: name a sink for those you want")
    return {plan.outputs[0].name: sink}


def _letter(records: pa.RecordBatch, offset: int, bad: RejectedRow) -> Rejected:
    row = records.slice(bad.row, 1).to_pylist()[0]
    return Rejected(offset, None, f"{bad.step}: {bad.reason}", repr(row).encode("utf-8", "replace"))
