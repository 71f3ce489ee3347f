"""``python -m ripple.testing MODULE:SCENARIO``: repeat a failed run, or try many seeds."""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import TYPE_CHECKING

from ripple.testing.exploring import repeat
from ripple.testing.naming import find
from ripple.testing.sim.jobs import Job, chunks

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 1 if a run has failed."""
    parser = argparse.ArgumentParser(prog="python -m ripple.testing", description=__doc__)
    parser.add_argument("scenario", help="MODULE:NAME or FILE.py:NAME")
    parser.add_argument("--check", help="MODULE:FUNCTION, called after each life")
    parser.add_argument("--without", action="append", default=[], help="a safeguard to switch off")
    parser.add_argument("--seed", type=int, default=0, help="the seed to repeat, or the first one")
    parser.add_argument("--plan", default="", help="the faults to repeat, as a failure prints them")
    parser.add_argument("--seeds", type=int, help="how many seeds to try")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to use")
    chosen = parser.parse_args(arguments)
    job = Job(chosen.scenario, chosen.check, tuple(chosen.without))
    if chosen.seeds is None:
        return _repeat(job, chosen.seed, chosen.plan)
    return _explore(job, range(chosen.seed, chosen.seed + chosen.seeds), chosen.jobs)


def _repeat(job: Job, seed: int, plan: str) -> int:
    done = repeat(find(job.scenario), seed=seed, plan=plan, **job.options())
    print("\n".join(done.trace.lines))
    print(f"trace {done.trace.digest()}")
    if done.error is not None:
        raise done.error
    return 0


def _explore(job: Job, seeds: range, processes: int) -> int:
    started = perf_counter()
    for well, line in chunks(job, seeds, processes):
        print(line, flush=True)
        if not well:
            return 1
    minutes = (perf_counter() - started) / 60
    print(f"{len(seeds)} seeds in {minutes:.2f} minutes: {len(seeds) / minutes:,.0f} a minute")
    return 0


if __name__ == "__main__":
    sys.exit(main())
