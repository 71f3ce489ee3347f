"""Connections with a limit on waits for answers.

The system detects a machine that is gone. A machine that takes requests and never answers, since
its process is frozen or its disk hangs, is detected here.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ripple.core.extras import needed

with needed("postgres", "a table of PostgreSQL"):
    import psycopg
    from psycopg.errors import ConnectionTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg.abc import RV, PQGen

ANSWER_S = 45.0
PROBE_S = 10


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection with statements that may take as long as they need, while their server works.

    The wait for an answer continues after ANSWER_S if the server accepts another connection, made
    with ``settings``; "": there is none.
    """

    settings: str = ""

    def wait(self, gen: PQGen[RV], *given: Any, **more: Any) -> RV:
        """Wait as psycopg does. Raises OperationalError, and is closed, without an answer."""
        try:
            return super().wait(_in_time(gen, self._is_there), *given, **more)
        except _SilentError:
            self.pgconn.finish()
            raise

    def _is_there(self) -> bool:
        if not self.settings:
            return False
        try:
            psycopg.connect(self.settings, connect_timeout=PROBE_S).close()
        except ConnectionTimeout:
            return False
        except psycopg.Error:
            pass  # a rejection is an answer; if the server has ended, so has the connection
        return True


class AsyncConnection(psycopg.AsyncConnection[tuple[Any, ...]]):
    """A connection with statements that the server ends in time by itself, if it can."""

    async def wait(self, gen: PQGen[RV], *given: Any, **more: Any) -> RV:
        """Wait as psycopg does. Raises OperationalError, and is closed, without an answer."""
        try:
            return await super().wait(_in_time(gen, lambda: False), *given, **more)
        except _SilentError:
            self.pgconn.finish()
            raise

    async def __aexit__(self, *raised: Any) -> None:
        """End the transaction, and close, also where the task is cancelled meanwhile."""
        try:
            await super().__aexit__(*raised)
        finally:
            await self.close()


class _SilentError(psycopg.OperationalError):
    """The server holds the connection and says nothing."""


def _in_time(gen: PQGen[RV], is_there: Callable[[], bool]) -> PQGen[RV]:
    """Go on as ``gen`` does, which is told every moment whether the connection is ready."""
    heard_s = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > ANSWER_S:
                if not is_there():
                    raise _SilentError(f"the server has said nothing for {ANSWER_S:g} s")
                heard_s = time.monotonic()
            wanted = gen.send(ready)
    except StopIteration as done:
        result: RV = done.value
        return result
