"""Records that are read ahead are handed out on the grid of cuts, and few are held."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

import pytest

from ripple.connectors import buffered_input
from ripple.connectors.buffered_input import AHEAD_BYTES_MAX, BufferedInput
from ripple.connectors.connector import Reading
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.inputs import Signal
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputAwayError, InputError
from ripple.model.batch import Batch
from ripple.model.records import schema_of

WITHIN_S = 10


@dataclass
class Line:
    text: str


class Script(BufferedInput[int]):
    """Reads what a test gives it: offsets of records, an end in brackets, or an error."""

    def __init__(self, *steps: int | list[int] | Exception, follow: bool = True) -> None:
        shape = RecordShape(schema_of(Line))
        super().__init__(JsonValues(shape), Reading("lines", shape, 10, follow=follow))
        self.steps = deque(steps)
        self.added = asyncio.Event()

    async def read(self) -> None:
        while True:
            while self.steps:
                await self.room()
                step = self.steps.popleft()
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, list):
                    self.end = max(self.through, *step)
                    self.through = self.end
                else:
                    self.hold(step, b'{"text": "a"}', step)
                self.wake()
            self.added.clear()
            await self.added.wait()

    def add(self, *steps: int | list[int] | Exception) -> None:
        self.steps += steps
        self.added.set()

    async def take(self, at: int) -> Batch | Signal:
        """Return what comes at an offset, where something must come."""
        async with asyncio.timeout(WITHIN_S):
            while (said := self.next({"lines": at})) is Signal.WAITING:
                await self.more()
        return said if isinstance(said, Signal) else said[1]


async def ends_of(script: Script, at: int, count: int) -> list[int]:
    ends = []
    for _ in range(count):
        batch = await script.take(at)
        assert isinstance(batch, Batch)
        at = batch.next_offset
        ends.append(at)
    return ends


async def test_batches_end_at_multiples_of_their_size_and_at_the_known_end() -> None:
    script = Script(*range(3, 25), [25])
    await script.open({"lines": 3}, 10)
    assert await ends_of(script, 3, 3) == [10, 20, 25]
    assert script.marks == {10: 9, 20: 19, 25: 24}
    assert script.next({"lines": 25}) is Signal.WAITING
    script.add(25, [26])
    assert await ends_of(script, 25, 1) == [26]
    await script.close()


async def test_an_input_that_is_not_followed_ends_at_its_end_and_each_one_at_a_stop() -> None:
    script = Script(*range(5), [5], follow=False)
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 1) == [5]
    assert await script.take(5) is Signal.ENDED
    script.add(*range(5, 15))
    await script.open({"lines": 5}, 10, {"lines": 8})
    assert await ends_of(script, 5, 1) == [8]
    assert await script.take(8) is Signal.ENDED
    await script.close()


async def test_a_hole_belongs_to_the_batch_that_it_is_in() -> None:
    script = Script(0, 27, [30])
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 3) == [10, 20, 30]
    assert script.marks == {10: 0, 30: 27}
    await script.close()


async def test_a_long_hole_is_one_batch() -> None:
    script = Script(0, 2_000_000_007, [4_000_000_000])
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 4) == [10, 2_000_000_000, 2_000_000_010, 4_000_000_000]
    assert script.marks == {10: 0, 2_000_000_010: 2_000_000_007}
    script.add(2_000_000_007)
    await script.open({"lines": 4}, 10, {"lines": 1_000_000_003})
    assert await ends_of(script, 4, 1) == [1_000_000_003]
    assert await script.take(1_000_000_003) is Signal.ENDED
    await script.close()


async def test_records_before_an_error_are_handed_out_before_it_is_raised() -> None:
    script = Script(0, 1, InputError("gone"))
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 1) == [2]
    with pytest.raises(InputError, match="gone"):
        await script.take(2)
    await script.close()


async def test_reading_is_repeated_after_outages_while_it_gets_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffered_input, "DELAYS_S", (0.0, 0.0, 0.0))
    away = InputAwayError("away")
    script = Script(away, away, 0, away, away, away, 1, [2], away, away, away, away)
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 1) == [2]
    with pytest.raises(InputAwayError):
        await script.take(2)
    assert not script.steps
    await script.close()


async def test_few_records_are_held_but_for_the_batch_that_is_asked_for() -> None:
    script = Script(*range(200_000))
    await script.open({"lines": 0}, 10)
    assert await ends_of(script, 0, 1) == [10]
    async with asyncio.timeout(WITHIN_S):
        while not script.is_full:
            await asyncio.sleep(0)
    assert script.through < AHEAD_BYTES_MAX // buffered_input.RECORD_BYTES
    await script.open({"lines": script.through}, 100_000)
    begin = script.through
    assert await ends_of(script, begin, 1) == [begin // 100_000 * 100_000 + 100_000]
    await script.close()
