"""Start and stop a cluster on this machine; freeze one, and pin its partitions."""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from coordinator.decisions import commands
from ripple.cli.cluster import down as cluster_down
from ripple.cli.cluster import up as cluster_up
from ripple.cli.cluster.status_page import print_status
from ripple.cli.lib import client_options
from ripple.cli.lib.number_options import count, positive
from ripple.cli.lib.output_forms import add_format, write
from ripple.control.assignment import worker_of
from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.core.arguments import plain
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.decisions.commands import Command
    from coordinator.decisions.status import Status
    from ripple.control.assignment.pipelines import Pipelines

EXAMPLES = (
    "ripple cluster up vwap.py --source log:data/trades --sink log:data/vwap --dir cluster",
    "ripple cluster down --dir cluster",
    "ripple cluster freeze --reason 'disk is being replaced'",
    "ripple cluster unfreeze --reason 'disk is replaced'",
    "ripple cluster pin 3 worker-2 --reason 'it has the memory'",
    "ripple cluster unpin 3 --reason 'no longer needed'",
)

WAIT_S = 60
LOOK_S = 0.25
# A coordinator tries for 30 s by default (command_wait_ms), and then reports the cause.
COMMAND_S = 40.0


def _partition(text: str) -> int:
    if count(text) >= PARTITIONS_MAX:
        raise argparse.ArgumentTypeError(f"partitions are 0 to {PARTITIONS_MAX - 1} at most")
    return int(text)


_WORKER = {"worker": {"metavar": "WORKER", "help": "a worker's id"}}
_PARTITION = {"partition": {"metavar": "PARTITION", "type": _partition, "help": "its number"}}
# By command: help, arguments, and the message that they make.
COMMANDS: dict[str, tuple[str, dict[str, Any], Callable[..., Command]]] = {
    "freeze": ("stop all moves and joins", {}, commands.Freeze),
    "unfreeze": ("allow moves and joins again", {}, commands.Unfreeze),
    "pin": ("keep a partition on a worker", _PARTITION | _WORKER, commands.PinTo),
    "unpin": ("let a partition be balanced again", _PARTITION, commands.Unpin),
    "drain": ("move all partitions off a worker", _WORKER, commands.Drain),
    "undrain": ("let a worker own partitions again", _WORKER, commands.Undrain),
    "move": ("move a partition to a worker", _PARTITION | _WORKER, commands.Move),
}
# Older names of ``ripple status``, ``move``, ``drain`` and ``undrain``: not in the help.
ALIASES = ("status", "move", "drain", "undrain")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser(
        "up", help="start a cluster on this machine", description=cluster_up.__doc__
    )
    cluster_up.configure(up)
    down = actions.add_parser(
        "down", help="stop the cluster that up runs here", description=cluster_down.__doc__
    )
    cluster_down.configure(down)
    for name, (purpose, _, _) in COMMANDS.items():
        if name not in ALIASES:
            add_command(actions.add_parser(name, help=purpose), name)
    add_status(actions.add_parser("status"))
    for name in ALIASES[1:]:
        add_command(actions.add_parser(name), name)


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    if options.action == "up":
        return cluster_up.run(options)
    if options.action == "down":
        return cluster_down.run(options)
    return run_status(options) if options.action == "status" else run_command(options)


def run_status(options: argparse.Namespace) -> int:
    """Print the status; return the exit code."""
    return asyncio.run(_status(options))


def run_command(options: argparse.Namespace) -> int:
    """Send the command ``options.action``; return the exit code."""
    return asyncio.run(_command(options))


def add_status(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``status``."""
    parser.add_argument("--partitions", action="store_true", help="show the owner of each")
    client_options.add_coordinator(parser)
    add_format(parser)


def add_command(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the arguments of a command."""
    _, arguments, _ = COMMANDS[name]
    for argument, about in arguments.items():
        parser.add_argument(argument, **about)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why, for other operators")
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would change, and change nothing"
    )
    parser.add_argument(
        "--wait", action="store_true", help="wait until all moves are done; exit code 1 if late"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=WAIT_S,
        metavar="SECONDS",
        help="limit of --wait (default: %(default)s)",
    )
    client_options.add_coordinator(parser)
    add_format(parser)


