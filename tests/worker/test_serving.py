"""What an engine process does with its pipe, where its own code is at fault."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ripple.assignment import Report
from ripple.world import LiveClock
from worker.runtime import Runtime
from worker.serving import serve


class Silent:
    """A supervisor that says nothing, and hears whatever it is told."""

    async def read(self) -> dict[str, Any] | None:
        await asyncio.Event().wait()
        return None

    async def write(self, message: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass


class Broken(Runtime):
    """Cannot say how it is."""

    @property
    def report(self) -> Report:
        raise LookupError("a figure that is not there")


def test_a_process_that_cannot_say_how_it_is_ends_with_the_reason() -> None:
    async def run() -> None:
        runtime = Broken("w/0", lambda _: None)  # type: ignore[arg-type, return-value]
        await serve(Silent(), runtime, LiveClock(), lambda _: None)

    with pytest.raises(LookupError, match="a figure that is not there"):
        asyncio.run(asyncio.wait_for(run(), 5))
