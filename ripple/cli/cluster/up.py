"""Start a cluster on this machine: coordinators, workers, a pipeline; it needs only a disk.

The logs of its processes are passed on, and a process that dies is restarted. Ctrl+C, or
``down`` elsewhere, stops it gracefully: its state stays in the folder, and the next ``up``
resumes from there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from functools import partial
from importlib import import_module
from math import gcd
from shlex import quote
from typing import TYPE_CHECKING

from ripple.cli.cluster import down as cluster_down
from ripple.cli.cluster.dashboard import configure_dashboard, missing_files_hint, url_of
from ripple.cli.cluster.deploying.standing import has_served, previews, serving_in
from ripple.cli.cluster.starting.answered import Answers
from ripple.cli.cluster.starting.at_work import at_work
from ripple.cli.cluster.starting.plan import (
    HOST,
    Asked,
    addresses_of,
    coordinators_of,
    processes,
)
from ripple.cli.cluster.starting.process import PortTakenError, Process, WillNotStartError
from ripple.cli.cluster.starting.reach import Reach
from ripple.cli.cluster.starting.stuck import Stuck, failing
from ripple.cli.lib.exits import EXIT_FAILURE
from ripple.cli.lib.left_out import say_left_out
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import many
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.user_file import load_plan
from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import open_inputs, sinks_by_output, sources_by_name
from ripple.connectors.registry import find, forms, innermost
from ripple.control.assignment.generations import FIRST, store_of
from ripple.control.process import write
from ripple.control.signals import Debounce
from ripple.core.errors import InputError, RippleError
from ripple.core.named_uris import sources_joined
from ripple.model.pipeline.division import need_one_division, needs_one
from ripple.model.pipeline.input_names import answers_of
from ripple.model.pipeline.repartitioned import anew_text, need_division, repartitioned_into
from ripple.storage.checkpoint import newest_of_each
from ripple.storage.store.opening import store_to_read
from ripple.storage.store.s3_settings import is_s3
from ripple.task.home import check_code

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from ripple.cli.cluster.starting.at_work import AtWork
    from ripple.cli.cluster.starting.plan import Planned
    from ripple.cli.cluster.starting.reach import Reached
    from ripple.control.assignment import Stage
    from ripple.model.pipeline.new_division import NewDivision
    from ripple.model.pipeline.plan import Plan

PROGRAM = "ripple"
LOOK_INTERVAL_S = 1.0
LOOK_INTERVAL_MAX_S = 5.0
LOOK_REST = 9  # looking takes a tenth of the time at most, within that bound
PRINT_INTERVAL_S = 10.0
# Workers take up to 30 s to stop gracefully.
WORKERS_END_S = 40.0
COORDINATORS_END_S = 5.0
PORT_TRIES = 5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Modules that each process imports, of an extra that may be missing.
_OF_EXTRAS = (
    "ripple.control.telemetry.exposition",
    "ripple.control.telemetry.log",
    "ripple.control.rpc",
    "ripple.world.live_control",
)
_OF_DASHBOARD = "ripple.client.dashboard.web"


def say(text: str) -> None:
    """Write a line without waiting: a stopped terminal must not stop the cluster."""
    write(f"{text}\n")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    configure_cluster(parser)
    parser.add_argument(
        "--partitions",
        type=positive,
        metavar="N",
        help="partitions of the first stage of a new cluster (default: as many as the source has, "
        "or the greatest number that divides those of all sources)",
    )
    parser.add_argument(
        "--until-end",
        action="store_true",
        help="stop once all records that the source has now are in the outputs",
    )
    parser.add_argument(
        "--free-ports",
        action="store_true",
        help="use any free ports; by default workers have 9100 to 9102, 9110 to 9112 "
        "and so on (probes, data, metrics), coordinators 9200 to 9202 (gRPC, probes, metrics)",
    )


def configure_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a pipeline, its cluster's folder, and its processes."""
    add_file(parser)
    add_sources(parser, f"{forms('continued_source')}; once for each source")
    parser.add_argument(
        "-o",
        "--sink",
        type=a_place,
        action="append",
        required=True,
        metavar="[OUTPUT=]log:DIR/TOPIC",
        help="once for each output",
    )
    parser.add_argument(
        "--dir", type=a_place, required=True, metavar="DIR", help="the cluster's folder"
    )
    parser.add_argument(
        "--store",
        type=a_store,
        metavar=STORE,
        help="store of checkpoints and of the assignment (default: in the folder)",
    )
    parser.add_argument(
        "--workers", type=positive, default=3, metavar="N", help="worker processes (%(default)s)"
    )
    parser.add_argument(
        "--processes", type=positive, default=1, metavar="N", help="engine processes per worker (1)"
    )
    parser.add_argument(
        "--coordinators", type=positive, default=1, metavar="N", help="coordinator processes (1)"
    )
    configure_dashboard(parser)


