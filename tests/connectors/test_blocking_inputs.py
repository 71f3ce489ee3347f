"""A one-shot run, which never waits, reads a whole topic on an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.blocking_inputs import BlockingInputs
from ripple.connectors.inputs import Signal, is_inputs
from ripple.core.errors import InputAwayError
from ripple.model.batch import Batch
from ripple.model.schema.columns import records_of
from ripple.task.one_shot import at_once


@rp.record(version=1)
class Number:
    x: int


class Slow:
    """Two inputs that must be waited for before each batch, and before they end.

    away: what raises InputAwayError.
    """

    names = ("in/0", "in/1")

    def __init__(self, away: str = "") -> None:
        self.away, self.closed, self._was_asked = away, 0, False

    def _answer(self, what: str) -> None:
        asyncio.get_running_loop()  # which a plain run has none of
        if what == self.away:
            raise InputAwayError(f"{what}: it is away")

    async def bounds(self) -> tuple[Any, Any]:
        self._answer("bounds")
        return {"in/0": 3, "in/1": 0}, {"in/0": 5, "in/1": 2}

    async def open(self, *_: Any) -> None:
        self._answer("open")

    def next(self, cut: Any) -> Any:
        self._answer("next")
        self._was_asked = not self._was_asked
        if self._was_asked:
            return Signal.WAITING
        for name, end in (("in/0", 5), ("in/1", 2)):
            if cut[name] < end:
                rows = records_of([{"x": cut[name]}], rp.schema_of(Number).fields)
                return name, Batch(rows, cut[name] + 1)
        return Signal.ENDED

    async def more(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        self.closed += 1


def test_a_run_that_never_waits_reads_to_the_ends() -> None:
    slow, threads = Slow(), threading.active_count()
    whole = BlockingInputs(slow)  # type: ignore[arg-type] # what is asked of them
    assert is_inputs(whole)
    first, _ = at_once(whole.bounds())
    cut, found, read = dict(first), [], []
    at_once(whole.open(cut, 10))
    assert whole.fraction_read is None
    while (said := whole.next(cut)) is not Signal.ENDED:
        read.append(whole.fraction_read)
        name, batch = said  # type: ignore[misc] # it never waits
        found.append((name, cut[name]))
        cut[name] = batch.next_offset
    assert [*read, whole.fraction_read] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert found == [("in/0", 3), ("in/0", 4), ("in/1", 0), ("in/1", 1)]
    for _ in range(2):
        at_once(whole.close())
    assert slow.closed == 1
    assert threading.active_count() == threads


@pytest.mark.parametrize("away", ["bounds", "open", "next"])
def test_errors_of_brokers_are_raised_and_no_thread_stays(away: str) -> None:
    slow, threads = Slow(away), threading.active_count()
    with pytest.raises(InputAwayError, match=f"{away}: it is away"):
        _read(slow)
    assert threading.active_count() == threads


def test_inputs_that_were_not_read_are_closed_too() -> None:
    slow, threads = Slow(), threading.active_count()
    unread = BlockingInputs(slow)  # type: ignore[arg-type] # as above
    for _ in range(2):
        at_once(unread.close())
    assert slow.closed == 1
    assert threading.active_count() == threads


def _read(slow: Slow) -> None:
    whole = BlockingInputs(slow)  # type: ignore[arg-type] # as above
    try:
        cut, _ = at_once(whole.bounds())
        at_once(whole.open(cut, 10))
        whole.next(cut)
    finally:
        at_once(whole.close())
