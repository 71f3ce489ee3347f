"""``ripple``: one command, a subcommand per file."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import ripple
from ripple.cli.lib.exits import Parser, exit_code

if TYPE_CHECKING:
    from types import ModuleType

PROGRAM = "ripple"

# Each is a module with ``configure(parser)`` and ``run(options) -> int``, imported only when it is
# wanted; FOLDERS says where it is.
SUBCOMMANDS = {
    "new": "begin a pipeline: one that works, its test and some records",
    "run": "run a pipeline over a source, here and now",
    "plan": "show what a pipeline will do",
    "status": "show how a cluster is",
    "inspect": "show graphs, schemas, metrics, partitions, edges of a running cluster",
    "query": "ask live outputs in SQL, at one stated cut",
    "debug": "tap: watch an output change; wire: its data ports",
    "top": "watch a cluster",
    "move": "move a partition to another worker",
    "drain": "move all partitions of a worker away",
    "undrain": "let a worker have partitions again",
    "cluster": "start a cluster, show how one is, tell it what to do",
    "checkpoint": "list, show, verify, compare and export checkpoints",
    "log": "create, append to, follow and verify event logs",
    "dead-letter": "list refused records, and retry them",
    "spark": "replay, backfill and check a pipeline on Spark",
    "config": "show the settings in force and their origins, name clusters",
    "connector": "list, describe and check connectors, begin one of your own",
    "cert": "make the certificates of a cluster for development",
    "complete": "print what lets a shell complete commands",
    "info": "show version and build",
}
FOLDERS = {
    "run": ("new", "run", "plan", "dead-letter"),
    "cluster": (
        *("status", "inspect", "query", "debug", "top"),
        *("move", "drain", "undrain", "cluster"),
    ),
    "checkpoint": ("checkpoint",),
    "log": ("log",),
    "spark": ("spark",),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code(PROGRAM, lambda: _run(given))


def _run(arguments: list[str]) -> int:
    # Options before the subcommand are ours, everything behind it belongs to the subcommand.
    name: str = _parser().parse_args(arguments[:1]).subcommand
    module, parser = parser_of(name)
    given, rest = arguments[1:], []
    if getattr(module, "PASSES_ON", False) and "--" in given:
        at = given.index("--")
        given, rest = given[:at], given[at + 1 :]
    options = parser.parse_args(given)
    if rest:
        options.rest = rest
    code: int = module.run(options)
    return code


def parser_of(name: str) -> tuple[ModuleType, Parser]:
    """Return the module of a subcommand, and the parser of what is behind it."""
    folder = next((f"{folder}." for folder, names in FOLDERS.items() if name in names), "")
    module = import_module(f"ripple.cli.{folder}{name.replace('-', '_')}")
    examples = "\n".join(f"  {one}" for one in getattr(module, "EXAMPLES", ()))
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=module.__doc__,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    return module, parser


def _parser() -> Parser:
    listed = "\n".join(f"  {name:<12} {purpose}" for name, purpose in SUBCOMMANDS.items())
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} <subcommand> ...",
        description="Keyed views of event streams, kept up to date by recomputing what changed.",
        epilog=(
            f"subcommands:\n{listed}\n\n{PROGRAM} <subcommand> --help tells more. Exit codes: 0 "
            "success, 1 wrong arguments\nor a failure, 2 nobody answers at an address, 3 schemas "
            "do not fit."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {ripple.__version__}")
    parser.add_argument("subcommand", choices=SUBCOMMANDS, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