def folder_of(folder: str, generation: int) -> str:
    """Return the folder of a generation's processes. folder: the cluster's."""
    return folder if generation == FIRST else f"{folder}/g{generation}"


def run(options: argparse.Namespace) -> int:
    """Run the generation that serves until it is stopped; return the exit code."""
    return run_generation(options, serving_in(options.store or f"{options.dir}/store"))


def run_generation(options: argparse.Namespace, generation: int) -> int:
    """Run a generation until it is stopped; return the exit code."""
    for module in (*_OF_EXTRAS, *([] if options.dashboard is None else [_OF_DASHBOARD])):
        import_module(module)  # a missing extra is named before anything starts

    plan = load_plan(options.file)
    need_one_division(plan, "a cluster", is_one=True)
    sources, places = sources_by_name(plan, options.source), sinks_by_output(plan, options.sink)
    for source in sources.values():
        check_not_read(source, places)
    if options.until_end:
        _need_ends(sources)
    reach = Reach(plan, sources, places)
    partitions, repartitioned = divided(plan, sources, reach, options.partitions)
    base = options.store or f"{options.dir}/store"
    place, folder = store_of(base, generation), folder_of(options.dir, generation)
    check_can_begin(plan, sources, place, reach, repartitioned, asked=options.partitions)
    asked = Asked(
        pipeline=options.file,
        source=sources_joined(sources),
        sinks=tuple(f"{name}={place}" for name, place in places.items()),
        folder=options.dir,
        workers=options.workers,
        processes=options.processes,
        coordinators=options.coordinators,
        partitions=partitions,
        needs_one=not repartitioned and needs_one(plan, reach.keyed_by),
        store=options.store or "",
        free_ports=options.free_ports,
        dashboard=options.dashboard,
        allow_commands=options.dashboard_allow_commands,
        generation=generation,
    )
    if options.dashboard is not None:
        where = f"{url_of(HOST, options.dashboard)}{missing_files_hint()}"
        say(f"{PROGRAM}: the dashboard will be at {where}")
    look = reach.look
    if not has_served(base, generation):
        preview = Reach(plan, sources, previews(base, generation, places), "preview")
        look = partial(_look, base, generation, preview, reach)
    cluster_down.check_free(folder)  # a better error than that a port is taken
    _check_settings(processes(asked))
    lock = cluster_down.held(folder)
    try:
        say_left_out(plan, places)
        return _run_on_ports(asked, look, place if plan.asks else None, until_end=options.until_end)
    finally:
        lock.release()


def divided(
    plan: Plan, sources: Mapping[str, str], reach: Reach, asked: int | None
) -> tuple[int, Mapping[str, NewDivision]]:
    """Return the partitions of the first stage, and how sources are repartitioned.

    asked: the requested number of partitions. Raises InputError, also for topics of other
    pipelines.
    """
    from coordinator.decisions.compatibility import undivided_by  # noqa: PLC0415 - of an extra

    shared = gcd(*reach.counts.values())
    is_one = 1 in (asked, shared)
    repartitioned = need_division(plan, "a cluster", reach.keyed_by, is_one=is_one)
    need_own_count(plan, repartitioned, asked=asked)
    direct = {name: count for name, count in reach.counts.items() if name not in repartitioned}
    partitions = asked or gcd(*direct.values()) or shared
    reach.look()  # topics of other pipelines are refused before anything starts
    for name, count in direct.items():
        is_single = count == 1 and not find(sources[name], "continued_source").use.has_parts
        undivided = undivided_by(sources[name], count, partitions, is_single=is_single)
        if undivided is not None:
            raise InputError(undivided)
    if partitions == 1 < max(reach.counts.values()):
        counts = ", ".join(f"{name} has {many(n, 'partition')}" for name, n in reach.counts.items())
        say(f"{PROGRAM}: {counts}: one partition of the pipeline reads all of them")
    for name, by in repartitioned.items():
        say(f"{PROGRAM}: {anew_text(name, by)}")
    return partitions, repartitioned


