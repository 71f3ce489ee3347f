"""List and describe connectors, check and discover sources, and create a new connector."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.connector_template import files_of
from ripple.cli.lib.output_forms import add_format, many, write
from ripple.cli.lib.path_options import a_place
from ripple.connectors.installed import load
from ripple.connectors.registry import USES, is_stream, of_scheme, schemes
from ripple.connectors.settings import schema_of_settings
from ripple.control.secrets import without_secrets
from ripple.core.errors import ConnectorError, InputError, OutputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ripple.connectors.connector import Connector
    from ripple.connectors.settings import Stream

EXAMPLES = (
    "ripple connector list",
    "ripple connector spec kafka",
    "ripple connector check kafka:trades",
    "ripple connector discover log:data/trades",
    "ripple connector new mybroker",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions, each with its own arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list all connectors, with their delivery guarantees")
    spec = actions.add_parser("spec", help="print a connector's settings, as JSON Schema")
    spec.add_argument("scheme", metavar="SCHEME", help="its name in URIs, such as kafka")
    check = actions.add_parser("check", help="check that a URI can be reached, and report problems")
    discover = actions.add_parser("discover", help="list the streams at a URI, with their columns")
    for one in (check, discover):
        one.add_argument(
            "place", type=a_place, metavar="URI", help="as in ripple run --source or --sink"
        )
    for one in (listing, check, discover):
        add_format(one)
    new = actions.add_parser("new", help="write a package with a connector and its tests")
    new.add_argument("name", metavar="NAME", help="its scheme: lower-case letters, digits and _")
    new.add_argument("--dir", type=a_place, metavar="DIR", default=".", help="target folder (.)")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    if options.action == "list":
        _list(options.format)
    elif options.action == "spec":
        connector = _connector(options.scheme)
        settings = _of(connector, connector.settings) if connector.settings else None
        print(json.dumps(schema_of_settings(connector, settings), indent=2))
    elif options.action == "check":
        _check(options.place, options.format)
    elif options.action == "discover":
        _discover(options.place, options.format)
    else:
        _new(options.name, Path(options.dir))
    return 0


def _list(form: str) -> None:
    rows: list[dict[str, Any]] = []
    for scheme in schemes():
        try:
            connector = _connector(scheme)
        except ConnectorError as error:
            rows.append({"scheme": scheme, "error": str(error)})
            continue
        uses = {name: use.promise for name in USES if (use := getattr(connector, name))}
        rows.append(
            {"scheme": scheme, "form": connector.form, "package": connector.package, "uses": uses}
        )

    def text() -> None:
        for row in rows:
            print(f"{row['scheme']}: {row.get('error') or row['form']}")
            for name, promise in row.get("uses", {}).items():
                print(f"  {name.replace('_', ' '):<17} {promise}")

    write(form, {"connectors": rows}, text)


def _check(place: str, form: str) -> None:
    connector, path = _divided(place)
    if connector.check:
        found = _of(connector, connector.check)(path)
    elif (file := connector.path_of and connector.path_of(path)) is not None:
        found = _looked_at(file)
    else:
        found = "its connector has no check: a run opens it first"
    place = without_secrets(place)
    write(form, {"place": place, "found": found}, lambda: print(f"{place}: {found}"))


def _looked_at(path: str) -> str:
    if is_stream(path):
        return "a stream"
    try:
        size = os.stat(path).st_size
        os.close(os.open(path, os.O_RDONLY))
    except FileNotFoundError:
        folder = os.path.dirname(path) or "."
        if not os.access(folder, os.W_OK):
            raise OutputError(f"{path} does not exist, and cannot be made in {folder}") from None
        return "not there yet; it can be written"
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    return f"a file of {size} bytes that can be read"


def _discover(place: str, form: str) -> None:
    connector, path = _divided(place)
    if not connector.discover:
        raise InputError(
            f"{connector.scheme}: connector cannot discover streams: name one with its schema"
        )
    streams: Iterable[Stream] = _of(connector, connector.discover)(path)
    rows = [_row(stream) for stream in streams]

    def text() -> None:
        for row in rows:
            key = f" by {', '.join(row['key'])}" if row["key"] else ""
            again = "" if row["replayable"] else ", read once"
            print(f"{row['place']}: {many(row['partitions'], 'partition')}{key}{again}")
            for name, kind in (row["columns"] or {}).items():
                print(f"  {name}: {kind}")

    write(form, {"place": without_secrets(place), "found": rows}, text)


def _row(stream: Stream) -> dict[str, Any]:
    columns = None
    if stream.columns is not None:
        columns = {
            one.name: f"{one.type}{' or none' if one.nullable else ''}" for one in stream.columns
        }
    return {
        **stream._asdict(),
        "place": without_secrets(stream.place),
        "key": list(stream.key),
        "columns": columns,
    }


def _new(name: str, folder: Path) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise OutputError(f"invalid name {name!r}: a letter, then lower-case letters, digits, _")
    if name in schemes():
        raise OutputError(f"a connector {name!r} exists: choose another name")
    target = folder / f"ripple-{name}"
    if target.exists():
        raise OutputError(f"{target} exists: name another folder with --dir")
    for path, text in files_of(name).items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text)
    print(f"{target}: try it with  cd {target} && pip install -e . && pytest")


def _divided(place: str) -> tuple[Connector, str]:
    scheme, colon, path = place.partition(":")
    if not colon:
        raise InputError(f"{place!r} names no connector: begin with its scheme, as in csv:{place}")
    return _connector(scheme), path


def _connector(scheme: str) -> Connector:
    found = of_scheme(scheme)
    if found is None:
        raise ConnectorError(f"no connector {scheme!r}; there are {', '.join(schemes())}")
    return found


def _of(connector: Connector, name: str) -> Any:
    return load(connector.scheme, connector.package, name)
