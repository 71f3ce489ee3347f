"""The division of jobs among tasks.

A task of Spark costs some 70 ms of processor time, which is the work of 100,000 records or more. So
jobs whose sizes are known share tasks: as few as keep all cores busy, unless the rows of one would
be too many, for a task that dies is computed again as a whole.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROWS = 1 << 22
"""Rows of a task of several jobs, about: a second of work or some."""
JOB_ROWS = 1 << 13
"""The cost of any job, in rows."""
_NO_LIMIT = (1 << 31) - 1  # Spark's own default of the most executors
_PER_CORE = 3
"""Tasks for each core where a hash divides them, so unevenly."""


def tasks_of(sizes: Sequence[int | None], cores: int | None) -> tuple[tuple[int, ...], ...]:
    """Return the jobs of each task, by number, in order.

    sizes: of the jobs, in rows. cores: of all executors. Where a size or they are unknown, each job
    is a task.
    """
    known = [size for size in sizes if size is not None]
    if cores is None or len(known) < len(sizes):
        return tuple((number,) for number in range(len(sizes)))
    count = min(len(sizes), max(cores, -(-sum(known) // ROWS)))
    # The largest job first, each to the task with the least, the first of equals.
    tasks: list[tuple[int, int, list[int]]] = [(0, at, []) for at in range(count)]
    for number in sorted(range(len(known)), key=lambda one: -known[one]):
        rows, at, jobs = tasks[0]
        heapq.heapreplace(tasks, (rows + known[number] + JOB_ROWS, at, [*jobs, number]))
    in_order = sorted(tasks, key=lambda task: task[1])
    return tuple(tuple(sorted(jobs)) for _, _, jobs in in_order)


def most_cores(now: int, setting: Callable[[str], str | None]) -> int:
    """Return the cores that the executors may have together.

    now: of the present executors, few if Spark adds executors on demand. setting: of Spark, by its
    name. Without a limit on the executors, the present ones count.
    """
    if (setting("spark.dynamicAllocation.enabled") or "").lower() != "true":
        return now
    executors = int(setting("spark.dynamicAllocation.maxExecutors") or _NO_LIMIT)
    if executors == _NO_LIMIT:
        return now
    return max(now, executors * int(setting("spark.executor.cores") or 1))


def hashed_tasks(targets: int, rows: int | None, cores: int | None) -> int:
    """Return the number of tasks among which a hash divides targets that take ``rows``."""
    if cores is None or rows is None:
        return targets
    return min(targets, max(_PER_CORE * cores, -(-rows // ROWS)))
