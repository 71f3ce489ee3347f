"""A worker process: serves its pages, supervises its children, and runs until told to stop."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import sinks_by_output, sources_by_name
from ripple.control.assignment import AssignmentChain, Candidate
from ripple.control.assignment.founding import founded
from ripple.control.assignment.member import process_of
from ripple.control.probes import serve_pages
from ripple.control.process_settings import listening
from ripple.control.settings_in_force import in_force
from ripple.control.telemetry.levels import Level
from ripple.control.telemetry.memory import resident_bytes
from ripple.control.telemetry.samples import Samples
from ripple.control.validity import validity_of
from ripple.core.errors import RippleError
from ripple.core.events import CoordinatorAnswered, Evicted
from ripple.core.setting import SettingsError
from ripple.storage.store import CountedStore, RetryingStore
from ripple.storage.store.opening import open_store
from ripple.task.endpoints import EndpointUris
from ripple.task.home import check_code
from ripple.world import LiveExecutor, live_world, processors
from ripple.world.addresses import joined
from ripple.world.live_control import LiveControl
from worker.engine.exchange import become_free
from worker.engine.identity import about, code_of, delta_addresses, ends_of
from worker.engine.lane_home import lane_home
from worker.engine.stages import has_lanes, has_state_edge
from worker.first_version import begin_above
from worker.messages import TO_ENGINE, Begin
from worker.pages import metrics_of, probes_of, samples_of
from worker.supervisor.membership import Membership
from worker.supervisor.spawning import Spawner
from worker.supervisor.supervisor import Supervisor
from worker.supervisor.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.connectors.connector import LaneHome
    from ripple.control.assignment import Code
    from ripple.control.probes import Shows
    from ripple.control.telemetry.log import Log
    from ripple.core.events import Event
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Listener, ObjectStore, World
    from worker.settings import Settings


class UnfinishedError(RippleError):
    """A worker ended before it had stored its results."""


async def work(settings: Settings, plan: Plan, log: Log, stopping: asyncio.Event) -> None:
    """Run a worker until ``stopping`` is set, and stop gracefully.

    Raises InputError, OutputError, PlanError and ChangedPlanError for a configuration that can
    never work, SettingsError for a port that is taken, and StoreError, all before the worker joins;
    UnfinishedError if other workers have to recover its partitions.
    """
    if settings.trace_endpoint:
        # Fail here, before the worker joins, if something is missing.
        from ripple.control.telemetry import tracing  # noqa: F401, PLC0415
    sinks = sinks_by_output(plan, list(settings.sinks))
    # Before the folder of the store is made: a refused worker leaves nothing.
    sources = sources_by_name(plan, settings.sources)
    for source in sources.values():
        check_not_read(source, sinks)
    ends = EndpointUris(
        plan,
        sources,
        sinks,
        batch_rows=settings.batch_rows,
        executor=LiveExecutor(),
        partitions=settings.partitions,
    )
    async with (
        open_store(settings.own_store, settings.s3, is_probed=True) as opened,
        AsyncExitStack() as ending,
    ):
        store = CountedStore(opened)
        await _work(
            settings, plan, store, log, stopping, places=(sources, sinks), ends=ends, ending=ending
        )


async def _work(
    settings: Settings,
    plan: Plan,
    store: CountedStore,
    log: Log,
    stopping: asyncio.Event,
    *,
    places: tuple[Mapping[str, str], Mapping[str, str]],
    ends: EndpointUris,
    ending: AsyncExitStack,
) -> None:
    """Work. places: the URIs of sources and of outputs, by name."""
    sources, sinks = places
    control = LiveControl(pipeline=settings.pipeline_name)
    world = live_world(settings.root or ".", store=store, control=control)
    processes = settings.processes or processors.usable()
    divides, needs_one, repartitioned = ends.divides, ends.needs_one, ends.repartitioned
    has = has_lanes(plan, divides=divides or bool(repartitioned))
    home = _home(settings, plan, [*sources.values(), *sinks.values()]) if has else None
    await check_code(store, plan, divides=divides or bool(repartitioned))
    lanes = _lanes(settings, home) if has else ""
    said = ends_of(sources, sinks, lanes, settings.batch_rows)
    inputs = ends.counts()
    code = code_of(
        plan, divides=divides, needs_one=needs_one, repartitioned=repartitioned, ends=said
    )
    pages = {name: getattr(settings, name) for name in ("health_port", "metrics_port")}
    addresses = delta_addresses(settings.host, settings.rpc_port, processes, pages)
    if has_state_edge(plan):
        await _become_free(settings, world, addresses)

    watch = Watch(world.clock, settings.alerts)
    spawn = Spawner(partial(_begin, settings, code, addresses), spares=settings.spares)
    ending.push_async_callback(spawn.close)
    worker = Supervisor(
        settings.worker_id,
        processes,
        spawn,
        world.clock,
        hung_after_s=settings.hung_after_ms / 1000,
        say=log.say,
        warn=partial(log.say, level=Level.WARN),
        inputs=inputs,
        watch=watch,
        lines=log.recent,
    )
    samples, name = Samples(), settings.worker_id
    own = _measuring(settings, world, samples, store)
    shown: dict[str, Mapping[str, Shows]] = {
        "health_port": probes_of(worker, about(plan)),
        "metrics_port": metrics_of(worker, own, plan, in_force(settings.origins)),
    }
    probes, metrics = [
        await _shown(settings, world, name, pages, ending) for name, pages in shown.items()
    ]
    addresses |= {"health": probes.address, "metrics": metrics.address}

    def candidate(nonce: str) -> Candidate:
        return Candidate(
            id=settings.worker_id,
            nonce=nonce,
            addresses=tuple(sorted(addresses.items())),
            processes=processes,
            code=code,
            inputs=inputs,
        )

    def emit(event: Event) -> None:
        if isinstance(event, CoordinatorAnswered):
            samples.observe("ripple_transport_rpc_latency_ns", event.nanoseconds, name)
        watch.on_event(event)
        message = None
        if isinstance(event, Evicted) and stopping.is_set():
            message = f"{event.worker} has left: {event.cause}"
        log.emit(event, message)

    chain = AssignmentChain(RetryingStore(store, world.clock, world.random))

    membership = Membership(
        world,
        chain,
        settings.coordinators,
        candidate,
        worker.report,
        worker.heard,
        tls=settings.tls,
        checkpoint=worker.store,
        emit=emit,
        heartbeat_interval_ms=settings.heartbeat_interval_ms,
        mark=partial(_mark_of, store),
    )
    if has:
        log.say(_lanes_text(plan, home, settings.root))
    log.say(
        f"worker {settings.worker_id} of {processes} processes; /health and /ready at "
        f"{probes.address}, /metrics at {metrics.address}"
    )
    watching = asyncio.ensure_future(watch.run(lambda: samples_of(worker, own()), log))
    ending.callback(watching.cancel)
    await begin_above(
        chain, plan, sinks, store=store, world=world, home=home, stopping=stopping, say=log.say
    )
    await worker.run(membership, stopping)
    await _end(worker, settings, "" if stopping.is_set() else worker.why_vain, log)


def _begin(settings: Settings, code: Code, addresses: Mapping[str, str], slot: int) -> bytes:
    name, address = process_of(settings.worker_id, slot), addresses[f"deltas/{slot}"]
    begin = Begin(name, address, code.plan_hash, code.topology_hash, settings)
    return TO_ENGINE.to_bytes(begin)


def _lanes_text(plan: Plan, home: LaneHome | None, root: str) -> str:
    where = root if home is None else home.name
    return f"stages of {plan.name} hand records to each other through topics of {where}"


async def _end(worker: Supervisor, settings: Settings, vain: str, log: Log) -> None:
    """Stop gracefully. vain: why other workers should take its partitions, "" if told to stop."""
    log.say(f"{vain or 'is told to stop'}: its partitions move away")
    is_complete = await worker.stop(
        move_away_s=settings.move_away_ms / 1000,
        stop_s=settings.stop_ms / 1000,
        reason=vain or "it was told to stop",
    )
    if vain:
        raise UnfinishedError(
            f"{vain}; other workers have its partitions: fix that, start it again"
        )
    if not is_complete:
        raise UnfinishedError(f"not everything was completed in {settings.stop_ms} ms")


def _home(settings: Settings, plan: Plan, places: Sequence[str]) -> LaneHome | None:
    """Return the home of repartition topics, None for the root's folder."""
    home = lane_home(settings.lanes, places)
    if not settings.root and home is None:
        raise SettingsError(
            f"stages of {plan.name} hand records to each other through logs, which are not in S3: "
            "give --lanes, a folder that all workers have, or kafka:BROKERS"
        )
    return home


