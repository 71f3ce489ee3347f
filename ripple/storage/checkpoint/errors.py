"""Errors of checkpoints."""

from __future__ import annotations

from ripple.core.errors import RippleError


class CheckpointError(RippleError):
    """A checkpoint cannot be written, found or used."""