def _look(base: str, generation: int, preview: Reach, outputs: Reach) -> Reached:
    """Return how far a generation's preview has come, or its outputs once it has served."""
    return (outputs if has_served(base, generation) else preview).look()


def _run_on_ports(
    asked: Asked, look: Callable[[], Reached], answers_place: str | None, *, until_end: bool
) -> int:
    """Run the cluster, with other ports if free ones are taken before its processes have them."""
    for _ in range(PORT_TRIES):
        try:
            return _live(asked, processes(asked), look, answers_place, until_end=until_end)
        except PortTakenError as error:
            say(f"{PROGRAM}: {error}: starting again with other ports")
    say(f"{PROGRAM}: ports were taken {PORT_TRIES} times: give fewer processes, or try again")
    return EXIT_FAILURE


def _live(
    asked: Asked,
    planned: Sequence[Planned],
    look: Callable[[], Reached],
    answers_place: str | None,
    *,
    until_end: bool,
) -> int:
    """Run the planned processes; return the exit code. Raises PortTakenError.

    answers_place: the store of answers, None where no row waits for one.
    """
    _say_where(asked, coordinators_of(planned), answers_place)
    width = max(len(one.name) for one in planned)
    metrics = addresses_of(planned, "metrics-port")
    failing_now = partial(failing, addresses_of(planned, "health-port"))
    with_answers = answers_place is not None
    answers = (
        Answers(addresses_of(planned, "metrics-port", of_workers=True)) if with_answers else None
    )
    status = _Status(look, partial(at_work, metrics), failing_now if until_end else None, answers)

    def pass_on(name: str, line: str) -> None:
        status.clear()
        say(f"{name:<{width}} | {line}")

    started = [Process(one, pass_on, has_free_ports=asked.free_ports) for one in planned]
    cluster = _Cluster(started)
    return asyncio.run(cluster.run(status))


def _say_where(asked: Asked, coordinators: str, answers: str | None) -> None:
    """Print the started processes, and the commands for their state. answers: a store, or None."""
    say(
        f"{PROGRAM}: coordinators: {asked.coordinators}, workers: {asked.workers}; "
        f"{PROGRAM} status --coordinator {coordinators} shows them"
    )
    if answers is not None:
        say(
            f"{PROGRAM}: {PROGRAM} dead-letter list --checkpoint-dir {quote(answers)} --input "
            f"{answers_of('PARTITION')} lists the calls of a partition that failed"
        )


def _check_settings(planned: Sequence[Planned]) -> None:
    """Raise the error of a process that would refuse its settings, environment included."""
    for one in planned:
        _, _, module, *given = one.command
        import_module(f"{module}.__main__").DAEMON.check(given)


def need_own_count(plan: Plan, repartitioned: Mapping[str, NewDivision], asked: int | None) -> None:
    """Raise InputError for another number of partitions than the pipeline itself says."""
    own = repartitioned_into(plan, repartitioned)
    if own and asked not in (None, own):
        raise InputError(
            f"records of all sources are repartitioned into {many(own, 'partition')}, not {asked}: "
            f"leave --partitions out, or say .partition(..., partitions={asked}) before the first "
            "fold"
        )


def _need_ends(sources: Mapping[str, str]) -> None:
    """Raise InputError for a source that has no end."""
    for name, source in sources.items():
        found = find(innermost(source), "continued_source")
        if found.use.is_endless:
            raise InputError(
                f"source {name!r}: the {found.connector.scheme} has no end, for which --until-end "
                "waits: leave it out"
            )


def check_can_begin(
    plan: Plan,
    sources: Mapping[str, str],
    store: str,
    reach: Reach,
    repartitioned: Mapping[str, NewDivision],
    *,
    asked: int | None,
) -> None:
    """Raise an error unless the cluster of a store, if any, can continue.

    The requested number of partitions is compared first: the division of records depends on it, and
    the numbers of the stages depend on the division.
    """
    from worker.engine.stages import stage_counts  # noqa: PLC0415 - of an extra

    check_begun(store, asked)
    divides = reach.divides or bool(repartitioned)
    asyncio.run(_check_store(plan, sources, store, divides=divides))
    own = stage_counts(plan, divides=reach.divides, repartitioned=repartitioned)
    check_begun(store, None, own)


