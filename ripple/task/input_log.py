"""A log of a pipeline's own, in the store of its checkpoints, that is an input of a partition.

Its objects are those of a journal (``ripple.storage.fenced``), so a former owner can add nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from ripple.core.errors import InputError
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.fenced import Journal

if TYPE_CHECKING:
    from ripple.storage.fenced import Added
    from ripple.world.ports import Guards, ObjectStore, Random


class InputLog(ABC):
    """The entries of a partition, in order. Call ``open``, or ``read`` without becoming the owner.

    Its folder, its entries and the remedy for removed ones are given by each kind of log.
    """

    _folder: ClassVar[str]
    _entries: ClassVar[str]
    _removed: ClassVar[str]

    def __init__(
        self, store: ObjectStore, pipeline: str, partition: int, guards: Guards, of: str = ""
    ) -> None:
        """of: a subfolder of the kind's folder, where a partition has several."""
        self._prefix = f"{prefix_of(pipeline, partition)}{self._folder}/{of}"
        self._journal = Journal(store, self._prefix, guards=guards)
        self._guards = guards
        self._known: dict[int, Added] = {}

    @property
    @abstractmethod
    def first(self) -> int:
        """The first offset that can be read from."""

    @property
    @abstractmethod
    def end(self) -> int:
        """The offset after the last entry."""

    @abstractmethod
    def _take(self, added: list[Added]) -> None:
        """Take the objects of the journal. Raises InputError for damage."""

    async def newest_epoch(self) -> int:
        """Return the epoch of the newest owner, 0 for none. Raises StoreError."""
        return await self._journal.newest_epoch()

    async def open(self, epoch: int, random: Random) -> None:
        """Become the owner, and read the entries.

        Raises FencedError where another owner has this epoch or a higher one, StoreError, and
        InputError for a damaged object: none is guessed. Call ``read`` before: an owner's first
        object takes the place of all where none has data. Entries already read are not read again.
        """
        self._take(await self._journal.open(epoch, random, self._known))
        self._known = {}  # an owner reads no more

    async def read(self) -> None:
        """Read the present entries, and write nothing; raises as ``open``.

        Called again, it reads the new objects alone.
        """
        self._take(await self._journal.read(self._known))

    def check(self, offset: int) -> None:
        """Raise InputError unless the log reaches an offset."""
        if offset > self.end:
            raise InputError(
                f"{offset} {self._entries} were read, and their log holds {self.end}: it lies "
                "with the checkpoints, so give the folder of checkpoints that the outputs were "
                "written with, or begin with other outputs"
            )

    def check_first(self, offset: int) -> None:
        """Raise InputError if entries from an offset on are gone."""
        if offset < self.first:
            raise InputError(
                f"{self._entries} are read from {offset} on, and their log begins at "
                f"{self.first}: {self._removed}"
            )
