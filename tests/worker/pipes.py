"""Ends of pipes that tests give to one side, as the other one."""

from __future__ import annotations

import asyncio


class Silent:
    """Says nothing, and hears whatever it is told."""

    async def read(self) -> bytes | None:
        await asyncio.Event().wait()
        return None

    async def write(self, message: bytes) -> None:
        pass

    def close(self) -> None:
        pass
