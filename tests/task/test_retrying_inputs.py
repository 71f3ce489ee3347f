"""Inputs whose server goes away are waited for, and read on only as a restarted life would."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ripple.connectors.inputs import Signal
from ripple.core import events
from ripple.core.errors import InputAwayError, InputError
from ripple.task import retrying_inputs
from ripple.task.retrying_inputs import RetryingInputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.core.cut import Cut

CUT = {"a": 7}
READ = {"a": "record 6"}


class Server:
    """Inputs whose answers are what a test says they are."""

    names = ("a",)

    def __init__(self) -> None:
        self.error: InputError | None = None
        self.asked: list[object] = []
        self.there = dict(READ)

    async def bounds(self) -> tuple[Cut, Cut]:
        return {"a": 0}, {"a": 9}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        self.asked.append(("check", dict(cut), dict(identities)))
        self._answer()
        if identities != self.there:
            raise InputError("it is another one")

    async def identities(self, cut: Cut) -> dict[str, str]:
        assert cut == CUT
        return dict(READ)

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        self.asked.append(("open", dict(cut), rows, stop))
        self._answer()

    def next(self, _cut: Cut) -> Signal:
        self._answer()
        return Signal.WAITING

    async def more(self) -> None:
        await asyncio.sleep(0)

    def wake(self) -> None:
        pass

    async def sync(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying_inputs, "PAUSE_S", 0.001)
    monkeypatch.setattr(retrying_inputs, "PAUSE_S_MAX", 0.002)
    monkeypatch.setattr(retrying_inputs, "EMIT_FIRST_S", 0.0)


async def opened(server: Server, patience_s: float | None = None) -> RetryingInputs:
    inputs = RetryingInputs(server, patience_s=patience_s)
    await inputs.open(CUT, 100, {"a": 8})
    server.asked.clear()
    return inputs


async def test_unavailable_input_is_waited_for_and_checked_before_it_is_resumed() -> None:
    server, told = Server(), []
    inputs = await opened(server)
    inputs.emit = told.append
    server.error = InputAwayError("no answer")
    assert inputs.next(CUT) is Signal.WAITING
    while len(server.asked) < 3:
        await asyncio.sleep(0)
        assert inputs.next(CUT) is Signal.WAITING
    server.error = None
    while not any(isinstance(one, events.InputBack) for one in told):
        await inputs.more()
    assert server.asked[-2:] == [("check", CUT, READ), ("open", CUT, 100, {"a": 8})]
    assert [type(one) for one in told] == [events.InputWaits, events.InputBack]
    assert told[0].error == "no answer"
    assert inputs.next(CUT) is Signal.WAITING
    await inputs.close()


async def test_input_that_comes_back_as_another_one_ends_the_task() -> None:
    server = Server()
    inputs = await opened(server)
    server.error = InputAwayError("no answer")
    inputs.next(CUT)
    server.error, server.there = None, {"a": "another"}
    await inputs.more()
    with pytest.raises(InputError, match="another one"):
        inputs.next(CUT)
    assert not any(one[0] == "open" for one in server.asked)
    await inputs.close()


async def test_input_that_is_gone_for_good_is_not_waited_for() -> None:
    server = Server()
    inputs = await opened(server)
    server.error = InputError("removed")
    with pytest.raises(InputError, match="removed"):
        inputs.next(CUT)


async def test_patience_ends_with_the_way_out() -> None:
    server = Server()
    inputs = await opened(server, patience_s=0.01)
    server.error = InputAwayError("no answer")
    inputs.next(CUT)
    await inputs.more()
    with pytest.raises(InputError, match=r"no answer; .*Start it again once the input is there"):
        inputs.next(CUT)


async def test_input_that_never_existed_is_an_error_at_once() -> None:
    server = Server()
    server.error = InputAwayError("no answer")
    with pytest.raises(InputAwayError):
        await RetryingInputs(server).open(CUT, 100)


async def test_reader_that_waits_is_woken_and_closed() -> None:
    server = Server()
    inputs = await opened(server)
    server.error = InputAwayError("no answer")
    inputs.next(CUT)
    inputs.wake()
    await inputs.more()  # though nobody is back
    await inputs.close()
    await inputs.close()
