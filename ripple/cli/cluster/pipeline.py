"""Add, change, stop, start and remove independent pipelines of a cluster of several.

Their coordinators run with --several-pipelines and their workers with --pipelines DIR, and follow
within seconds. FILE.py is a path in the folder of pipelines of each worker; run the command there.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ripple.cli.cluster import up as cluster_up
from ripple.cli.cluster.starting.reach import Reach
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import add_format, write, write_table
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.user_file import load_plan
from ripple.connectors.identity import check_not_read
from ripple.connectors.locate import check_sealed, sinks_by_output, sources_by_name
from ripple.connectors.registry import forms
from ripple.control.assignment.founding import founded
from ripple.control.assignment.pipeline_chain import PipelineChain
from ripple.control.assignment.pipelines import Hosted, check_one, place_of
from ripple.core.errors import InputError
from ripple.core.named_uris import sources_joined
from ripple.model.pipeline.division import need_one_division, needs_one
from ripple.storage.store import RetryingStore
from ripple.storage.store.opening import open_store
from ripple.storage.store.s3_settings import is_s3
from ripple.world import LiveClock, LiveRandom

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from ripple.control.assignment.pipelines import Pipelines

EXAMPLES = (
    "ripple pipeline add vwap.py --source log:../trades --sink log:../vwap --store ../state",
    "ripple pipeline list --store ../state",
    "ripple pipeline stop vwap --store ../state",
    "ripple pipeline start vwap --store ../state",
    "ripple pipeline change vwap.py --source log:../trades --sink log:../vwap --store ../state",
    "ripple pipeline remove vwap --store ../state",
)
_BY_NAME = {
    "stop": "end its processes; its state stays",
    "start": "start it again, from its state",
    "remove": "take it out of the cluster; its state stays in the store",
}
_BY_FILE = {
    "add": "start a pipeline; one that was removed resumes from its state",
    "change": "give a pipeline other code, sources or outputs, by the rules of docs/changing.md",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, about in _BY_FILE.items():
        action = actions.add_parser(name, help=about)
        add_file(action)
        add_sources(action, f"{forms('continued_source')}; once for each source")
        action.add_argument(
            "-o",
            "--sink",
            type=a_place,
            action="append",
            required=True,
            metavar="[OUTPUT=]log:DIR/TOPIC",
            help="once for each output",
        )
        action.add_argument(
            "--partitions",
            type=positive,
            metavar="N",
            help="partitions of the first stage of a new pipeline (default: as many as its source "
            "has, or the greatest number that divides those of all sources)",
        )
        _add_common(action)
    for name, about in _BY_NAME.items():
        action = actions.add_parser(name, help=about)
        action.add_argument("name", metavar="PIPELINE", help="its name, as in rp.Pipeline")
        _add_common(action)
    _add_common(actions.add_parser("list", help="list the pipelines of the cluster"))


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        type=a_store,
        required=True,
        metavar=STORE,
        help="the store that coordinators and workers name",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the action; return the exit code."""
    _check_there(options.store)
    if options.action == "list":
        pipelines = asyncio.run(_with_chain(options.store, PipelineChain.newest))
        write(
            options.format, {"pipelines": [asdict(one) for one in pipelines.all]}, _table(pipelines)
        )
        return 0
    name, change = _change_of(options)
    after = asyncio.run(_with_chain(options.store, lambda chain: chain.change(change)))
    hosted = next((asdict(one) for one in after.all if one.name == name), None)
    done = {"add": "added", "change": "changed", "stop": "stopped", "start": "started"}
    text = f"pipeline {name} is {done.get(options.action, 'removed')}"
    if hosted is not None and not hosted["is_stopped"]:
        text += (
            f": workers run {hosted['file']} of the folder that --pipelines names; "
            f"ripple status --pipeline {name} shows them"
        )
    write(options.format, {"pipeline": name, "entry": hosted}, lambda: print(text))
    return 0


def _change_of(options: argparse.Namespace) -> tuple[str, Callable[[Pipelines], Pipelines]]:
    """Return the name of the action's pipeline, and its change. Raises InputError."""
    if options.action in _BY_FILE:
        hosted = _hosted(options)
        if options.action == "add":
            return hosted.name, lambda there: there.added(hosted)
        return hosted.name, lambda there: there.changed(
            hosted.name, lambda one: replace(hosted, is_stopped=one.is_stopped)
        )
    name = options.name
    if options.action == "remove":
        return name, lambda there: there.removed(name)
    is_stopped = options.action == "stop"
    return name, lambda there: there.stopped(name, is_stopped=is_stopped)


def _check_there(store: str) -> None:
    """Raise InputError for a missing folder: no coordinator reads it."""
    if not is_s3(store) and not os.path.isdir(store):
        raise InputError(
            f"--store is {store}, and there is no such folder: give the one that coordinators and "
            "workers name, which they create"
        )


def _hosted(options: argparse.Namespace) -> Hosted:
    """Return the pipeline of the arguments, after the checks of a start. Raises RippleError."""
    plan = load_plan(options.file)
    need_one_division(plan, "a cluster", is_one=True)
    sources, outputs = (
        {name: _absolute(place) for name, place in places.items()}
        for places in (
            sources_by_name(plan, options.source),
            sinks_by_output(plan, options.sink),
        )
    )
    for source in sources.values():
        check_not_read(source, outputs)
    for place in outputs.values():
        check_sealed(place)
    hosted = Hosted(
        plan.name,
        1,
        options.file,
        sources_joined(sources),
        tuple(f"{name}={place}" for name, place in outputs.items()),
        1,
    )
    check_one(hosted)
    reach = Reach(plan, sources, outputs)
    partitions, repartitioned = cluster_up.divided(plan, sources, reach, options.partitions)
    own = place_of(options.store, plan.name)
    cluster_up.check_can_begin(plan, sources, own, reach, repartitioned, asked=options.partitions)
    is_one = not repartitioned and needs_one(plan, reach.keyed_by)
    return replace(hosted, partitions=partitions, needs_one=is_one)


def _absolute(place: str) -> str:
    """Return a log or folder by its full path, since workers run elsewhere than this command."""
    scheme, _, path = place.partition(":")
    if scheme == "log":
        return f"log:{os.path.abspath(path)}"
    return f"files:{os.path.join(os.getcwd(), path)}" if scheme == "files" else place


async def _with_chain(store: str, use: Callable[[PipelineChain], object]) -> Pipelines:
    async with open_store(store) as opened:
        clock, random = LiveClock(), LiveRandom()
        retrying = RetryingStore(opened, clock, random)
        if await founded(retrying) is not None:
            raise InputError(
                f"--store is {store}, which has the cluster of one pipeline: several need another "
                "store"
            )
        chain = PipelineChain(retrying, random.bytes(8).hex())
        found: Pipelines = await use(chain)  # type: ignore[misc]
        return found


def _table(pipelines: Pipelines) -> Callable[[], None]:
    rows = [
        (
            one.name,
            "stopped" if one.is_stopped else "runs",
            one.file,
            one.source,
            " ".join(one.sinks),
        )
        for one in pipelines.all
    ]
    if not rows:
        return lambda: print("the cluster has no pipeline yet")
    return lambda: write_table(
        ("PIPELINE", "STANDING", "FILE", "SOURCE", "OUTPUTS"), rows, gap=False
    )
