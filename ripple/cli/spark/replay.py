"""A range of an input through a pipeline on Spark: rows, dead letters, digests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ripple.cli.lib.left_out import say_left_out
from ripple.cli.lib.output_forms import add_format, as_json, write
from ripple.cli.lib.path_options import a_place
from ripple.cli.lib.pipeline_options import PLACES, add_markers
from ripple.cli.lib.report_files import check_files
from ripple.cli.spark.input import (
    check_read,
    configure_input,
    input_of,
    load_for_spark,
)
from ripple.cli.spark.session import Progress, configure_session, opened
from ripple.connectors.locate import sinks_by_output
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    import argparse

    from ripple.spark.report import Report


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ripple spark replay``."""
    configure_input(parser, f"{PLACES}, table:NAME, or [FORMAT:]PATH in s3a:, hdfs:, abfss:, file:")
    parser.add_argument(
        "--order-by",
        metavar="COLUMN,...",
        help="columns that order rows of one event time, of a source that Spark reads",
    )
    parser.add_argument(
        "--identity",
        metavar="FIELD,...",
        help="fields that tell records of one time apart, of a source that Spark reads",
    )
    parser.add_argument(
        "-o",
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=][FORMAT:]DIR",
        help="folder for an output's rows; parquet unless prefixed by csv:, json:, orc: or delta:",
    )
    parser.add_argument(
        "--digest-only", action="store_true", help="print only the digest of all outputs"
    )
    parser.add_argument(
        "--open",
        action="store_true",
        help="leave windows open at the end, as a live run does at that cut",
    )
    parser.add_argument(
        "--dead-letter", type=a_place, metavar="DIR", help="write rejected records there, as JSON"
    )
    add_markers(parser)
    parser.add_argument(
        "--answers",
        type=a_place,
        metavar="DIR",
        help="read recorded answers of services there: checkpoints of the run that has asked",
    )
    parser.add_argument(
        "--cut",
        type=a_place,
        metavar="DIR",
        help="end where the checkpoints there do, of the run or the cluster: ticks of a clock, too",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace existing folders")
    parser.add_argument(
        "--report", type=a_place, metavar="FILE", help="write the report there, as JSON"
    )
    add_format(parser)
    configure_session(parser)


def run(options: argparse.Namespace) -> int:
    """Replay; return the exit code."""
    check_files(options.report)
    plan = load_for_spark(
        options.file,
        has_markers=options.markers is not None,
        has_tables=True,
        has_answers=options.answers is not None,
    )
    # Before a JVM is started.
    arguments = input_of(
        options, plan, markers=options.markers, answers=options.answers, cut=options.cut
    )
    sinks = sinks_by_output(plan, options.sink or [])
    if options.digest_only and (sinks or options.dead_letter):
        raise OutputError("--digest-only writes nothing: leave out --sink and --dead-letter")
    if not sinks and not options.digest_only:
        raise OutputError("name a folder for the output with --sink, or ask for --digest-only")
    if sinks:
        say_left_out(plan, sinks)
    # Rows of other formats are written by the JVM.
    is_brief = all(":" not in place for place in sinks.values())
    with opened(options, is_brief=is_brief) as spark:
        from ripple.spark.replaying import Replay  # noqa: PLC0415 - imports pyspark

        one = Replay(
            spark,
            options.file,
            closes=not options.open,
            order_by=_names(options.order_by),
            identity=_names(options.identity),
            **arguments,
        )
        with Progress() as progress:
            if options.digest_only:
                report = one.report(show=progress.show)
            else:
                report = one.write(
                    sinks,
                    letters=options.dead_letter,
                    overwrite=options.overwrite,
                    show=progress.show,
                )
    check_read(options, plan, report.counters["consumed"])
    _say(options, report)
    return 0


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(","))


def _say(options: argparse.Namespace, report: Report) -> None:
    if options.report is not None:
        Path(options.report).write_text(as_json(report.as_dict(), indent=1) + "\n")
    text = report.digest if options.digest_only else report.text()
    write(options.format, report.as_dict(), lambda: print(text))
