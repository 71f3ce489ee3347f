"""One partition's life: read, apply, stabilize, emit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.connectors.base import Batch, MarkedSource, Marker, Rejected, Sink
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.locate import open_sink, open_source
from ripple.engine import Engine
from ripple.errors import InputError, OutputError
from ripple.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.engine import RejectedRow
    from ripple.pipeline import Pipeline

BATCH_ROWS = 1000


@dataclass(slots=True)
class Report:
    """What a run did.

    stabilizations: one per batch, and one more if windows closed when the input ended.
    watermark_ns: of the events, before the input was declared at its end.
    """

    stabilizations: int = 0
    rows_out: int = 0
    watermark_ns: int = 0


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
        _check_outputs(engine.plan, sinks)
        self._engine = engine
        self._source = source
        self._sinks = sinks
        self._dead_letters = dead_letters or DeadLetters()
        self._strict = strict
        self._on_batch = on_batch
        self.report = Report()

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
            for sink in self._sinks.values():
                sink.finish()
        except BaseException:
            for sink in self._sinks.values():
                sink.abort()
            raise
        finally:
            self._source.close()
            self._dead_letters.finish()
        return self.report

    def _take(self, entry: Batch | Marker) -> None:
        """Feed a batch or a marker to the engine; dead-letter what it cannot use."""
        name = self._engine.plan.source.name
        if isinstance(entry, Marker):
            self._engine.advance(name, entry.watermark_ns, entry.next_offset)
            return
        self._reject(entry.rejected)
        offsets = entry.offsets()
        failed = self._engine.apply(name, entry.records, entry.next_offset, offsets)
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
        if self._on_batch is not None:
            self._on_batch(self._engine, self.report)
        return any(rows.num_rows for rows in changes.outputs.values())

    def _reject(self, rejected: list[Rejected] | tuple[Rejected, ...]) -> None:
        if not rejected:
            return
        self._dead_letters.write(self._source.name, rejected[:1] if self._strict else rejected)
        if self._strict:
            first = rejected[0]
            raise InputError(f"{self._source.name}, {first.place}: {first.reason}")


def run(
    pipeline: Pipeline | Plan,
    *,
    source: Any,
    sink: Any,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    dead_letters: DeadLetters | None = None,
    strict: bool = False,
    on_batch: Callable[[Engine, Report], None] | None = None,
) -> Report:
    """Run a pipeline in this process over a whole source.

    source: a path, ``-``, ``log:DIR/TOPIC``, ``synthetic:N``, record batches, mappings or a source.
    sink: a path, ``-``, ``log:DIR/TOPIC`` or a sink, or a mapping of output names to those when the
    pipeline has several outputs.
    Views are brought up to date, and changes written, every ``batch_rows`` records.
    """
    plan = pipeline if isinstance(pipeline, Plan) else pipeline.plan()
    engine = Engine(plan)
    given = open_source(
        source,
        plan.source.schema,
        name=plan.source.name,
        checks=plan.source.checks,
        batch_rows=batch_rows,
        header=header,
    )
    sinks = open_sinks(plan, _by_output(plan, sink))
    runner = Runner(
        engine, given, sinks, dead_letters=dead_letters, strict=strict, on_batch=on_batch
    )
    return runner.run()


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
