"""Show the health of a cluster: members, owners of partitions, moves, alerts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.cluster import cluster

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    "ripple status",
    "ripple status --coordinator node-1:9200,node-2:9200 --partitions",
    "ripple status --format json | jq .unowned",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    cluster.add_status(parser)


def run(options: argparse.Namespace) -> int:
    """Print the status; return the exit code."""
    return cluster.run_status(options)
