"""The system's names of standard input, output and error."""

from __future__ import annotations

import re

_NAME = re.compile(r"/dev/std(?P<word>in|out|err)|/(?:dev|proc/self)/fd/(?P<number>[012])")
_WORDS = ("in", "out", "err")


def descriptor_of(path: str) -> int | None:
    """Return the descriptor that a path names, 0 to 2; None for any other path.

    Such a name may lead to a file whose position another process controls: it is neither opened
    anew nor replaced.
    """
    found = _NAME.fullmatch(path)
    if found is None:
        return None
    return _WORDS.index(found["word"]) if found["word"] else int(found["number"])
