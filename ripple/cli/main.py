"""The ``ripple`` command: one module for each subcommand."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import ripple
from ripple.cli.lib.environment import warn_of_mistyped
from ripple.cli.lib.exits import Parser, exit_code, show_examples
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

PROGRAM = "ripple"

# Each is a module with ``configure(parser)`` and ``run(options) -> int``, imported on use;
# FOLDERS maps its folder.
SUBCOMMANDS = {
    "new": "create a working pipeline with its test and sample records",
    "run": "run a pipeline over a source in this process",
    "validate": "compare a pipeline with your table, or with live results",
    "plan": "show a pipeline's stages, edges and state changes",
    "status": "show the health, members and moves of a cluster",
    "inspect": "show graphs, schemas, metrics, partitions, edges of a cluster",
    "query": "query live outputs in SQL, as of a consistent cut",
    "debug": "tap: print an output's changes; wire: show data ports",
    "top": "show workers, queues and rates of a cluster, continuously",
    "move": "move a partition to another worker",
    "drain": "move all partitions off a worker",
    "undrain": "let a worker own partitions again",
    "cluster": "start and stop a local cluster; freeze and pin partitions",
    "deploy": "deploy other code beside a cluster's, and let it serve",
    "pipeline": "add, change, stop and remove pipelines of a cluster of several",
    "checkpoint": "list, show, verify, compare, export and move checkpoints",
    "log": "create, append to, follow and verify event logs",
    "dead-letter": "list and retry dead letters",
    "spark": "replay, backfill and validate a pipeline on Spark",
    "config": "show settings and their origins; name clusters",
    "connector": "list, describe, check and create connectors",
    "cert": "create certificates for a development cluster",
    "complete": "print a completion script for a shell",
    "info": "show version and build",
}
FOLDERS = {
    "run": ("new", "run", "validate", "plan", "dead-letter"),
    "cluster": (
        *("status", "inspect", "query", "debug", "top"),
        *("move", "drain", "undrain", "cluster", "deploy", "pipeline"),
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
    if not arguments:
        _parser().print_help()
        return 0
    warn_of_mistyped(PROGRAM, os.environ)
    arguments = _usual(arguments)
    # Options before the subcommand are the program's, all later ones the subcommand's.
    name: str = _parser().parse_args(arguments[:1]).subcommand
    module, parser = parser_of(name)
    given, rest = arguments[1:], []
    if getattr(module, "PASSES_ON", False) and "--" in given:
        at = given.index("--")
        given, rest = given[:at], given[at + 1 :]
    options = parser.parse_args(given)
    if rest:
        options.rest = rest
    with _tracebacks(wanted=getattr(options, "verbose", False)):
        code: int = module.run(options)
    return code


@contextmanager
def _tracebacks(*, wanted: bool) -> Iterator[None]:
    """Print, if wanted, the traceback of a mistake in the pipeline's file, too."""
    try:
        yield
    except (SystemExit, RippleError) as error:
        from ripple.model.pipeline.file import PipelineFileError  # noqa: PLC0415 - slow to import

        found = error if isinstance(error, PipelineFileError) else error.__cause__
        if wanted and isinstance(found, PipelineFileError) and found.__cause__ is not None:
            import traceback  # noqa: PLC0415 - likewise

            traceback.print_exception(found.__cause__)
        raise


def _usual(arguments: list[str]) -> list[str]:
    """Return the arguments with options for the words that other programs have as commands."""
    match arguments:
        case ["help", *words]:
            return [*words, "--help"]
        case ["version"]:
            return ["--version"]
        case _:
            return arguments


def parser_of(name: str) -> tuple[ModuleType, Parser]:
    """Return a subcommand's module, and the parser of its arguments."""
    folder = next((f"{folder}." for folder, names in FOLDERS.items() if name in names), "")
    module = import_module(f"ripple.cli.{folder}{name.replace('-', '_')}")
    parser = Parser(
        prog=f"{PROGRAM} {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.configure(parser)
    show_examples(parser, getattr(module, "EXAMPLES", ()))
    return module, parser


def _parser() -> Parser:
    listed = "\n".join(f"  {name:<12} {purpose}" for name, purpose in SUBCOMMANDS.items())
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} <subcommand> ...",
        description="Keyed views of event streams, kept up to date by recomputing what changed.",
        epilog=(
            f"subcommands:\n{listed}\n\n{PROGRAM} help <subcommand> prints details. Exit codes: "
            "0 success, 1 wrong arguments\nor a failure, 2 no answer from an address, 3 schemas do "
            "not match."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {ripple.__version__}")
    parser.add_argument("subcommand", choices=SUBCOMMANDS, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
