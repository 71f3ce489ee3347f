"""Ends of pipes that tests give to one side, as the other one."""

from __future__ import annotations

import asyncio
from typing import Any


class Silent:
    """Says nothing, and hears whatever it is told."""

    async def read(self) -> dict[str, Any] | None:
        await asyncio.Event().wait()
        return None

    async def write(self, message: dict[str, Any]) -> None:
        pass

    def close(self) -> None:
        pass
