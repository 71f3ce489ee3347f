"""Compare a pipeline with a table of yours, with live results, and with itself after crashes.

In this process; ripple spark validate does the same in tasks on Spark.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ripple.cli.lib.number_options import count
from ripple.cli.lib.output_forms import add_format, write
from ripple.cli.lib.path_options import a_place
from ripple.cli.lib.pipeline_options import PLACES, add_file, add_markers, add_sources
from ripple.cli.lib.report_files import check_files
from ripple.cli.lib.validation_options import configure_comparison, fields_of
from ripple.connectors.locate import sources_by_name
from ripple.spark.checkpoint_check import markers_for
from ripple.spark.checks import checks_of, made_of
from ripple.spark.finding import OUR_ENGINE
from ripple.spark.markers import marked
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.verdict import Verdict

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    "ripple validate vwap.py --source trades.parquet --against mine.parquet",
    "ripple validate vwap.py --source log:data/trades --against log:data/vwap --crashes 50",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_file(parser)
    add_sources(parser, PLACES)
    parser.add_argument(
        "--against",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]URI",
        help="a file or table with the fields of the output as columns, or results of live runs "
        "from this source: log:DIR/TOPIC, checkpoints:DIR; may be repeated",
    )
    configure_comparison(parser)
    parser.add_argument(
        "--header", action="store_true", help="whether CSV files name their columns"
    )
    add_markers(parser)
    parser.add_argument(
        "--crashes", type=count, default=0, metavar="N", help="at random points (%(default)s)"
    )
    parser.add_argument(
        "--oracle",
        type=count,
        default=0,
        metavar="N",
        help="first records to check with exact types (%(default)s)",
    )
    parser.add_argument(
        "--seed", type=count, default=0, metavar="N", help="of the crashes (%(default)s)"
    )
    parser.add_argument(
        "--html", type=a_place, metavar="FILE", help="write the findings as a self-contained page"
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Validate; return the exit code, 1 on a difference."""
    check_files(options.html)
    place = markers_for(options.markers, options.against)
    parcel = Parcel.of(options.file, lambda _: b"", has_markers=place is not None, has_tables=True)
    plan = parcel.plan()
    given = sources_at(sources_by_name(plan, options.source), plan, header=options.header)
    if place is not None and (plan.is_idle or options.markers is not None):
        given = marked(given, place, plan)
    checks = checks_of(
        parcel,
        plan,
        given,
        crashes=options.crashes,
        oracle_rows=options.oracle,
        against=tuple(options.against),
        seed=options.seed,
        engine=OUR_ENGINE,
        fields=fields_of(options),
        changes=options.changes,
        header=options.header,
    )
    found = [dict(packet.about) for check in checks for packet in check.run()]
    verdict = Verdict.of(
        plan.name, plan.topology_hash, given.place, found, made_of(parcel, options.seed)
    )
    if options.html is not None:
        Path(options.html).write_text(verdict.html())
    write(options.format, verdict.as_dict(), lambda: print(verdict.text()))
    return 0 if verdict.holds else 1
