"""Output formats of the commands: text, JSON, S-expressions; colours on terminals only."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TYPE_CHECKING, Any

from ripple.connectors.files.json.text import dumps
from ripple.core import sexp
from ripple.core.arguments import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ripple.core.sexp import Sexp

FORMS = ("text", "json", "sexp")
# Of everything printed as JSON or S-expressions: fields may be added, none changes its meaning.
VERSION = 1
_COLOURS = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "dim": "2"}


def many(count: int, noun: str) -> str:
    """Return ``1 letter`` or ``2 letters``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def add_format(
    parser: argparse.ArgumentParser,
    forms: Sequence[str] = FORMS,
    default: str = "text",
    *,
    shorthand: bool = True,
) -> None:
    """Add ``--format``; shorthand: also ``--json``, for ``--format json``."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--format", choices=forms, default=default, help="output format (default: %(default)s)"
    )
    if not shorthand:
        return
    choice.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )


def write(form: str, value: Mapping[str, Any], text: Callable[[], None]) -> None:
    """Print a value in a format; ``text`` prints it for people."""
    versioned = {"format_version": VERSION} | dict(value)
    if form == "json":
        print(as_json(versioned, indent=2))
    elif form == "sexp":
        print(sexp.dumps(as_sexp(versioned)))
    else:
        text()


def write_line(form: str, value: Mapping[str, Any]) -> None:
    """Print one of many values on a line of its own, and flush."""
    line = as_json(value) if form == "json" else sexp.dumps(as_sexp(dict(value)))
    print(line, flush=True)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON; NaN and infinities are null, as in sinks."""
    return dumps(value, is_ascii=True, indent=indent, default=_plain)


def as_sexp(value: Any) -> Sexp:
    """Return a JSON value as an S-expression: an object as pairs, null as ``()``."""
    match value:
        case None:
            return []
        case bool():
            return "true" if value else "false"
        case Enum():
            return as_sexp(value.value)
        case dict():
            return [[str(name), as_sexp(held)] for name, held in value.items()]
        case list() | tuple() | set() | frozenset():
            return [as_sexp(held) for held in value]
        case float():
            return repr(value)
        case _:
            return str(value)


def write_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, gap: bool = True) -> None:
    """Write aligned columns, unless there is no row. gap: after an empty line.

    Cells may be texts of users.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    if not rows:
        return
    lines = [titles, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    if gap:
        print()
    for number, line in enumerate(lines):
        text = "  ".join(map(str.ljust, line, widths)).rstrip()
        print(coloured(text, "bold") if number == 0 else text)


def has_colours() -> bool:
    """Return whether to write colours: to a terminal, unless NO_COLOR is set."""
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def coloured(text: str, colour: str) -> str:
    """Return a text in a colour, if colours are on."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if has_colours() else text


def shown(value: Any) -> str:
    """Return a value as a cell of a table."""
    if value is None:
        return "-"
    return repr(value) if isinstance(value, float) else plain(str(value))


def _plain(value: object) -> object:
    """Return a JSON value for a value that JSON lacks."""
    return value.value if isinstance(value, Enum) else str(value)
