"""The interface of a shown cluster or run. Values are JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from ripple.core.access import Right

Values: TypeAlias = "dict[str, Any]"


class AskedError(RippleError):
    """A request cannot be answered or carried out; the message says why."""


class Shown(Protocol):
    """A cluster or a run, for the page."""

    @property
    def name(self) -> str:
        """The name, for the title."""
        ...

    async def snapshot(self) -> Values:
        """Return a snapshot; called once a tick, while there are viewers."""
        ...

    async def answer(self, what: str, asked: Mapping[str, str]) -> Values:
        """Return data that is loaded on demand, such as ``checkpoints``.

        Raises AskedError, also for an unknown name.
        """
        ...

    async def rows(self, asked: Mapping[str, str]) -> tuple[str, bytes]:
        """Return all rows of ``output`` as an Arrow stream, and their version.

        Raises AskedError.
        """
        ...

    async def query(self, sql: str) -> Values:
        """Return the result of a SQL statement over outputs. Raises AskedError."""
        ...

    def needs(self, command: Mapping[str, Any]) -> Right:
        """Return the arguments of a command. Raises AskedError for an unknown command."""
        ...

    async def command(self, command: Mapping[str, Any], who: str) -> Values:
        """Carry out a command of a known user. Raises AskedError."""
        ...
