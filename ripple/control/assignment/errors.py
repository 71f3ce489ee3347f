"""Errors of the assignment."""

from __future__ import annotations

from ripple.core.errors import RippleError


class AssignmentError(RippleError):
    """A version of the assignment breaks its rules, or cannot be read; nothing was changed."""
