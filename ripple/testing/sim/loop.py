"""An event loop without real time and without input: asyncio code, scheduled by a seed.

Ready tasks run in an order that the seed decides. The order of plain callbacks stays as asyncio
promises it; asyncio promises no order of tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio import events
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from ripple.testing.sim.time import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from concurrent.futures import Executor
    from contextvars import Context

    from ripple.testing.sim.chance import Chance

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TASKS_KEPT_MIN = 1000
CLOSES_MAX = 100


class SimFuture(asyncio.Future[Any]):
    """A future of a simulated loop.

    It hashes by number: sets of futures would go by addresses, which differ from run to run.
    """

    _number = 0  # until asked for: few are ever in a set

    def __hash__(self) -> int:
        if not self._number:
            self._number = self._loop.next_number()  # type: ignore[attr-defined]
        return self._number


class SimTask(asyncio.Task[Any]):
    """A task of a simulated loop, which hashes by number, too."""

    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            self._number = self._loop.next_number()  # type: ignore[attr-defined]
        return self._number


class SimHandle(asyncio.TimerHandle):
    """A callback; made and cancelled without asking whether the loop debugs.

    There is one for each step, and most of asyncio's attributes of it are always the same.
    """

    __slots__ = ()
    _repr = None
    _source_traceback = None
    _scheduled = False

    def __init__(  # deliberately not the one of asyncio
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: SimLoop,
        context: Context | None,
        when: float = 0.0,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._when = when

    def cancel(self) -> None:  # the timeline finds out when it is due
        self._cancelled = True
        self._callback = None  # type: ignore[assignment]  # as asyncio has it
        self._args = None  # type: ignore[assignment]


class SimLoop(asyncio.AbstractEventLoop):
    """The loop of one incarnation of a simulated process.

    ``after_step`` is called after each callback: it raises Crash when the process has died.
    Processes that share a ``timeline`` take turns. ``drift_ppm``: by how many millionths this
    process's clock is fast.
    """

    def __init__(
        self,
        chance: Chance,
        after_step: Callable[[], None] = lambda: None,
        timeline: Timeline | None = None,
        drift_ppm: int = 0,
    ) -> None:
        self.after_step = after_step
        self.paused = False
        self.step_ns = 0  # how long a step takes
        self.timeline = timeline or Timeline(chance)
        self.timeline.add(self)
        self.free_ns = 0  # when the step that it does now is done
        self._chance = chance
        self._rate = 1_000_000 + drift_ppm
        self.ready: list[SimHandle] = []
        self._held: list[SimHandle] = []  # timers that came due in a pause
        self._numbers = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_made = 0
        self._tasks_kept = TASKS_KEPT_MIN
        self._closed = False
        self._stopping = False

    # Running.

    def run_until_complete(self, future: Any) -> Any:
        """Run until ``future`` is done; return its result.

        Raises Crash, or SimulationStuckError when it can never be done.
        """
        task = asyncio.ensure_future(future, loop=self)
        self.timeline.run(task.done)
        return task.result()

    def run_forever(self) -> None:
        self._stopping = False
        self.timeline.run(lambda: self._stopping)

    # What the timeline asks.

    def due(self, handle: SimHandle) -> None:
        """Take a timer that is due."""
        (self._held if self.paused else self.ready).append(handle)

    def step(self) -> None:
        """Run one callback; its error passes through."""
        ready = self.ready
        handle = ready.pop(self._next() if len(ready) > 1 else 0)
        if handle._cancelled:
            return
        if self.step_ns:
            self.free_ns = self.timeline.now_ns + self.step_ns
        self.timeline.announce(self)
        try:
            handle._context.run(handle._callback, *handle._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:
            if not self._closed:
                raise

    def resume(self) -> None:
        """Continue after a pause; timers that came due meanwhile fire."""
        self.paused = False
        self.ready += self._held
        self._held.clear()

    def waiting(self) -> list[str]:
        """Return the names of waiting tasks, for messages."""
        return [_name_of(task.get_coro()) for task in self._tasks if not task.done()]

    def _next(self) -> int:
        ready = self.ready
        chosen = self._chance.below(len(ready))
        if _is_task(ready[chosen]):
            return chosen
        return next(index for index, handle in enumerate(ready) if not _is_task(handle))

    def stop(self) -> None:
        self._stopping = True

    def close(self) -> None:
        """Drop waiting tasks. The coroutines are closed in the order in which they were made.

        A finally block of theirs may run then; the effects of a dead process are no effects.
        """
        if self._closed:
            return
        self._closed = True
        self.timeline.remove(self)
        before, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        events._set_running_loop(None)  # one that waits even now is closed by that
        sys.set_asyncgen_hooks(None, None)
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close_quietly(task.get_coro())
            else:
                _see(task)
        events._set_running_loop(before)
        sys.set_asyncgen_hooks(*hooks)
        self.ready.clear()
        self._held.clear()
        self._tasks.clear()

    def is_running(self) -> bool:
        return self.timeline.is_running

    def is_closed(self) -> bool:
        return self._closed

    # Time.

    def time(self) -> float:
        return self._now_ns() / 1e9

    def time_ns(self) -> int:
        """Return virtual nanoseconds since the timeline began; looking takes one microsecond."""
        self.timeline.now_ns += 1000
        return self._now_ns()

    def _now_ns(self) -> int:
        return self.timeline.now_ns * self._rate // 1_000_000

    # Scheduling.

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = SimHandle(callback, args, self, context)
        if not self._closed:
            self.ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._call_at(self._now_ns() + round(delay * 1e9), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self._call_at(round(when * 1e9), callback, args, context)

    def call_at_ns(
        self, when_ns: int, callback: Callable[[*Ts], object], *args: *Ts
    ) -> asyncio.TimerHandle:
        """Call at a time of ``time_ns``."""
        return self._call_at(when_ns, callback, args, None)

    def _call_at(
        self,
        when_ns: int,
        callback: Callable[[*Ts], object],
        args: tuple[*Ts],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        handle = SimHandle(callback, args, self, context, when_ns / 1e9)
        if not self._closed:
            self.timeline.call_at(-(when_ns * -1_000_000 // self._rate), when_ns, self, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # found out when it is due

    # Futures and tasks.

    def next_number(self) -> int:
        """Return 1, 2, ...: the identity of an object made in this loop."""
        self._numbers += 1
        return self._numbers

    def create_future(self) -> asyncio.Future[Any]:
        return SimFuture(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        # Names that asyncio makes up count over the whole process.
        name = name or f"task-{self._tasks_made}"
        self._tasks_made += 1
        task = SimTask(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_kept:
            self._forget_what_is_done()
        return task

    def _forget_what_is_done(self) -> None:
        for task in self._tasks:
            if task.done():
                _see(task)
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks_kept = max(TASKS_KEPT_MIN, 2 * len(self._tasks))

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002 - all threads are this one
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Run ``func`` in a step of its own: a thread that is not interrupted."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:  # any error of the function, for its caller
                future.set_exception(error)
            else:
                future.set_result(result)

        async def step() -> None:
            run()

        self.create_task(step())
        return future

    async def shutdown_asyncgens(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass

    # Questions that asyncio asks.

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None:
        pass

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Let an error in a callback end the run; drop an error that was never asked for."""
        error = context.get("exception")
        if not self._closed and error is not None and "handle" in context:
            raise error

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)


def _is_task(handle: asyncio.Handle) -> bool:
    callback = handle._callback  # type: ignore[attr-defined]
    return isinstance(getattr(callback, "__self__", None), asyncio.Task)


def _see(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # otherwise reported as never retrieved


def _name_of(coroutine: Any) -> str:
    return str(getattr(coroutine, "__qualname__", type(coroutine).__name__))


def _close_quietly(coroutine: Any) -> None:
    """Close a dead coroutine and its awaited ones, and suppress their errors.

    The innermost first, and each again as long as it waits for something when it is closed. What
    its caller alone had left would be closed, and complain, when garbage is collected.
    """
    chain = []
    while hasattr(coroutine, "cr_frame"):
        chain.append(coroutine)
        coroutine = coroutine.cr_await
    for one in reversed(chain):
        for _ in range(CLOSES_MAX):
            with contextlib.suppress(BaseException):
                one.close()
            if one.cr_frame is None:
                break
