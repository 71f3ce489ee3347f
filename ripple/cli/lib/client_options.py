"""Connect to a cluster: the options, requests to its coordinators, pages of its workers."""

from __future__ import annotations

import argparse
import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.cli.lib.contexts import CONTEXT_VARIABLE, FILES, Context, in_use
from ripple.cli.lib.path_options import a_place
from ripple.core.access import AccessError, token_from
from ripple.core.errors import InputError
from ripple.world.addresses import check_secured, parts
from ripple.world.control import ControlError, DeadlineError, RefusedError
from ripple.world.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from coordinator.decisions.status import MemberStatus, Status
    from ripple.client.outputs import Endpoints, Observer
    from ripple.control.assignment.pipelines import Pipelines
    from ripple.world.live_control import LiveControl
    from ripple.world.ports import World

PORT = 9200
VARIABLE = "RIPPLE_COORDINATOR"
TOKEN_BYTES_MAX = 4096
STATUS_S = 5.0
PAGE_S = 5.0
PAGE_BYTES_MAX = 64 << 20


def add_coordinator(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a cluster: a context's name, or its address."""
    parser.add_argument(
        "--context",
        type=a_place,
        metavar="NAME",
        help=f"cluster by context name ({CONTEXT_VARIABLE}; see ripple config context list)",
    )
    add_address(parser)
    parser.add_argument(
        "--pipeline", metavar="NAME", help="the pipeline, in a cluster of several (ripple pipeline)"
    )


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the options for a cluster's address, token and certificates."""
    parser.add_argument(
        "--coordinator",
        type=a_place,
        metavar="HOST:PORT[,...]",
        help="coordinator addresses, tried in order (default: "
        f"{VARIABLE}, the context in use, or localhost:{PORT})",
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help="port of addresses without one (default: 9200)"
    )
    parser.add_argument(
        "--token-file",
        type=a_place,
        metavar="FILE",
        help="file with the access token, where roles are enforced (RIPPLE_TOKEN_FILE)",
    )
    for name, about in (
        ("certificate", "client certificate"),
        ("key", "private key of the client certificate"),
        ("authority", "CA certificate of the cluster"),
    ):
        variable = f"RIPPLE_TLS_{name.upper()}"
        parser.add_argument(
            f"--tls-{name}", type=a_place, metavar="FILE", help=f"{about} ({variable})"
        )


def target_context(options: argparse.Namespace) -> Context:
    """Return the cluster to connect to: by flags, variables, the context. Raises InputError."""
    named = getattr(options, "context", None)
    found = in_use(named, options.coordinator, os.environ, VARIABLE)
    if found is None:
        at = options.coordinator or os.environ.get(VARIABLE) or f"localhost:{PORT}"
        # The variables of processes: inside their container a command needs no flags.
        found = Context(
            at, **{name: os.environ.get(f"RIPPLE_{name.upper()}") or None for name in FILES}
        )
    flags = {name: getattr(options, name) for name in FILES}
    return replace(found, **{name: value for name, value in flags.items() if value is not None})


def tls_of(options: argparse.Namespace) -> Tls | None:
    """Return the TLS files. Raises InputError unless all or none were given."""
    chosen = target_context(options)
    files = (chosen.tls_certificate, chosen.tls_key, chosen.tls_authority)
    if not any(files):
        return None
    certificate, key, authority = files
    if certificate is None or key is None or authority is None:
        raise InputError(
            "TLS needs --tls-certificate, --tls-key and --tls-authority, or RIPPLE_TLS_…"
        )
    return Tls(certificate=certificate, key=key, authority=authority)


def token_of(options: argparse.Namespace) -> str:
    """Return the access token, "" for none. Raises InputError, OSError."""
    path = target_context(options).token_file
    if path is None:
        return ""
    with open(path, "rb") as file:
        data = file.read(TOKEN_BYTES_MAX)
    try:
        return token_from(data)
    except AccessError as error:
        raise InputError(f"{path} {error}") from error


def coordinators_of(options: argparse.Namespace) -> list[str]:
    """Return the coordinators' addresses, with their ports. Raises InputError."""
    tls, found = tls_of(options), []
    for given in filter(
        None, (one.strip() for one in target_context(options).coordinator.split(","))
    ):
        address = given if given.rpartition(":")[2].isdigit() else f"{given}:{options.port}"
        try:
            parts(address)
            check_secured(address, tls)
        except ValueError as error:
            if tls is None and "TLS" in str(error):
                raise InputError(
                    f"{address} is not on this machine: give --tls-certificate, --tls-key and "
                    "--tls-authority (ripple cert creates them)"
                ) from error
            raise InputError(f"--coordinator: {error}") from error
        found.append(address)
    if not found:
        raise InputError("--coordinator is empty")
    return found


async def ask(
    options: argparse.Namespace, method: str, request: bytes, deadline_s: float
) -> tuple[str, bytes]:
    """Send a request; return the answering coordinator's address, and the answer.

    Requests are idempotent: the next coordinator is tried when one does not answer. A responsive
    one comes first, since a frozen one may still carry out the request when it resumes. Raises
    InputError if the request is refused, ConnectionError if no coordinator answers.
    """
    # Here, since gRPC is slow to import, and may be absent.
    from ripple.client.outputs.first_answer import unanswered  # noqa: PLC0415

    tls, control, problems = tls_of(options), _control(options), []
    coordinators = coordinators_of(options)
    if len(coordinators) > 1:
        first, _ = await _status(options)
        coordinators.sort(key=lambda address: address != first)
    for address in coordinators:
        channel = control.channel(address, tls=tls)
        try:
            return address, await channel.call(method, request, deadline_s=deadline_s)
        except RefusedError as error:
            raise InputError(f"{address} refuses: {error}") from error
        except DeadlineError as error:
            problems.append(f"{error}, and may have been carried out")
        except ControlError as error:
            problems.append(str(error))
        finally:
            await channel.close()
    raise unanswered(problems)


async def status_of(options: argparse.Namespace) -> tuple[str, Status]:
    """Return the answering coordinator's address, and the cluster's status."""
    from coordinator.service.messages import status_from_bytes  # noqa: PLC0415

    address, data = await _status(options)
    return address, status_from_bytes(data)


async def _status(options: argparse.Namespace) -> tuple[str, bytes]:
    from ripple.control.rpc.methods import STATUS  # noqa: PLC0415

    try:
        return await _first(options, STATUS)
    except RefusedError as error:
        raise InputError(str(error)) from error


async def pipelines_of(options: argparse.Namespace) -> Pipelines | None:
    """Return the pipelines of a cluster of several, None of a cluster of one."""
    from coordinator.service.messages import pipelines_from_bytes  # noqa: PLC0415
    from ripple.control.rpc.methods import PIPELINES  # noqa: PLC0415

    try:
        _, data = await _first(options, PIPELINES)
    except RefusedError:
        return None
    return pipelines_from_bytes(data)


async def _first(options: argparse.Namespace, method: str) -> tuple[str, bytes]:
    """Return the first coordinator that answers, and its answer. Raises RefusedError."""
    from ripple.client.outputs.first_answer import first_answer  # noqa: PLC0415

    control, places, tls = _control(options), coordinators_of(options), tls_of(options)
    return await first_answer(control, places, method, b"", deadline_s=STATUS_S, tls=tls)


def _control(options: argparse.Namespace) -> LiveControl:
    """Return the way to coordinators: with the token, and for the pipeline that is named."""
    from ripple.world.live_control import LiveControl  # noqa: PLC0415

    return LiveControl(token_of(options), pipeline=getattr(options, "pipeline", None) or "")


def observer_of(options: argparse.Namespace, say: Callable[[str], None]) -> Observer:
    """Return an observer of the cluster's outputs."""
    from ripple.client.outputs import Observer  # noqa: PLC0415

    world, find = _finding(options)
    return Observer(world, find, tls=tls_of(options), say=say)


async def endpoints_of(options: argparse.Namespace) -> Endpoints:
    """Return the endpoints of partitions. Raises ConnectionError if no coordinator answers."""
    _, find = _finding(options)
    return await find()


def _finding(options: argparse.Namespace) -> tuple[World, Callable[[], Awaitable[Endpoints]]]:
    from ripple.client.outputs import found_by  # noqa: PLC0415
    from ripple.world import live_world  # noqa: PLC0415

    control = _control(options)
    find = found_by(control, coordinators_of(options), tls_of(options))
    return live_world(os.curdir, control=control), find


def chosen(members: Iterable[MemberStatus], worker: str | None) -> list[MemberStatus]:
    """Return the members, or the named one. Raises InputError."""
    found = [one for one in members if worker in (None, one.id)]
    if not found:
        names = ", ".join(one.id for one in members) or "none"
        raise InputError(f"no worker {worker or ''}; the cluster has {names}")
    return found


async def pages(
    members: Sequence[MemberStatus], purpose: str, path: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the pages by worker, and the errors of workers that do not answer."""
    texts = await asyncio.gather(
        *(page_at(dict(one.addresses).get(purpose), path) for one in members),
        return_exceptions=True,
    )
    found: dict[str, str] = {}
    silent: dict[str, str] = {}
    for one, text in zip(members, texts, strict=True):
        if isinstance(text, str):
            found[one.id] = text
        elif isinstance(text, OSError | ValueError):
            silent[one.id] = str(text) or f"no answer within {PAGE_S:g} s"
        else:
            raise text
    return found, silent


async def page_at(address: str | None, path: str) -> str:
    """Return the text of a process's page. Raises OSError and ValueError."""
    from ripple.control.probes import page_of  # noqa: PLC0415
    from ripple.world.live_network import LiveNetwork  # noqa: PLC0415

    if address is None:
        raise ConnectionError("it has not announced the address of its pages")
    return (await page_of(LiveNetwork(), address, path, PAGE_S, PAGE_BYTES_MAX)).decode()
