"""The pipeline and the input of a command on Spark, and which range of it."""

from __future__ import annotations

import argparse
from typing import Any

from ripple.cli.places import a_place
from ripple.cli.spark_session import configure_header
from ripple.cli.user_file import FILE_HELP
from ripple.spark.options import Bound


def configure_source(parser: argparse.ArgumentParser, places: str) -> None:
    """Add the pipeline's file and --source. places: what it may be."""
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument("--source", type=a_place, required=True, metavar="PLACE", help=places)


def configure_input(parser: argparse.ArgumentParser) -> None:
    """Add the pipeline's file, --source, --from, --to and --header."""
    configure_source(
        parser,
        "log:DIR/TOPIC, kafka:BROKERS/TOPIC, a file of any connector, a folder or a pattern of "
        "files",
    )
    parser.add_argument(
        "--from", dest="start", metavar="WHERE", help="an offset, 0=17,1=20 by partition, or a time"
    )
    parser.add_argument("--to", dest="stop", metavar="WHERE", help="likewise, exclusive")
    configure_header(parser)


def range_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the range, as arguments of what reads it. Raises InputError."""
    found: dict[str, Any] = {"header": options.header}
    for name, text in (("start", options.start), ("stop", options.stop)):
        if text is not None:
            found[name] = Bound.parse(text, "--from" if name == "start" else "--to")
    return found
