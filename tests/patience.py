"""How long tests wait for what must come.

It ends what hangs, and measures nothing: a machine that is busy, or ten times slower than this one,
fails no test by it. What a test promises about time, it says itself.
"""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 300.0
TEST_S = 3 * PATIENCE_S  # of an async test as a whole
PAUSE_S = 0.02


def until(
    is_so: Callable[[], object], said: Callable[[], str] = str, within_s: float = PATIENCE_S
) -> None:
    """Wait until something is so. said: what is told where it never is."""
    ends = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < ends, said()
        time.sleep(PAUSE_S)


async def comes(is_so: Callable[[], object]) -> None:
    """Wait until something is so, while others of the loop go on."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(PAUSE_S)
