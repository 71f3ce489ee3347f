"""A run that goes on after any crash: ``ripple run`` with ``--checkpoint-dir``."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import AsyncExitStack
from types import FrameType
from typing import TYPE_CHECKING

from ripple.cli.cluster.dashboard import run_shown
from ripple.cli.lib.exits import finished, say, say_meanwhile
from ripple.cli.lib.path_options import check_apart
from ripple.cli.lib.progress import Progress
from ripple.cli.lib.statistics import (
    exceptions,
    say_statistics,
    throughput,
    uncomputable,
    watermark_text,
)
from ripple.cli.run.retried import say_retried
from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import open_inputs, path_of
from ripple.control.process import standard_error
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.event_text import line_of
from ripple.model.window import duration_ns
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import RetryingStore, RetrySettings
from ripple.storage.store.opening import open_store
from ripple.storage.store.s3_settings import is_s3
from ripple.task.active import ActiveTask
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.durable_state import DurableState
from ripple.task.grouping import commit_interval_ns, group_at
from ripple.task.home import check_home
from ripple.task.retrying_inputs import PATIENCE_S, RetryingInputs
from ripple.task.settings import Settings
from ripple.world import live_world

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from ripple.client.dashboard.run import RunShown
    from ripple.connectors.inputs import Inputs
    from ripple.core.events import Event
    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report
    from ripple.world import ObjectStore, World

PROGRAM = "ripple"
# A commit waits for its dead letters for as long as the store is away: it is no reason to end.
WAITING = RetrySettings(attempts_max=1_000_000, deadline_s=30 * 86_400.0)
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(options: argparse.Namespace, plan: Plan, places: Mapping[str, str]) -> int:
    """Run until the input ends or a signal asks for it; return the exit code."""
    _check_options(options)
    settings = Settings(
        batch_rows=options.batch,
        commit_interval_ns=(
            duration_ns(options.commit_interval)
            if options.commit_interval
            else commit_interval_ns(places.values())
        ),
        checkpoint_interval_ns=duration_ns(options.checkpoint_interval),
        keep=options.keep,
    )
    waits = options.on_error == "wait"
    inputs = _inputs(options, plan, settings.batch_rows, waits=waits)
    files = {name: path_of(place, "continued_sink") for name, place in places.items()}
    check_apart(path_of(options.source, "continued_source"), files.values())
    check_not_read(options.source, {name: places[name] for name in places if files[name] is None})
    place = options.checkpoint_dir
    is_remote = is_s3(place)
    world = live_world(os.curdir if is_remote else place)
    stopping = _Stopping()
    progress = Progress(None)

    shown: RunShown | None = None

    def tell(event: Event) -> None:
        line = line_of(event)
        if shown is not None:
            shown.told(event, line)
        if line is not None:
            progress.clear()
            say_meanwhile(f"{PROGRAM}: {line}")

    def watch(consumed: int) -> None:
        progress.update(consumed)
        if shown is not None:
            shown.took(consumed)

    def lived(store: ObjectStore) -> ActiveTask:
        return ActiveTask(
            plan,
            inputs,
            group_at(places, plan, world.executor, source=options.source, waits=waits),
            DurableState(
                Checkpoints(_patient(store, world, place), plan.name, executor=world.executor),
                world,
                place=_place(store, plan, world, stopping.is_asked, is_remote=is_remote),
                is_remote=is_remote,
                rebuild=options.rebuild,
                holder=f"ripple run, process {os.getpid()} on {os.uname().nodename}",
            ),
            settings=settings,
            tell=tell,
            stop=stopping.is_asked,
            watch=lambda _, report: watch(report.consumed),
        )

    async def live() -> tuple[ActiveTask, Report]:
        nonlocal shown
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(open_store(place, is_probed=True))
            await check_home(_patient(store, world, place), plan, staged=False)
            if options.dashboard is not None:
                shown = await stack.enter_async_context(
                    run_shown(options.dashboard, plan, store, world, place)
                )
            life = lived(store)
            return life, await _live(life, inputs, stopping)

    say_retried(options.rebuild, plan, None if is_remote else world.disk, options.source)
    started_s = time.perf_counter()
    try:
        life, report = asyncio.run(live())
        finished()
    finally:
        standard_error.flush()
        progress.clear()
    _say_results(plan, life, report, time.perf_counter() - started_s)
    if stopping.number is not None:
        say(f"{PROGRAM}: stopped in good order by {signal.Signals(stopping.number).name}")
    return 128 + signal.SIGINT if stopping.number == signal.SIGINT else 0


def _patient(store: ObjectStore, world: World, place: str) -> ObjectStore:
    """Return a store whose failed calls are repeated, where there is a network between."""
    return RetryingStore(store, world.clock, world.random) if is_s3(place) else store


def _inputs(options: argparse.Namespace, plan: Plan, batch_rows: int, *, waits: bool) -> Inputs:
    inputs = open_inputs(options.source, plan, batch_rows, follow=options.follow)
    if not waits:
        return inputs
    return RetryingInputs(inputs, patience_s=None if options.follow else PATIENCE_S)


def _place(
    store: ObjectStore, plan: Plan, world: World, stop: Callable[[], bool], *, is_remote: bool
) -> HintStore:
    """Return the place for letters and notes, of which a folder takes notes without a sync."""
    waiting = RetryingStore(
        store,
        world.clock,
        world.random,
        WAITING,
        failed=lambda why: say_meanwhile(f"{PROGRAM}: the next commit waits for the store: {why}"),
        stop=stop,
    )
    notes = None if is_remote else NoteFile(world.disk, in_flight_path(plan.name))
    return HintStore(waiting, plan.name, random=world.random, notes=notes)


async def _live(life: ActiveTask, inputs: Inputs, stopping: _Stopping) -> Report:
    loop = asyncio.get_running_loop()
    stopping.tell = lambda: loop.call_soon_threadsafe(inputs.wake)
    try:
        return await life.run()
    finally:
        stopping.tell = None


def _check_options(options: argparse.Namespace) -> None:
    """Refuse what a lasting run would not do."""
    if options.header or options.strict or options.dead_letter is not None:
        raise InputError(
            "--header, --strict and --dead-letter do not go with --checkpoint-dir: the log has no "
            "header, and refused records are kept in that folder: see ripple dead-letter list"
        )


class _Stopping:
    """The first signal asks the run to end in good order; a second one ends it at once.

    ``tell``, if it is set, is called when one has come.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.tell: Callable[[], object] | None = None
        self._before = {number: signal.signal(number, self._note) for number in _STOPPING}

    def is_asked(self) -> bool:
        """Return whether a signal has come."""
        return self.number is not None

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for one, before in self._before.items():
            signal.signal(one, before)
        if self.tell is not None:
            self.tell()


def _say_results(plan: Plan, life: ActiveTask, report: Report, elapsed_s: float) -> None:
    counters = life.engine.counters
    lines = [
        ("Events processed", f"{report.events}, {counters.consumed} in all"),
        ("Stabilizations", f"{report.stabilizations}"),
        *throughput(report.events, elapsed_s),
        ("Watermark", watermark_text(life.engine.watermark_ns)),
        ("Output records", f"{report.rows_out}"),
        *exceptions(counters),
        *uncomputable(life.engine),
        ("Commits", f"{report.commits}"),
        ("Checkpoint", report.checkpoint or "none"),
        ("Next offset", cuts.text(life.engine.cut)),
        ("Digest", life.engine.digest),
    ]
    say_statistics(f"--- {plan.name} ---", lines)
    if report.rejected:
        say(f"Refused records: {report.rejected.total()} (ripple dead-letter list shows them)")
        for reason, count in report.rejected.most_common():
            say(f"{count:>10}  {reason}")
