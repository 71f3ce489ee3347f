"""Replay a pipeline on Spark, and check on Spark that what runs live is right."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli import spark_backfill, spark_run, spark_watch
from ripple.cli.forms import add_format, write
from ripple.cli.numbers import count
from ripple.cli.places import a_place
from ripple.cli.spark_session import (
    Progress,
    check_files,
    configure_header,
    configure_session,
    opened,
)
from ripple.cli.user_file import FILE_HELP, load_plan
from ripple.connectors.locate import sinks_by_output
from ripple.errors import OutputError
from ripple.spark.options import Bound
from ripple.spark.shares import source_at

if TYPE_CHECKING:
    from ripple.spark.report import Report

_CRASHES, _ORACLE_ROWS = 100, 100_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    replaying = actions.add_parser(
        "replay", help="a range of an input through a pipeline; same digests as ripple run"
    )
    _configure_input(replaying)
    replaying.add_argument(
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=][FORMAT:]DIR",
        help="a folder for an output's rows; parquet unless csv:, json:, orc: or delta: is before",
    )
    replaying.add_argument(
        "--digest-only", action="store_true", help="print the digest of all outputs, and no more"
    )
    replaying.add_argument(
        "--open",
        action="store_true",
        help="leave windows open at the end, as a live run does at that cut",
    )
    replaying.add_argument(
        "--dead-letter", type=a_place, metavar="DIR", help="write refused records there, as JSON"
    )
    replaying.add_argument(
        "--overwrite", action="store_true", help="replace folders that are there"
    )
    replaying.add_argument(
        "--report", type=a_place, metavar="FILE", help="write the report there, as JSON"
    )
    add_format(replaying)
    validating = actions.add_parser(
        "validate", help="crashes, live results and the engine itself; exit code 1 if one is wrong"
    )
    _configure_input(validating)
    validating.add_argument(
        "--crashes", type=count, metavar="N", help=f"at random points ({_CRASHES})"
    )
    validating.add_argument(
        "--oracle",
        type=count,
        metavar="N",
        help=f"first records of each share, by exact types ({_ORACLE_ROWS})",
    )
    validating.add_argument(
        "--against",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]PLACE",
        help="log:DIR/TOPIC, checkpoints:DIR or checkpoints:s3://BUCKET/PREFIX, as live runs have "
        "written them from this source; once for each",
    )
    validating.add_argument("--seed", type=count, help="of the crashes (0)")
    add_format(validating, shorthand=False)
    validating.add_argument("--json", type=a_place, metavar="FILE", help="write what was found")
    validating.add_argument(
        "--html", type=a_place, metavar="FILE", help="write it as a page that needs nothing else"
    )
    spark_watch.configure(validating)
    validating.add_argument("--engine", default="ripple.engine:Engine", help=argparse.SUPPRESS)
    spark_run.configure(
        actions.add_parser(
            "run", help="on Structured Streaming, with the state of ripple run and of clusters"
        )
    )
    spark_backfill.configure(
        actions.add_parser(
            "backfill", help="history into checkpoints that ripple run or a cluster begins from"
        )
    )
    spark_backfill.configure_receipt(
        actions.add_parser(
            "receipt", help="compute a backfill again and compare; exit code 1 if anything differs"
        )
    )


def _configure_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument(
        "--source",
        type=a_place,
        required=True,
        metavar="PLACE",
        help="log:DIR/TOPIC, kafka:BROKERS/TOPIC, a file of any connector, a folder or a pattern "
        "of files",
    )
    parser.add_argument(
        "--from", dest="start", metavar="WHERE", help="an offset, 0=17,1=20 by partition, or a time"
    )
    parser.add_argument("--to", dest="stop", metavar="WHERE", help="likewise, exclusive")
    configure_header(parser)
    configure_session(parser)


def run(options: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    return {
        "replay": _replay,
        "validate": _validate,
        "run": spark_run.run,
        "backfill": spark_backfill.run,
        "receipt": spark_backfill.run_receipt,
    }[options.action](options)


def _validate(options: argparse.Namespace) -> int:
    spark_watch.check(options)
    check_files(options.json, options.html)
    source_at(options.source, load_plan(options.file), **_range(options))
    if options.watch:
        return spark_watch.run(options)
    with opened(options, is_brief=True) as spark:
        from ripple.spark.validating import validate  # noqa: PLC0415 - imports pyspark

        with Progress() as progress:
            verdict = validate(
                spark,
                options.file,
                options.source,
                crashes=_CRASHES if options.crashes is None else options.crashes,
                oracle_rows=_ORACLE_ROWS if options.oracle is None else options.oracle,
                against=tuple(options.against),
                seed=options.seed or 0,
                engine=options.engine,
                show=progress.show,
                **_range(options),
            )
    if options.json is not None:
        Path(options.json).write_text(json.dumps(verdict.as_dict(), indent=1) + "\n")
    if options.html is not None:
        Path(options.html).write_text(verdict.html())
    write(options.format, verdict.as_dict(), lambda: print(verdict.text()))
    return 0 if verdict.holds else 1


def _replay(options: argparse.Namespace) -> int:
    check_files(options.report)
    plan = load_plan(options.file)
    source_at(options.source, plan, **_range(options))  # before a JVM is started
    sinks = sinks_by_output(plan, options.sink or [])
    if options.digest_only and (sinks or options.dead_letter):
        raise OutputError("--digest-only writes nothing: leave out --sink and --dead-letter")
    if not sinks and not options.digest_only:
        raise OutputError("name a folder for the output with --sink, or ask for --digest-only")
    arguments = _range(options)
    # Rows of other formats are written by the JVM.
    is_brief = all(":" not in place for place in sinks.values())
    with opened(options, is_brief=is_brief) as spark:
        from ripple.spark.replaying import Replay  # noqa: PLC0415 - imports pyspark

        one = Replay(spark, options.file, options.source, closes=not options.open, **arguments)
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
    _say(options, report)
    return 0


def _say(options: argparse.Namespace, report: Report) -> None:
    if options.report is not None:
        Path(options.report).write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    text = report.digest if options.digest_only else report.text()
    write(options.format, report.as_dict(), lambda: print(text))


def _range(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"header": options.header}
    for name, text in (("start", options.start), ("stop", options.stop)):
        if text is not None:
            found[name] = Bound.parse(text, "--from" if name == "start" else "--to")
    return found
