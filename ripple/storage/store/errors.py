"""What a store answers that asking again does not change."""

from __future__ import annotations

from ripple.world.errors import StoreError


class StoreRefusedError(StoreError):
    """The store will not do it, however often it is asked; the message says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class UnsafeStoreError(StoreRefusedError):
    """The store does not keep the promise on which everything rests: the first put wins."""
