"""A thread with an event loop, for synchronous callers: sinks and opening."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")


class Background:
    """An event loop in a thread of its own, until ``close``."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="ripple-background", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread."""
        self.close()

    def call(self, asked: Coroutine[Any, Any, T]) -> T:
        """Run something there, and wait for it."""
        doing = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return doing.result()
        except BaseException:
            doing.cancel()
            raise

    def close(self) -> None:
        """End the thread; closing twice is allowed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
