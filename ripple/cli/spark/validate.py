"""Checks recovery, live results and the engine itself, on Spark."""

from __future__ import annotations

import argparse
from pathlib import Path

from ripple.cli.lib.number_options import count
from ripple.cli.lib.output_forms import add_format, as_json, write
from ripple.cli.lib.path_options import a_place
from ripple.cli.lib.pipeline_options import add_markers
from ripple.cli.lib.report_files import check_files
from ripple.cli.lib.validation_options import configure_comparison, fields_of
from ripple.cli.spark import watch as spark_watch
from ripple.cli.spark.input import (
    check_markers,
    configure_input,
    input_of,
    load_for_spark,
)
from ripple.cli.spark.session import Progress, configure_session, opened
from ripple.spark.checkpoint_check import CHECKPOINTS, checkpoints_at, markers_for
from ripple.spark.crashes import CRASHES_DEFAULT
from ripple.spark.finding import OUR_ENGINE
from ripple.spark.oracle_check import ORACLE_ROWS_DEFAULT

PRINTED = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ripple spark validate``."""
    configure_input(parser)
    parser.add_argument(
        "--crashes", type=count, metavar="N", help=f"at random points ({CRASHES_DEFAULT})"
    )
    parser.add_argument(
        "--oracle",
        type=count,
        metavar="N",
        help=f"records of each share to check with exact types ({ORACLE_ROWS_DEFAULT})",
    )
    parser.add_argument(
        "--against",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]URI",
        help="results of live runs from this source: log:DIR/TOPIC, checkpoints:DIR or "
        "checkpoints:s3://BUCKET/PREFIX; or a file or table of another program; may be repeated",
    )
    configure_comparison(parser)
    add_markers(parser)
    parser.add_argument("--seed", type=count, metavar="N", help="of the crashes (0)")
    add_format(parser, shorthand=False)
    parser.add_argument(
        "--json",
        type=a_place,
        nargs="?",
        const=PRINTED,
        metavar="FILE",
        help="write the findings there; without FILE the same as --format json",
    )
    parser.add_argument(
        "--html", type=a_place, metavar="FILE", help="write them as a self-contained page"
    )
    configure_session(parser)
    spark_watch.configure(parser)
    parser.add_argument("--engine", default=OUR_ENGINE, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Validate; return the exit code, 1 on a difference."""
    if options.json == PRINTED:
        options.json, options.format = None, "json"
    spark_watch.check(options)
    check_files(options.json, options.html)
    markers = None if options.watch else markers_for(options.markers, options.against)
    plan = load_for_spark(
        options.file,
        "a watch on Spark" if options.watch else "",
        has_markers=markers is not None,
        has_tables=not options.watch,
    )
    arguments = input_of(options, plan)
    for place in options.against:
        if place.startswith(CHECKPOINTS):
            checkpoints_at(place, plan)
    if markers is not None and (plan.is_idle or options.markers is not None):
        check_markers(markers, arguments, plan)
    if options.watch:
        return spark_watch.run(options)
    with opened(options, is_brief=True) as spark:
        from ripple.spark.validating import validate  # noqa: PLC0415 - imports pyspark

        with Progress() as progress:
            verdict = validate(
                spark,
                options.file,
                crashes=CRASHES_DEFAULT if options.crashes is None else options.crashes,
                oracle_rows=ORACLE_ROWS_DEFAULT if options.oracle is None else options.oracle,
                against=tuple(options.against),
                seed=options.seed or 0,
                markers=options.markers,
                engine=options.engine,
                fields=fields_of(options),
                changes=options.changes,
                show=progress.show,
                **arguments,
            )
    if options.json is not None:
        Path(options.json).write_text(as_json(verdict.as_dict(), indent=1) + "\n")
    if options.html is not None:
        Path(options.html).write_text(verdict.html())
    write(options.format, verdict.as_dict(), lambda: print(verdict.text()))
    return 0 if verdict.holds else 1
