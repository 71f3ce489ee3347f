"""Run a pipeline over a source, in this process.

Changes are written after every batch. Malformed records are reported, counted and skipped;
statistics go to standard error.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from ripple.cli.cluster.dashboard import add_dashboard
from ripple.cli.lib.exits import finished
from ripple.cli.lib.left_out import say_left_out
from ripple.cli.lib.number_options import clock_span, positive
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.rejects import all_rejected, open_letters, say_counts
from ripple.cli.lib.statistics import (
    by_source,
    exceptions,
    say_statistics,
    throughput,
    uncomputable,
    watermark_of,
)
from ripple.cli.lib.user_file import load_plan
from ripple.connectors.hints import Hints
from ripple.connectors.identity import check_places
from ripple.connectors.locate import (
    open_sink,
    path_of,
    sinks_by_output,
    sources_by_name,
    without_header,
)
from ripple.connectors.registry import forms
from ripple.core.errors import InputError
from ripple.task.one_shot import to_its_end
from ripple.task.one_shot_run import open_sources, plain_life
from ripple.task.progress import Progress, terminal
from ripple.task.rejection_limit import AllRejectedError, RejectionLimit
from ripple.task.report import Report
from ripple.task.settings import BATCH_ROWS, CHECKPOINT_INTERVAL, KEEP

if TYPE_CHECKING:
    import argparse

    from ripple.engine.machine.partition import Partition

EXAMPLES = (
    "ripple run vwap.py --source trades.csv --header --sink -",
    "ripple run vwap.py --source 'days/*.csv' --sink vwap.parquet",
    "ripple run vwap.py --source log:data/trades -o log:data/vwap --checkpoint-dir state --follow",
    "ripple run book.py --source trades=trades.csv --source quotes=quotes.csv -o spreads=-",
)

PROGRAM = "ripple"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_file(parser)
    add_sources(parser, f"{forms('source')}. Once for each source of the pipeline")
    parser.add_argument(
        "-o",
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=]URI",
        help=f"{forms('sink')}; by default -. Once for each output that is wanted. A path with '=' "
        "in it begins with ./ or /",
    )
    parser.add_argument(
        "--batch",
        type=positive,
        metavar="N",
        default=BATCH_ROWS,
        help=f"records between two outputs ({BATCH_ROWS})",
    )
    parser.add_argument(
        "--header", action="store_true", help="the first line of a CSV source names its columns"
    )
    parser.add_argument(
        "--no-header", action="store_true", help="CSV files are written without the columns' names"
    )
    parser.add_argument(
        "--dead-letter",
        type=a_place,
        metavar="FILE",
        help="write malformed records there, as JSON lines",
    )
    parser.add_argument(
        "--strict", action="store_true", help="stop at the first malformed record, exit code 1"
    )
    parser.add_argument(
        "--max-rejected",
        metavar="N|P%",
        help="fail, with files as they were, if more records are rejected",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="neither progress nor statistics, only problems"
    )
    _configure_durable(parser)


def _configure_durable(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "recovery after a crash",
        "State and progress are kept in a folder or in S3; a restarted run resumes, and each\n"
        "cut's output appears once in files and logs. The source must be one that can be read\n"
        "again: files (files:FOLDER, a pattern, s3:, https:), a log, a topic of Kafka, a stream\n"
        "of NATS or Redis, changes of a table of PostgreSQL, a clock.",
    )
    group.add_argument(
        "--checkpoint-dir",
        type=a_store,
        metavar=STORE,
        help="folder or S3 prefix of the checkpoints",
    )
    group.add_argument(
        "--checkpoint-interval",
        type=clock_span,
        metavar="SPAN",
        default=CHECKPOINT_INTERVAL,
        help="time between checkpoints, such as 500ms, 10s or 5m (%(default)s)",
    )
    group.add_argument(
        "--commit-interval",
        type=clock_span,
        metavar="SPAN",
        help="time between commits of outputs (1s; 250ms of a topic of Kafka, "
        "5s of Parquet, 10s of Delta Lake and Iceberg; the shortest of several)",
    )
    group.add_argument(
        "-f", "--follow", action="store_true", help="wait for more records, or files, at the end"
    )
    group.add_argument(
        "--rebuild",
        action="append",
        default=[],
        metavar="FOLD",
        help="compute a changed fold from the log's first record; see ripple plan",
    )
    group.add_argument(
        "--on-error",
        choices=("wait", "stop"),
        default="wait",
        help="when an input, or Kafka as an output, is away or revokes a right: wait for it, with "
        "growing pauses, or stop (%(default)s)",
    )
    group.add_argument(
        "--keep", type=int, default=KEEP, metavar="N", help="checkpoints kept (%(default)s)"
    )
    add_dashboard(group)


def run(options: argparse.Namespace) -> int:
    """Run the pipeline."""
    plan = load_plan(options.file)
    started_s = time.perf_counter()
    sources = sources_by_name(plan, options.source)
    places = sinks_by_output(plan, options.sink or ["-"])
    if options.no_header:
        places = {name: without_header(place) for name, place in places.items()}
    if options.checkpoint_dir is not None:
        from ripple.cli.run import durable  # noqa: PLC0415 - slow to import

        return durable.run(options, plan, sources, places)
    if options.dashboard is not None:
        raise InputError("--dashboard needs --checkpoint-dir: a one-shot run ends too soon")
    if options.follow:
        raise InputError("--follow needs --checkpoint-dir: a run that never ends must survive")
    limit = RejectionLimit.of(options.max_rejected)
    only = plan.sources[0] if len(sources) == 1 else None
    hints = Hints.of((one.fields for one in plan.sources), sources.values(), header=options.header)
    check_places(sources.values(), places, options.dead_letter, continues=False)
    file = None if only is None else path_of(sources[only.name], "source")
    source = open_sources(plan, sources, options.batch, header=options.header)
    say_left_out(plan, places)
    progress = Progress(source, terminal(quiet=options.quiet))
    life = plain_life(
        plan,
        source,
        {name: partial(open_sink, place, plan, name) for name, place in places.items()},
        lambda: open_letters(PROGRAM, options, progress, file=file, hints=hints),
        strict=options.strict,
        file=file,
        batch_rows=options.batch,
        on_batch=progress,
        limit=limit,
    )
    try:
        report = to_its_end(life, plan)
        finished()
    except AllRejectedError:
        progress.clear()
        letters = life.report.letters
        say_counts(life.report.rejected, letters)
        where = ", ".join(sources.values())
        raise all_rejected(where, life.report.consumed, letters) from None
    finally:
        progress.clear()
    say_counts(report.rejected, report.letters)
    assert life.live is not None, "it has run"
    remark = life.live.noticed.units.remark
    _say_results(life.engine, report, time.perf_counter() - started_s, remark, quiet=options.quiet)
    return 0


def _say_results(
    engine: Partition, report: Report, elapsed_s: float, remark: str | None, *, quiet: bool
) -> None:
    counters = engine.counters
    problems = [*exceptions(engine), *uncomputable(engine)]
    problems += [("Event times", remark)] if remark is not None else []
    lines = [
        ("Events processed", f"{counters.consumed}"),
        *by_source(engine),
        ("Stabilizations", f"{report.stabilizations}"),
        *throughput(counters.consumed, elapsed_s),
        *watermark_of(report.watermark_ns),
        ("Output records", f"{report.rows_out}"),
        *problems,
    ]
    say_statistics(f"--- {engine.plan.name} ---", problems if quiet else lines)
