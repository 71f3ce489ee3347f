"""Replay, run, backfill and validate a pipeline on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.cli.spark import (
    backfill as spark_backfill,
)
from ripple.cli.spark import (
    replay as spark_replay,
)
from ripple.cli.spark import (
    run as spark_run,
)
from ripple.cli.spark import (
    validate as spark_validate,
)

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    "ripple spark replay vwap.py --source log:data/trades --sink results",
    "ripple spark validate vwap.py --source log:data/trades --against log:data/vwap",
    "ripple spark validate vwap.py --source log:data/trades --against checkpoints:s3://bucket/prod",
    "ripple spark run vwap.py --source log:data/trades --sink log:data/vwap --store state --follow",
    "ripple spark backfill vwap.py --history 'parquet:years/*.parquet' --until 2024-02-26 "
    "--live log:data/trades --store state --receipt receipt.json",
    "ripple spark receipt vwap.py receipt.json",
)
# By action: its options, its function, its help.
_ACTIONS = {
    "replay": (
        spark_replay.configure,
        spark_replay.run,
        "a range of an input through a pipeline; same digests as ripple run",
    ),
    "validate": (
        spark_validate.configure,
        spark_validate.run,
        "check recovery, live results and the engine itself; exit code 1 on a difference",
    ),
    "run": (
        spark_run.configure,
        spark_run.run,
        "on Structured Streaming, with the state of ripple run and of clusters",
    ),
    "backfill": (
        spark_backfill.configure,
        spark_backfill.run,
        "history into checkpoints from which ripple run or a cluster resumes",
    ),
    "receipt": (
        spark_backfill.configure_receipt,
        spark_backfill.run_receipt,
        "repeat a backfill and compare; exit code 1 on a difference",
    ),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (configured, _, purpose) in _ACTIONS.items():
        description = f"{purpose[0].upper()}{purpose[1:]}."
        configured(actions.add_parser(name, help=purpose, description=description))


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    _, done, _ = _ACTIONS[options.action]
    return done(options)
