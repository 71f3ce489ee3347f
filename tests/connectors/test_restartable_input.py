"""A source of one method: what it yields is read once, again after a restart, and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import ripple as rp
from ripple.connectors import buffered_input, restartable_input
from ripple.connectors.connector import Reading
from ripple.connectors.inputs import Signal
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.restartable_input import RestartableInput
from ripple.core.errors import InputAwayError, InputError

WITHIN_S = 20


@rp.record(version=1)
class Line:
    n: int


SHAPE = RecordShape(rp.schema_of(Line))


class Lines(RestartableInput):
    """The documents of a mapping; it fails at an offset with an error, if there is one."""

    def __init__(self, found: dict[int, bytes | Exception], *, follow: bool = False) -> None:
        super().__init__("lines:here", Reading("lines", SHAPE, 10, follow=follow))
        self.found = found
        self.open_iterators = self.failures = 0

    def records(self, offset: int) -> Iterator[tuple[int, bytes]]:
        self.open_iterators += 1
        try:
            for at in sorted(self.found):
                document = self.found[at]
                if at >= offset:
                    if isinstance(document, Exception):
                        self.failures += 1
                        raise document
                    yield at, document
        finally:
            self.open_iterators -= 1


def numbered(first: int, end: int) -> dict[int, bytes | Exception]:
    return {n: b'{"n": %d}' % n for n in range(first, end)}


async def read(lines: Lines, cut: dict[str, int], until: int) -> list[int]:
    """Return the numbers up to an offset; ``cut`` goes along."""
    found: list[int] = []
    async with asyncio.timeout(WITHIN_S):
        while cut["lines"] < until:
            said = lines.next(cut)
            if said is Signal.WAITING:
                await lines.more()
                continue
            assert not isinstance(said, Signal), said
            found += said[1].records["n"].to_pylist()
            cut["lines"] = said[1].next_offset
    return found


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restartable_input, "LOOK_S", 0.0)


async def test_restart_reads_on_where_a_checkpoint_was() -> None:
    lines = Lines(numbered(0, 25), follow=True)
    cut = {"lines": 0}
    await lines.open(cut, 10)
    assert await read(lines, cut, 20) == list(range(20))
    known = await lines.identities(cut)
    await lines.close()
    assert lines.open_iterators == 0
    again = Lines(numbered(0, 25), follow=True)
    await again.check(cut, known)
    assert await again.identities(cut) == known
    await again.open(cut, 10)
    again.found |= numbered(25, 30)
    assert await read(again, cut, 30) == list(range(20, 30))
    await again.close()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (numbered(0, 19), "ends before 20, up to which it was read"),
        (numbered(0, 19) | {19: b'{"n": -1}'}, "record 19 is another one"),
        (numbered(0, 19) | numbered(20, 30), "record 19 is another one"),
    ],
)
async def test_changed_source_is_rejected_at_a_restart_and_while_it_is_read(
    changed: dict[int, bytes | Exception], why: str
) -> None:
    lines = Lines(numbered(0, 20), follow=True)
    cut = {"lines": 0}
    await lines.open(cut, 10)
    await read(lines, cut, 20)
    known = await lines.identities(cut)
    with pytest.raises(InputError, match=why):
        await Lines(changed).check(cut, known)
    lines.found = changed
    with pytest.raises(InputError, match=why):
        await read(lines, cut, 21)
    assert cut == {"lines": 20}
    await lines.close()


async def test_missing_offsets_are_holes_and_others_must_grow() -> None:
    lines = Lines(numbered(3, 5) | numbered(27, 28), follow=True)
    cut = {"lines": 0}
    await lines.open(cut, 10)
    assert await read(lines, cut, 28) == [3, 4, 27]
    await lines.close()

    class Backward(Lines):
        def records(self, offset: int) -> Iterator[tuple[int, bytes]]:
            yield from reversed([*super().records(offset)])

    lines = Backward(numbered(0, 3))
    await lines.open({"lines": 0}, 10)
    with pytest.raises(InputError, match="record 1 comes after 2"):
        await read(lines, {"lines": 3}, 4)
    await lines.close()


async def test_errors_of_the_system_name_the_source_and_are_waited_for() -> None:
    lines = Lines({0: OSError(2, "No such file")})
    with pytest.raises(InputAwayError, match=r"^cannot read lines:here: No such file$"):
        await lines.open({"lines": 0}, 10)
    lines = Lines(numbered(0, 5), follow=True)
    cut = {"lines": 0}
    await lines.open(cut, 10)
    await read(lines, cut, 5)
    lines.found[4] = OSError("away")
    async with asyncio.timeout(WITHIN_S):
        while not lines.failures:
            await asyncio.sleep(0)
    lines.found |= numbered(4, 8)
    assert await read(lines, cut, 8) == [5, 6, 7]
    await lines.close()


async def test_error_of_the_system_that_lasts_is_an_outage_for_the_task() -> None:
    class Impatient(Lines):
        moments = 0

    lines = Impatient(numbered(0, 5), follow=True)
    cut = {"lines": 0}
    await lines.open(cut, 10)
    await read(lines, cut, 5)
    lines.found[4] = PermissionError(13, "Permission denied")
    with pytest.raises(InputAwayError, match=r"^cannot read lines:here: Permission denied$"):
        await read(lines, cut, 6)
    lines.found |= numbered(4, 8)
    await lines.open(cut, 10)
    assert await read(lines, cut, 8) == [5, 6, 7]
    await lines.close()


def counts() -> Any:
    return (
        rp.Pipeline("sums")
        .source("lines", Line, topic="lines")
        .partition("by-n", key="n")
        .fold("sums", count=rp.count())
        .sink("output", topic="sums")
    )


def test_one_shot_run_takes_inputs_as_they_are() -> None:
    sink, lines = MemorySink(), Lines(numbered(0, 25))
    report = rp.run(counts(), source=lines, sink=sink)
    assert (report.consumed, len(sink.rows())) == (25, 25)
    assert lines.open_iterators == 0


def test_inputs_can_be_read_by_one_run_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_input, "AHEAD_BYTES_MAX", 100)  # so that it waits for room
    monkeypatch.setattr(restartable_input, "ROWS_AT_ONCE", 1)
    lines = Lines(numbered(0, 2500))
    reports = [rp.run(counts(), source=lines, sink=MemorySink()) for _ in range(3)]
    assert [one.consumed for one in reports] == [2500] * 3
