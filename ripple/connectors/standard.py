"""Standard input, output and errors, by the names that the system has for them."""

from __future__ import annotations

import re

_NAME = re.compile(r"/dev/std(?P<word>in|out|err)|/(?:dev|proc/self)/fd/(?P<number>[012])")
_WORDS = ("in", "out", "err")


def descriptor_of(path: str) -> int | None:
    """Return the descriptor that a path names, 0 to 2; None for any other path.

    Behind such a name may be a file, of which somebody else says where it is read from or written
    to: it is neither opened anew nor replaced.
    """
    found = _NAME.fullmatch(path)
    if found is None:
        return None
    return _WORDS.index(found["word"]) if found["word"] else int(found["number"])
