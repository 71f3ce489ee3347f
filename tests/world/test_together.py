"""Several requests at a time, of which some fail; work in threads without a waiter."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ripple.world import LiveExecutor
from ripple.world.together import called_off, together
from tests.patience import PATIENCE_S
from tests.world.clusters import in_sim_world


class Asked:
    """Requests that are answered after so many seconds."""

    def __init__(self) -> None:
        self.answered: list[str] = []

    async def answer(self, after_s: float, name: str) -> str:
        await asyncio.sleep(after_s)
        self.answered.append(name)
        return name

    async def fail(self, after_s: float, name: str) -> str:
        raise OSError(await self.answer(after_s, name))


@in_sim_world
async def test_answers_are_in_the_order_in_which_they_were_asked_for() -> None:
    asked = Asked()
    answers = await together(asked.answer(2, "late"), asked.answer(1, "early"))
    assert answers == ["late", "early"]


@in_sim_world
async def test_first_error_is_raised_once_all_others_are_answered() -> None:
    asked = Asked()
    with pytest.raises(OSError, match="first"):
        await together(
            asked.answer(3, "latest"),
            asked.fail(1, "first"),
            asked.fail(2, "second"),
            asked.answer(0, "earliest"),
        )
    assert asked.answered == ["earliest", "first", "second", "latest"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


@in_sim_world
async def test_cancelled_wait_leaves_nothing_under_way() -> None:
    asked = Asked()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await together(asked.answer(2, "never"), asked.answer(3, "never"))
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await asyncio.sleep(5)
    assert asked.answered == []


@in_sim_world
async def test_tasks_called_off_have_ended_and_their_errors_are_dropped() -> None:
    asked, ended = Asked(), list[str]()

    async def ends_late() -> None:
        try:
            await asyncio.sleep(9)
        finally:
            await asyncio.sleep(2)
            ended.append("late")

    doing = [asyncio.create_task(one) for one in (ends_late(), asked.fail(0, "failed"))]
    await asyncio.sleep(1)
    await called_off(*doing)
    await called_off()
    assert ended == ["late"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_repeatedly_cancelled_caller_waits_for_work_that_was_begun() -> None:
    begun, go_on = threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        ended.append("the work")

    doing = asyncio.ensure_future(LiveExecutor(1).run(work))
    await asyncio.to_thread(begun.wait)
    for _ in range(3):
        doing.cancel()
        await asyncio.sleep(0)
    assert not doing.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert ended == ["the work"]
