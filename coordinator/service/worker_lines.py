"""Warnings and errors in the logs of workers, as their heartbeats bring them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.control.assignment import Line

KEPT = 200  # of a worker
WORKERS_MAX = 1_000


class WorkerLines:
    """The newest lines of each worker, also of one that has left.

    A line comes with several heartbeats. Invariant: each is there once; at most KEPT of a worker,
    and WORKERS_MAX workers, of which the one that was heard first goes.
    """

    def __init__(self) -> None:
        self._of: dict[str, deque[Line]] = {}

    def take(self, worker: str, lines: Sequence[Line]) -> None:
        """Take the lines of a heartbeat."""
        if not lines:
            return
        kept = self._of.setdefault(worker, deque(maxlen=KEPT))
        known = set(kept)
        kept.extend(line for line in lines if line not in known)
        while len(self._of) > WORKERS_MAX:
            del self._of[next(iter(self._of))]

    def of(self, worker: str) -> list[Line]:
        """Return the lines of a worker, newest first."""
        lines = self._of.get(worker, ())
        return sorted(lines, key=lambda line: (line.time_ms, line.number), reverse=True)
