"""Start a cluster on this machine; ask one how it is, and tell it what to do."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Any

from coordinator import commands
from ripple.assignment.version import PARTITIONS_MAX
from ripple.cli import cluster_up
from ripple.cli.cluster_status import print_status
from ripple.cli.numbers import count
from ripple.cli.places import a_place
from ripple.errors import InputError
from ripple.world.addresses import check_secured, parts
from ripple.world.control import ControlError, DeadlineError, RefusedError
from ripple.world.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator.commands import Command

PORT = 9200
STATUS_S = 5.0
# A coordinator tries for 30 s by default (command_wait_ms), and then says why it was not done.
COMMAND_S = 40.0


def _partition(text: str) -> int:
    if count(text) >= PARTITIONS_MAX:
        raise argparse.ArgumentTypeError(f"partitions are 0 to {PARTITIONS_MAX - 1} at most")
    return int(text)


_WORKER = {"worker": {"metavar": "WORKER", "help": "a worker's id"}}
_PARTITION = {"partition": {"metavar": "PARTITION", "type": _partition, "help": "its number"}}
# What can be commanded: help, arguments, and what they make.
_COMMANDS: dict[str, tuple[str, dict[str, Any], Callable[..., Command]]] = {
    "freeze": ("change nothing but by command", {}, commands.Freeze),
    "unfreeze": ("go on", {}, commands.Unfreeze),
    "pin": ("keep a partition at a worker", _PARTITION | _WORKER, commands.PinTo),
    "unpin": ("let a partition go where it belongs", _PARTITION, commands.Unpin),
    "drain": ("move a worker's partitions away", _WORKER, commands.Drain),
    "undrain": ("let a worker have partitions again", _WORKER, commands.Undrain),
    "move": ("move a partition to a worker", _PARTITION | _WORKER, commands.Move),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser(
        "up", help="start a cluster on this machine", description=cluster_up.__doc__
    )
    cluster_up.configure(up)
    status = actions.add_parser("status", help="who is there, and who owns how much")
    status.add_argument("--partitions", action="store_true", help="show the owner of each")
    _add_common(status)
    for name, (purpose, arguments, _) in _COMMANDS.items():
        action = actions.add_parser(name, help=purpose)
        for argument, about in arguments.items():
            action.add_argument(argument, **about)
        action.add_argument(
            "--reason", required=True, metavar="TEXT", help="why: others will ask, and read it"
        )
        _add_common(action)


def _add_common(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--coordinator",
        type=a_place,
        default=f"localhost:{PORT}",
        metavar="HOST:PORT[,...]",
        help=f"whom to ask, the next one where one does not answer (default: localhost:{PORT})",
    )
    action.add_argument("--json", action="store_true", help="write JSON")
    for name, about in (
        ("certificate", "of whoever asks"),
        ("key", "that belongs to it"),
        ("authority", "whose certificates are believed"),
    ):
        action.add_argument(f"--tls-{name}", type=a_place, metavar="FILE", help=about)


def run(options: argparse.Namespace) -> int:
    """Start, ask or command; return the exit code."""
    if options.action == "up":
        return cluster_up.run(options)
    tls = _tls(options)
    coordinators = _addresses(options.coordinator, tls)
    ask = _status if options.action == "status" else _command
    try:
        return asyncio.run(ask(options, coordinators, tls))
    except ModuleNotFoundError as error:  # of the extra, which says how to install it
        raise InputError(str(error)) from error


def _tls(options: argparse.Namespace) -> Tls | None:
    files = (options.tls_certificate, options.tls_key, options.tls_authority)
    if not any(files):
        return None
    if not all(files):
        raise InputError("TLS needs --tls-certificate, --tls-key and --tls-authority")
    return Tls(certificate=files[0], key=files[1], authority=files[2])


def _addresses(text: str, tls: Tls | None) -> list[str]:
    """Return the addresses; the port may be left out."""
    found = []
    for given in filter(None, (one.strip() for one in text.split(","))):
        address = given if given.rpartition(":")[2].isdigit() else f"{given}:{PORT}"
        try:
            parts(address)
            check_secured(address, tls)
        except ValueError as error:
            if tls is None and "TLS" in str(error):
                raise InputError(
                    f"{address} is not on this machine: give --tls-certificate, --tls-key and "
                    "--tls-authority (ripple cert makes some)"
                ) from error
            raise InputError(f"--coordinator: {error}") from error
        found.append(address)
    if not found:
        raise InputError("--coordinator names nobody")
    return found


async def _status(options: argparse.Namespace, coordinators: list[str], tls: Tls | None) -> int:
    # Here, since gRPC takes its time, and may be absent.
    from coordinator.messages import status_from_bytes  # noqa: PLC0415
    from ripple.rpc.methods import STATUS  # noqa: PLC0415

    address, data = await _ask(coordinators, tls, STATUS, b"", STATUS_S)
    status = status_from_bytes(data)
    if options.json:
        print(json.dumps({"coordinator": address} | asdict(status), default=_plain, indent=2))
    else:
        print_status(address, status, has_partitions=options.partitions)
    return 0


async def _command(options: argparse.Namespace, coordinators: list[str], tls: Tls | None) -> int:
    from coordinator.messages import command_to_bytes, done_from_bytes  # noqa: PLC0415
    from ripple.rpc.methods import COMMAND  # noqa: PLC0415

    _, arguments, make = _COMMANDS[options.action]
    command = make(*(getattr(options, name) for name in arguments), options.reason)
    _, data = await _ask(coordinators, tls, COMMAND, command_to_bytes(command), COMMAND_S)
    version = done_from_bytes(data)
    if options.json:
        print(json.dumps({"done": str(command), "version": version}))
    else:
        print(f"version {version}: {command}")
    return 0


async def _ask(
    coordinators: Sequence[str], tls: Tls | None, method: str, request: bytes, deadline_s: float
) -> tuple[str, bytes]:
    """Return who has answered, and what. All that can be asked may be asked twice."""
    from ripple.world.live_control import LiveControl  # noqa: PLC0415

    problems = []
    for address in coordinators:
        channel = LiveControl().channel(address, tls=tls)
        try:
            return address, await channel.call(method, request, deadline_s=deadline_s)
        except RefusedError as error:
            raise InputError(f"{address} refuses: {error}") from error
        except DeadlineError as error:
            problems.append(f"{error}, whether it was done or not")
        except ControlError as error:
            problems.append(str(error))
        finally:
            await channel.close()
    raise ConnectionError(f"no coordinator answers: {'; '.join(problems)}")


def _plain(value: object) -> object:
    """Return what JSON can say of a value."""
    return value.value if isinstance(value, Enum) else str(value)
