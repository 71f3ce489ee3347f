"""Columns of the engine's own in answers: the identity of the asked row, and a failure's reason."""

from __future__ import annotations

from ripple.engine.snapshots.internal import internal

INPUT, OFFSET, INDEX = internal("input"), internal("offset"), internal("index")
REASON = internal("reason")
ROW = internal("row")
"""In a log of answers alone: the asked row of a failure, as an Arrow stream of one row."""
