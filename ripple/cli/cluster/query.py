"""Query live outputs in SQL, each partition at its own committed cut, which is reported.

Tables hold the current rows, without windows that are over and were freed; tables of outputs of
events hold the newest rows. Names that are no SQL identifiers, such as vwap-1m or actor.login, need
double quotes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from ripple.cli.cluster.event_logs import NewestEvents, newest_of, places_of
from ripple.cli.lib import client_options
from ripple.cli.lib.exits import EXIT_UNREACHABLE, say
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import FORMS, add_format, shown, write, write_table
from ripple.cli.lib.path_options import a_place
from ripple.core import cut as cuts
from ripple.core.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from ripple.client.outputs import Observer, OutputRows

EXAMPLES = (
    'ripple query "SELECT symbol, vwap FROM vwap ORDER BY vwap DESC LIMIT 10"',
    "ripple query 'SELECT count(*) FROM \"by-class\"' --format json",
    'ripple query "SELECT * FROM vwap" --format csv > vwap.csv',
    "ripple query --list",
    'ripple query "SELECT count(*) FROM fills" --events fills=log:out/fills',
)
TIMEOUT_S = 30
CSV, TEXT = "csv", "text"
NEWEST = 100_000
PRINTED = 16  # bytes that a byte of the result takes when it is printed as text or JSON


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("sql", nargs="?", metavar="SQL", help="one statement")
    parser.add_argument("--list", action="store_true", help="list the outputs and their columns")
    parser.add_argument(
        "--events",
        type=a_place,
        action="append",
        default=[],
        metavar="NAME=log:DIR/TOPIC",
        help="read an output of events from the log of its sink, which has all of its rows",
    )
    parser.add_argument(
        "--newest",
        type=positive,
        default=NEWEST,
        metavar="N",
        help="how many rows of --events, of each partition (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="time limit, for loading and for the query (default: %(default)s)",
    )
    parser.add_argument(
        "--memory", type=positive, default=512, metavar="MIB", help="(default: %(default)s)"
    )
    client_options.add_coordinator(parser)
    add_format(parser, (*FORMS, CSV))


def run(options: argparse.Namespace) -> int:
    """Run the query; return the exit code."""
    if (options.sql is None) == (not options.list):
        raise InputError("give one statement, or --list")
    if options.list and options.format == CSV:
        raise InputError("--list has no CSV: use json")
    if options.list and options.events:
        raise InputError("--events goes with a statement: leave it out of --list")
    return asyncio.run(_run(options))


def limits_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the limits of a question: the result has its part of the memory, too."""
    taken = 1 if options.format == CSV else PRINTED
    return {
        "timeout_s": options.timeout,
        "memory_mib": options.memory,
        "bytes_max": (options.memory << 20) // taken,
    }


async def _run(options: argparse.Namespace) -> int:
    places, events = places_of(options.events), dict[str, NewestEvents]()
    if places:
        from ripple.client.sql.tables_read import mentioned, reads_others  # noqa: PLC0415 - an extra, and slow

        read = mentioned(options.sql, places)
        events = {name: newest_of(places[name], options.newest) for name in read}
        if not reads_others(options.sql, places):
            return await _answered(options, (), events)
    return await _asked(options, events)


async def _asked(options: argparse.Namespace, events: Mapping[str, NewestEvents]) -> int:
    """Ask the cluster for the outputs that a statement reads, beside these events."""
    async with client_options.observer_of(options, lambda _: None) as observer:
        edges = await observer.known()
        if options.list:
            return _list(options, {name: edge.offer for name, edge in edges.items()})
        from ripple.client.sql.tables_read import mentioned  # noqa: PLC0415 - an extra, and slow

        for name in events:
            if name in edges and not edges[name].is_events:
                raise InputError(f"the output {name!r} has a table: leave --events {name}= out")
        named = [name for name in mentioned(options.sql, edges) if name not in events]
        found = await _shown(observer, named, options.timeout)
    missing = {one.output: one.missing for one in found if one.missing}
    if missing:
        parts = "; ".join(f"{output}: {_listed(numbers)}" for output, numbers in missing.items())
        say(f"no answer within {options.timeout} s from partitions of {parts}")
        return EXIT_UNREACHABLE
    return await _answered(options, found, events)


