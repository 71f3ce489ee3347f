"""A durable run as one object: the pipeline, its source and sinks, and the folder of its state.

``rp.run(checkpoint_dir=...)``, ``ripple run --checkpoint-dir`` and services use it alike.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from ripple.connectors.cutting import check_batch_rows
from ripple.connectors.identity import check_places
from ripple.connectors.inputs import is_inputs
from ripple.connectors.locate import open_inputs
from ripple.connectors.stream import Stream
from ripple.core.arguments import need_bool, need_function, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.core.event_text import line_of
from ripple.core.events import InputBack, InputIdle, Remark, Restored
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import RetryingStore, RetrySettings
from ripple.storage.store.opening import open_store
from ripple.storage.store.s3_settings import is_s3
from ripple.task.arguments import (
    check_ends,
    folds_of,
    interval_ns,
    is_held,
    keep_of,
    plan_of,
    sinks_of,
    sources_of,
    store_of,
    uri_of,
)
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.durable_task import DurableTask
from ripple.task.grouping import commit_interval_ns, group_at
from ripple.task.home import check_home
from ripple.task.owned_state import Ownership
from ripple.task.report import Report
from ripple.task.retried import retried_remark
from ripple.task.retrying_inputs import PATIENCE_S, RetryingInputs
from ripple.task.settings import BATCH_ROWS, CHECKPOINT_INTERVAL, KEEP, Settings
from ripple.task.several_sources import inputs_of
from ripple.task.spec import TaskContext, TaskSpec
from ripple.world import LiveExecutor, live_world

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from types import TracebackType

    from ripple.connectors.inputs import Inputs
    from ripple.core.events import Event
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.world import ObjectStore, World

# A commit waits for its dead letters for as long as the store is away: it is no reason to end.
WAITING = RetrySettings(attempts_max=1_000_000, deadline_s=30 * 86_400.0)

_log = logging.getLogger("ripple.task")


class Task:
    """A durable run of a pipeline, in the event loop of a program.

    State and progress are kept in ``checkpoint_dir``. After a crash, or any other end, a new Task
    with the same arguments resumes, and outputs hold the same rows as after an undisturbed run::

        async with rp.Task(pipeline, source=..., sink=..., checkpoint_dir="state") as task:
            await task.run()

    One Task at a time runs a pipeline's state; ``run`` is called once.
    """

    @called("rp.Task", "pipeline")
    def __init__(
        self,
        pipeline: Pipeline | Plan,
        *,
        source: str | os.PathLike[str] | Stream | Inputs | Mapping[str, Any],
        sink: Any,
        checkpoint_dir: str | os.PathLike[str],
        follow: bool = False,
        batch_rows: int = BATCH_ROWS,
        commit_interval: str | int | None = None,
        checkpoint_interval: str | int = CHECKPOINT_INTERVAL,
        keep: int = KEEP,
        rebuild: Collection[str] = (),
        on_error: Literal["wait", "stop"] = "wait",
        on_batch: Callable[[Engine, Report], None] | None = None,
        on_event: Callable[[Event], None] | None = None,
        holder: str = "",
    ) -> None:
        """Check the arguments; nothing is opened before the Task is entered.

        source: the URI of a log, a topic or a stream that can be read again; an ``rp.Stream``, to
        which the program pushes rows again; ``ripple.connectors.inputs.Inputs``; or a mapping of
        source names to those when the pipeline has several sources. sink: the URI of a file, a
        log, a topic or a table; an object as ``rp.run`` takes it, which gets some changes again
        after a restart; or a mapping of output names to those when the pipeline has several.
        checkpoint_dir: a folder, made if absent, or ``s3://BUCKET/PREFIX``.
        follow: wait for more at the end of the source, and run until stopped.
        batch_rows: offsets between two outputs, as ``--batch`` of ``ripple run``.
        commit_interval, checkpoint_interval: how often outputs are committed and a checkpoint is
        stored, as ``"1s"``, or an int of nanoseconds from 1 ms on; by default, outputs commit
        each second, and each 250 ms where one is a topic of Kafka. keep: checkpoints that are kept.
        rebuild: changed folds, by name, to compute from the log's first record: docs/changing.md.
        on_error: ``"wait"`` for an input or a broker that is away, or ``"stop"`` with its error.
        on_batch: called after each batch. on_event: called with each event of
        ``ripple.core.events``; by default, those with a text are logged as ``ripple.task``.
        holder: how messages in other processes call this one.

        Raises PlanError, InputError and OutputError, which name the argument and the remedy.
        """
        self.plan = plan = plan_of(pipeline)
        self._sources: dict[str, str | Stream | Inputs] = {
            name: one if is_inputs(one) or isinstance(one, Stream) else uri_of(one, _SOURCE)
            for name, one in sources_of(plan, source).items()
        }
        self._sinks = {
            name: given if is_held(given, plan.output(name)) else uri_of(given, _SINK)
            for name, given in sinks_of(plan, sink).items()
        }
        self._place = store_of(checkpoint_dir)
        need_bool("follow", follow)
        self._follow = follow
        if not follow:
            check_ends(self._sources)
        check_batch_rows(batch_rows)
        if on_error not in ("wait", "stop"):
            raise PlanError(f"on_error must be 'wait' or 'stop', not {shown(on_error)}")
        self._waits = on_error == "wait"
        self._settings = Settings(
            batch_rows=batch_rows,
            commit_interval_ns=commit_interval_ns(self._sinks.values())
            if commit_interval is None
            else interval_ns(commit_interval, "commit_interval"),
            checkpoint_interval_ns=interval_ns(checkpoint_interval, "checkpoint_interval"),
            keep=keep_of(keep),
        )
        self._rebuild = folds_of(self.plan, rebuild)
        for name, function in (("on_batch", on_batch), ("on_event", on_event)):
            if function is not None:
                need_function(name, function)
        self._on_batch = on_batch or (lambda _, __: None)
        self._emit = on_event or self._log_event
        self._holder = holder or f"a program, process {os.getpid()} on {os.uname().nodename}"
        self._is_stopping = False
        self._closing: AsyncExitStack | None = None
        self._active: DurableTask | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- properties ---

    @property
    def report(self) -> Report:
        """The report of the run until now."""
        return Report() if self._active is None else self._active.report

    @property
    def engine(self) -> Engine:
        """The state; there is one once ``run`` has restored it."""
        assert self._active is not None, "nothing was restored yet"
        return cast("Engine", self._active.engine)

    @property
    def store(self) -> ObjectStore:
        """The store of checkpoints; open while the Task is entered."""
        return self._store

    @property
    def world(self) -> World:
        """The ports of all its effects."""
        return self._world

    # --- enter, run, leave ---

    async def __aenter__(self) -> Self:
        """Open the source and the store; neither is read from or changed.

        Raises InputError, OutputError, ConnectorError, ChangedPlanError and StoreError.
        """
        if self._closing is not None:
            raise RuntimeError("a Task is entered once: make another one, which resumes")
        async with AsyncExitStack() as closing:
            self._inputs = self._opened_inputs()
            closing.push_async_callback(self._inputs.close)
            uris = {name: one for name, one in self._sinks.items() if isinstance(one, str)}
            check_places(self._places, uris)
            is_remote = is_s3(self._place)
            self._store = await closing.enter_async_context(open_store(self._place, is_probed=True))
            self._world = live_world("." if is_remote else self._place)
            await check_home(self._patient_store(), self.plan, staged=False)
            disk = None if is_remote else self._world.disk
            for source in self._places if disk is None else ("",):
                remark = retried_remark(self._rebuild, self.plan, disk, source)
                if remark:
                    self._emit(Remark(remark))
            self._closing = closing.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the source and the store."""
        assert self._closing is not None
        await self._closing.aclose()

    async def run(self) -> Report:
        """Restore, catch up, and compute until the source ends or ``stop`` is called.

        A cancellation ends it like ``stop`` does, before CancelledError is raised; a second one
        ends it at once. Either way a new Task resumes.

        Raises DiskLockedError and FencedError where another process has the state, InputError,
        OutputError, CheckpointError, SnapshotError and OSError. Committed rows stay.
        """
        if self._closing is None or self._active is not None:
            raise RuntimeError("Task.run is called once, inside of 'async with'")
        self._active = self._new_active()
        self._loop = asyncio.get_running_loop()
        running = asyncio.create_task(self._active.run())
        try:
            report = await asyncio.shield(running)
        except asyncio.CancelledError:
            if running.cancelled():
                raise
            self.stop()
            await _to_the_end(running)
            self.report.stopped = True
            raise
        report.stopped = self._is_stopping
        return report

    def stop(self) -> None:
        """Ask ``run`` to end in good order: it commits, stores a checkpoint and returns.

        It may be called from other threads and from handlers of signals, also before ``run``.
        """
        self._is_stopping = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nothing runs any more
                self._loop.call_soon_threadsafe(self._inputs.wake)

    # --- assembly ---

    def _opened_inputs(self) -> Inputs:
        return inputs_of(self.plan, {one.name: self._opened(one) for one in self.plan.sources})

    def _opened(self, source: SourceSpec) -> Inputs:
        rows, follow = self._settings.batch_rows, self._follow
        inputs = self._sources[source.name]
        if isinstance(inputs, (str, Stream)):
            executor = LiveExecutor()
            inputs = open_inputs(
                inputs,
                self.plan,
                rows,
                follow=follow,
                executor=executor,
                source=source,
                is_alone=True,
            )
        if not self._waits:
            return inputs
        return RetryingInputs(inputs, patience_s=None if follow else PATIENCE_S)

    @property
    def _places(self) -> list[str]:
        """The URIs among the sources."""
        return [one for one in self._sources.values() if isinstance(one, str)]

    def _new_active(self) -> DurableTask:
        plan, world, is_remote = self.plan, self._world, is_s3(self._place)
        # Offsets of several sources are not committed to a consumer group.
        source = self._places[0] if len(self._sources) == len(self._places) == 1 else None
        outputs = group_at(self._sinks, plan, world.executor, source=source, waits=self._waits)
        context = TaskContext(
            settings=self._settings, emit=self._emit, stop=self._is_asked, watch=self._on_batch
        )
        return DurableTask(
            TaskSpec(plan, self._inputs, outputs),
            Checkpoints(self._patient_store(), plan.name, executor=world.executor),
            world,
            context,
            Ownership(
                place=self._hint_store(is_remote=is_remote),
                is_remote=is_remote,
                rebuild=self._rebuild,
                holder=self._holder,
            ),
        )

    def _patient_store(self) -> ObjectStore:
        """Return the store, with retries where it is remote."""
        if not is_s3(self._place):
            return self._store
        return RetryingStore(self._store, self._world.clock, self._world.random)

    def _hint_store(self, *, is_remote: bool) -> HintStore:
        """Return the store of dead letters and notes; in a folder, notes take no sync."""
        world = self._world
        waiting = RetryingStore(
            self._store,
            world.clock,
            world.random,
            WAITING,
            failed=lambda why: self._emit(Remark(f"the next commit waits for the store: {why}")),
            stop=self._is_asked,
        )
        notes = None if is_remote else NoteFile(world.disk, in_flight_path(self.plan.name))
        return HintStore(waiting, self.plan.name, random=world.random, notes=notes)

    def _is_asked(self) -> bool:
        return self._is_stopping

    def _log_event(self, event: Event) -> None:
        line = line_of(event)
        if line is not None:
            level = logging.INFO if isinstance(event, _EXPECTED) else logging.WARNING
            _log.log(level, "pipeline %r: %s", self.plan.name, line)


async def _to_the_end(running: asyncio.Task[Any]) -> None:
    """Wait for a task that was asked to end; a cancellation cancels it. Raises its error."""
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        running.cancel()
        await asyncio.wait([running])
        if not running.cancelled():
            running.result()
        raise


_SOURCE: Literal["continued_source"] = "continued_source"
_SINK: Literal["continued_sink"] = "continued_sink"
_EXPECTED = (Restored, InputBack, InputIdle)
