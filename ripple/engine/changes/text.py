"""Values as S-expressions, in the shapes that Ripple/OCaml prints, the source of this design.

A float is the shorter of 15 and 17 significant digits that reads back (``150.25``; ``150`` for
150.0; ``1E+22``; ``NAN``, without its payload), None ``()``, and a dict ``((key value)...)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.core.errors import DeltaError

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp


def float_text(value: float) -> str:
    """Return the text that sexplib prints for a float."""
    short = f"{value:.15G}"
    return short if float(short) == value or value != value else f"{value:.17G}"  # noqa: PLR0124


def value_to_sexp(value: Any) -> Sexp:
    """Return the S-expression of a value; raises :class:`DeltaError` if it has none."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case str() | int():
            return str(value)
        case None:
            return []
        case Mapping():
            return [[value_to_sexp(key), value_to_sexp(held)] for key, held in value.items()]
        case list() | tuple():
            return [value_to_sexp(item) for item in value]
        case _:
            raise DeltaError(f"a {type(value).__name__} has no S-expression: {value!r}")