async def _answered(
    options: argparse.Namespace, found: Sequence[OutputRows], events: Mapping[str, NewestEvents]
) -> int:
    """Print the answer over tables of outputs and rows of events."""
    from ripple.client.sql.query import query  # noqa: PLC0415 - an extra, and slow
    from ripple.model.schema.logical.texts import written_table  # noqa: PLC0415 - slow

    tables = {one.output: one.table for one in found}
    tables |= {name: one.rows for name, one in events.items()}
    rows: pa.Table = await asyncio.to_thread(query, options.sql, tables, **limits_of(options))
    if options.format == CSV:
        _write_csv(rows)
        return 0
    rows = written_table(rows)
    cut = {one.output: _cut(one) for one in found}
    cut |= {name: _ranges(one) for name, one in events.items()}
    listed = [] if options.format == TEXT else rows.to_pylist()
    value = {"cut": cut, "columns": rows.column_names, "rows": listed}

    def text() -> None:
        columns = rows.to_pydict().values() if rows.num_rows else ()
        listed = [[shown(value) for value in column] for column in columns]
        write_table(rows.column_names, list(zip(*listed, strict=True)), gap=False)
        say(f"{rows.num_rows} rows")
        for one in found:
            for number, position in one.cuts.items():
                say(f"{one.output}/{number} at {cuts.text(position.cut)} (epoch {position.epoch})")
            begins = {number: cut for number, cut in one.begins.items() if any(cut.values())}
            for number, begin in begins.items():
                say(f"{one.output}/{number} has all rows from {cuts.text(begin)} on")
            if begins:
                place = f"--events {one.output}=log:DIR/TOPIC"
                say(f"earlier rows of {one.output} are in its sink; {place} reads those of a log")
        for name, newest in events.items():
            for number, (first, end) in newest.ranges.items():
                say(f"{name}/{number} from offset {first} to {end}")

    write(options.format, value, text)
    return 0


async def _shown(observer: Observer, outputs: list[str], timeout_s: float) -> list[OutputRows]:
    seen = [await observer.follow(output) for output in outputs]
    return list(await asyncio.gather(*(one.whole(timeout_s) for one in seen)))


def _cut(one: OutputRows) -> dict[str, Any]:
    found: dict[str, Any] = {
        str(number): {"epoch": position.epoch, "cut": dict(position.cut)}
        for number, position in one.cuts.items()
    }
    for number, begin in one.begins.items():
        found[str(number)]["begins"] = dict(begin)
    return found


def _ranges(one: NewestEvents) -> dict[str, Any]:
    return {str(number): {"from": first, "to": end} for number, (first, end) in one.ranges.items()}


def _write_csv(rows: pa.Table) -> None:
    from pyarrow import ArrowInvalid, ArrowNotImplementedError, csv  # noqa: PLC0415 - slow

    try:
        csv.write_csv(rows, sys.stdout.buffer)
    except (ArrowInvalid, ArrowNotImplementedError) as error:
        for number, field in enumerate(rows.schema):
            with open(os.devnull, "wb") as nowhere:
                try:
                    csv.write_csv(rows.select([number]), nowhere)
                except (ArrowInvalid, ArrowNotImplementedError):
                    raise InputError(
                        f"CSV has no form for the column {field.name} ({field.type}): use json"
                    ) from error
        raise InputError(f"CSV cannot hold this: {error}") from error


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def listed_column(field: Any) -> str:
    """Return a column's name and the type of its shown values.

    field: its name has the type in storage behind it, in which a list has a colon, too.
    """
    named = str(field.name)
    name = named.partition("<")[0].rpartition(": ")[0]
    return f"{name}: {field.doc}" if field.doc else named


def _list(options: argparse.Namespace, offers: Mapping[str, Any]) -> int:
    found = [
        {
            "output": name,
            "columns": [listed_column(field) for field in offer.fields if field.name != "op: int8"],
        }
        for name, offer in offers.items()
    ]
    rows = [(str(one["output"]), ", ".join(one["columns"])) for one in found]
    write(
        options.format,
        {"outputs": found},
        lambda: write_table(("OUTPUT", "COLUMNS"), rows, gap=False),
    )
    return 0
