"""Columns of the engine's own in answers: the identity of the asked row, and a failure's reason."""

from __future__ import annotations

from ripple.engine.snapshots.internal import internal

INPUT, OFFSET, INDEX = internal("input"), internal("offset"), internal("index")
REASON = internal("reason")
