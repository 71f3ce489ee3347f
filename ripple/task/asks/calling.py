"""The calls of a plan's asks, as tasks of the event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ripple.core.asked import KEY
from ripple.core.errors import NodeError
from ripple.core.events import Remark, no_listener
from ripple.engine.operators.answer_names import INDEX, INPUT, OFFSET, REASON
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.engine.operators.rows import reason_of
from ripple.model.pipeline.asking import CONCURRENCY_MAX
from ripple.model.schema.logical.values import values_of
from ripple.task.asks.answer_objects import with_rows
from ripple.task.asks.calls import Call, Calls
from ripple.task.asks.timed_turns import TimedTurns
from ripple.world.pauses import jittered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from ripple.core.events import EventListener
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Ask
    from ripple.world.ports import Clock, Random

GIVEN_UP_MAX = CONCURRENCY_MAX
"""The greatest number of cancelled calls of an ask that have not ended yet."""
BLOCKED_NS = 2_000_000_000
"""The time of a turn of the event loop from which on a warning names its function."""
NEW_BYTES_MAX = 4 << 20
"""The bytes of answers, not taken yet, from which on no call is begun."""
KINDS = CALLS, RETRIES, FAILURES = "calls", "retries", "failures"
"""What is counted by ask."""
COUNTS_NS = 1_000_000_000
"""How often calls are counted while no answer comes."""
_NS = 1_000_000_000


class Calling:
    """Calls for rows, and gathers the answers.

    Invariants: ``_doing`` has a task for each call in progress, and ``_given_up`` the cancelled
    ones until they end, with the names of their asks. ``_waited_ns`` is how long ``more`` has
    waited. Once a function ends the process no call begins.
    """

    def __init__(
        self, plan: Plan, clock: Clock, random: Random, emit: EventListener = no_listener
    ) -> None:
        """Begin without calls. emit: gets a remark on each blocking function."""
        self._clock, self._emit = clock, emit
        self._pipeline = plan.name
        self._asks = {ask.name: ask for ask in plan.asks}
        self._calls = {
            ask.name: Calls(
                ask.concurrency, ask.timeout_ns, ask.retries, lambda s: jittered(s, random)
            )
            for ask in plan.asks
        }
        self._doing: dict[asyncio.Task[Any], tuple[str, Call]] = {}
        self._given_up: dict[asyncio.Task[Any], str] = {}
        self._outcomes: dict[str, list[tuple[Outcome, Call]]] = {ask.name: [] for ask in plan.asks}
        self._new: list[tuple[str, pa.RecordBatch]] = []
        self._waited_ns = 0
        self._counts: dict[str, Counter[str]] = {}
        self._told_ns = clock.monotonic_ns()
        self._exit: BaseException | None = None
        self._blocking: set[str] = set()
        self._woken = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether rows wait for calls, or answers to be taken."""
        return bool(self._new) or any(map(len, self._calls.values()))

    @property
    def in_progress(self) -> Mapping[str, int]:
        """How many calls are in progress, by ask."""
        return Counter(name for name, _ in self._doing.values())

    @property
    def is_owed(self) -> bool:
        """Whether the run must wait for a call before it computes more."""
        now_ns = self._clock.monotonic_ns()
        return any(one.owed(now_ns, self._waited_ns) for one in self._calls.values())

    @property
    def _is_full(self) -> bool:
        """Whether new calls wait until answers are taken."""
        return sum(int(rows.nbytes) for _, rows in self._new) >= NEW_BYTES_MAX

    def add(self, unanswered: Mapping[str, pa.RecordBatch]) -> None:
        """Let rows wait for their calls; unanswered: with their identities, per ask."""
        for name, rows in unanswered.items():
            self._calls[name].add(_calls_for(self._asks[name], rows))

    def step(self) -> None:
        """Take the results of ended calls, and make the due ones.

        Raises NodeError for a function that ends the process, or ignores cancellation.
        """
        self._check_exit()
        now_ns, waited_ns = self._clock.monotonic_ns(), self._waited_ns
        for task in [one for one in self._doing if one.done()]:
            name, call = self._doing.pop(task)
            self._end(name, call, task, now_ns)
        self._check_given_up()
        late = {one for calls in self._calls.values() for one in calls.overdue(now_ns, waited_ns)}
        for task in [one for one, (_, call) in self._doing.items() if call in late]:
            name, call = self._give_up(task)
            timeout_s = self._asks[name].timeout_ns / _NS
            why = f"TimeoutError: a call took longer than {timeout_s:g} s"
            self._fail(name, call, why, now_ns)
        for name, outcomes in self._outcomes.items():
            if outcomes:
                self._outcomes[name] = []
                answers = answer_rows(self._asks[name], [one for one, _ in outcomes])
                self._count(FAILURES, name, answers.num_rows - answers.column(REASON).null_count)
                self._new.append((name, with_rows(answers, [call.asked for _, call in outcomes])))
        if self._is_full:
            return
        for name, calls in self._calls.items():
            for call in calls.due(now_ns, waited_ns):
                self._count(CALLS, name)
                if call.made > 1:
                    self._count(RETRIES, name)
                task = asyncio.ensure_future(self._called(self._asks[name], call))
                self._doing[task] = name, call

    def take(self) -> list[tuple[str, pa.RecordBatch]]:
        """Return the answers since the last call, each batch with the name of its ask."""
        found, self._new = self._new, []
        return found

    def _count(self, kind: str, ask: str, number: int = 1) -> None:
        if number:
            self._counts.setdefault(kind, Counter())[ask] += number

    def counts(self, *, is_due: bool = False) -> Mapping[str, Mapping[str, int]]:
        """Return how many calls, retries and failures are new, by ask; none within a second.

        is_due: also then.
        """
        now_ns = self._clock.monotonic_ns()
        if not self._counts or (now_ns - self._told_ns < COUNTS_NS and not is_due):
            return {}
        found, self._counts, self._told_ns = self._counts, {}, now_ns
        return found

    async def more(self, others: Iterable[asyncio.Future[Any]] = ()) -> None:
        """Wait until a call ends, or is due again, until one of ``others`` is done, or woken."""
        began_ns = self._clock.monotonic_ns()
        left_ns = [one.next_in_ns(began_ns, self._waited_ns) for one in self._calls.values()]
        next_ns = min((one for one in left_ns if one is not None), default=None)
        # Due calls stay due until answers are taken: with a timeout the loop would spin.
        left_s = None if next_ns is None or self._is_full else next_ns / _NS
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
        """Cancel all calls, and forget the rows that wait for theirs; raises as ``step``."""
        self._cancel()
        self._check_exit()

    def _cancel(self) -> None:
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
            task.exception()  # else asyncio logs an exception that was never retrieved

    def _check_given_up(self) -> None:
        """Raise NodeError for a function with too many cancelled calls that have not ended."""
        if len(self._given_up) <= GIVEN_UP_MAX:
            return
        name, count = Counter(self._given_up.values()).most_common(1)[0]
        if count > GIVEN_UP_MAX:
            raise NodeError(
                f"ask {name!r}: {count} calls took too long, were cancelled, and go on: let the "
                "function pass CancelledError on, which 'except BaseException' catches too"
            )

    def _end(self, name: str, call: Call, task: asyncio.Task[Any], now_ns: int) -> None:
        if task.cancelled():
            self._fail(name, call, "CancelledError: the function ended its own call", now_ns)
            return
        error = task.exception()
        if error is None:
            self._calls[name].answered(call)
            self._outcomes[name].append((Outcome(call.row, task.result()), call))
        else:
            self._fail(name, call, reason_of(error), now_ns)

    def _fail(self, name: str, call: Call, reason: str, now_ns: int) -> None:
        if self._calls[name].failed(call, now_ns):
            made = f"in {call.made} calls" if call.made > 1 else "in a call"
            failure = Outcome(call.row, None, f"no answer {made}: {reason}")
            self._outcomes[name].append((failure, call))

    async def _called(self, ask: Ask, call: Call) -> Any:
        """Return the function's result; note an exit of the process, and a blocked loop."""
        KEY.set("/".join(map(str, (self._pipeline, ask.name, *call.row))))
        try:
            return await TimedTurns(
                ask.function(call.given()), self._clock, partial(self._took, ask.name)
            )
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except SystemExit as error:
            # An exit with 0 must not look like the run's end.
            self._exit = NodeError(
                f"ask {ask.name!r}: its function called sys.exit({error.code!r}): raise another "
                "error there, which is a failure of its row alone"
            )
        except BaseException as error:
            # From a signal. Raised by the task, it would end the loop without a graceful shutdown.
            self._exit = error
        # Calls without a first turn would block in theirs.
        self._cancel()
        self.wake()
        return None

    def _check_exit(self) -> None:
        """Raise the error or signal that ends the run."""
        if self._exit is not None:
            raise self._exit

    def _took(self, name: str, turn_ns: int) -> None:
        """Emit one remark for each function that blocks the event loop."""
        if turn_ns >= BLOCKED_NS and name not in self._blocking:
            self._blocking.add(name)
            self._emit(
                Remark(
                    f"the function of {name!r} blocked the run for {turn_ns / _NS:.1f} s, and all "
                    "else with it: put what does not await into asyncio.to_thread"
                )
            )


def _calls_for(ask: Ask, rows: pa.RecordBatch) -> Iterator[Call]:
    """Yield the calls for rows with their identities, each with the row as an object."""
    make = ask.row or SimpleNamespace
    of = (rows.column(name).to_pylist() for name in (INPUT, OFFSET, INDEX))
    names = [field.name for field in ask.fields_in]
    columns = [values_of(rows.column(one.name).to_pylist(), one.type) for one in ask.fields_in]
    values = zip(*columns, strict=True)
    asked = rows.select(names)
    for at, (identity, row) in enumerate(zip(zip(*of, strict=True), values, strict=True)):
        # One object for each call: a function may change its argument.
        given = partial(make, **dict(zip(names, row, strict=True)))
        yield Call(Identity(*identity), given, partial(_dumped, asked, at))


def _dumped(rows: pa.RecordBatch, at: int) -> bytes | None:
    """Return a row as a dead letter has it."""
    # slow to import, rarely wanted
    from ripple.connectors.letter import dumps_record  # noqa: PLC0415

    return dumps_record(rows.slice(at, 1))
