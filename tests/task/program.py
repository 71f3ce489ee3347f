"""A program of a user with a durable run, to be killed: see kill_nine."""

from __future__ import annotations

import argparse
import sys

import ripple as rp
from tests.task.pipeline_vwap import pipeline


def main() -> None:
    """Run the pipeline to the end of its source, or until killed."""
    parser = argparse.ArgumentParser()
    for name in ("source", "out", "total", "state"):
        parser.add_argument(name)
    parser.add_argument("--follow", action="store_true")
    given = parser.parse_args()
    report = rp.run(
        pipeline,
        source=given.source,
        sink={"out": given.out, "total": given.total},
        checkpoint_dir=given.state,
        follow=given.follow,
        batch_rows=500,
        commit_interval="5ms",
        checkpoint_interval="50ms",
    )
    sys.stderr.write(f"Digest: {report.digest}\n")


if __name__ == "__main__":
    main()
