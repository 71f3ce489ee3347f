"""What can be wrong with a chain of entries, or with the right to add to it."""

from __future__ import annotations

from ripple.core.errors import RippleError


class ChainError(RippleError):
    """A chain cannot be read or written."""


class DamagedError(ChainError):
    """An object does not hold what was written: it was cut, changed or lost."""


class FencedError(ChainError):
    """Somebody else has added to the chain: this writer must stop, and has changed nothing.

    epoch: of the owner who is there, None where that is not known.
    """

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch
