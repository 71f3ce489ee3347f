"""``ripple run`` with ``--checkpoint-dir``: a durable run, from flags."""

from __future__ import annotations

import os
import signal
import time
from contextlib import AsyncExitStack
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

from ripple.cli.cluster.dashboard import run_shown
from ripple.cli.lib.exits import finished, say, say_meanwhile, unwind
from ripple.cli.lib.left_out import say_left_out
from ripple.cli.lib.statistics import (
    by_source,
    exceptions,
    say_statistics,
    throughput,
    uncomputable,
    watermark_of,
)
from ripple.control.process import standard_error
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.core.event_text import line_of
from ripple.model.pipeline.input_names import answers_of
from ripple.task.blocking import in_own_loop
from ripple.task.progress import Progress, terminal
from ripple.task.task import Task

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from ripple.client.dashboard.run import RunShown
    from ripple.core.events import Event
    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report

PROGRAM = "ripple"
# How a second signal ends the run.
_AT_ONCE = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: unwind,
    signal.SIGHUP: unwind,
}


def run(
    options: argparse.Namespace, plan: Plan, sources: Mapping[str, str], sinks: Mapping[str, str]
) -> int:
    """Run until the input ends or a signal asks for it; return the exit code."""
    _check_options(options)
    progress = Progress(None, terminal(quiet=options.quiet))
    shown: RunShown | None = None

    def emit(event: Event) -> None:
        line = line_of(event)
        if shown is not None:
            shown.on_event(event, line)
        if line is not None:
            progress.clear()
            say_meanwhile(f"{PROGRAM}: {line}")

    def watch(consumed: int) -> None:
        progress.update(consumed, task.engine.asked_size[0])
        if shown is not None:
            shown.took(consumed)

    task = Task(
        plan,
        source=sources,
        sink=sinks,
        checkpoint_dir=options.checkpoint_dir,
        follow=options.follow,
        batch_rows=options.batch,
        commit_interval=options.commit_interval,
        checkpoint_interval=options.checkpoint_interval,
        keep=options.keep,
        rebuild=options.rebuild,
        on_error=options.on_error,
        on_batch=lambda _, report: watch(report.consumed),
        on_event=emit,
        holder=f"ripple run, process {os.getpid()} on {os.uname().nodename}",
    )
    say_left_out(plan, sinks)
    stopping = _Stopping(task.stop)

    async def run_task() -> Report:
        nonlocal shown
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(task)
            if options.dashboard is not None:
                shown = await stack.enter_async_context(
                    run_shown(
                        options.dashboard, plan, task.store, task.world, options.checkpoint_dir
                    )
                )
            return await task.run()

    started_s = time.perf_counter()
    try:
        report = in_own_loop(run_task, PROGRAM)
        finished()
    finally:
        standard_error.flush()
        progress.clear()
    _say_results(
        task, report, time.perf_counter() - started_s, options.checkpoint_dir, quiet=options.quiet
    )
    if stopping.number is not None:
        say(f"{PROGRAM}: stopped in good order by {signal.Signals(stopping.number).name}")
    return 128 + signal.SIGINT if stopping.number == signal.SIGINT else 0


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options of one-shot runs."""
    given = (options.header, options.strict, options.max_rejected, options.dead_letter)
    if any(given):
        raise InputError(
            "--header, --strict, --max-rejected and --dead-letter do not go with --checkpoint-dir: "
            "a header is an option of the files, 'files:trades.csv?header', and rejected records "
            "are kept in that folder: see ripple dead-letter list"
        )


class _Stopping:
    """The first signal asks the run to end in good order; a second one ends it at once."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self.number: int | None = None
        self._stop = stop
        for number in _AT_ONCE:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup lets SIGHUP be
                signal.signal(number, self._note)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for one, handler in _AT_ONCE.items():
            if signal.getsignal(one) == self._note:
                signal.signal(one, handler)
        self._stop()


def _say_results(task: Task, report: Report, elapsed_s: float, place: str, *, quiet: bool) -> None:
    engine, letters = task.engine, answers_of(0)
    listing = f"{PROGRAM} dead-letter list --checkpoint-dir {quote(str(place))} --input {letters}"
    counters = engine.counters
    problems = [*exceptions(engine), *uncomputable(engine, listing)]
    lines = [
        ("Events processed", f"{report.events}, {counters.consumed} in all"),
        *by_source(engine),
        ("Stabilizations", f"{report.stabilizations}"),
        *throughput(report.events, elapsed_s),
        *watermark_of(engine.watermark_ns),
        ("Output records", f"{report.rows_out}"),
        *problems,
        ("Commits", f"{report.commits}"),
        ("Checkpoint", report.checkpoint or "none"),
        ("Next offset", cuts.text(engine.cut)),
        ("Digest", engine.digest),
    ]
    say_statistics(f"--- {task.plan.name} ---", problems if quiet else lines)
    if report.rejected:
        say(f"Rejected records: {report.rejected.total()} (ripple dead-letter list shows them)")
        for reason, count in report.rejected.most_common():
            say(f"{count:>10}  {reason}")
