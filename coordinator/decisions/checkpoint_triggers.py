"""Checkpoint triggers: each worker is told to store at its own times, every interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.ring import point_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.control.assignment.bounds import Who


class CheckpointTriggers:
    """The time of each member's last trigger or checkpoint; of the replica called ``replica``."""

    def __init__(self, replica: str, limits: Limits) -> None:
        self._replica = replica
        self._interval_ns = limits.checkpoint_interval_ms * MS
        self._last_ns: dict[Who, int] = {}

    def members_are(self, members: Iterable[Who], now_ns: int) -> None:
        """Set the members; new ones are spread over the interval."""
        before = self._last_ns
        self._last_ns = {
            who: before.get(who, now_ns - point_of(who[0]) % self._interval_ns) for who in members
        }

    def stored(self, who: Who, now_ns: int) -> None:
        """Note that a member has stored its checkpoints, for any replica's request."""
        if who in self._last_ns:
            self._last_ns[who] = now_ns

    def due(self, active: Iterable[Who], others: Iterable[str], now_ns: int) -> list[Who]:
        """Return the active members that this replica tells to store now.

        others: the replicas with fresh views. One of all replicas triggers each worker; where they
        disagree, two may, which does no harm.
        """
        replicas = [self._replica, *others]
        found = []
        for who in active:
            is_due = now_ns - self._last_ns.get(who, now_ns) >= self._interval_ns
            speaks = min((point_of(f"{name} {who[0]}"), name) for name in replicas)[1]
            if is_due and speaks == self._replica:
                self._last_ns[who] = now_ns
                found.append(who)
        return found
