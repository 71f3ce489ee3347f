"""Paths in texts of JSON: names and indexes, ``$.user.names[0]``."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.json_paths import LEVELS_MAX, STEPS_MAX, matched
from ripple.model.expression.program import FAILURES, NO_JSON
from ripple.model.expression.typed import Kind
from ripple.model.schema.text_columns import parts, text_column

INDEX_MAX = 1 << 31
_STEP = re.compile(
    r"""\.(?P<name>[^\s.\[\]'"*()?@,:]+)|\[(?P<index>[0-9]{1,10})\]"""
    r"""|\['(?P<single>[^'\\]+)'\]|\["(?P<double>[^"\\]+)"\]"""
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BLANKS = re.compile(r"[ \t\r\n]*")


def steps_of(path: str) -> list[str | int]:
    """Return the names and indexes of a path; raises PlanError."""
    found: list[str | int] = []
    at = 1
    while path.startswith("$") and at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        at = step.end()
        index = step["index"]
        found.append(step[step.lastgroup or 0] if index is None else int(index))
    if not path.startswith("$") or at < len(path):
        raise PlanError(
            f"a path in JSON is $ with names and indexes behind it, as in $.user.names[0] or "
            f"$['a b'], not {shown(path)}"
        )
    if len(found) > STEPS_MAX:
        raise PlanError(f"a path in JSON has at most {STEPS_MAX} steps, not {len(found)}")
    if any(isinstance(step, int) and step >= INDEX_MAX for step in found):
        raise PlanError(f"an index in a path in JSON is at most {INDEX_MAX - 1}")
    return found


def _match(array: Any, path: str, strict: bool = True) -> Any:
    steps = [step if isinstance(step, int) else step.encode() for step in steps_of(path)]
    found, places, pieces, wrong = matched(*parts(array), steps)
    result = text_column(places, pieces, found)
    return (result, wrong * np.uint8(NO_JSON)) if strict else result


def _plain_match(text: str, path: str, strict: bool = True) -> str | None:
    try:
        _check(text)
    except (ValueError, RecursionError):
        if strict:
            raise ValueError(FAILURES[NO_JSON]) from None
        return None
    begin = _BLANKS.match(text, 0).end()  # type: ignore[union-attr]  # it matches nothing, too
    for step in steps_of(path):
        inner = dict(_members(text, begin))
        if step not in inner:
            return None
        begin = inner[step]
    value, end = _DECODER.raw_decode(text, begin)
    if value is None or isinstance(value, str):
        return value
    return text[begin:end]


def _refuse(constant: str) -> None:
    raise ValueError(constant)


# Pairs as lists, so that a name that is there twice is seen; numbers as texts, of any length.
_DECODER = json.JSONDecoder(
    object_pairs_hook=lambda pairs: list(map(list, pairs)),
    parse_constant=_refuse,
    parse_int=float,
    parse_float=float,
)


def _check(text: str) -> None:
    """Raise ValueError or RecursionError for a text that is not JSON, or has too many levels."""
    value = _DECODER.decode(text)
    json.dumps(value, ensure_ascii=False).encode()  # no half of a character
    level = 0
    for letter in _STRING.sub("", text):
        level += (letter in "{[") - (letter in "}]")
        if level > LEVELS_MAX:
            raise ValueError("too deep")


def _members(text: str, begin: int) -> list[tuple[str | int, int]]:
    """Return the names or numbers of a value's members, and where each begins."""
    found: list[tuple[str | int, int]] = []
    if text[begin] not in "{[":
        return found
    at = _blanks_end(text, begin + 1)
    while text[at] not in "}]":
        name: str | int = len(found)
        if text[begin] == "{":
            name, at = _DECODER.raw_decode(text, at)
            at = _blanks_end(text, _blanks_end(text, at) + 1)
        found.append((name, at))
        at = _blanks_end(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _blanks_end(text, at + 1)
    return found


def _blanks_end(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _check_path(path: str, _strict: bool = True) -> None:
    steps_of(path)


JSON = table(
    Function(
        "str.json_path_match",
        ((Kind.TEXT,),),
        Kind.TEXT,
        _plain_match,
        columns=_match,
        may_be_null=True,
        check=_check_path,
    )
)
