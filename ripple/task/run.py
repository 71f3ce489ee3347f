"""A pipeline run in this process: one-shot over a whole source, or durable."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.hints import Hints
from ripple.connectors.identity import check_places
from ripple.connectors.locate import is_stream, open_sink, open_source, path_of, text_of
from ripple.connectors.target import open_target
from ripple.core.arguments import need_bool, need_function, plain, shown
from ripple.core.calls import called
from ripple.core.errors import InputError, LostRecordsWarning
from ripple.task.arguments import check_ends, plan_of, sinks_of, sources_of
from ripple.task.lifecycle import PartitionTask
from ripple.task.one_shot import EphemeralState, OneShotLetters, hint_of, to_its_end
from ripple.task.rejection_limit import RejectionLimit, reasons_text
from ripple.task.report import Report
from ripple.task.settings import BATCH_ROWS, CHECKPOINT_INTERVAL, KEEP, Settings
from ripple.task.several_sources import inputs_of
from ripple.task.spec import TaskContext, TaskSpec

if TYPE_CHECKING:
    from ripple.connectors.contract import Sink
    from ripple.connectors.inputs import Inputs
    from ripple.core.events import Event
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan

_LATE = "a larger out_of_order= of the source, or lateness=, counts them"


@called("rp.run", "pipeline")
def run(
    pipeline: Pipeline | Plan,
    *,
    source: Any,
    sink: Any,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    dead_letters: str | os.PathLike[str] | DeadLetters | None = None,
    strict: bool = False,
    max_rejected: int | str | None = None,
    on_batch: Callable[[Engine, Report], None] | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    follow: bool = False,
    commit_interval: str | int | None = None,
    checkpoint_interval: str | int = CHECKPOINT_INTERVAL,
    keep: int = KEEP,
    rebuild: Collection[str] = (),
    on_error: Literal["wait", "stop"] = "wait",
) -> Report:
    """Run a pipeline in this process: once over a whole source, or so that a restart resumes.

    source: a path, ``-``, ``log:DIR/TOPIC``, ``synthetic:N`` or another URI of a connector; an
    Arrow table, a data frame, a list or an iterator of batches, of mappings or of instances of a
    record class; an ``rp.Stream``; or a source. A mapping of source names to those when the
    pipeline has several.
    sink: a path, ``-``, ``log:DIR/TOPIC`` or another URI; a list or a ``queue.Queue``, which take
    each row as a dict, a function of a ``pyarrow.RecordBatch`` of changes, an open file, an object
    with ``write(changes)``, or a sink; or a mapping of output names to those when the pipeline has
    several outputs.
    Views are updated, and changes written, every ``batch_rows`` records.

    A one-shot run. dead_letters: a file for rejected records, as lines of JSON, or a sink of them.
    Without it, and for records that came too late, a LostRecordsWarning at the end says how many
    did not count. header: the first line of a CSV source names its columns.
    strict: raise InputError at the first rejected record, with files as they were.
    max_rejected: raise it, likewise, once more records are rejected than this number, or at the end
    than this part of all, as ``"5%"``; by default if all are.

    A durable run. checkpoint_dir: a folder, or ``s3://BUCKET/PREFIX``, where state and progress are
    kept: killed at any moment and called again, it resumes, and outputs hold the same rows as after
    an undisturbed run. Its source can be read again (a log, a topic, an ``rp.Stream`` with the same
    rows), its sinks are continued (files, logs, topics, tables) or objects, and rejected records
    are kept with the checkpoints. The other arguments are those of ``Task``. It needs an event loop
    of its own: where one is running, use ``Task``. Ctrl+C ends it in good order: with ``follow`` it
    then returns, else KeyboardInterrupt is raised, for the source has not ended; a second Ctrl+C
    ends it at once.

    Raises PlanError, InputError, OutputError, SchemaError and ConnectorError; a durable run also
    the errors of ``Task``.
    """
    if checkpoint_dir is not None:
        if header or strict or dead_letters is not None or max_rejected is not None:
            raise InputError(
                "header, strict, max_rejected and dead_letters do not go with checkpoint_dir: a "
                "log has no header, and rejected records are kept there: see ripple dead-letter "
                "list"
            )
        from ripple.task.blocking import run_durably  # noqa: PLC0415 - slow to import

        return run_durably(
            pipeline,
            source=source,
            sink=sink,
            checkpoint_dir=checkpoint_dir,
            follow=follow,
            batch_rows=batch_rows,
            commit_interval=commit_interval,
            checkpoint_interval=checkpoint_interval,
            keep=keep,
            rebuild=rebuild,
            on_error=on_error,
            on_batch=on_batch,
        )
    durable_only = {
        "follow": follow,
        "commit_interval": commit_interval is not None,
        "checkpoint_interval": checkpoint_interval != CHECKPOINT_INTERVAL,
        "keep": keep != KEEP,
        "rebuild": rebuild != (),
        "on_error": on_error != "wait",
    }
    for name, is_given in durable_only.items():
        if is_given:
            raise InputError(f"{name} needs checkpoint_dir: a one-shot run reads a source once")
    report, lost, hint = run_once(
        plan_of(pipeline),
        source=source,
        sink=sink,
        batch_rows=batch_rows,
        header=header,
        dead_letters=dead_letters,
        strict=strict,
        max_rejected=max_rejected,
        on_batch=on_batch,
    )
    if lost:
        name = plan_of(pipeline).name
        warnings.warn(f"pipeline {name!r}: {lost}{hint}", LostRecordsWarning, stacklevel=3)
    return report


def run_once(
    plan: Plan,
    *,
    source: Any,
    sink: Any,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    dead_letters: str | os.PathLike[str] | DeadLetters | None = None,
    strict: bool = False,
    max_rejected: int | str | None = None,
    on_batch: Callable[[Engine, Report], None] | None = None,
) -> tuple[Report, str, str]:
    """Run a pipeline once over a whole source.

    Returns (the report, a text about records that did not count, a hint at the reason); the texts
    are "" for none. Arguments and errors are those of ``run``.
    """
    need_bool("header", header)
    need_bool("strict", strict)
    limit = RejectionLimit.of(max_rejected)
    if on_batch is not None:
        need_function("on_batch", on_batch)
    if not isinstance(dead_letters, (str, os.PathLike, DeadLetters, NoneType)):
        raise InputError(
            f"dead_letters must be a file or ripple.connectors.dead_letter.DeadLetters, not "
            f"{shown(dead_letters)}"
        )
    sinks = sinks_of(plan, sink)
    sources = sources_of(plan, source)
    check_ends(sources)
    uris = _uris(sources)
    letters = os.fspath(dead_letters) if isinstance(dead_letters, (str, os.PathLike)) else None
    check_places(uris.values(), _uris(sinks), letters, continues=False)
    only = uris.get(plan.sources[0].name) if len(sources) == 1 else None
    file = None if only is None else path_of(only, "source")
    given = open_sources(plan, sources, batch_rows, header=header)
    has_names = bool(uris) and not header
    names = [[field.name for field in one.fields] for one in plan.sources] if has_names else []
    hints = Hints(names, commas=any("decimal=" in one for one in uris.values()))

    def open_letters() -> DeadLetters:
        if isinstance(dead_letters, (str, os.PathLike)):
            return DeadLetters(open_target(dead_letters))
        return dead_letters or DeadLetters()

    openers = {name: partial(open_sink, place, plan, name) for name, place in sinks.items()}
    life = plain_life(
        plan,
        given,
        openers,
        open_letters,
        strict=strict,
        file=file,
        batch_rows=batch_rows,
        on_batch=on_batch,
        limit=limit,
        hints=hints,
    )
    report = to_its_end(life, plan, waits=waits_in_loop(plan, sources))
    assert life.live is not None, "it has run"
    remark = life.live.noticed.units.remark
    if remark is not None:
        warnings.warn(f"pipeline {plan.name!r}: {remark}", stacklevel=4)
    lost = _lost(report, plan, are_kept=dead_letters is not None)
    return report, lost, hint_of(hints)


def open_sources(
    plan: Plan, places: Mapping[str, Any], batch_rows: int, *, header: bool = False
) -> Inputs:
    """Return the inputs of a one-shot run over all sources of a plan: they end, and never wait.

    Those with streams may wait, where ``waits_in_loop`` says so.

    places: the URI or the data of each source, by its name. Raises as ``open_source`` does.
    """
    if sum(place == "-" for place in places.values() if isinstance(place, str)) > 1:
        raise InputError("one source can read standard input (-), not several: give files")
    opened = {
        source.name: open_source(
            places[source.name],
            source.schema,
            name=source.name,
            checks=source.checks,
            batch_rows=batch_rows,
            header=header,
            whole=True,
            table=source.table,
            needs_all=plan.has_versions_of(source),
            in_loop=waits_in_loop(plan, places),
        )
        for source in plan.sources
    }
    return inputs_of(plan, opened)


def waits_in_loop(plan: Plan, places: Mapping[str, Any]) -> bool:
    """Tell whether a one-shot run waits in an event loop of its own.

    Where a stream is silent, answers and other sources would wait for its next row else. Where a
    loop is running already, they do.
    """
    if len(places) < 2 and not plan.asks:
        return False
    if not any(is_stream(one) for one in places.values()):
        return False
    from ripple.task.blocking import is_in_a_loop  # noqa: PLC0415 - slow to import

    return not is_in_a_loop()


def _uris(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources or sinks that are given by their URIs or paths."""
    return {
        name: text_of(one) for name, one in given.items() if isinstance(one, (str, os.PathLike))
    }


