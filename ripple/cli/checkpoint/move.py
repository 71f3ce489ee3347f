"""Move a pipeline's state of several stages between one process and a cluster."""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import add_format, write
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.user_file import load_plan
from ripple.connectors.locate import sinks_by_output, sources_by_name
from ripple.connectors.registry import forms
from ripple.control.assignment import AssignmentChain
from ripple.control.assignment.generations import ServingChain
from ripple.core import cut as cuts
from ripple.core.errors import InputError
from ripple.engine.migration.homes import HomeError
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.checkpoint.moved import moved_to
from ripple.storage.store.opening import open_store, store_to_read
from ripple.storage.store.s3_settings import is_s3
from ripple.task.former_home import GRACEFULLY
from ripple.world import LiveDisk

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ripple.world.ports import ObjectStore

_OF_GENERATION = re.compile(r"/cluster/g[0-9]+/?$")  # see ``store_of``
EXAMPLE = (
    "ripple checkpoint move shop.py --from state --to cluster/store --source log:data/trades "
    "--sink total=log:data/total"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_file(parser)
    add_sources(parser, f"{forms('continued_source')}; once for each source")
    for flag, what in (("--from", "the store that has the state"), ("--to", "its new store")):
        parser.add_argument(
            flag, dest=flag.strip("-") + "_store", type=a_store, required=True, metavar=STORE,
            help=what,
        )  # fmt: skip
    parser.add_argument(
        "-o",
        "--sink",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]log:DIR/TOPIC",
        help="an output as it is; once for each",
    )
    parser.add_argument(
        "--new-sink",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]log:DIR/TOPIC",
        help="a new topic for an output, which gets the whole table",
    )
    parser.add_argument(
        "--partitions",
        type=positive,
        metavar="N",
        help="partitions of the first stage of a cluster (default: as many as the source has, or "
        "the greatest number that divides those of all sources)",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Move the state; return the exit code."""
    return asyncio.run(_move(options))


async def _move(options: argparse.Namespace) -> int:
    # slow to import, and the other actions need none
    from ripple.storage.store import RetryingStore  # noqa: PLC0415
    from ripple.task.moving import Move  # noqa: PLC0415
    from ripple.world import LiveClock, LiveRandom, live_world  # noqa: PLC0415

    def patient(store: ObjectStore) -> ObjectStore:
        return RetryingStore(store, LiveClock(), LiveRandom())

    plan = load_plan(options.file)
    move = Move(
        plan=plan,
        sources=sources_by_name(plan, options.source),
        sinks=sinks_by_output(plan, options.sink),
        new_sinks=sinks_by_output(plan, options.new_sink),
        partitions=options.partitions,
        to=options.to_store,
        world=live_world("."),
    )
    async with store_to_read(options.from_store, "--from") as here:
        await _check_generation(options.from_store, here)
        if not move.sinks and await moved_to(here, plan.name) is None:
            await _check_left(plan.name, here)
    async with (
        open_store(options.from_store) as here,
        open_store(options.to_store, is_probed=True) as there,
    ):
        with _held(options.from_store, plan.name):
            cut = await move.run(patient(here), patient(there))

    def text() -> None:
        at = cuts.brief(cut)
        print(f"the state of {plan.name!r} at {at} is in {options.to_store}: resume there")

    write(options.format, {"pipeline": plan.name, "cut": cut, "to": options.to_store}, text)
    return 0


async def _check_left(pipeline: str, store: ObjectStore) -> None:
    """Raise HomeError if no output is named, and workers of a cluster may still write.

    A move fences off the writers of named outputs. Others would write until their next checkpoint
    is refused, and their outputs would be ahead of the moved state.
    """
    newest = (await AssignmentChain(store).newest()).entry
    if newest is not None and newest.content.members:
        workers = ", ".join(newest.content.by_id)
        raise HomeError(
            f"{workers} of the cluster of {pipeline!r} may still write its outputs: name these "
            f"with --sink, which shuts its workers out; or {GRACEFULLY}"
        )


@contextmanager
def _held(place: str, pipeline: str) -> Iterator[None]:
    """Hold the lock of a run's state, if it is on this disk. Raises DiskLockedError."""
    path = f"{prefix_of(pipeline, 0)}life.lock"
    if is_s3(place) or not Path(place, path).exists():
        yield
        return
    lock = LiveDisk(place).lock(path, "ripple checkpoint move")
    try:
        yield
    finally:
        lock.release()


async def _check_generation(place: str, store: ObjectStore) -> None:
    """Raise InputError where generations have taken turns: each has its state apart."""
    serving = await ServingChain(store).newest()
    if serving.entry or _OF_GENERATION.search(place):
        raise InputError(
            f"{place} has had more than one generation, and their state does not move: compute the "
            "pipeline from its first record in the new home, with other outputs"
        )
