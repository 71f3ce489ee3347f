"""Waiting until a cluster stands as it will go on."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from coordinator.service.messages import status_from_bytes
from ripple.control.rpc.methods import STATUS
from ripple.world.control import Channel, ControlError
from ripple.world.live_control import LiveControl
from tests.patience import PATIENCE_S

ANSWER_S = 20.0  # then it is asked again


async def settled(coordinator: str, workers: int) -> None:
    """Wait until so many workers have partitions, and nothing is under way.

    A worker that joins late on a slow machine has its share only after a while.
    """
    channel = LiveControl().channel(coordinator)
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await _is_settled(channel, workers):
                await asyncio.sleep(0.1)
    finally:
        await channel.close()


async def _is_settled(channel: Channel, workers: int) -> bool:
    with suppress(ControlError):
        status = status_from_bytes(await channel.call(STATUS, b"", deadline_s=ANSWER_S))
        have = sum(one.partitions > 0 for one in status.members)
        return have == workers and not (status.moves or status.unowned)
    return False
