"""The steps of a planned move."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.decisions import commands as cmd
from ripple.control.assignment import Phase, epoch_of
from ripple.core.events import Committed, Restored, Started
from ripple.testing.cluster.worker import topic_of
from tests.worker.seen import Seen

MOVED = 0


class Move:
    """A partition on its way from one worker to another."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.former = seen.owner(MOVED)
        self.next = next(name for name in seen.scene.workers if name != self.former)
        self.count = len(seen.said)

    def begin(self) -> None:
        self.seen.scene.command(cmd.Move(MOVED, self.next, "by hand"))

    def has_said(self, kind: type) -> bool:
        return any(
            number == MOVED and process.startswith(self.next) and isinstance(event, kind)
            for _, process, number, _, event in self.seen.said[self.count :]
        )

    def is_fenced(self) -> bool:
        share, disk = self.seen.shares[MOVED], self.seen.scene.disk
        folder = f"{topic_of('shown')}/{MOVED}/epochs"
        fence = f"{epoch_of(share.since, 0):010}.fence"
        return self.is_switching() and disk.exists(f"{folder}/{fence}")

    def is_switching(self) -> bool:
        share = self.seen.shares[MOVED]
        return share.phase is Phase.SWITCHING and (share.owner or "").startswith(self.next)


# What has just happened, in order.
STEPS: dict[str, Callable[[Move], bool]] = {
    "it is to move": lambda move: move.seen.shares[MOVED].phase is Phase.WARMING,
    "the next one is to have it": Move.is_switching,
    "it has claimed the manifest": lambda move: move.has_said(Started),
    "it has fenced the outputs": Move.is_fenced,
    "it goes on": lambda move: move.has_said(Restored),
    "it has committed": lambda move: move.has_said(Committed),
    "the move is complete": lambda move: (
        move.seen.owner(MOVED) == move.next and move.seen.shares[MOVED].phase is Phase.OWNED
    ),
}
