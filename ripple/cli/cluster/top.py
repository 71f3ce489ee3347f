"""Show workers, load, queues and records a second, continuously. Ctrl+C ends it."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import defaultdict
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any

from ripple.cli.cluster.status_page import queues_of
from ripple.cli.lib import client_options
from ripple.cli.lib.output_forms import add_format, coloured, write_line, write_table
from ripple.core.arguments import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from coordinator.decisions.status import Status

EXAMPLES = ("ripple top", "ripple top --interval 5", "ripple top --once --format json")
_EVENTS = re.compile(r"^ripple_worker_partition_(events|rows_out)\{[^}]*\} ([0-9.e+]+)$", re.M)
_HOME, _CLEAR_LINE, _CLEAR_REST = "\x1b[H", "\x1b[K", "\x1b[J"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="SECONDS", help="(default: %(default)s)"
    )
    parser.add_argument("--once", action="store_true", help="show it once, and end")
    client_options.add_coordinator(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Show the pages; return the exit code."""
    return asyncio.run(_watch(options))


async def _watch(options: argparse.Namespace) -> int:
    is_screen = options.format == "text" and sys.stdout.isatty() and not options.once
    before: dict[str, tuple[float, Mapping[str, float]]] = {}
    if options.once:  # a rate needs two samples
        await _look(options, before)
        await asyncio.sleep(min(options.interval, 1.0))
    if is_screen:
        print("\x1b[2J", end="")
    while True:
        found = await _look(options, before)
        if options.format != "text":
            write_line(options.format, found)
        elif is_screen:
            _draw(found)
        else:
            _print(found)
        if options.once:
            return 0
        await asyncio.sleep(options.interval)


async def _look(
    options: argparse.Namespace, before: dict[str, tuple[float, Mapping[str, float]]]
) -> dict[str, Any]:
    """Return a sample; before: the counters of the last one, by worker."""
    address, status = await client_options.status_of(options)
    texts, _ = await client_options.pages(status.members, "metrics", "/metrics")
    now_s = time.monotonic()
    workers = []
    for one in status.members:
        counts: dict[str, float] = defaultdict(float)
        for name, value in _EVENTS.findall(texts.get(one.id, "")):
            counts[name] += float(value)
        was_s, was = before.get(one.id, (now_s, {}))
        rates: dict[str, float | None] = {
            name: (counts[name] - was[name]) / (now_s - was_s)
            if name in was and now_s > was_s
            else None
            for name in ("events", "rows_out")
        }
        if one.id in texts:
            before[one.id] = now_s, counts
        workers.append(
            {
                "worker": one.id,
                "standing": one.standing.value + (", leaving" if one.is_leaving else ""),
                "silent_ms": one.silent_ms,
                "load": one.load,
                "queues": queues_of(one.backpressure),
                "partitions": one.partitions,
                "records_per_s": rates["events"],
                "rows_out_per_s": rates["rows_out"],
            }
        )
    return {"coordinator": address} | _summary(status) | {"workers": workers}


def _summary(status: Status) -> dict[str, Any]:
    active, workers, partitions, version = status.summary
    return {
        "format_version": 1,
        "active": active,
        "members": workers,
        "partitions": partitions,
        "unowned": status.unowned,
        "assignment": version,
        "cause": status.cause,
        "frozen": status.frozen,
        "moves": len(status.moves),
        "problems": list(status.problems),
    }


class _Page(StringIO):
    """The next page of the terminal."""

    def isatty(self) -> bool:
        """Return True: colours are for the terminal."""
        return True


def _draw(found: Mapping[str, Any]) -> None:
    """Redraw the screen, without flicker."""
    page = _Page()
    with redirect_stdout(page):
        _print(found)
    lines = page.getvalue().splitlines()
    text = "".join(f"{line}{_CLEAR_LINE}\n" for line in lines)
    print(f"{_HOME}{text}{_CLEAR_REST}", end="", flush=True)


def _print(found: Mapping[str, Any]) -> None:
    state = f"{found['active']}/{found['members']} workers active"
    if found["unowned"]:
        state += f", {found['unowned']} of {found['partitions']} partitions have no owner"
    if found["moves"]:
        state += f", {found['moves']} moves under way"
    if found["frozen"] is not None:
        state += f", frozen: {plain(found['frozen'])}"
    is_well = found["active"] == found["members"] and not found["unowned"]
    print(coloured(state, "green" if is_well else "red"))
    print(f"version {found['assignment']}: {plain(found['cause'])}")
    write_table(
        ("WORKER", "STANDING", "LOAD", "QUEUES", "PARTITIONS", "RECORDS/S", "ROWS OUT/S"),
        (
            (
                *(one["worker"], one["standing"]),
                "-" if one["load"] is None else f"{one['load']:.2f}",
                *(one["queues"], str(one["partitions"])),
                *(_rate(one[name]) for name in ("records_per_s", "rows_out_per_s")),
            )
            for one in found["workers"]
        ),
    )
    for problem in found["problems"]:
        print(coloured(f"! {plain(problem)}", "yellow"))


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
