"""The pipeline and the input of a command on Spark, and the range of the input."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.pipeline_options import PLACES, add_file, add_sources
from ripple.cli.lib.user_file import load_plan
from ripple.cli.spark.session import configure_header
from ripple.connectors.locate import sources_by_name
from ripple.core.errors import InputError
from ripple.spark.dataframe.places import SparkPlace
from ripple.spark.options import Bound
from ripple.spark.parcel import check_plan
from ripple.spark.portions import sources_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.pipeline.plan import Plan


def load_for_spark(place: str, chain_for: str = "", **reads: bool) -> Plan:
    """Return the plan at ``FILE.py[:NAME]``, before a JVM is started.

    chain_for: the work that takes neither branches nor several sources. reads: what is read, as of
    ``check_plan``. Raises PlanError for a plan that Spark does not compute.
    """
    plan = load_plan(place)
    check_plan(plan, chain_for, **reads)
    return plan


def configure_input(parser: argparse.ArgumentParser, places: str = PLACES) -> None:
    """Add the pipeline's file, --source, --from, --to and --header. places: help of --source."""
    add_file(parser)
    add_sources(parser, places)
    parser.add_argument(
        "--from", dest="start", metavar="WHERE", help="an offset, 0=17,1=20 by partition, or a time"
    )
    parser.add_argument("--to", dest="stop", metavar="WHERE", help="likewise, exclusive")
    configure_header(parser)


def input_of(options: argparse.Namespace, plan: Plan, **recorded: str | None) -> dict[str, Any]:
    """Check the sources; return them and their range, as keyword arguments for reading them.

    recorded: stores of what a run has recorded, as of ``sources_at``; None for none. Raises
    InputError, also for an empty range, and StoreError.
    """
    found: dict[str, Any] = {
        "source": sources_by_name(plan, options.source),
        "header": options.header,
        **{name: place for name, place in recorded.items() if place is not None},
    }
    for name, text in (("start", options.start), ("stop", options.stop)):
        if text is not None:
            found[name] = Bound.parse(text, "--from" if name == "start" else "--to")
    if any(SparkPlace.of(place) for place in found["source"].values()):
        return found  # which Spark looks at
    given = {name: value for name, value in found.items() if name != "source"}
    rows = sources_at(found["source"], plan, **given).rows
    if rows is not None:
        check_read(options, plan, rows)
    return found


def check_markers(place: str, arguments: Mapping[str, Any], plan: Plan) -> None:
    """Raise InputError or StoreError unless markers at a place fit the sources of ``input_of``."""
    ranged = {name: value for name, value in arguments.items() if name != "source"}
    sources_at(arguments["source"], plan, markers=place, **ranged)


def check_read(options: argparse.Namespace, plan: Plan, rows: int) -> None:
    """Raise InputError if a range was given and is empty."""
    bounds = (("--from", options.start), ("--to", options.stop))
    given = [f"{flag} {text}" for flag, text in bounds if text is not None]
    if given and not rows:
        places = ", ".join(sources_by_name(plan, options.source).values())
        raise InputError(f"{places} has no records in the range {' '.join(given)}")
