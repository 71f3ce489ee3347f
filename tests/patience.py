"""How long tests wait for what must come.

It ends what hangs, and measures nothing: a machine that is busy, or ten times slower than this one,
fails no test by it. What a test promises about time, it says itself.
"""

import time
from collections.abc import Callable

PATIENCE_S = 300.0
PAUSE_S = 0.02


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(PAUSE_S)
