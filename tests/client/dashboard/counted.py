"""A view that counts its snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ripple.client.dashboard.contract import AskedError
from ripple.core.access import Right


class Counted:
    """Something that counts how often it was looked at."""

    name = "counted"

    def __init__(self, *, fails: bool = False) -> None:
        self.snapshots = 0
        self.fails = fails

    async def snapshot(self) -> dict[str, Any]:
        self.snapshots += 1
        if self.fails:
            raise AskedError("no numbers today")
        return {"totals": {"rate_in": self.snapshots, "other": 1}}

    async def answer(self, what: str, asked: Mapping[str, str]) -> dict[str, Any]:
        raise AskedError(what)

    def needs(self, command: Mapping[str, Any]) -> Right:
        return Right.OPERATE

    async def command(self, command: Mapping[str, Any], who: str) -> dict[str, Any]:
        return {"done": "it"}
