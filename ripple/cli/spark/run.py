"""A pipeline as a query of Spark Structured Streaming."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.exits import SignalledError, say
from ripple.cli.lib.left_out import say_left_out
from ripple.cli.lib.number_options import count, positive
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.statistics import say_statistics, throughput
from ripple.cli.spark.input import load_for_spark
from ripple.cli.spark.session import PROGRAM, Stopping, configure_session, opened
from ripple.connectors.locate import sinks_by_output, sources_by_name
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.spark.report import digests_of
from ripple.task.settings import BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.model.pipeline.plan import Plan

_LOOK_S = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ripple spark run``."""
    add_file(parser)
    add_sources(parser, "log:DIR/TOPIC or kafka:BROKERS/TOPIC, reachable by all executors")
    parser.add_argument(
        "-o",
        "--sink",
        type=a_place,
        action="append",
        required=True,
        metavar="[OUTPUT=]URI",
        help="log:DIR/TOPIC or kafka:BROKERS/TOPIC; once for each output",
    )
    parser.add_argument(
        "--store",
        type=a_store,
        required=True,
        metavar=STORE,
        help="checkpoint store, shared with ripple run and clusters, which resume from it",
    )
    parser.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="of the pipeline: 1 as ripple run has (as many as the source, as a cluster has)",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="wait for more at the end of the source"
    )
    parser.add_argument(
        "--every",
        metavar="TIME",
        help="interval of micro-batches with --follow, in Spark's notation (1 second)",
    )
    parser.add_argument(
        "--batch",
        type=positive,
        default=BATCH_ROWS,
        metavar="N",
        help="records between two outputs (%(default)s)",
    )
    parser.add_argument(
        "--keep", type=positive, default=3, metavar="N", help="checkpoints kept (%(default)s)"
    )
    configure_session(parser)


def run(options: argparse.Namespace) -> int:
    """Run until the source ends or a signal asks for it; return the exit code."""
    if options.every is not None and not options.follow:
        raise InputError("--every goes with --follow: it is the interval of its micro-batches")
    plan = load_for_spark(options.file, has_markers=True, has_tables=True)
    sources = sources_by_name(plan, options.source)
    sinks = sinks_by_output(plan, options.sink)
    say_left_out(plan, sinks)
    report = _Report(plan)
    with opened(options, is_brief=not options.follow) as spark:
        from ripple.spark.session import SparkJobError, blaming  # noqa: PLC0415 - imports pyspark
        from ripple.spark.streaming.running import run as started  # noqa: PLC0415 - likewise

        stopping = Stopping()
        try:
            with blaming():
                query = started(
                    spark,
                    options.file,
                    sources,
                    sinks,
                    options.store,
                    follow=options.follow,
                    every=options.every,
                    show=report.show,
                    partitions=options.partitions,
                    batch_rows=options.batch,
                    keep=options.keep,
                )
                while not query.awaitTermination(_LOOK_S):
                    if stopping:
                        query.stop()
                        break
        except (SparkJobError, OSError) as error:
            if stopping.number is None:
                raise
            # A service manager signals all processes, and the JVM exits without asking.
            raise SignalledError(stopping.number) from error
    report.say()
    stopping.say()
    return stopping.code


class _Report:
    """The counts that micro-batches reported."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._began_s = time.perf_counter()
        self._done: Counter[str] = Counter()
        self._last: dict[int, Mapping[str, Any]] = {}

    def show(self, _: int, reports: Sequence[Mapping[str, Any]]) -> None:
        """Add the reports of a micro-batch, and print restores and failures."""
        for one in reports:
            number = one["partition"]
            if one["restored"]:
                say(
                    f"{PROGRAM}: partition {number} resumed from {one['restored']}, "
                    f"as epoch {one['epoch']}"
                )
            if one["not_stored"]:
                say(f"{PROGRAM}: partition {number}: no checkpoint stored: {one['not_stored']}")
            self._last[number] = one
            self._done.update(events=one["events"], rows_out=one["rows_out"])
        self._done["micro-batches"] += 1

    def say(self) -> None:
        """Print the totals."""
        last = [self._last[number] for number in sorted(self._last)]
        cut = {name: offset for one in last for name, offset in one["cut"].items()}
        events = self._done["events"]
        lines = [
            ("Micro-batches", f"{self._done['micro-batches']}"),
            ("Events processed", f"{events}"),
            *throughput(events, time.perf_counter() - self._began_s),
            ("Output records", f"{self._done['rows_out']}"),
            ("Next offset", cuts.text(cut) if cut else "none"),
            ("Digest", digests_of(self._plan, last)[1] if last else "none"),
        ]
        say_statistics(f"--- {self._plan.name} ---", lines)
