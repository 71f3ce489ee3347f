"""One engine process of a worker: an event loop, its partitions, and a pipe to the supervisor.

It computes. Slow work here does not delay heartbeats, which another process (the supervisor) sends.
It ends when it is told to, or when the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import signal
import socket
import sys
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ripple.connectors.locate import sinks_by_output, sources_by_name
from ripple.control import event_loop, process
from ripple.control.assignment.founding import key_of
from ripple.control.assignment.generations import FIRST, ServingChain, previews_of
from ripple.control.telemetry.levels import Level
from ripple.control.telemetry.measures import Measures
from ripple.control.telemetry.memory import resident_bytes
from ripple.control.telemetry.process_log import log_of
from ripple.control.telemetry.sampler import SamplerLimits
from ripple.core.errors import RippleError
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.model.pipeline.file import load_plan
from ripple.storage.checkpoint.checkpoints import is_file
from ripple.storage.store import CountedStore, RetryingStore
from ripple.storage.store.cached import CachedStore
from ripple.storage.store.opening import open_store
from ripple.storage.store.s3_settings import is_s3
from ripple.task.endpoints import EndpointUris
from ripple.task.grouping import commit_interval_ns
from ripple.task.replay_debts import ReplayDebts
from ripple.task.settings import Settings as TaskSettings
from ripple.world import LiveClock, LiveDisk, ObjectStore, live_world
from worker.backpressure import Intake, Pressure
from worker.engine import files
from worker.engine.context import ProcessContext
from worker.engine.exchange import ExchangePort
from worker.engine.generation import Generation
from worker.engine.identity import code_of
from worker.engine.lane_home import lane_home
from worker.engine.routes import Routes
from worker.engine.runtime import Runtime
from worker.engine.serving import serve
from worker.engine.stages import has_state_edge
from worker.messages import FROM_ENGINE, TO_ENGINE, Begin, Cannot
from worker.pipe import DUMP_SIGNAL, IGNORED_SIGNALS, Pipe, first_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.control.assignment import Assignment
    from ripple.control.telemetry.log import Log
    from ripple.control.telemetry.tracing import Tracing
    from ripple.core.events import Event
    from ripple.model.pipeline.plan import Plan
    from worker.settings import Settings

# Interpreter switch interval: a thread that stores a checkpoint may compute so long while the loop
# waits. A tenth of Python's default: the loop is scheduled ten times as soon, and threads are as
# fast.
SWITCH_S = 0.0005
MS = 1_000_000  # nanoseconds in a millisecond


def main(given: list[str]) -> None:
    """Run as the supervisor's child; the argument is the number of a connected socket."""
    process.begin()
    _heed_no_signal()
    faulthandler.enable()
    faulthandler.register(DUMP_SIGNAL, all_threads=True)
    sys.setswitchinterval(SWITCH_S)
    # pyarrow loads pandas, if installed, for its first array: a spare process has time for that.
    pa.array([0])
    end = socket.socket(fileno=int(given[0]))
    begin = first_message(end)
    process.leave(1 if begin is None else _work(Pipe(end), TO_ENGINE.from_bytes(begin)))


def _heed_no_signal() -> None:
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED_SIGNALS)  # the supervisor has blocked them


def _work(pipe: Pipe, begin: Begin) -> int:
    log = log_of(begin.settings.log, **begin.settings.who, process=begin.process)
    try:
        plan = load_plan(begin.settings.pipeline)  # before there is a loop: user code may run one
        _check_same(plan, begin)
    except (RippleError, OSError) as error:
        return event_loop.run(_end_unable(pipe, log, str(error)))
    _heed_no_signal()  # user code may have changed signal handlers
    return event_loop.run(_serve(pipe, begin, plan, log))


def _check_same(plan: Plan, begin: Begin) -> None:
    """Raise ChangedPlanError if the pipeline file has changed since the supervisor loaded it."""
    code = code_of(plan)
    if (code.plan_hash, code.topology_hash) != (begin.plan_hash, begin.topology_hash):
        raise ChangedPlanError(
            f"{begin.settings.pipeline} has changed since the worker began: end the worker, and "
            "start it again (docs/changing.md, In a cluster)"
        )


async def _end_unable(pipe: Pipe, log: Log, why: str) -> int:
    log.say(f"cannot work: {why}", Level.ERROR)
    with suppress(ConnectionError):
        await pipe.write(FROM_ENGINE.to_bytes(Cannot(why.splitlines()[-1])))
    return 1


async def _serve(pipe: Pipe, begin: Begin, plan: Plan, log: Log) -> int:
    settings = begin.settings
    async with AsyncExitStack() as closing:
        store = await closing.enter_async_context(open_store(settings.own_store, settings.s3))
        shared = store  # with the other generations
        if settings.generation != FIRST:
            shared = await closing.enter_async_context(open_store(settings.store, settings.s3))
        return await _host(pipe, begin, plan, CountedStore(store), log, shared=shared)


