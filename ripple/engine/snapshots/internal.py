"""The engine's own columns in tables of state: named so that no field can be called like them."""

from __future__ import annotations

from ripple.model.pipeline.nodes import INTERNAL_PREFIX


def internal(name: str) -> str:
    """Return the name of a column that is not a user's."""
    return f"{INTERNAL_PREFIX}{name}"
