"""Comparison of state itself, including windows without emitted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.nodes import INTERNAL_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

_ROWS_AT_ONCE = 1 << 12


def first_difference(
    expected: pa.Table, found: pa.Table
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]] | None:
    """Return the first key with different state, and both states as text.

    Both are of one plan, with the same columns. The text is empty for a key that one side lacks.
    """
    # Columns of aggregates have a dot in their names, NAME.PART; fields have none.
    names = [
        name
        for name in expected.column_names
        if "." not in name and not name.startswith(INTERNAL_PREFIX)
    ]
    order = [(name, "ascending") for name in names]
    both = [table.sort_by(order) if order else table for table in (expected, found)]
    counts = [table.num_rows for table in both]
    for start in range(0, max(counts), _ROWS_AT_ONCE):
        one, other = (table.slice(start, _ROWS_AT_ONCE).to_pylist() for table in both)
        for at in range(max(len(one), len(other))):
            left, right = (rows[at] if at < len(rows) else {} for rows in (one, other))
            if repr(left) != repr(right):  # which distinguishes -0.0 and shows nan
                return _difference(names, left, right)
    return None


def _difference(
    names: list[str], left: Mapping[str, Any], right: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    keys = [{name: row[name] for name in names} for row in (left, right) if row]
    first = min(keys, key=lambda key: [(value is None, value) for value in key.values()])
    if len(keys) == 2 and keys[0] == keys[1]:
        differing = [name for name in left if repr(left[name]) != repr(right[name])]
        return first, {n: left[n] for n in differing}, {n: right[n] for n in differing}
    # In key order the lesser one is missing on the other side.
    is_left = bool(left) and first == keys[0]
    return (first, dict(left), {}) if is_left else (first, {}, dict(right))
