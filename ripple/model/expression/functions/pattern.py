"""Regular expressions: RE2's as far as they mean the same in each release, and for all of UTF-8."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.arguments import plain, shown
from ripple.core.errors import PlanError

PATTERNS_MAX = 256  # compiled patterns that the plain twins remember

_GROUP = "(?P<group>"


def check_pattern(pattern: str) -> None:
    """Raise PlanError unless a pattern is one that we take."""
    for piece in _pieces(pattern):
        if piece[:2] in ("\\p", "\\P", "\\C"):
            raise PlanError(
                f"the pattern {shown(pattern)} has {piece[:2]}, whose meaning changes with versions"
                " of Unicode: list the letters, as in [a-z]"
            )
    if not pattern.isascii() and re.search(r"\(\?[a-zA-Z]*i", pattern):
        raise PlanError(
            f"the pattern {shown(pattern)} has (?i) and letters beyond ASCII: give both letters, as"
            " in [éÉ]"
        )
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = plain(str(error)).removeprefix("Invalid regular expression: ")
        raise PlanError(f"{shown(pattern)} is no pattern of RE2: {reason}") from None


def check_consuming(pattern: str) -> None:
    """Raise PlanError unless it is a pattern, one that does not match the empty text."""
    check_pattern(pattern)
    if pc.match_substring_regex(pa.array([""]), pattern)[0].as_py():
        raise PlanError(
            f"the pattern {shown(pattern)} matches the empty text, which is everywhere: write + for"
            " *, or .str.contains"
        )


def check_extract(pattern: str, group: int) -> None:
    """Raise PlanError unless it is a pattern with a group of that number; 0 is the whole match."""
    check_pattern(pattern)
    groups = groups_of(pattern)
    if group > groups:
        raise PlanError(
            f"the pattern {shown(pattern)} has no group {group}, but {groups}; 0 is the match"
        )


def groups_of(pattern: str) -> int:
    """Return the number of groups."""
    return sum(map(_is_group, _pieces(pattern)))


def only_group(pattern: str, group: int) -> str:
    """Return the pattern with one group, named: the only way in which Arrow gives a group."""
    if group == 0:
        return f"{_GROUP}{pattern})"
    pieces, number = [], 0
    for piece in _pieces(pattern):
        if _is_group(piece):
            number += 1
            piece = _GROUP if number == group else "(?:"  # noqa: PLW2901
        pieces.append(piece)
    return "".join(pieces)


def replacement(value: str) -> str:
    """Return a replacement in the notation of RE2 and ``re``: ``$1`` or ``${1}`` is group 1."""

    def written(found: re.Match[str]) -> str:
        text = found.group()
        if text == "\\":
            return "\\\\"
        if text == "$$":
            return "$"
        number = text.strip("${}")
        if len(number) != 1 or not number.isdecimal():
            raise PlanError(
                f"{shown(value)} has {text}: write $1 for a group, $$ for a dollar sign"
            )
        return f"\\{number}"

    return re.sub(r"\\|\$\$|\$\{[^}]*\}?|\$[0-9A-Za-z_]*", written, value)


@lru_cache(maxsize=PATTERNS_MAX)
def plain_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern for ``re``: the same for what both engines have."""
    # re's $ is also before a last line's end.
    pieces = ("\\Z" if piece == "$" else piece for piece in _pieces(pattern))
    return re.compile("".join(pieces), re.ASCII)


def _is_group(piece: str) -> bool:
    return piece == "(" or piece.startswith(("(?P<", "(?<"))


def _pieces(pattern: str) -> list[str]:
    r"""Return a pattern in pieces: an escape, a class, a \Q..., a group's begin, a letter."""
    return [found.group() for found in _PIECE.finditer(pattern)]


_PIECE = re.compile(
    r"""
    \\Q .*? (?: \\E | \Z)                                  # a quote
    | \\ .?                                                # an escape
    | \[ \^? \]? (?: \[: \^? [a-z]+ :\] | \\ . | [^\]\\] )* \]?   # a class
    | \( \? P? < [^>]* >                                   # a group with a name
    | \( \?                                                # another one
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
