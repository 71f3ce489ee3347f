"""Errors of a store that a retry does not cure."""

from __future__ import annotations

from ripple.world.errors import StoreError


class StoreRefusedError(StoreError):
    """The store rejects the request, and would again; the message names the remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class UnsafeStoreError(StoreRefusedError):
    """The store does not guarantee that the first put of a name wins."""
