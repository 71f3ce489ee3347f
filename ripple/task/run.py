"""A pipeline run in this process: one-shot over a whole source, or durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ripple.core.arguments import need_bool
from ripple.core.calls import called
from ripple.core.errors import InputError
from ripple.task.arguments import plan_of
from ripple.task.one_shot_run import run_once
from ripple.task.progress import Progress, here
from ripple.task.settings import BATCH_ROWS, CHECKPOINT_INTERVAL, KEEP

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection

    from ripple.connectors.dead_letter import DeadLetters
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report


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
    progress: bool = False,
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
    progress: show the number of records and their rate, on a terminal or in a notebook.

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

        need_bool("progress", progress)
        line = Progress(None, here() if progress else None)
        try:
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
                on_batch=line.beside(on_batch),
            )
        finally:
            line.clear()
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
    ended = run_once(
        plan_of(pipeline),
        source=source,
        sink=sink,
        batch_rows=batch_rows,
        header=header,
        dead_letters=dead_letters,
        strict=strict,
        max_rejected=max_rejected,
        progress=progress,
        on_batch=on_batch,
    )
    return ended.warn(stacklevel=3)
