"""Print an output's changes as they are committed.

Changes go to standard output, one a line; messages to standard error. A slow reader sees several
changes of a key as one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from ripple.cli.lib import client_options
from ripple.cli.lib.exits import say
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import FORMS, add_format, write, write_line, write_table
from ripple.control.assignment import worker_of
from ripple.core import sexp
from ripple.core.arguments import plain
from ripple.core.errors import InputError
from ripple.core.row_ops import OP, OP_FINAL, OP_REMOVE
from ripple.engine.changes.text import value_to_sexp

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import pyarrow as pa

    from ripple.client.outputs import Change, OutputSubscription
    from ripple.core.sexp import Sexp

EXAMPLES = (
    "ripple debug tap --output vwap",
    "ripple debug tap --output vwap --key AAPL --limit 10",
    "ripple debug tap --output vwap --where 'vwap > 150 and trades >= 3' --format json",
    "ripple debug tap --output vwap --worker worker-1 --interval 1000",
    "ripple debug tap --output vwap --uncommitted",
    "ripple debug wire --json",
)
_NAMES = {OP_REMOVE: "Remove", OP_FINAL: "Final"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    tap = actions.add_parser("tap", help="print an output's changes", description=__doc__)
    tap.add_argument("--output", required=True, help="which one")
    tap.add_argument("--worker", metavar="ID", help="only partitions of this worker (default: all)")
    tap.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="[FIELD=]VALUE",
        help="only this key; repeated for a key of several fields",
    )
    tap.add_argument("--where", metavar="EXPRESSION", help="only matching rows: price > 100")
    tap.add_argument("--limit", type=positive, metavar="N", help="end after N changes")
    tap.add_argument(
        "--interval", type=positive, metavar="MS", help="merge changes within this time"
    )
    tap.add_argument(
        "--timeout", type=positive, metavar="SECONDS", help="end after this time; exit code 0"
    )
    tap.add_argument("--all", action="store_true", help="begin with all present rows")
    tap.add_argument(
        "--uncommitted",
        action="store_true",
        help="show changes as they are computed, before the sink has committed them",
    )
    client_options.add_coordinator(tap)
    add_format(tap, FORMS)
    wire = actions.add_parser(
        "wire",
        help="print the data ports, for clients of the wire protocol",
        description="Data ports of a cluster, and a credential that lets a client follow outputs "
        "there for an hour: a secret.",
    )
    client_options.add_coordinator(wire)
    add_format(wire, FORMS)


def run(options: argparse.Namespace) -> int:
    """Run the action until it ends; return the exit code."""
    return asyncio.run(_tap(options) if options.action == "tap" else _wire(options))


async def _wire(options: argparse.Namespace) -> int:
    found = await client_options.endpoints_of(options)

    def text() -> None:
        write_table(("PROCESS", "DATA PORT"), found.processes.items())
        print(f"credential: {found.credential}")

    value = {"processes": found.processes, "credential": found.credential}
    write(options.format, value, text)
    return 0


async def _tap(options: argparse.Namespace) -> int:
    where = None if options.where is None else _predicate(options.where)
    async with client_options.observer_of(options, _said) as observer:
        say(f"Tapping output: {options.output}")
        seen = await observer.follow(options.output, uncommitted=options.uncommitted)
        say("Press Ctrl+C to stop")
        printed = _Printed(options, seen, where)
        ends_s = None if options.timeout is None else time.monotonic() + options.timeout
        while not printed.is_full:
            left_s = None if ends_s is None else ends_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                break
            for change in await seen.changes(left_s):
                printed.show(change)
            if options.interval is not None:
                await asyncio.sleep(options.interval / 1000)
    return 0


def _said(text: str) -> None:
    say(f"[{text[0].upper()}{text[1:]}]")


def _predicate(text: str) -> Any:
    from ripple.client.sql.where import where_of  # noqa: PLC0415 - slow to import

    return where_of(text)


class _Printed:
    """Prints changes, and counts them."""

    def __init__(self, options: argparse.Namespace, seen: OutputSubscription, where: Any) -> None:
        self._options, self._seen, self._where = options, seen, where
        self._count = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._options.limit is not None and self._count >= self._options.limit

    def show(self, change: Change) -> None:
        """Print the matching rows."""
        options = self._options
        if options.key and not self._count:
            self._key()  # an invalid key is reported at once, not at the first change
        if options.worker is not None and worker_of(change.process) != options.worker:
            return
        if change.since is None and not options.all:
            return
        for key, op, values in self._rows(change):
            if self.is_full:
                return
            self._count += 1
            self._print(change, key, op, values)

    def _rows(self, change: Change) -> Iterator[tuple[dict[str, Any], int, dict[str, Any]]]:
        import pyarrow as pa  # noqa: PLC0415 - slow to import

        from ripple.client.outputs.subscription import of_key  # noqa: PLC0415 - likewise
        from ripple.model.schema.logical.showing import noted  # noqa: PLC0415 - likewise
        from ripple.model.schema.logical.texts import written_table  # noqa: PLC0415 - likewise

        rows = noted(pa.Table.from_batches([change.rows]))
        if self._options.key:
            rows = of_key(self._seen.layout, rows, self._key())
        if self._where is not None:
            # Texts of dates and times are in their order, and numbers are compared as such.
            rows = self._where(written_table(rows, decimals=False))
        assert self._seen.layout is not None
        keys = self._seen.layout.keys
        for row in written_table(rows).to_pylist():
            op = row.pop(OP)
            yield {name: row[name] for name in keys}, op, row

    def _key(self) -> dict[str, Any]:
        """Return the requested key, in the declared types."""
        from ripple.model.schema.logical.showing import noted  # noqa: PLC0415 - slow to import

        layout = self._seen.layout
        assert layout is not None
        found = {}
        for number, given in enumerate(self._options.key):
            name, is_named, value = given.partition("=")
            if is_named and name.isidentifier() and name not in layout.keys:
                raise InputError(f"--key {given}: the key is {', '.join(layout.keys) or 'none'}")
            if not is_named or name not in layout.keys:
                if number >= len(layout.keys):
                    raise InputError(
                        f"--key {given}: the key is {', '.join(layout.keys) or 'none'}"
                    )
                name, value = layout.keys[number], given
            kind = noted(layout.table.empty_table()).schema.field(name).type
            found[name] = _value(value, kind, given)
        return found

    def _print(self, change: Change, key: dict[str, Any], op: int, row: dict[str, Any]) -> None:
        form = self._options.format
        if form == "text":
            delta = "Remove"
            if op != OP_REMOVE:
                fields: list[Sexp] = [[name, value_to_sexp(value)] for name, value in row.items()]
                delta = f"({_NAMES.get(op, 'Set')} {sexp.dumps(fields)})"
            name = "/".join(str(value) for value in key.values())
            print(plain(f"seq={self._count} key={name} delta={delta}"), flush=True)
            return
        value = {
            "seq": self._count,
            "output": self._seen.name,
            "partition": change.partition,
            "process": change.process,
            "epoch": change.position.epoch,
            "cut": dict(change.position.cut),
            "op": _NAMES.get(op, "Set").lower(),
            "key": key,
            "row": None if op == OP_REMOVE else row,
        }
        write_line(form, value)


def _value(text: str, kind: pa.DataType, given: str) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind) and text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if pa.types.is_integer(kind) else pa.scalar(text).cast(kind).as_py()
    except ValueError as error:  # Arrow's is one
        raise InputError(f"--key {given}: the field is {kind}") from error
