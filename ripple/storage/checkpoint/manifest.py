"""The manifest of a partition: the list of its checkpoints, and the fence around it.

It is a chain (:mod:`ripple.storage.fenced`). An entry holds the owner's epoch and the checkpoints
in force. A takeover appends an entry with a higher epoch; the previous owner finds its next number
taken, and stops.

Invariant, besides those of a chain: epochs never fall along it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.format import Checkpoint, checkpoint_of, fields_of
from ripple.storage.fenced import Chain, DamagedError, Entry, FencedError

CLAIM_ATTEMPTS_MAX = 16


@dataclass(frozen=True, slots=True)
class Holding:
    """The content of an entry. epoch: the owner's. checkpoints: newest first."""

    epoch: int
    checkpoints: tuple[Checkpoint, ...]


NOTHING = Holding(0, ())


class HoldingContent:
    """Holdings as the fields of an entry."""

    def to_fields(self, content: Holding) -> Mapping[str, Any]:
        """Return ``epoch`` and ``checkpoints``."""
        return {"epoch": content.epoch, "checkpoints": list(map(fields_of, content.checkpoints))}

    def from_fields(self, fields: Mapping[str, Any]) -> Holding:
        """Return the content of ``to_fields``."""
        return Holding(fields["epoch"], tuple(map(checkpoint_of, fields["checkpoints"])))


class Fence:
    """The right to write a manifest, until another owner claims it.

    Invariant: ``entry`` is the newest entry known to be this owner's.
    """

    def __init__(
        self,
        chain: Chain[Holding],
        entry: Entry[Holding],
        damaged: tuple[str, ...] = (),
        before: Holding = NOTHING,
    ) -> None:
        """damaged: the skipped newer entries, with reasons. before: the last owner's entry."""
        self.chain = chain
        self.entry = entry
        self.damaged = damaged
        self.before = before

    @classmethod
    async def claim(
        cls, chain: Chain[Holding], owner: str, epoch: int | None = None, *, above: int = 0
    ) -> Fence:
        """Become the owner by an entry that keeps the checkpoints of the newest one.

        owner: a nonce. epoch: given by the assignment, above all previous ones; None takes the next
        above ``above``, for the outputs may know a higher epoch than a manifest that was restored.
        Raises FencedError when ``epoch`` is not above the newest entry's, and DamagedError, with
        nothing changed, when no entry is readable: its checkpoints would be lost.
        """
        for _ in range(CLAIM_ATTEMPTS_MAX):
            reading = await chain.newest()
            if reading.entry is None and reading.damaged:
                raise DamagedError(
                    f"no checkpoint can be found, for nothing below {chain.prefix} can be read: "
                    f"{'; '.join(reading.damaged)}. Let it be read, or restore it from a copy; or "
                    f"remove all of {chain.prefix} to begin without checkpoints"
                )
            last = reading.entry.content if reading.entry else NOTHING
            if epoch is not None and epoch <= last.epoch:
                raise FencedError(
                    f"{chain.prefix} was claimed with epoch {last.epoch}, not below {epoch}",
                    last.epoch,
                )
            # An entry that cannot be read may have a higher epoch than the readable ones; as long
            # as epochs are taken here, it is not above its number.
            next_one = max(last.epoch, reading.newest_number, above) + 1
            taken = epoch if epoch is not None else next_one
            entry = reading.next(owner, Holding(taken, last.checkpoints), chain.codec)
            there = await chain.create(entry)
            if there is not None and (there.owner, there.content.epoch) == (owner, taken):
                await chain.check_newest(there)
                return cls(chain, there, reading.damaged, last)
        raise CheckpointError(
            f"{chain.prefix} was claimed by others {CLAIM_ATTEMPTS_MAX} times in a row: "
            "are several processes restarted over it at once?"
        )

    @property
    def epoch(self) -> int:
        """The owner's epoch."""
        return self.entry.content.epoch

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The checkpoints in force, newest first."""
        return self.entry.content.checkpoints

    async def append(
        self, change: Callable[[tuple[Checkpoint, ...]], tuple[Checkpoint, ...]]
    ) -> tuple[Checkpoint, ...]:
        """Apply ``change`` to the newest entry's checkpoints; return those it drops.

        Raises FencedError when another owner has claimed, StoreError when the outcome is unknown:
        the next append finds out.
        """
        while True:
            present = self.checkpoints
            entry = replace(
                self.entry,
                number=self.entry.number + 1,
                previous=self.entry.checksum,
                content=Holding(self.epoch, change(present)),
            )
            there = await self.chain.create(entry)
            mine = (self.entry.owner, self.epoch)
            if there is None or (there.owner, there.content.epoch) != mine:
                theirs = None if there is None else there.content.epoch
                claimant = "an epoch that cannot be read" if theirs is None else f"epoch {theirs}"
                raise FencedError(
                    f"an owner with {claimant} has claimed {self.chain.prefix}: "
                    f"epoch {self.epoch} must not write any more",
                    theirs,
                )
            await self.chain.check_next(there, self.entry)
            self.entry = there
            if there == entry:
                kept = {checkpoint.name for checkpoint in self.checkpoints}
                return tuple(one for one in present if one.name not in kept)
            # An append that had failed was stored after all; this one comes after it.

    async def forget(self) -> None:
        """Delete obsolete entries, now and then."""
        await self.chain.forget(self.entry)
