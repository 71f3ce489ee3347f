"""The flags of the dashboard, shared by runs and local clusters."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say
from ripple.cli.lib.number_options import port
from ripple.core.errors import InputError
from ripple.world.addresses import joined

if TYPE_CHECKING:
    import argparse

    from ripple.client.dashboard.run import RunShown
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World

PORT = 9203
HOST = "127.0.0.1"


def configure_dashboard(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    group = parser.add_argument_group("dashboard", "A web page on this machine.")
    add_dashboard(group)
    group.add_argument(
        "--dashboard-allow-commands",
        action="store_true",
        help="allow its users to move, drain and freeze (default: read-only)",
    )


def add_dashboard(group: argparse._ActionsContainer) -> None:
    """Add the argument that runs have too."""
    group.add_argument(
        "--dashboard",
        type=port,
        nargs="?",
        const=PORT,
        metavar="PORT",
        help=f"serve it at http://127.0.0.1:PORT/ (default: {PORT}; 0: any free port)",
    )


@asynccontextmanager
async def run_shown(
    number: int, plan: Plan, store: ObjectStore, world: World, place: str
) -> AsyncIterator[RunShown]:
    """Serve the dashboard of a run in this context. Raises InputError for a port that is taken."""
    # Here: slow to import, and of an extra.
    from ripple.client.dashboard.gate import Gate  # noqa: PLC0415
    from ripple.client.dashboard.run import RunShown  # noqa: PLC0415
    from ripple.client.dashboard.web import Dashboard  # noqa: PLC0415

    shown = RunShown(plan, store, world, place)
    gate = Gate(None, lambda: world.random.bytes(24).hex())
    dashboard = Dashboard(shown, gate, world.clock, say=say)
    try:
        await dashboard.start(joined(HOST, number))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"--dashboard: cannot listen on {joined(HOST, number)}: {why}. Give another port, "
            "as --dashboard PORT; 0 is any free one"
        ) from error
    say(f"ripple: the dashboard at {dashboard.address}{missing_files_hint()}")
    try:
        yield shown
    finally:
        await dashboard.close()


def missing_files_hint() -> str:
    """Return a hint if files of the page are missing, else ""."""
    # Here: slow to import, and few commands have a page.
    from ripple.client.dashboard.assets import HOW, missing  # noqa: PLC0415

    return f"; its files are not here yet: {HOW}" if missing() else ""


def url_of(host: str, number: int) -> str:
    """Return the dashboard's URL."""
    return f"http://{joined(host, number)}/" if number else "a free port, which is logged below"
