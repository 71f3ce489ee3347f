"""Errors of chains and journals: damage, and writers that were fenced off."""

from __future__ import annotations

from ripple.core.errors import RippleError


class ChainError(RippleError):
    """A chain cannot be read or written."""


class DamagedError(ChainError):
    """An object does not hold the written bytes: it was cut, changed or lost."""


class FencedError(ChainError):
    """Another writer has added to the chain: this one must stop, and has changed nothing.

    epoch: the present owner's, None if unknown.
    """

    def __init__(self, message: str, epoch: int | None = None) -> None:
        super().__init__(message)
        self.epoch = epoch
