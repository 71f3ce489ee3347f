"""The options of a validation, in this process or on Spark, for results that it compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def configure_comparison(parser: argparse.ArgumentParser) -> None:
    """Add --fields and --changes."""
    parser.add_argument(
        "--fields", default="", metavar="FIELD,...", help="of files to compare, beside the key"
    )
    parser.add_argument(
        "--changes",
        action="store_true",
        help="also compare the changes in logs, cut by cut; of code that has never changed",
    )


def fields_of(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the names that --fields has, () for all fields."""
    return tuple(name.strip() for name in options.fields.split(",") if name.strip())
