"""Memory of this process."""

from __future__ import annotations

import os

_STATM = "/proc/self/statm"


def resident_bytes() -> int:
    """Return the resident bytes, 0 where the system does not tell (it is not Linux)."""
    try:
        file = os.open(_STATM, os.O_RDONLY)
    except OSError:
        return 0
    try:
        pages = int(os.read(file, 256).split()[1])
    finally:
        os.close(file)
    return pages * os.sysconf("SC_PAGE_SIZE")
