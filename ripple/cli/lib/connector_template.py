"""The package that ``ripple connector new`` writes: a connector for JSON lines, to be adapted."""

from __future__ import annotations

MODULE = '''\
"""A connector for Ripple with the scheme NAME. Adapt how it reads and writes; tests check it."""

import json
from pathlib import Path

from ripple.connectors.connector import Connector, Use
from ripple.connectors.contract import BasicSink
from ripple.connectors.memory import IteratorSource
from ripple.core.errors import InputError, OutputError

CONNECTOR = Connector(
    scheme="NAME",
    form="NAME:FILE",
    source=Use("ripple_NAME:open_source", "from beginning to end"),
    sink=Use("ripple_NAME:Rows", "appended; rows of a failed run stay"),
    continued_sink=Use("ripple_NAME:Rows", "rows since the last checkpoint may be repeated"),
    check="ripple_NAME:check",
)


def check(path):
    return f"{Path(path).stat().st_size} bytes" if Path(path).exists() else "not there yet"


def open_source(path, reading):
    rows = rows_of(path)
    return IteratorSource(rows, reading.shape, name=reading.name, batch_rows=reading.batch_rows)


def rows_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read NAME:{path}: {error}") from error


class Rows(BasicSink):
    promise = "rows since the last checkpoint may be repeated"

    def __init__(self, path, writing):
        self.name = f"NAME:{path}"
        try:
            self._file = open(path, "a", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot write {self.name}: {error}") from error

    def write(self, changes, reached):
        self._file.writelines(json.dumps(row) + "\\n" for row in changes.to_pylist())

    def commit(self, reached):
        self._file.flush()

    def close(self):
        self._file.close()
'''
TEST = """\
import json
from pathlib import Path

from ripple.testing import sink_suite, source_suite
from ripple_NAME import CONNECTOR


def put(folder, rows):
    path = folder / "rows"
    path.write_text("".join(json.dumps(row) + "\\n" for row in rows))
    return str(path)


def target(folder):
    return str(folder / "out")


def read(path):
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return [json.loads(line) for line in lines]


TestSource = source_suite(CONNECTOR, put)
TestSink = sink_suite(CONNECTOR, target, read, once=False)
TestPlainSink = sink_suite(CONNECTOR, target, read, plain=True)
"""
PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "ripple-NAME"
version = "0.1.0"
dependencies = ["ripple-stream"]

[project.entry-points."ripple.connectors"]
NAME = "ripple_NAME:CONNECTOR"

[tool.setuptools]
py-modules = ["ripple_NAME"]
"""


def files_of(name: str) -> dict[str, str]:
    """Return the texts of the package's files, by path."""
    texts = {
        f"ripple_{name}.py": MODULE,
        f"tests/test_{name}.py": TEST,
        "pyproject.toml": PROJECT,
    }
    return {path: text.replace("NAME", name) for path, text in texts.items()}
