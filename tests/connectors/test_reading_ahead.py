"""A task that reads ahead ends when it must, and no consumer waits for one that has ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ripple.connectors import reading_ahead
from ripple.connectors.reading_ahead import ReadingAhead

WITHIN_S = 5


async def test_reading_ends_though_a_client_swallows_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As clients do while they flush: a run that had read all waited for that for ever."""
    monkeypatch.setattr(reading_ahead, "CANCEL_S", 0.01)
    ended = []

    async def deaf() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    reading = ReadingAhead()
    reading.start(deaf)
    await asyncio.sleep(0)
    async with asyncio.timeout(WITHIN_S):
        await reading.stop()
    assert ended


async def test_error_of_the_reader_is_raised_to_the_consumer() -> None:
    async def failing() -> None:
        await asyncio.sleep(0)
        raise OSError("gone")

    reading = ReadingAhead()
    reading.start(failing, lambda error: ValueError(f"cannot read: {error}"))
    async with asyncio.timeout(WITHIN_S):
        await reading.more()
    assert reading.has_failed
    with pytest.raises(ValueError, match="cannot read: gone"):
        reading.check()
    await reading.stop()
    reading.start(asyncio.Event().wait)  # type: ignore[arg-type]  # whatever it returns
    reading.check()
    await reading.stop()


async def test_reading_pauses_until_the_consumer_takes_more() -> None:
    reading, rooms = ReadingAhead(), []

    async def read() -> None:
        while len(rooms) < 2:
            await reading.room()
            rooms.append(True)
            reading.wake()

    reading.start(read)
    for count in (1, 2):
        await asyncio.sleep(0.01)
        assert len(rooms) == count - 1
        reading.took()
        async with asyncio.timeout(WITHIN_S):
            await reading.more()
        assert len(rooms) == count
    await reading.stop()
