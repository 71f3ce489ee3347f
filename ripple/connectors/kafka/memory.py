"""Freed memory, reused by the next fetch."""

from __future__ import annotations

import ctypes
import functools
from typing import Final

# Of malloc.h; glibc takes them, other C libraries have no such function.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_KEPT_BYTES: Final = 64 << 20
_OWN_MAPPING_BYTES: Final = 32 << 20  # the most that glibc takes


@functools.cache
def keep_freed() -> None:
    """Let this process keep up to 64 MiB of freed memory at the end of its heap, once for all.

    A fetch comes in buffers of megabytes, each of which glibc would get from the kernel and give
    back again: half of the processor time of reading was to clear pages that were just there.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
