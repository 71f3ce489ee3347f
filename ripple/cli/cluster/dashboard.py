"""The flags that show a dashboard, alike for a run and a cluster on this machine."""

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
    group = parser.add_argument_group("the dashboard", "A page for the browser on this machine.")
    add_dashboard(group)
    group.add_argument(
        "--dashboard-allow-commands",
        action="store_true",
        help="let whoever opens it move, drain and freeze; else it only shows",
    )


def add_dashboard(group: argparse._ActionsContainer) -> None:
    """Add the argument that a run has too, which takes no commands."""
    group.add_argument(
        "--dashboard",
        type=port,
        nargs="?",
        const=PORT,
        metavar="PORT",
        help=f"show it at http://127.0.0.1:PORT/ (default: {PORT}; 0: any that is free)",
    )


@asynccontextmanager
async def run_shown(
    number: int, plan: Plan, store: ObjectStore, world: World, place: str
) -> AsyncIterator[RunShown]:
    """Show a run for as long as it goes on. Raises InputError for a port that is taken."""
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
            f"--dashboard: nobody can listen at {joined(HOST, number)}: {why}. Give another port, "
            "as --dashboard PORT; 0 is any that is free"
        ) from error
    say(f"ripple: the dashboard at {dashboard.address}{not_there()}")
    try:
        yield shown
    finally:
        await dashboard.close()


def not_there() -> str:
    """Return what is to be said beside where the page is, "" where its files are there."""
    # Here: slow to import, and few commands have a page.
    from ripple.client.dashboard.assets import HOW, missing  # noqa: PLC0415

    return f"; its files are not here yet: {HOW}" if missing() else ""


def url_of(host: str, number: int) -> str:
    """Return where a browser finds it."""
    return f"http://{joined(host, number)}/" if number else "a free port, which is said below"
