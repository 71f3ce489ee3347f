"""The queue of workers that ask to join: batched, to join together, and delayed if they flap.

Memory of one replica. A restart loses the history of flapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.decisions.limits import MS, Limits

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.control.assignment import Candidate


@dataclass(slots=True)
class _Waiting:
    candidate: Candidate
    since_ns: int
    heard_ns: int


@dataclass(frozen=True, slots=True)
class _Refused:
    """A worker that does not fit: why, since when it has asked, and when last."""

    reason: str
    since_ns: int
    heard_ns: int


@dataclass(slots=True)
class _Flaps:
    """How often a worker was evicted in a row, and when last."""

    count: int
    at_ns: int


class JoinQueue:
    """Candidates by nonce, and how often workers have flapped.

    Invariant: no two candidates have the same id.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[str, _Waiting] = {}
        self._flaps: dict[str, _Flaps] = {}
        self._refused: dict[str, _Refused] = {}

    def refuse(self, candidate: Candidate, reason: str, now_ns: int) -> None:
        """Move a candidate that does not fit from the queue to the refused ones."""
        self.gone(candidate.nonce)
        known = self._refused.pop(candidate.id, None)
        if len(self._refused) < self._limits.candidates_max:
            since_ns = now_ns if known is None else known.since_ns
            self._refused[candidate.id] = _Refused(reason, since_ns, now_ns)

    @property
    def refused(self) -> dict[str, tuple[str, float]]:
        """Refused candidates by id: why, and for how many seconds they have asked."""
        return {
            worker: (one.reason, (one.heard_ns - one.since_ns) / (1000 * MS))
            for worker, one in self._refused.items()
        }

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The waiting candidates, first come first."""
        return tuple(one.candidate for one in self._waiting.values())

    @property
    def ids(self) -> frozenset[str]:
        """The ids of waiting candidates."""
        return frozenset(one.candidate.id for one in self._waiting.values())

    def asks(self, candidate: Candidate, now_ns: int) -> str | None:
        """Note that a worker asks to join; return why it cannot wait here, None if it can."""
        known = self._waiting.get(candidate.nonce)
        if known is not None:
            known.heard_ns = now_ns
            return None
        if any(one.candidate.id == candidate.id for one in self._waiting.values()):
            return f"another worker called {candidate.id} waits to join: is an id given twice?"
        if len(self._waiting) >= self._limits.candidates_max:
            return f"{len(self._waiting)} workers wait to join (candidates_max): ask again later"
        self._refused.pop(candidate.id, None)
        self._waiting[candidate.nonce] = _Waiting(candidate, now_ns, now_ns)
        return None

    def waits_ns(self, nonce: str, now_ns: int) -> int:
        """Return for how long a candidate has waited here."""
        known = self._waiting.get(nonce)
        return 0 if known is None else now_ns - known.since_ns

    def gone(self, nonce: str) -> None:
        """Forget a candidate: it has joined, was refused or no longer asks."""
        self._waiting.pop(nonce, None)

    def forget_silent(self, now_ns: int) -> None:
        """Forget candidates that no longer ask."""
        for nonce, one in list(self._waiting.items()):
            if now_ns - one.heard_ns >= self._limits.dead_after_ms * MS:
                del self._waiting[nonce]
        for worker, refused in list(self._refused.items()):
            if now_ns - refused.heard_ns >= self._limits.dead_after_ms * MS:
                del self._refused[worker]

    def evicted(self, worker: str, lived_ns: int, now_ns: int) -> None:
        """Note that a worker was evicted that had been a member for so long."""
        flaps = self._flaps.get(worker)
        has_clean_slate = flaps is None or lived_ns >= self._limits.rejoin_max_ms * MS
        self._flaps[worker] = _Flaps(1 if has_clean_slate else flaps.count + 1, now_ns)  # type: ignore[union-attr]
        for other, old in list(self._flaps.items()):
            if now_ns - old.at_ns > 2 * self._limits.rejoin_max_ms * MS:
                del self._flaps[other]

    def wait_ms(self, worker: str, now_ns: int) -> int:
        """Return for how long a flapping worker has to wait; 0 for not at all."""
        flaps = self._flaps.get(worker)
        if flaps is None:
            return 0
        wait_ms = min((flaps.count - 1) * self._limits.rejoin_step_ms, self._limits.rejoin_max_ms)
        return max(0, -(-(flaps.at_ns - now_ns) // MS) + wait_ms)

    def due(self, taken: Collection[str], now_ns: int) -> tuple[Candidate, ...]:
        """Return the candidates that may join now, once the first has waited for long enough.

        taken: ids of members.
        """
        able = [
            one
            for one in self._waiting.values()
            if one.candidate.id not in taken
            and not self.wait_ms(one.candidate.id, now_ns)
            and now_ns - one.heard_ns < self._limits.suspected_after_ms * MS
        ]
        first_ns = min((one.since_ns for one in able), default=now_ns)
        if now_ns - first_ns < self._limits.join_collect_ms * MS:
            return ()
        return tuple(one.candidate for one in able)
