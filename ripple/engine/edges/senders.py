"""One partition of the stage before, as the engine that follows it sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.core import cut as cuts
from ripple.core.errors import RippleError
from ripple.model.window import watermark

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges

NO_EPOCH = -1


class FollowError(RippleError):
    """A sender's rows cannot be taken now; nothing was changed."""


class SupersededError(FollowError):
    """It comes from an owner that another one has followed: drop it."""


class GapError(FollowError):
    """Something before it is missing: ask the sender for its whole table."""


class BehindError(FollowError):
    """The sender's table is older than the copy here: ask again later."""


@dataclass(slots=True)
class Sender:
    """The position up to which a sender was followed.

    Invariants: epoch never falls; cut only grows; watermark_ns
    never goes back.
    """

    name: str
    epoch: int = NO_EPOCH
    cut: Cut | None = None
    watermark_ns: int = watermark.NONE

    def is_news(self, epoch: int, changes: EdgeChanges) -> bool:
        """Return whether ``changes`` lead further; raises FollowError for changes that do not fit.

        Changes that overlap with earlier ones are a gap: a value that changed and changed back is
        not in them.
        """
        if epoch < self.epoch:
            raise SupersededError(
                f"sender {self.name!r}: epoch {epoch} is over, its epoch is {self.epoch}"
            )
        here = self.cut
        if here is not None and not cuts.is_within(here, changes.cut):
            raise BehindError(
                f"sender {self.name!r}: its cut is {dict(changes.cut)}, but here is {dict(here)}"
            )
        if changes.since is None:
            return True
        if epoch == self.epoch and here is not None and dict(changes.cut) == dict(here):
            # Where nothing was read nothing has changed, unless there are rows.
            return dict(changes.since) == dict(here)
        if epoch > self.epoch or here is None or dict(changes.since) != dict(here):
            raise GapError(
                f"sender {self.name!r}: changes since {dict(changes.since)}, epoch {epoch}, do not "
                f"follow {dict(here or {})}, epoch {self.epoch}"
            )
        return True

    def advance(self, epoch: int, changes: EdgeChanges) -> None:
        """Go to where ``changes`` lead."""
        self.epoch = epoch
        self.cut = dict(changes.cut)
        self.watermark_ns = max(self.watermark_ns, changes.watermark_ns)

    def resume(self, epoch: int, cut: Cut, watermark_ns: int) -> None:
        """Resume from a snapshot's position."""
        self.epoch, self.cut, self.watermark_ns = epoch, cut or None, watermark_ns
