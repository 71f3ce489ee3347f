"""``python -m ripple.testing MODULE:SCENARIO``: repeat a failed run, or try many seeds."""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ripple.testing.explore import SimulationError, explore, repeat

if TYPE_CHECKING:
    from collections.abc import Sequence

CHUNK_SEEDS = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 1 if a run has failed."""
    parser = argparse.ArgumentParser(prog="python -m ripple.testing", description=__doc__)
    parser.add_argument("scenario", help="MODULE:FUNCTION")
    parser.add_argument("--check", help="MODULE:FUNCTION, called after each life")
    parser.add_argument("--without", action="append", default=[], help="a safeguard to switch off")
    parser.add_argument("--seed", type=int, default=0, help="the seed to repeat, or the first one")
    parser.add_argument("--plan", help="the faults to repeat, as a failure has printed them")
    parser.add_argument("--seeds", type=int, help="how many seeds to try")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to use")
    chosen = parser.parse_args(arguments)
    if chosen.seeds is None:
        return _repeat(chosen)
    return _explore(chosen)


def _repeat(chosen: argparse.Namespace) -> int:
    options = _options(chosen)
    if chosen.plan is None:
        return _try((chosen, range(chosen.seed, chosen.seed + 1)))
    done = repeat(_find(chosen.scenario), seed=chosen.seed, plan=chosen.plan, **options)
    print("\n".join(done.trace.lines))
    print(f"trace {done.trace.digest()}")
    if done.error is not None:
        raise done.error
    return 0


def _explore(chosen: argparse.Namespace) -> int:
    started = perf_counter()
    end = chosen.seed + chosen.seeds
    chunks = [
        (chosen, range(start, min(start + CHUNK_SEEDS, end)))
        for start in range(chosen.seed, end, CHUNK_SEEDS)
    ]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for code in pool.imap(_try, chunks):
            failed = failed or code
            if failed:
                break
    minutes = (perf_counter() - started) / 60
    if not failed:
        print(
            f"{chosen.seeds} seeds in {minutes:.2f} minutes: {chosen.seeds / minutes:,.0f} a minute"
        )
    return failed


def _try(work: tuple[argparse.Namespace, range]) -> int:
    chosen, seeds = work
    try:
        report = explore(_find(chosen.scenario), seeds=seeds, **_options(chosen))
    except SimulationError as error:
        print(error, flush=True)
        return 1
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {report}", flush=True)
    return 0


def _options(chosen: argparse.Namespace) -> dict[str, Any]:
    check = _find(chosen.check) if chosen.check else None
    return {"check": check, "without": tuple(chosen.without)}


def _find(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    sys.exit(main())
