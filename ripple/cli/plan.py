"""Show what a pipeline will do: its stages, the edges between them, and their stable names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.user_file import FILE_HELP, load_plan

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE.py[:NAME]", help=FILE_HELP)


def run(options: argparse.Namespace) -> int:
    """Print the plan."""
    print(load_plan(options.file).describe(), end="")
    return 0
