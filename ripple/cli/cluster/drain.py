"""Move all partitions off a worker, and assign it none until it is undrained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.cluster import cluster

if TYPE_CHECKING:
    import argparse

EXAMPLES = ("ripple drain worker-1 --reason 'a new kernel' --dry-run",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    cluster.add_command(parser, "drain")
    parser.set_defaults(action="drain")


def run(options: argparse.Namespace) -> int:
    """Send the command; return the exit code."""
    return cluster.run_command(options)
