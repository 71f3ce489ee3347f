"""Rows as plain values, for those who have no Ripple, too."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa


def plain(table: Any) -> list[list[Any]]:
    """Return rows as plain values; times as integers."""
    columns = [
        (column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column).to_pylist()
        for column in table.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def digest(rows: list[list[Any]]) -> str:
    """Return a digest of rows, in whatever order."""
    text = "\n".join(sorted(json.dumps(row) for row in rows))
    return hashlib.sha256(text.encode()).hexdigest()


def digest_in_order(rows: list[list[Any]]) -> str:
    """Return a digest of rows and their order."""
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
