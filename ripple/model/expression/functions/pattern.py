"""Regular expressions: RE2's as far as they mean the same in each release, and for all of UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.arguments import plain, shown
from ripple.core.errors import PlanError

PATTERNS_MAX = 256  # compiled patterns in memory
GROUPS_MAX = 9  # in a replacement: RE2's have one digit

_GROUP = "(?P<group>"
_PLACES = frozenset({"^", "$", r"\b", r"\B", r"\A", r"\z"})
# Pieces that ``re`` has alike: no flags, no quotes, no classes with names, no \s, which is not \v
# here. Of a repeated group, RE2 and ``re`` may remember another turn.
_PLAIN = re.compile(
    r"""
    \\ [dDwWbBAntrf] | \\ [^0-9A-Za-z] | \[ \^? [0-9A-Za-z_/&?=,.\ -]+ \]
    | \( | \(\?: | \(\?P< .* | [^\\\[(]
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"\$(?:([0-9])|\{([0-9])\})")
_AGAIN = re.compile(r"[)}][*+{]|\{,")


def check_pattern(pattern: str) -> None:
    """Raise PlanError unless a pattern is one that we take."""
    escapes = [found[:2] for found in _escapes(pattern)]
    for escape in escapes:
        if escape in ("\\p", "\\P", "\\C"):
            raise PlanError(
                f"the pattern {shown(pattern)} has {escape}, whose meaning changes with versions"
                " of Unicode: list the letters, as in [a-z]"
            )
    beyond = not pattern.isascii() or "\\x" in escapes
    if beyond and re.search(r"\(\?[a-zA-Z]*i", pattern):
        raise PlanError(
            f"the pattern {shown(pattern)} has (?i) and letters beyond ASCII or \\x: give both"
            " letters, as in [éÉ]"
        )
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        reason = plain(str(error)).removeprefix("Invalid regular expression: ")
        raise PlanError(f"{shown(pattern)} is no pattern of RE2: {reason}") from None


def check_consuming(pattern: str) -> None:
    """Raise PlanError unless it is a pattern, one of which no match is empty."""
    check_pattern(pattern)
    # A place such as \b has no width: without places, what can be empty matches the empty text.
    anywhere = "".join("(?:)" if piece in _PLACES else piece for piece in _pieces(pattern))
    if pc.match_substring_regex(pa.array([""]), anywhere)[0].as_py():
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


@lru_cache(maxsize=PATTERNS_MAX)
def only_group(pattern: str, group: int) -> str:
    """Return the pattern with one group, named: the only way in which Arrow gives a group."""
    inner = _with_groups(pattern, {group: _GROUP})
    return inner if group else f"{_GROUP}{inner})"


def _with_groups(pattern: str, kept: Mapping[int, str]) -> str:
    """Return the pattern with only some groups, by number how each begins."""
    pieces, number = [], 0
    for piece in _pieces(pattern):
        if _is_group(piece):
            number += 1
            piece = kept.get(number, "(?:")  # noqa: PLW2901
        pieces.append(piece)
    quote = pieces[-1]
    if quote.startswith("\\Q") and not quote.endswith("\\E"):
        pieces.append("\\E")  # else it would go on over what is put behind the pattern
    return "".join(pieces)


@lru_cache(maxsize=PATTERNS_MAX)
def first_match(pattern: str, value: str) -> tuple[str, str]:
    """Return a pattern and a replacement that replace only the first match, wherever all are.

    The match goes from the text's begin on, so there is no other one; what is before the first
    match of ``pattern`` is a group, which the replacement puts there again.
    """
    by = replacement(value)
    used = sorted(set(groups_in(by)))
    if len(used) >= GROUPS_MAX:
        raise PlanError(f"{shown(value)} has {len(used)} groups, more than {GROUPS_MAX - 1}")
    numbers = {group: place + 2 for place, group in enumerate(used)}
    inner = _with_groups(pattern, dict.fromkeys(used, "("))
    begin = "(" if 0 in numbers else "(?:"
    after = _with_numbers(by, lambda group: f"\\{numbers[group]}")
    return f"\\A((?s:.*?)){begin}{inner})", f"\\1{after}"


def for_re(replacement: str) -> str:
    r"""Return a replacement of RE2 for ``re``, where ``\0`` is another thing."""
    return _with_numbers(replacement, lambda group: f"\\g<{group}>")


def _with_numbers(replacement: str, written: Callable[[int], str]) -> str:
    def one(found: re.Match[str]) -> str:
        return found[0] if found[1] == "\\" else written(int(found[1]))

    return re.sub(r"\\(.)", one, replacement)


def groups_in(replacement: str) -> list[int]:
    """Return the numbers of the groups in a replacement in the notation of RE2."""
    return [int(one) for one in re.findall(r"\\(.)", replacement) if one.isdecimal()]


def replacement(value: str) -> str:
    """Return a replacement in the notation of RE2: ``$1`` or ``${1}`` is group 1."""

    def written(found: re.Match[str]) -> str:
        text = found.group()
        if text == "\\":
            return "\\\\"
        if text == "$$":
            return "$"
        number = _NUMBER.fullmatch(text)
        if not number:
            raise PlanError(
                f"{shown(value)} has {text}: write $1 for a group, $$ for a dollar sign"
            )
        return f"\\{number[1] or number[2]}"

    return re.sub(r"\\|\$\$|\$\{[^}]*\}?|\$[0-9A-Za-z_]*", written, value)


@lru_cache(maxsize=PATTERNS_MAX)
def plain_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return the pattern for ``re`` if that means the same, else None."""
    pieces = _pieces(pattern)
    if not all(_PLAIN.fullmatch(piece) for piece in pieces) or _AGAIN.search(pattern):
        return None
    # re's $ is also before a last line's end.
    plain = "".join("\\Z" if piece == "$" else piece for piece in pieces)
    try:
        return re.compile(plain, re.ASCII)
    except (re.error, RecursionError):
        return None


def _escapes(pattern: str) -> Iterator[str]:
    for piece in _pieces(pattern):
        if not piece.startswith("\\Q"):
            yield from re.findall(r"\\.", piece, re.DOTALL)


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
    | \( \? :?                                             # another one
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