async def _host(
    pipe: Pipe, begin: Begin, plan: Plan, store: CountedStore, log: Log, *, shared: ObjectStore
) -> int:
    try:
        parts = _runtime(begin, plan, store, log, shared=shared)
        port = parts.port
        await _listen(port, log, must=parts.is_followed)
    except (RippleError, OSError, ValueError) as error:
        log.say(f"cannot work: {error}", Level.ERROR)
        return 1
    # Loaded modules live as long as the process: exclude them from garbage collection, whose passes
    # would pause partitions.
    gc.collect()
    gc.freeze()
    speaking = asyncio.ensure_future(port.run())
    runtime = parts.runtime
    watching = asyncio.ensure_future(parts.generation.watch(LiveClock(), runtime.renew))
    serving = asyncio.ensure_future(
        serve(pipe, runtime, LiveClock(), log.say, parts.measures, lines=log.recent)
    )
    try:
        await asyncio.wait([speaking, serving], return_when=asyncio.FIRST_COMPLETED)
        if speaking.done():
            speaking.result()  # a bug of ours: partitions would wait for others for ever
        return await serving
    finally:
        serving.cancel()
        if parts.tracing is not None:
            await asyncio.to_thread(parts.tracing.close)
        speaking.cancel()
        watching.cancel()
        await asyncio.wait([speaking, serving, watching])
        log.close()


async def _listen(port: ExchangePort, log: Log, *, must: bool) -> None:
    """Open the output port. must: downstream stages need it, so failure is an error."""
    try:
        await port.open()
    except OSError as error:
        if must:
            raise
        log.say(
            f"output port unavailable, external clients cannot connect: {error}; change rpc_port",
            Level.WARN,
        )


def _runtime(
    begin: Begin, plan: Plan, store: CountedStore, log: Log, *, shared: ObjectStore
) -> _Parts:
    """Return the runtime, the measures, the tracer and the exchange.

    shared: the store that all generations name.
    """
    settings, name = begin.settings, begin.process
    sources = sources_by_name(plan, settings.sources)
    sinks = sinks_by_output(plan, settings.sinks)
    world = live_world(settings.root or ".", store=store)
    checkpoints: ObjectStore = RetryingStore(store, world.clock, world.random)
    if settings.cache and is_s3(settings.store):
        checkpoints = CachedStore(
            checkpoints,
            LiveDisk(settings.cache),
            world.random,
            bytes_max=settings.cache_mib << 20,
            is_kept=is_file,
        )
    record = ServingChain(RetryingStore(shared, world.clock, world.random))
    is_alone = is_s3(settings.store)  # which has no later generation
    generation = Generation(settings.generation, None if is_alone else record)
    previews = previews_of(settings.own_store, sinks)
    ends = EndpointUris(
        plan,
        sources,
        sinks,
        batch_rows=settings.batch_rows,
        executor=world.executor,
        present=lambda: generation.outputs(sinks, previews),
    )
    home = lane_home(settings.lanes, [*sources.values(), *sinks.values()])

    routes = Routes()
    port = ExchangePort(
        world,
        name,
        plan,
        routes.route,
        routes.partitions,
        address=begin.deltas,
        key=lambda: key_of(store),
        tls=settings.tls,
        emit=log.emit,
    )
    exchange = port.exchange

    inputs = sum(count for _, count in ends.counts())
    watcher = files.Watcher(process.files, partial(log.say, level=Level.WARN))

    def moved(assignment: Assignment) -> None:
        watcher.given(files.needed(plan, assignment, name, inputs))
        routes.update(assignment)
        port.refresh()

    measures = Measures(
        settings.worker_id,
        world.clock,
        memory_bytes=resident_bytes,
        traffic=exchange.traffic,
        store=store,
    )

    def emit(partition: int, event: Event) -> None:
        measures.on_event(partition, event)
        log.emit(event, partition=partition)

    def pressed(pressure: Pressure) -> None:
        level = Level.WARN if pressure.level else Level.INFO
        log.say(str(pressure), level, component="backpressure")

    intake = Intake(world.clock, thresholds=settings.thresholds, changed=pressed)
    intake.watch(lambda: {"outboxes": exchange.waiting_bytes})

    tracer = None
    if settings.trace_endpoint:
        from ripple.control.telemetry.tracing import Tracing  # noqa: PLC0415 - who asks for traces has it

        tracer = Tracing(
            settings.trace_endpoint,
            name,
            plan.name,
            world.clock.monotonic_ns,
            SamplerLimits(target_per_s=settings.traces_per_s),
        )

    context = ProcessContext(
        world,
        plan,
        checkpoints,
        ends,
        _task_settings(settings, sinks),
        emit,
        exchange,
        intake,
        tracer,
        home,
        debts=ReplayDebts(settings.checkpoint_debt_process_ms * MS),
        generation=generation,
    )
    runtime = Runtime(name, context, moved=moved, load=_Load())
    return _Parts(runtime, port, measures, tracer, has_state_edge(plan), generation)


class _Parts(NamedTuple):
    """The parts of a process. is_followed: downstream stages subscribe to its partitions."""

    runtime: Runtime
    port: ExchangePort
    measures: Measures
    tracing: Tracing | None
    is_followed: bool
    generation: Generation


class _Load:
    """CPU share that this process has used since it was last asked."""

    def __init__(self) -> None:
        self._last = (time.monotonic(), time.process_time())

    def __call__(self) -> float:
        before, self._last = self._last, (time.monotonic(), time.process_time())
        passed, used = self._last[0] - before[0], self._last[1] - before[1]
        return round(min(1.0, used / passed), 3) if passed > 0 else 0.0


def _task_settings(settings: Settings, sinks: Mapping[str, str]) -> TaskSettings:
    interval_ns = settings.commit_interval_ms * MS or commit_interval_ns(sinks.values())
    return TaskSettings(
        batch_rows=settings.batch_rows,
        commit_interval_ns=interval_ns,
        checkpoint_interval_ns=settings.checkpoint_interval_ms * MS,
        checkpoint_debt_ns=settings.checkpoint_debt_ms * MS,
        keep=settings.keep,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