def plain_life(
    plan: Plan,
    inputs: Inputs,
    openers: Mapping[str, Callable[[], Sink]],
    open_letters: Callable[[], DeadLetters],
    *,
    strict: bool = False,
    file: str | None = None,
    batch_rows: int = BATCH_ROWS,
    on_batch: Callable[[Engine, Report], None] | None = None,
    limit: RejectionLimit | None = None,
    hints: Hints | None = None,
) -> PartitionTask[TaskSpec]:
    """Return the task of a one-shot run, for ``at_once``.

    openers: open the sink of each output; an output without one is computed and not written. If the
    run fails, the sinks are given up: a file is as it was. Dead letters are kept even then, for
    diagnosis. file: of the source, for errors. strict, batch_rows, on_batch: as in ``run``. limit:
    of rejected records, None for none. hints: look for them.
    """

    def open_kept() -> OneShotLetters:
        letters = open_letters()
        life.report.letters = letters.place
        name = getattr(inputs, "name", None)
        return OneShotLetters(letters, name, file, strict=strict, limit=limit, hints=hints)

    life = PartitionTask(
        TaskSpec(plan, _answered(plan, inputs), SinkGroup(openers)),
        EphemeralState(open_kept),
        TaskContext(
            settings=Settings(batch_rows=batch_rows), watch=on_batch or (lambda _, __: None)
        ),
    )
    return life


