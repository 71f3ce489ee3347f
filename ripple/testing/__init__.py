"""The public test kit: a slow, obvious interpreter, and a check of your pipeline against it."""

from __future__ import annotations

from ripple.testing.check import Divergence, Follower, Marker, check_pipeline
from ripple.testing.reference import Emit, Reference, Retract

__all__ = [
    "Divergence",
    "Emit",
    "Follower",
    "Marker",
    "Reference",
    "Retract",
    "check_pipeline",
]