async def _status(options: argparse.Namespace) -> int:
    try:
        address, status = await client_options.status_of(options)
    except InputError:
        several = None if options.pipeline else await client_options.pipelines_of(options)
        if several is None or not several.all:
            raise
        return await _status_of_each(options, several)
    write(
        options.format,
        {"coordinator": address} | asdict(status),
        lambda: print_status(address, status, has_partitions=options.partitions),
    )
    return 0


async def _status_of_each(options: argparse.Namespace, several: Pipelines) -> int:
    """Print the status of each pipeline of a cluster of several."""
    found: dict[str, tuple[str, Status] | str] = {}
    for one in several.all:
        options.pipeline = one.name
        try:
            found[one.name] = (
                "it is stopped" if one.is_stopped else await client_options.status_of(options)
            )
        except InputError as error:  # it is starting
            found[one.name] = str(error)
    shown = {
        name: {"problem": one} if isinstance(one, str) else {"coordinator": one[0]} | asdict(one[1])
        for name, one in found.items()
    }

    def text() -> None:
        for name, one in found.items():
            print(f"Pipeline:     {name}")
            if isinstance(one, str):
                print(f"! {plain(one)}")
            else:
                print_status(*one, has_partitions=options.partitions)
            print()

    write(options.format, {"pipelines": shown}, text)
    return 0


async def _command(options: argparse.Namespace) -> int:
    # Here, since gRPC is slow to import, and may be absent.
    from coordinator.service.messages import command_to_bytes, done_from_bytes  # noqa: PLC0415
    from ripple.control.rpc.methods import COMMAND  # noqa: PLC0415

    _, arguments, make = COMMANDS[options.action]
    command = make(*(getattr(options, name) for name in arguments), options.reason)
    shown = plain(str(command))
    if options.dry_run:
        _, status = await client_options.status_of(options)
        effects = effects_of(options, status)
        found = {"would": str(command), "changes": effects}
        write(
            options.format,
            found,
            lambda: print("\n".join([f"nothing was changed; it would: {shown}", *effects])),
        )
        return 0
    _, data = await client_options.ask(options, COMMAND, command_to_bytes(command), COMMAND_S)
    version = done_from_bytes(data)
    left = await _waited(options) if options.wait else []
    done = {"done": str(command), "version": version} | ({"left": left} if options.wait else {})

    def text() -> None:
        print(f"version {version}: {shown}")
        for one in left:
            print(f"! {one}")

    write(options.format, done, text)
    return 1 if left else 0


async def _waited(options: argparse.Namespace) -> list[str]:
    """Wait for the command's effect; return its unfinished part at the timeout."""
    until_s = time.monotonic() + options.timeout
    while True:
        _, status = await client_options.status_of(options)
        left = left_of(options, status)
        if not left or time.monotonic() >= until_s:
            return left
        await asyncio.sleep(LOOK_S)


def effects_of(options: argparse.Namespace, status: Status) -> list[str]:
    """Return the effects of a command. Raises InputError for a command that would be refused."""
    workers = {one.id for one in status.members}
    worker, partition = getattr(options, "worker", None), getattr(options, "partition", None)
    if worker is not None and worker not in workers:
        raise InputError(f"no worker {worker}; the cluster has {', '.join(sorted(workers))}")
    if partition is not None and partition >= len(status.owners):
        raise InputError(f"no partition {partition}; there are {len(status.owners)}")
    if options.action == "drain":
        return [
            f"partition {number} ({one.stage}/{one.number}) moves away from {one.owner}"
            for number, one in enumerate(status.owners)
            if one.owner is not None and worker_of(one.owner) == worker
        ]
    if partition is not None and worker is not None:
        one = status.owners[partition]
        if one.owner is not None and worker_of(one.owner) == worker:
            return [f"partition {partition} is on {one.owner} already"]
        place = f"partition {partition} ({one.stage}/{one.number})"
        return [f"{place} moves from {one.owner or 'no owner'} to {worker}"]
    return []


def left_of(options: argparse.Namespace, status: Status) -> list[str]:
    """Return the missing effects of a command."""
    if options.action == "drain":
        return [
            f"partition {number} is still on {one.owner}"
            for number, one in enumerate(status.owners)
            if one.owner is not None and worker_of(one.owner) == options.worker
        ]
    if options.action in ("move", "pin"):
        owner = status.owners[options.partition].owner
        if owner is None or worker_of(owner) != options.worker:
            return [f"partition {options.partition} is still on {owner or 'no worker'}"]
    return [f"partition {one.partition} moves from {one.source}" for one in status.moves]
