"""What can be wrong with a checkpoint, a manifest or the right to write them."""

from __future__ import annotations

from ripple.errors import RippleError


class CheckpointError(RippleError):
    """A checkpoint cannot be written, found or used."""


class DamagedError(CheckpointError):
    """An object does not hold what was written: it was cut, changed or lost."""


class FencedError(CheckpointError):
    """Another owner has claimed the partition: this one must stop, and has changed nothing."""
