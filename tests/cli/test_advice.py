"""What messages tell people to say can be said: commands and flags in our texts are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from coordinator.settings import SETTINGS as COORDINATOR
from ripple.cli.complete import tree
from ripple.client.flight.settings import SETTINGS as GATEWAY
from tests.cli.processes import ROOT
from worker.settings import SETTINGS as WORKER

DAEMONS = {
    room: {setting.flag for setting in settings} | {"--check-config", "--config", "--help"}
    for room, settings in (("coordinator", COORDINATOR), ("worker", WORKER), ("gateway", GATEWAY))
}
# Of programs that are not `ripple`, by the file whose texts name them.
OTHERS = {
    "coordinator/dashboard/runbook.py": ("--batch-rows",),  # of workers
    "coordinator/service/front.py": ("--pipeline",),  # of commands
    "ripple/cli/run/vwap_demo.py": ("--file", "--final", "--stdin", "--synthetic", "--window"),
    "ripple/client/dashboard/assets.py": ("--ignore-scripts", "--no-audit", "--no-fund", "--omit"),
    "ripple/connectors/kafka/broker.py": (
        "--add-config",
        "--alter",
        "--bootstrap-server",
        "--topic",
    ),
    "ripple/spark/parcel.py": ("--py-files",),
    "ripple/testing/__main__.py": ("--check", "--jobs", "--plan", "--seeds", "--without"),
    "ripple/testing/exploring.py": ("--check", "--plan", "--without"),
    "ripple/testing/plugin.py": ("--ripple-seeds",),
    "ripple/connectors/formats/protobuf.py": ("--descriptor", "--include"),
    "worker/settings.py": ("--partition-id",),  # which it refuses
}
# What only one program runs may name the flags of that one, and of commands by their names.
ROOMS = {"worker/": "worker", "coordinator/": "coordinator", "ripple/client/flight/": "gateway"}
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?![\w-])")
COMMAND = re.compile(r"\bripple ((?:[a-z]+(?:-[a-z]+)*)(?: [a-z]+(?:-[a-z]+)*){0,2})((?: \S+)*)")


def texts(module: ast.Module) -> Iterator[str]:
    """Yield the texts of a module but for docstrings, with {} for what is put in."""
    passed: set[int] = set()
    for node in ast.walk(module):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            passed.add(id(body[0].value))
        if isinstance(node, ast.JoinedStr):
            passed.update(id(part) for part in ast.walk(node))
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield "".join(map(str, parts))
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed
        ):
            yield node.value


@cache
def commands() -> dict[str, set[str]]:
    """Return the flags of each command; whoever only collects tests builds no parser for it."""
    return {" ".join(one.words): {*one.flags, "--help"} for one in tree().walk()}


@cache
def files() -> dict[str, list[str]]:
    """Return the texts of each file that names a flag."""
    paths = (
        path
        for room in ("ripple", "worker", "coordinator")
        for path in sorted((ROOT / room).rglob("*.py"))
    )
    return {
        str(path.relative_to(ROOT)): [*texts(ast.parse(text))]
        for path in paths
        if FLAG.search(text := path.read_text())
    }


def commands_in(text: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the commands that a text names, with the flags behind them."""
    for found in COMMAND.finditer(text):
        words = found[1].split()
        names = [
            " ".join(words[:count]) for count in (3, 2, 1) if " ".join(words[:count]) in commands()
        ]
        if names:
            yield names[0], {*FLAG.findall(re.split(r"[.,;:)] | or | -- ", found[2])[0])}


def test_flags_behind_a_command_are_its_own() -> None:
    wrong = [
        (file, name, sorted(flags - commands()[name]))
        for file, listed in files().items()
        for text in listed
        for name, flags in commands_in(text)
        if not flags <= commands()[name]
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ["ripple/", *ROOMS])
def test_flags_in_texts_are_those_of_who_says_them(room: str) -> None:
    every = {"--version"}.union(*commands().values(), *DAEMONS.values())
    known = DAEMONS[ROOMS[room]] if room in ROOMS else every
    wrong = {}
    for file, listed in files().items():
        if not file.startswith(room) or (room == "ripple/" and file.startswith(tuple(ROOMS))):
            continue
        for text in listed:
            of_commands = set().union(*(commands()[name] for name, _ in commands_in(text)))
            # An argument for another program stands alone.
            own = every if text.startswith("--") else known
            missing = {*FLAG.findall(text)} - own - of_commands - {*OTHERS.get(file, ())}
            if missing:
                wrong[file, text[:60]] = missing
    assert wrong == {}