def check_begun(store: str, partitions: int | None, own: Collection[tuple[str, int]] = ()) -> None:
    """Raise InputError if the store's cluster has other numbers of partitions.

    partitions: the requested number for the first stage, None for any. own: by stage, the number
    in the pipeline, 0 for any.
    """
    from ripple.control.assignment import AssignmentChain, stage_names  # noqa: PLC0415 - slow to import

    async def newest() -> Sequence[Stage]:
        async with store_to_read(store) as opened:
            reading = await AssignmentChain(opened).newest()
        return () if reading.entry is None else reading.entry.content.stages

    begun = asyncio.run(newest()) if is_s3(store) or os.path.isdir(store) else ()
    if not begun:
        return
    anew = "begin another one, with another --dir, another store and other outputs"
    found = stage_names.asked(begun).partitions
    if partitions not in (None, found):
        raise InputError(
            f"the cluster of {store} has {many(found, 'partition')}, for ever, not {partitions}: "
            f"leave --partitions out; or {anew}"
        )
    counts = {stage.name: stage.partitions for stage in begun}
    for name, count in own:
        if count and count != counts.get(name, count):
            raise InputError(
                f"the cluster of {store} has {many(counts[name], 'partition')} of {name}, for "
                f"ever, and the pipeline has {count}: say .partition(..., "
                f"partitions={counts[name]}) there again; or {anew}"
            )


async def _check_store(
    plan: Plan, sources: Mapping[str, str], place: str, *, divides: bool
) -> None:
    """Raise an error unless this plan and its sources can resume from the state in the store.

    divides: whether a source is repartitioned. Raises ChangedPlanError for state of other code, of
    another division, or of one process with all stages, and InputError for other records of a
    source without an end. Topics are left to the workers, which wait for them.
    """
    endless = [
        one
        for one in plan.sources
        if find(innermost(sources[one.name]), "continued_source").use.is_endless
    ]
    if not (is_s3(place) or os.path.isdir(place)):
        return
    async with store_to_read(place) as store:
        await check_code(store, plan, divides=divides)
        newest = [one async for one in newest_of_each(store, plan.name)] if endless else []
    for source in endless:
        opened = open_inputs(sources[source.name], plan, 1, follow=True, source=source)
        try:
            for one in newest:  # the cut of a partition without this source lacks it
                read = {name: one.cut.get(name, 0) for name in opened.names}
                said = {name: one.notes.get(f"log/{name}", "") for name in opened.names}
                await opened.check(read, said)
        finally:
            await opened.close()


class UnreachableEndError(RippleError):
    """The outputs will never be complete: a failure does not pass by itself."""