def _answered(plan: Plan, inputs: Inputs) -> Inputs:
    """Return inputs that call for answers, where the plan asks."""
    if not plan.asks:
        return inputs
    # slow to import, and few runs need them
    import logging  # noqa: PLC0415

    from ripple.core.event_text import line_of  # noqa: PLC0415
    from ripple.task.asks.answered_inputs import AnsweredInputs  # noqa: PLC0415
    from ripple.world.live import LiveClock, LiveRandom  # noqa: PLC0415

    def emit(event: Event) -> None:
        logging.getLogger("ripple.task").warning("pipeline %r: %s", plan.name, line_of(event))

    return AnsweredInputs(inputs, plan, LiveClock(), LiveRandom(), emit=emit)


def rejected_words(report: Report, where: str) -> str:
    """Say how many records were rejected and why, and where they are."""
    return f"{report.rejected.total()} rejected ({reasons_text(report.rejected)}; {where})"


def _lost(report: Report, plan: Plan, *, are_kept: bool) -> str:
    """Say how many records did not count and are not kept; "" if there are none."""
    parts = []
    if report.rejected and not are_kept:
        parts.append(rejected_words(report, "dead_letters= keeps them"))
    if report.very_late:
        parts.append(f"{report.very_late} too late for their windows ({_LATE})")
    for name in (*(ask.name for ask in plan.asks), *(scan.name for scan in plan.scans)):
        found = report.uncomputable.get(name)
        if found is not None and found.rows:
            first = f"{found.rows[0].step}: {found.rows[0].reason}"
            rows = "1 row" if found.count == 1 else f"{found.count} rows"
            parts.append(f"{rows} of {name!r} without a result (first: {first})")
    lost = plain(", ".join(parts))
    return f"of {report.consumed} records, some do not count: {lost}" if lost else ""
