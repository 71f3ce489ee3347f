"""What is shown, and what may be asked of whoever shows it. Values are such as JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from ripple.core.access import Right

Values: TypeAlias = "dict[str, Any]"


class AskedError(RippleError):
    """What was asked cannot be answered or done; the message says why, to whoever asked."""


class Shown(Protocol):
    """A cluster or a run, as the page shows it."""

    @property
    def name(self) -> str:
        """Of what is shown, for the title."""
        ...

    async def snapshot(self) -> Values:
        """Return what is so now; called once a tick, while somebody looks."""
        ...

    async def answer(self, what: str, asked: Mapping[str, str]) -> Values:
        """Return one of what is asked for by itself, such as ``checkpoints``.

        Raises AskedError, also for what there is not.
        """
        ...

    async def rows(self, asked: Mapping[str, str]) -> tuple[str, bytes]:
        """Return all rows of ``output`` as an Arrow stream, and of which version they are.

        Raises AskedError.
        """
        ...

    async def query(self, sql: str) -> Values:
        """Return what one statement in SQL says of outputs. Raises AskedError."""
        ...

    def needs(self, command: Mapping[str, Any]) -> Right:
        """Return what a command takes. Raises AskedError for one that there is not."""
        ...

    async def command(self, command: Mapping[str, Any], who: str) -> Values:
        """Do what somebody says, whose name is known. Raises AskedError."""
        ...
