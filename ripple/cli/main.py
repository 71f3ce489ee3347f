"""``ripple``: one command, a subcommand per file."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

import ripple
from ripple.cli.exits import Parser, exit_code

PROGRAM = "ripple"

# Each is a module of this package with ``configure(parser)`` and ``run(options) -> int``, imported
# only when it is wanted.
SUBCOMMANDS = {
    "run": "run a pipeline over a source, here and now",
    "plan": "show what a pipeline will do",
    "checkpoint": "list, show, verify, compare and export checkpoints",
    "log": "create, append to, follow and verify event logs",
    "dead-letter": "list refused records, and retry them",
    "cluster": "start a cluster, show how one is, tell it what to do",
    "spark": "replay, backfill and check a pipeline on Spark",
    "cert": "make the certificates of a cluster for development",
    "info": "show version and build",
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return exit_code(PROGRAM, lambda: _run(given))


def _run(arguments: list[str]) -> int:
    # Options before the subcommand are ours, everything behind it belongs to the subcommand.
    name: str = _parser().parse_args(arguments[:1]).subcommand
    module = import_module(f"ripple.cli.{name.replace('-', '_')}")
    parser = Parser(prog=f"{PROGRAM} {name}", description=module.__doc__)
    module.configure(parser)
    code: int = module.run(parser.parse_args(arguments[1:]))
    return code


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
