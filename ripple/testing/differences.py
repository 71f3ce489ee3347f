"""The differences of a result's rows from the expected ones, in a few lines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ripple.task.compared import Row, differing, is_nan, rows_of
from ripple.task.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS_MAX = 5
_CHARACTERS_MAX = 200
_VALUE_CHARACTERS_MAX = 40


def differences(left: object, right: object) -> list[str] | None:
    """Return the differences, for ``pytest``; None where no result has rows to compare."""
    if isinstance(left, Result) and isinstance(right, Result) and left.outputs != right.outputs:
        return [f"outputs {', '.join(left.outputs)} == outputs {', '.join(right.outputs)}"]
    if isinstance(left, Result) and isinstance(right, Result) and len(left.outputs) > 1:
        return [
            line
            for name in left.outputs
            if left[name] != right[name]
            for line in [f"output {name}:", *_between(left[name].rows(), right[name].rows())]
        ]
    one, other = _rows(left), _rows(right)
    return None if one is None or other is None else _between(one, other)


def _rows(given: object) -> list[Row] | None:
    if isinstance(given, Result):
        return [*given.rows()] if len(given.outputs) == 1 else None
    return rows_of(given)


def _between(left: Sequence[Row], right: Sequence[Row]) -> list[str]:
    if len(left) != len(right):
        return _by_content(left, right)
    found = [
        f"row {number}: {_columns(one, other)}"
        for number, (one, other) in enumerate(zip(left, right, strict=True))
        if differing(one, other)
    ]
    return [f"{len(found)} of {len(left)} rows differ", *_first(found)]


def _columns(left: Row, right: Row) -> str:
    """Return the values of differing columns, and of equal ones after them."""
    names = differing(left, right)
    same = {name: value for name, value in left.items() if name not in names}
    shown = ", ".join(f"{name}: {_pair(_value(left, name), _value(right, name))}" for name in names)
    return _short(f"{shown}" + (f"  (in {_text(same)})" if same else ""))


def _pair(left: str, right: str) -> str:
    """Return two texts; of long ones the parts around their first difference."""
    begin = 0
    if max(len(left), len(right)) > _VALUE_CHARACTERS_MAX:
        pairs = enumerate(zip(left, right, strict=False))
        first = next((at for at, (one, other) in pairs if one != other), 0)
        begin = max(first - _VALUE_CHARACTERS_MAX // 2, 0)
    one, other = (
        ("…" if begin else "") + _short(text[begin:], _VALUE_CHARACTERS_MAX)
        for text in (left, right)
    )
    return f"{one} == {other}"


def _value(row: Row, name: str) -> str:
    return repr(row[name]) if name in row else "no such column"


def _by_content(left: Sequence[Row], right: Sequence[Row]) -> list[str]:
    """Return the rows that one side has and the other has not: there are more on one."""
    lines = [f"{len(left)} rows == {len(right)} rows"]
    for side, rows, others in (("left", left, right), ("right", right, left)):
        left_over = Counter(map(_identity, others))
        found = []
        for number, row in enumerate(rows):
            identity = _identity(row)
            if left_over[identity]:
                left_over[identity] -= 1
            else:
                found.append(_short(f"row {number} on the {side} alone: {_text(row)}"))
        lines += _first(found)
    return lines


def _identity(row: Row) -> str:
    values: dict[str, Any] = {
        name: "nan" if is_nan(value) else _number(value) for name, value in sorted(row.items())
    }
    return repr(values)


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and abs(value) < 1 << 53 else value


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - ROWS_MAX
    return [*lines[:ROWS_MAX], *([f"and {more} more"] if more > 0 else [])]


def _text(row: Row) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in row.items())


def _short(text: str, characters_max: int = _CHARACTERS_MAX) -> str:
    return text if len(text) <= characters_max else f"{text[:characters_max]}…"
