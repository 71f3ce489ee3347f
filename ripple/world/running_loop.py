"""Whether an event loop is running."""

import asyncio


def is_in_a_loop() -> bool:
    """Tell whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
