"""A durable run that is waited for, in an event loop of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ripple.task.task import Task
from ripple.world.running_loop import is_in_a_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ripple.task.report import Report

T = TypeVar("T")
GRACE_S = 5.0
"""How long, in seconds, cancelled tasks may go on at the end of a loop."""


def in_own_loop(life: Callable[[], Coroutine[Any, Any, T]], what: str) -> T:
    """Run a coroutine to its end, as ``asyncio.run`` does; a task that never ends is left behind.

    Raises RuntimeError, about ``what``, where a loop is running.
    """
    if is_in_a_loop():
        raise RuntimeError(
            f"{what} needs an event loop of its own, and one is running here: write "
            "'await rp.arun(...)' in place of rp.run, and 'await asyncio.to_thread(rp.collect, "
            "...)' in place of rp.collect"
        )
    runner = asyncio.Runner()
    try:
        return runner.run(life())
    finally:
        _end(runner)


def _end(runner: asyncio.Runner) -> None:
    """Close a loop without the wait of ``Runner.close`` for all its tasks and threads."""
    loop, are_left = runner.get_loop(), True
    try:
        are_left = runner.run(_go_on_though_cancelled())
    finally:
        if are_left:
            # Else it tells of each task that it was destroyed.
            loop.set_exception_handler(lambda *_: None)
        # Its executor may have the thread of a cancelled call.
        loop.close()
        asyncio.set_event_loop(None)


async def _go_on_though_cancelled() -> bool:
    """Cancel all other tasks; return whether some still go on after a while."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.get_running_loop().shutdown_asyncgens()
    return bool(tasks) and bool((await asyncio.wait(tasks, timeout=GRACE_S))[1])


def run_durably(pipeline: Any, **arguments: Any) -> Report:
    """Run a Task of these arguments to its end; see ``rp.run``."""
    if is_in_a_loop():
        raise RuntimeError(
            "rp.run with checkpoint_dir needs an event loop of its own, and one is running here: "
            "write 'await rp.arun(...)', or 'async with rp.Task(...) as task: await task.run()'"
        )
    task = Task(pipeline, **arguments)

    async def run() -> Report:
        async with task:
            return await task.run()

    try:
        return in_own_loop(run, "rp.run with checkpoint_dir")
    except KeyboardInterrupt:
        if arguments["follow"] and task.report.stopped:
            return task.report
        raise
