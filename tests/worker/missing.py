"""Which seed of a simulated cluster finds out that a safeguard is missing; ``make missing``.

    python -m tests.worker.missing --seeds 1000 --jobs 2 [SAFEGUARD...]

Prints per safeguard the first such seed of a pipeline and what it found: all of them try a seed
before the next. The exit code is 1 if some safeguard is missed by none within so many seeds.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import sys
from functools import partial

from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from tests.worker import trials

# Those of workers, which whole clusters miss. Others are missed by parts: docs/simulation.md.
SAFEGUARDS = (
    "come_back",
    "fence",
    "fence_check",
    "final_rows",
    "first_of_code",
    "lane_holes",
    "lane_watermarks",
    "muted_replay",
    "own_rows",
    "read_back",
)
TRIALS = (
    "windows",
    "totals",
    "rows",
    "window_totals",
    "chain",
    "tree",
    "both_moved",
    "events_moved",
    "apart",
    "new_branch",
    "new_branch_of_stages",
)


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.worker.missing", description=__doc__)
    parser.add_argument("safeguards", nargs="*", default=SAFEGUARDS, metavar="SAFEGUARD")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    is_well = True
    for safeguard in given.safeguards:
        found = _is_found(safeguard, given.seeds, given.jobs)
        if not found:
            sys.stdout.write(f"{safeguard}: nobody misses it in {given.seeds} seeds\n")
        is_well = is_well and found
    return 0 if is_well else 1


def _is_found(safeguard: str, seeds: int, jobs: int) -> bool:
    work = [(seed, name) for seed in range(seeds) for name in TRIALS]
    with multiprocessing.get_context("spawn").Pool(jobs, gc.freeze) as pool:
        tried = pool.imap(partial(_failure, (safeguard,)), work)
        for (seed, name), why in zip(work, tried, strict=True):
            if why:
                sys.stdout.write(f"{safeguard}: {name}, seed {seed}: {why}\n")
                sys.stdout.flush()
                return True
    return False


def _failure(without: tuple[str, ...], work: tuple[int, str]) -> str:
    seed, name = work
    return failure(name, without, seed)


def failure(name: str, without: tuple[str, ...], seed: int) -> str:
    """Return what a seed has found, "" where nothing."""
    trial = getattr(trials, name)
    error = run(trial, seed, Drawn(seed, trial.faults), without=without).error
    return "" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0]}"[:200]


if __name__ == "__main__":
    sys.exit(main())
