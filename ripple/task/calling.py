"""The calls of a plan's asks, as tasks of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ripple.core.errors import NodeError
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.engine.operators.rows import reason_of
from ripple.model.pipeline.asking import CONCURRENCY_MAX
from ripple.task.calls import Call, Calls
from ripple.world.pauses import jittered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from ripple.model.pipeline.nodes import Ask
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Clock, Random

GIVEN_UP_MAX = CONCURRENCY_MAX
"""How many calls of an ask, given up, may still be ending."""
NEW_BYTES_MAX = 4 << 20
"""The bytes of answers, not taken yet, from which on no call is made."""
_NS = 1_000_000_000


class Calling:
    """Calls for rows, and gathers the answers.

    Invariants: ``_doing`` has a task for each call in progress, and ``_given_up`` the cancelled
    ones until they end, with the names of their asks. ``_waited_ns`` is how long ``more`` has
    waited: by it calls are too late and pauses over, since a call makes no progress while the
    engine works.
    """

    def __init__(self, plan: Plan, clock: Clock, random: Random) -> None:
        """Make no call yet."""
        self._clock = clock
        self._asks = {ask.name: ask for ask in plan.asks}
        self._calls = {
            ask.name: Calls(
                ask.concurrency, ask.timeout_ns, ask.retries, lambda s: jittered(s, random)
            )
            for ask in plan.asks
        }
        self._doing: dict[asyncio.Task[Any], tuple[str, Call]] = {}
        self._given_up: dict[asyncio.Task[Any], str] = {}
        self._outcomes: dict[str, list[Outcome]] = {ask.name: [] for ask in plan.asks}
        self._new: list[tuple[str, pa.RecordBatch]] = []
        self._waited_ns = 0
        self._woken = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether rows wait for calls, or answers to be taken."""
        return bool(self._new) or any(map(len, self._calls.values()))

    def add(self, unanswered: Mapping[str, pa.RecordBatch]) -> None:
        """Let rows wait for their calls; unanswered: with their identities, per ask."""
        for name, rows in unanswered.items():
            self._calls[name].add(_calls_for(self._asks[name], rows))

    def step(self) -> None:
        """Take the results of ended calls, and make the due ones.

        Raises NodeError where a function ends the process, or goes on though it was cancelled.
        """
        for task in [one for one in self._doing if one.done()]:
            name, call = self._doing.pop(task)
            self._end(name, call, task)
        self._check_given_up()
        now_ns = self._waited_ns
        late = {call for calls in self._calls.values() for call in calls.overdue(now_ns)}
        for task in [one for one, (_, call) in self._doing.items() if call in late]:
            name, call = self._give_up(task)
            timeout_s = self._asks[name].timeout_ns / _NS
            self._fail(name, call, f"TimeoutError: a call took longer than {timeout_s:g} s")
        for name, outcomes in self._outcomes.items():
            if outcomes:
                self._outcomes[name] = []
                self._new.append((name, answer_rows(self._asks[name], outcomes)))
        if sum(rows.nbytes for _, rows in self._new) >= NEW_BYTES_MAX:
            return
        for name, calls in self._calls.items():
            for call in calls.due(now_ns):
                task = asyncio.ensure_future(_called(self._asks[name], call))
                self._doing[task] = name, call

    def take(self) -> list[tuple[str, pa.RecordBatch]]:
        """Return the answers since the last call, each batch with the name of its ask."""
        found, self._new = self._new, []
        return found

    async def more(self, others: Iterable[asyncio.Future[Any]] = ()) -> None:
        """Wait until a call ends, or is due again, until one of ``others`` is done, or woken."""
        times_ns = [one.next_ns for one in self._calls.values()]
        next_ns = min((one for one in times_ns if one is not None), default=None)
        left_s = None
        if next_ns is not None:
            left_s = max(0, next_ns - self._waited_ns) / _NS
        began_ns = self._clock.monotonic_ns()
        waking = asyncio.create_task(self._woken.wait())
        try:
            await asyncio.wait(
                [waking, *others, *self._doing],
                timeout=left_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            self._waited_ns += self._clock.monotonic_ns() - began_ns
            waking.cancel()
            self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()

    def give_up(self) -> None:
        """Cancel all calls, and forget the rows that wait for theirs."""
        for task in list(self._doing):
            self._give_up(task)

    def _give_up(self, task: asyncio.Task[Any]) -> tuple[str, Call]:
        name, call = self._doing.pop(task)
        self._given_up[task] = name
        task.cancel()
        task.add_done_callback(self._forget)
        return name, call

    def _forget(self, task: asyncio.Task[Any]) -> None:
        del self._given_up[task]
        if not task.cancelled():
            task.exception()  # else asyncio tells that nobody took it

    def _check_given_up(self) -> None:
        """Raise NodeError where a function goes on and on after its calls were cancelled."""
        if len(self._given_up) <= GIVEN_UP_MAX:
            return
        name, count = Counter(self._given_up.values()).most_common(1)[0]
        if count > GIVEN_UP_MAX:
            raise NodeError(
                f"ask {name!r}: {count} calls took too long, were cancelled, and go on: let the "
                "function pass CancelledError on, which 'except BaseException' catches too"
            )

    def _end(self, name: str, call: Call, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._fail(name, call, "CancelledError: the function ended its own call")
            return
        error = task.exception()
        if error is None and isinstance(task.result(), _Exit):
            raise task.result().of(name)
        if error is None:
            self._calls[name].answered(call)
            self._outcomes[name].append(Outcome(call.row, task.result()))
        elif isinstance(error, Exception):
            self._fail(name, call, reason_of(error))
        else:
            raise error

    def _fail(self, name: str, call: Call, reason: str) -> None:
        if self._calls[name].failed(call, self._waited_ns):
            made = f"in {call.made} calls" if call.made > 1 else "in a call"
            self._outcomes[name].append(Outcome(call.row, None, f"no answer {made}: {reason}"))


class _Exit:
    """An exit of the process, by a user's function or by its second Ctrl+C."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def of(self, name: str) -> BaseException:
        """Return what ends the run: an exit with 0 must not look like its end."""
        if isinstance(self._error, SystemExit):
            return NodeError(
                f"ask {name!r}: its function called sys.exit({self._error.code!r}): raise another "
                "error there, which is a failure of its row alone"
            )
        return self._error


async def _called(ask: Ask, call: Call) -> Any:
    """Return the function's result, or the exit that it raises.

    A task that raises an exit ends its loop at once, with nothing given up in good order.
    """
    try:
        return await ask.function(call.given())
    except (KeyboardInterrupt, SystemExit) as error:
        return _Exit(error)


def _calls_for(ask: Ask, rows: pa.RecordBatch) -> Iterator[Call]:
    """Yield the calls for rows with their identities, each with the row as an object."""
    make = ask.row or SimpleNamespace
    of = (rows.column(name).to_pylist() for name in (INPUT, OFFSET, INDEX))
    names = [field.name for field in ask.fields_in]
    values = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
    for identity, row in zip(zip(*of, strict=True), values, strict=True):
        # Made anew for each call: a function may change what it is given.
        yield Call(Identity(*identity), partial(make, **dict(zip(names, row, strict=True))))
