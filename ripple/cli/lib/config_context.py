"""``ripple config context``: name clusters, and choose one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ripple.cli.lib import client_options, contexts
from ripple.cli.lib.contexts import Context
from ripple.cli.lib.output_forms import add_format, write, write_table
from ripple.core.errors import InputError

if TYPE_CHECKING:
    import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="context_action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list contexts, and mark the one in use")
    use = actions.add_parser("use", help="use a context by default")
    make = actions.add_parser("set", help="create or replace a context; the first one is used")
    delete = actions.add_parser("delete", help="delete a context; its files stay")
    for action in (use, make, delete):
        action.add_argument("name", metavar="NAME")
    client_options.add_address(make)
    for action in (listing, use, make, delete):
        add_format(action)


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    path = contexts.place(os.environ)
    known = contexts.read(path)
    match options.context_action:
        case "use":
            known = known.using(options.name)
        case "delete":
            known = known.without(options.name)
        case "set":
            known = known.having(options.name, _said(options))
    if options.context_action != "list":
        contexts.keep(path, known)
    listed = [
        {"name": name, "current": name == known.current} | context.known
        for name, context in sorted(known.by_name.items())
    ]
    variable = os.environ.get(contexts.CONTEXT_VARIABLE) or None
    value = {"file": str(path), "current": known.current, "variable": variable, "contexts": listed}
    write(options.format, value, lambda: _print(value))
    return 0


def _said(options: argparse.Namespace) -> Context:
    """Return the context that the flags describe. Raises InputError."""
    if options.coordinator is None:
        raise InputError("a context needs --coordinator HOST:PORT[,HOST:PORT]")
    files = {name: getattr(options, name) for name in contexts.FILES}
    absolute = {name: os.path.abspath(file) for name, file in files.items() if file is not None}
    for name, file in absolute.items():
        if not os.path.isfile(file):
            raise InputError(f"--{name.replace('_', '-')}: there is no file {file}")
    return Context(",".join(client_options.coordinators_of(options)), **absolute)


def _print(value: dict[str, Any]) -> None:
    if not value["contexts"]:
        print(f"no contexts in {value['file']}: ripple config context set NAME --coordinator ...")
        return
    write_table(
        ("", "NAME", "COORDINATOR", "TLS", "TOKEN FILE"),
        (
            (
                "*" if one["current"] else "",
                one["name"],
                one["coordinator"],
                one.get("tls_certificate", "-"),
                one.get("token_file", "-"),
            )
            for one in value["contexts"]
        ),
        gap=False,
    )
    if value["variable"]:
        print(f"{contexts.CONTEXT_VARIABLE}={value['variable']} chooses the context here")
