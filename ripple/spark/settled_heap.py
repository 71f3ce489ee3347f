"""The heap of an executor's Python process, which Spark collects in full after each task."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle_heap() -> None:
    """Exempt imported modules from further collections; call it at the end of a task.

    They stay as long as the process, and are most of its objects: to scan them takes 50 ms of
    processor time, more than all else that Spark does for a small task.
    """
    gc.collect()
    gc.freeze()
