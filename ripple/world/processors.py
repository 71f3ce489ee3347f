"""The processors that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress


def usable() -> int:
    """Return how many there are, at least 1."""
    with suppress(AttributeError):  # not every system can tie a process to some of them
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)
