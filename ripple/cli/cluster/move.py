"""Move a partition to another worker: its owner computes it until the other one is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.cluster import cluster

if TYPE_CHECKING:
    import argparse

EXAMPLES = ("ripple move 3 worker-2 --reason 'worker-1 is slow' --wait",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    cluster.add_command(parser, "move")
    parser.set_defaults(action="move")


def run(options: argparse.Namespace) -> int:
    """Send the command; return the exit code."""
    return cluster.run_command(options)
