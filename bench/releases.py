"""The figures of releases beside one another, from ``bench/history``. Files in, text out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.row import Row
from bench.table import aligned, figure

FOLDER = Path(__file__).with_name("history")
VERSIONS_MAX = 8
"""So many of the newest are shown: a line fits a terminal."""


def version_of(path: Path) -> tuple[int, ...]:
    """Return the version that a file is named after, to sort by it."""
    return tuple(int(part) for part in path.stem.split("."))


def history(folder: Path = FOLDER) -> str:
    """Return the figures of the newest releases: one line each, a column a release.

    A heading names the commit, the date and the machine, since figures of two machines do not
    compare. Raises ValueError for a file that is not named after a version.
    """
    paths = sorted(folder.glob("*.json"), key=version_of)[-VERSIONS_MAX:]
    if not paths:
        return f"no release has figures in {folder}: make bench-history writes them"
    found = {path.stem: json.loads(path.read_text()) for path in paths}
    made = [_made(version, one["machine"]) for version, one in found.items()]
    return "\n".join([*made, "", *_table({name: one["benchmarks"] for name, one in found.items()})])


def _made(version: str, machine: Mapping[str, str]) -> str:
    about = [machine["date"], f"commit {machine['commit']}", machine["machine"]]
    return f"{version}: {', '.join(about)}, load {machine['load']}"


def _table(found: Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]) -> list[str]:
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    for version, benchmarks in found.items():
        for benchmark, rows in benchmarks.items():
            for row in map(Row.from_dict, rows):
                line = lines.setdefault((benchmark, row.name, row.unit), {})
                line[version] = figure(row.value)
    heading = ("benchmark", "what", *found, "")
    cells = [
        (benchmark, name, *(line.get(version, "") for version in found), unit)
        for (benchmark, name, unit), line in sorted(lines.items())
    ]
    return list(aligned([heading, *cells], right=range(2, 2 + len(found))))
