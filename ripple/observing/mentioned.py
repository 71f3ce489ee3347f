"""Which tables a statement asks for, before anything understands it: some too many do no harm."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that stand in a statement as words."""
    return [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql)]
