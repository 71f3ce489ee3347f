"""S-expressions: the human-readable form of graphs, deltas and frames.

An S-expression is a ``str`` (an atom) or a ``list`` of S-expressions. The text form is that of
OCaml's sexplib: atoms are quoted only when they must be, and two neighbours are separated by a
space only when their text would otherwise run together.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from ripple.core.errors import RippleError

Sexp: TypeAlias = "str | list[Sexp]"

DEPTH_MAX = 256

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b"}
_UNESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b"}
_SIMPLE = re.compile(r"[!$-'*-:<-\[\]-{}~]+")  # without the first characters of comments
_PLAIN = re.compile(r"[!#-'*-:<-\[\]-~]+")
_SPECIAL = re.compile(r"[^ !#-\[\]-~]")
_PIECE = re.compile(r'\s*([()"]|[^\s()"]+)?')


class SexpError(RippleError):
    """A text is not an S-expression; the message gives the position."""


def dumps(value: Sexp) -> str:
    """Return the compact text of ``value``."""
    if isinstance(value, str):
        return _atom(value)
    text, after_atom = "(", False
    for item in value:
        if isinstance(item, str):
            text += f" {_atom(item)}" if after_atom else _atom(item)
            after_atom = True
        else:
            text += dumps(item)
            after_atom = False
    return f"{text})"


def loads(text: str) -> Sexp:
    """Read exactly one S-expression; raises :class:`SexpError` on anything else."""
    stack: list[list[Sexp]] = [[]]
    position, end = 0, len(text)
    while position < end:
        found = _PIECE.match(text, position)
        assert found is not None, "it matches anything"
        piece, position = found[1], found.end()
        if piece == "(":
            if len(stack) > DEPTH_MAX:
                raise SexpError(f"nested deeper than {DEPTH_MAX} at position {position - 1}")
            stack.append([])
        elif piece == ")":
            if len(stack) == 1:
                raise SexpError(f"unexpected ')' at position {position - 1}")
            closed = stack.pop()
            stack[-1].append(closed)
        elif piece == '"':
            piece, position = _read_quoted(text, position)
            stack[-1].append(piece)
        elif piece is not None:
            stack[-1].append(piece)
    if len(stack) > 1:
        raise SexpError(f"{len(stack) - 1} unclosed '(' at the end")
    if len(stack[0]) != 1:
        raise SexpError(f"expected one S-expression, found {len(stack[0])}")
    return stack[0][0]


def _atom(text: str) -> str:
    if _SIMPLE.fullmatch(text):
        return text
    if (
        _PLAIN.fullmatch(text)
        and "#|" not in text
        and "|#" not in text
        and not text.startswith("#;")
    ):
        return text
    return f'"{_SPECIAL.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _ESCAPES:
        return _ESCAPES[char]
    # sexplib escapes bytes, not code points, in decimal.
    return "".join(f"\\{byte:03d}" for byte in char.encode("utf-8", "surrogateescape"))


def _read_quoted(text: str, position: int) -> tuple[str, int]:
    out = bytearray()
    while position < len(text):
        char = text[position]
        if char == '"':
            return out.decode("utf-8", "surrogateescape"), position + 1
        if char != "\\":
            out += char.encode("utf-8", "surrogateescape")
            position += 1
            continue
        code = text[position + 1 : position + 4]
        if len(code) == 3 and code.isdigit() and int(code) < 256:
            out.append(int(code))
            position += 4
        elif code[:1]:
            out += _UNESCAPES.get(code[0], code[0]).encode()
            position += 2
        else:
            break
    raise SexpError("unterminated string at the end")