class _Cluster:
    """All processes: they run until a signal, the end of the source, or a failed start."""

    def __init__(self, all_of_them: list[Process]) -> None:
        self._all = all_of_them
        self._number: signal.Signals | None = None  # as which its processes are stopped
        self._asked = asyncio.Event()
        self._is_stopping = False

    async def run(self, status: _Status) -> int:
        loop = asyncio.get_running_loop()
        debounce = Debounce(loop.time)
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:  # nohup
                loop.add_signal_handler(number, self._signalled, number, debounce)
        lives = [asyncio.ensure_future(one.live()) for one in self._all]
        watching = asyncio.ensure_future(status.watch())
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait([*lives, watching, asked], return_when=asyncio.FIRST_COMPLETED)
            status.clear()
            if asked.done():
                assert self._number is not None
                say(f"{PROGRAM}: {self._number.name}: stopping; press Ctrl+C again to force")
        finally:
            self._is_stopping = True
            asked.cancel()
            watching.cancel()
            await self._end(lives)
        return self._code(status, [*lives, watching])

    def _signalled(self, number: signal.Signals, debounce: Debounce) -> None:
        if not debounce.is_new(number):
            return
        if self._asked.is_set():
            for one in self._all:
                one.end(signal.SIGKILL)
        elif self._is_stopping:  # since the outputs are complete, or a start has failed
            say(f"{PROGRAM}: {number.name}: it is stopping; once more forces it")
        else:
            self._number = number
        self._asked.set()

    async def _end(self, lives: Sequence[asyncio.Future[None]]) -> None:
        """Stop workers, then coordinators, which they need for that; then kill the rest."""
        for is_worker, within_s in ((True, WORKERS_END_S), (False, COORDINATORS_END_S)):
            some = [
                (one, life)
                for one, life in zip(self._all, lives, strict=True)
                if one.is_worker == is_worker
            ]
            for one, _ in some:
                one.end()
            await asyncio.wait([life for _, life in some], timeout=within_s)
            for one, life in some:
                if not life.done():
                    say(f"{PROGRAM}: {one.name} has not stopped within {within_s:g} s: killed")
                    one.end(signal.SIGKILL)
        await asyncio.wait(lives)

    def _code(self, status: _Status, tasks: Sequence[asyncio.Future[None]]) -> int:
        ended = [task for task in tasks if task.done() and not task.cancelled()]
        errors = [error for task in ended if (error := task.exception()) is not None]
        for error in errors:
            if isinstance(error, PortTakenError) and self._number is None:
                raise error
            if not isinstance(error, WillNotStartError | UnreachableEndError):
                raise error
            say(f"{PROGRAM}: {error}")
        if errors:
            return EXIT_FAILURE
        is_complete = tasks[-1] in ended  # with any signal since
        if self._number is signal.SIGINT and not is_complete:
            return 128 + signal.SIGINT
        if self._number is None or is_complete:
            say(f"{PROGRAM}: {status.newest}")
        return 0


class _Status:
    """Prints the progress of the outputs: a line redrawn on a terminal, else one now and then."""

    def __init__(
        self,
        look: Callable[[], Reached],
        working: Callable[[], Awaitable[AtWork]],
        failing: Callable[[], Awaitable[Mapping[str, str]]] | None,
        answers: Answers | None = None,
    ) -> None:
        """Create it. failing: returns the present failures, if the end is awaited.

        answers: None where no row waits for one.
        """
        self._look = look
        self._working = working
        self._failing = failing
        self._answers = answers
        self._stuck = Stuck()
        self._is_terminal = sys.stderr.isatty()
        self._printed_s = time.monotonic()
        self._printed = ""
        self.newest = ""
        self._why = ""  # why progress is unknown, as last printed

    async def watch(self) -> None:
        """Print progress; return when the outputs are complete, if that is awaited.

        Raises UnreachableEndError if they never will be.
        """
        took_s = 0.0
        while True:
            await asyncio.sleep(min(max(LOOK_INTERVAL_S, LOOK_REST * took_s), LOOK_INTERVAL_MAX_S))
            if self._failing is not None:
                why = self._stuck.seen(await self._failing(), time.monotonic())
                if why is not None:
                    raise UnreachableEndError(why)
            began_s = time.monotonic()
            answered = None if self._answers is None else await self._answers.look()
            try:
                reached = await asyncio.to_thread(self._look)
            except (RippleError, OSError) as error:
                self._say_why(error)  # the cluster itself waits for brokers that are away
                continue
            finally:
                took_s = time.monotonic() - began_s
            self._why = ""
            self.newest = str(reached)
            is_all = reached.is_all
            if answered is not None:
                is_all = is_all and answered.is_all(reached)
                self.newest += f"; {answered}" if answered.waiting else ""
            if self._failing is not None and is_all:
                # Commits may be of other code: each partition must have restored its state first.
                working = await self._working()
                if working.is_all:
                    return
                self.newest = f"{reached}; {working}"
            self._show()

    def _say_why(self, error: Exception) -> None:
        why = str(error) or type(error).__name__
        if not self._why:
            self.clear()
            say(f"{PROGRAM}: progress of the outputs is unknown: {why}")
        self._why = why

    def clear(self) -> None:
        """Remove the line from the terminal."""
        if self._is_terminal:
            write("\r\033[K")

    def _show(self) -> None:
        if self._is_terminal:
            write(f"\r\033[K{self.newest}")
        elif (
            self.newest != self._printed and time.monotonic() - self._printed_s >= PRINT_INTERVAL_S
        ):
            say(f"{PROGRAM}: {self.newest}")
            self._printed, self._printed_s = self.newest, time.monotonic()
