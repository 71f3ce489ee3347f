"""Many seeds, spread over processes; scenarios travel by name."""

from __future__ import annotations

import gc
import multiprocessing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.testing.exploring import SimulationError, explore
from ripple.testing.naming import find

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_SEEDS_MAX = 500
CHUNKS_MIN = 8  # for each process, so that none waits long for another
# Most objects of a run are no garbage before its end: a rare collection is enough.
GARBAGE_AFTER = 50_000


@dataclass(frozen=True, slots=True)
class Job:
    """A job: ``MODULE:FUNCTION`` names, and the safeguards that are off."""

    scenario: str
    check: str | None
    without: tuple[str, ...]

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of ``explore`` and ``repeat``."""
        return {"check": find(self.check) if self.check else None, "without": self.without}


def chunks(job: Job, seeds: range, processes: int) -> Iterator[tuple[bool, str]]:
    """Run all seeds; yield for each chunk whether all was well, and a line to print."""
    length = max(1, min(CHUNK_SEEDS_MAX, len(seeds) // (CHUNKS_MIN * processes)))
    starts = range(seeds.start, seeds.stop, length)
    work = [(job, range(start, min(start + length, seeds.stop))) for start in starts]
    # A module of its own, because fresh processes cannot import from a command's module.
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_chunk, work)


def _chunk(work: tuple[Job, range]) -> tuple[bool, str]:
    job, seeds = work
    scenario, options = find(job.scenario), job.options()
    gc.freeze()  # imports stay, and need not be scanned again and again
    gc.set_threshold(GARBAGE_AFTER)
    try:
        report = explore(scenario, seeds=seeds, **options)
    except SimulationError as error:
        return False, str(error)
    return True, f"seeds {seeds.start} to {seeds.stop - 1}: {report}"
