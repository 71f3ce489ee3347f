"""Which tables a statement asks for, before anything understands it: some too many do no harm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that stand in a statement as words.

    SQL does not mind the case of names; of several that differ by it alone, those that stand there
    letter by letter are meant, if any does.
    """
    names = list(names)
    exact = {name for name in names if _stands(name, sql)}
    taken = {name.lower() for name in exact}
    return [
        name
        for name in names
        if name in exact or (name.lower() not in taken and _stands(name, sql, re.IGNORECASE))
    ]


def _stands(name: str, sql: str, flags: int = 0) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, flags) is not None
