"""Detects partitions that are added to a topic, which a run does not read."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ripple.world.broker import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S = 30.0


class Counting(Protocol):
    """The part of a broker's interface that watches a topic."""

    async def partitions(self, topic: str) -> int:
        """Return how many a topic has; see Broker."""
        ...


class Growth:
    """Tells of partitions that were added to a topic, once for each number of them."""

    def __init__(
        self, reader: Counting, topic: str, partitions: int, warn: Callable[[str], None]
    ) -> None:
        """partitions: how many there were as reading began."""
        self._reader, self._topic, self._warn = reader, topic, warn
        self._read = self._known = partitions

    async def watch(self) -> None:
        """Look again and again, for ever. Reading meets a broker's refusals as well."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(BrokerError):
                found = await self._reader.partitions(self._topic)
                if found > self._known:
                    self._known = found
                    self._warn(
                        f"topic {self._topic} of Kafka has {found} partitions now, and "
                        f"{self._read} at the start: the others are not "
                        "read. To continue with those alone after a restart, name "
                        f"?partitions={self._read} after the topic; to read all, start over with "
                        "another folder of checkpoints and outputs"
                    )
