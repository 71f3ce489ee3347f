"""Let a drained worker own partitions again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.cluster import cluster

if TYPE_CHECKING:
    import argparse

EXAMPLES = ("ripple undrain worker-1 --reason 'the new kernel runs'",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    cluster.add_command(parser, "undrain")
    parser.set_defaults(action="undrain")


def run(options: argparse.Namespace) -> int:
    """Send the command; return the exit code."""
    return cluster.run_command(options)
