"""URIs of sources and outputs with their names, as ``NAME=URI``, in flags and settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMED = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)=(.*)", re.DOTALL)
# What begins a further source: a URI may have commas, but none before a name and a scheme.
_FURTHER = re.compile(r",(?=[A-Za-z0-9_][A-Za-z0-9_.-]*=[a-z][a-z0-9+.-]*:)")


def name_and_uri(text: str) -> tuple[str, str]:
    """Divide ``[NAME=]URI`` of an output or source; "" where none is named."""
    named = _NAMED.fullmatch(text)
    return ("", text) if named is None else (named[1], named[2])


def sources_listed(text: str) -> tuple[str, ...]:
    """Return the texts of comma-separated ``SOURCE=URI``, or the one URI, which may have commas."""
    return tuple(_FURTHER.split(text)) if _FURTHER.match(f",{text}") else (text,)


def sources_joined(sources: Mapping[str, str]) -> str:
    """Return URIs by source as the text that ``sources_listed`` takes; of one its URI alone."""
    if len(sources) == 1:
        return next(iter(sources.values()))
    return ",".join(f"{name}={uri}" for name, uri in sources.items())
