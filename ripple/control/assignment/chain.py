"""The assignment chain: the versions in a store, which are the truth about ownership.

Each is an entry of a fenced chain: its number is the version; it has the checksum of the entry
before and the nonce of its proposer. All coordinators may propose at any time: one proposal of a
number wins, the others read the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment.epoch import VERSION_MAX
from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.form import AssignmentContent
from ripple.control.assignment.rules import check_follows
from ripple.control.assignment.version import Assignment, empty
from ripple.storage.fenced import Chain, DamagedError, Entry, FencedError, Reading
from ripple.world.errors import StoreError
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

PREFIX = "assign/"
VERSIONS_KEPT = 64  # so many stay readable, for people


class AssignmentChain:
    """Reads versions at ``prefix`` of a store, and proposes the next one.

    nonce: of this coordinator; a reader needs none.
    """

    def __init__(
        self,
        store: ObjectStore,
        nonce: str = "",
        *,
        prefix: str = PREFIX,
        versions_kept: int = VERSIONS_KEPT,
        guards: Guards = all_guards,
    ) -> None:
        self._nonce = nonce
        self._chain = Chain(
            store, prefix, AssignmentContent(), entries_kept=versions_kept, guards=guards
        )

    async def newest(self) -> Reading[Assignment]:
        """Return the newest version that can be read, and the number of the newest.

        Raises AssignmentError or ChainError for an object of a newer release of Ripple; StoreError.
        """
        reading = await self._chain.newest()
        if reading.entry is not None and reading.entry.content.version != reading.entry.number:
            raise AssignmentError(
                f"{self._chain.name_of(reading.entry.number)} holds version "
                f"{reading.entry.content.version}"
            )
        return reading

    async def begin_at(self, version: int) -> None:
        """Let the first version of an empty chain be this one, or a later one."""
        if not 1 <= version <= VERSION_MAX:
            raise AssignmentError(
                f"no version can be the first whose epochs are above those that outputs know: "
                f"{version} is more than {VERSION_MAX}; name other outputs"
            )
        await self._chain.begin_at(version)

    async def history(self) -> list[Assignment]:
        """Return the readable versions, oldest first: for people."""
        _, numbers = await self._chain.numbers()
        found = []
        for number in numbers:
            try:
                entry = await self._chain.get(number)
            except DamagedError:
                continue
            if entry is not None:
                found.append(entry.content)
        return found

    async def propose(self, reading: Reading[Assignment], after: Assignment) -> bool:
        """Add ``after`` to the chain as it was read; return whether it is there, and the newest.

        False: another proposal won. Raises StoreError if the outcome is unknown; reading again
        tells. Raises AssignmentError if ``after`` breaks a rule; LimitError if it is too long.
        """
        if after.version != reading.newest_number + 1:
            raise AssignmentError(f"version {after.version} does not follow what was read")
        before = reading.entry.content if reading.entry is not None else empty(after.stages)
        check_follows(before, after)
        entry = reading.next(self._nonce, after, self._chain.codec)
        if not await self._is_there(entry):
            return False
        try:
            await self._chain.check_newest(entry)
        except FencedError:
            return False
        return True

    async def _is_there(self, entry: Entry[Assignment]) -> bool:
        try:
            there = await self._chain.create(entry)
        except StoreError as error:
            if error.done is False:
                raise
            # It may have arrived although the reply was lost: the nonce shows that.
            try:
                there = await self._chain.get(entry.number)
            except DamagedError:
                return False
            if there is None:
                raise
        return there is not None and (there.owner, there.content) == (entry.owner, entry.content)

    async def forget(self, reading: Reading[Assignment]) -> None:
        """Delete old versions, now and then, in a way that keeps the fence."""
        if reading.entry is not None:
            await self._chain.forget(reading.entry)

    async def problems(self) -> tuple[str, ...]:
        """Read every stored version; return the chain's problems."""
        return await self._chain.problems()
