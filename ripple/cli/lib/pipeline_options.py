"""The arguments for a pipeline: its file, its sources and their markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.lib.path_options import a_place
from ripple.model.pipeline.file import FILE_HELP

if TYPE_CHECKING:
    import argparse

PLACES = "log:DIR/TOPIC, kafka:BROKERS/TOPIC, a file of any connector, a folder or glob of files"
"""The places of a source that is read from its beginning to its end."""


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the pipeline's file, and -v for the mistakes in it."""
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    add_verbose(parser)


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Add -v, which ``ripple.cli.main`` handles."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print the traceback of a mistake in the Python file, too",
    )


def add_sources(parser: argparse.ArgumentParser, places: str, *, is_required: bool = True) -> None:
    """Add --source, which may be repeated. places: its help."""
    parser.add_argument(
        "--source",
        type=a_place,
        action="append",
        required=is_required,
        metavar="[SOURCE=]URI",
        help=places,
    )


def add_markers(parser: argparse.ArgumentParser) -> None:
    """Add --markers."""
    parser.add_argument(
        "--markers",
        type=a_place,
        metavar="DIR",
        help="read the markers there: checkpoints of the run, or store of the cluster",
    )
