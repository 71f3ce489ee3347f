"""A durable run that is waited for, in an event loop of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ripple.task.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ripple.task.report import Report

T = TypeVar("T")


def in_own_loop(life: Callable[[], Coroutine[Any, Any, T]], what: str) -> T:
    """Run a coroutine to its end. Raises RuntimeError, about ``what``, where a loop is running."""
    if _is_in_a_loop():
        raise RuntimeError(
            f"{what} needs an event loop of its own, and one is running here: call rp.run in a "
            "thread, as in 'await asyncio.to_thread(rp.run, ...)'"
        )
    return asyncio.run(life())


def run_durably(pipeline: Any, **arguments: Any) -> Report:
    """Run a Task of these arguments to its end; see ``rp.run``."""
    if _is_in_a_loop():
        raise RuntimeError(
            "rp.run with checkpoint_dir needs an event loop of its own, and one is running here: "
            "use 'async with rp.Task(...) as task: await task.run()'"
        )
    task = Task(pipeline, **arguments)

    async def run() -> Report:
        async with task:
            return await task.run()

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        if arguments["follow"] and task.report.stopped:
            return task.report
        raise


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
