"""Ordinary asyncio code under the simulated loop."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ripple.testing.sim.chance import Chance
from ripple.testing.sim.loop import SimLoop


def run(main: Callable[[], Awaitable[Any]], seed: int = 0) -> Any:
    loop = SimLoop(Chance(seed))
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def test_sleeping_takes_no_time() -> None:
    async def main() -> float:
        started = asyncio.get_running_loop().time()
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time() - started

    assert run(main) == pytest.approx(3600)


def test_timers_fire_in_order_of_their_time() -> None:
    async def main() -> list[int]:
        order: list[int] = []

        async def later(seconds: int) -> None:
            await asyncio.sleep(seconds)
            order.append(seconds)

        await asyncio.gather(*(later(seconds) for seconds in (3, 1, 2)))
        return order

    assert run(main) == [1, 2, 3]


def test_plain_callbacks_keep_their_order() -> None:
    async def main() -> list[int]:
        order: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(20):
            loop.call_soon(order.append, number)
        await asyncio.sleep(1)
        return order

    for seed in range(20):
        assert run(main, seed) == list(range(20))


def test_timeouts_cancellation_queues_and_threads_work() -> None:
    async def main() -> str:
        queue: asyncio.Queue[int] = asyncio.Queue(1)

        async def produce() -> None:
            for number in range(5):
                await queue.put(number)

        producer = asyncio.create_task(produce())
        got = [await queue.get() for _ in range(5)]
        await producer
        assert got == [0, 1, 2, 3, 4]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 1)
        sleeper = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        sleeper.cancel()
        done, _ = await asyncio.wait([sleeper])
        assert sleeper in done
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        return await asyncio.to_thread(str.upper, "done")

    for seed in range(50):
        assert run(main, seed) == "DONE"


def test_error_in_a_callback_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError):
        run(main)


def test_task_left_over_is_closed_silently() -> None:
    closed = []

    async def left_over() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            closed.append(True)
            await asyncio.sleep(100)

    async def main() -> None:
        asyncio.get_running_loop().create_task(left_over())
        await asyncio.sleep(1)

    run(main)
    assert closed == [True]


def test_awaitables_of_a_left_over_task_are_closed_silently() -> None:
    @asynccontextmanager
    async def held(never: asyncio.Future[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await never

    async def inner(never: asyncio.Future[None]) -> None:
        async with held(never):
            await never

    async def outer() -> None:
        await inner(asyncio.get_running_loop().create_future())

    async def main() -> None:
        loop.create_task(outer())
        await asyncio.sleep(1)

    loop = SimLoop(Chance(0))
    loop.run_until_complete(main())
    complaints: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", complaints.append)
        loop.close()
        gc.collect()
    assert complaints == []


def test_a_loop_around_the_simulated_one_waits_for_none_of_its_generators() -> None:
    kept: list[Any] = []

    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(1)
            yield number

    async def begun() -> None:
        kept.append(numbers())
        await anext(kept[0])

    async def around() -> None:
        hooks = sys.get_asyncgen_hooks()
        loop = SimLoop(Chance(0))
        loop.run_until_complete(begun())
        loop.close()
        assert sys.get_asyncgen_hooks() == hooks
        assert not asyncio.get_running_loop()._asyncgens  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    asyncio.run(around())