def _lanes(settings: Settings, home: LaneHome | None) -> str:
    """Return the identifier of configured lanes, unless it follows from source and outputs."""
    if home is None:
        return os.path.realpath(settings.root or ".")
    return home.name if settings.lanes else ""


async def _mark_of(store: ObjectStore) -> str:
    there = await founded(store)
    return "" if there is None else there.mark


def _measuring(
    settings: Settings, world: World, samples: Samples, store: CountedStore
) -> Callable[[], Samples]:
    """Return the supervisor's own measurements."""
    validity = validity_of(settings.tls, world.clock)

    def own() -> Samples:
        samples.set("ripple_system_heap_words", resident_bytes() // 8, settings.worker_id)
        samples.set("ripple_worker_keys_budget", settings.alerts.max_keys_per_partition)
        if validity is not None:
            samples.set("ripple_worker_certificate_seconds_left", validity.left_s)
        samples.set_each("ripple_store_requests_total", store.requests, settings.worker_id)
        samples.set_each("ripple_store_bytes_total", store.length_bytes, settings.worker_id)
        return samples

    return own


async def _become_free(settings: Settings, world: World, addresses: Mapping[str, str]) -> None:
    """Wait until all processes can listen: children could not report this to anyone."""
    assert world.network is not None
    with listening("rpc_port", settings.origins):
        for address in addresses.values():
            await become_free(world.network, world.clock, address)


async def _shown(
    settings: Settings,
    world: World,
    name: str,
    pages: Mapping[str, Shows],
    ending: AsyncExitStack,
) -> Listener:
    """Serve pages at the port of a setting, until ``ending``."""
    assert world.network is not None
    with listening(name, settings.origins):
        at = joined(settings.host, getattr(settings, name))
        listener = await serve_pages(world.network, at, pages)
    ending.callback(listener.close)
    return listener
