"""The package that ``ripple connector new`` writes: a connector for JSON lines, to be adapted."""

from __future__ import annotations

MODULE = '''\
"""A connector for Ripple with the scheme NAME. Adapt how it reads and writes; tests check it."""

import json
from pathlib import Path

from ripple.connectors.connector import Connector, Use
from ripple.connectors.contract import BasicSink
from ripple.connectors.restartable_input import RestartableInput
from ripple.core.errors import OutputError

CONNECTOR = Connector(
    scheme="NAME",
    form="NAME:FILE",
    source=Use("ripple_NAME:Lines", "from beginning to end"),
    continued_source=Use("ripple_NAME:Lines", "resumes at the cut"),
    sink=Use("ripple_NAME:Rows", "appended; rows of a failed run stay"),
    continued_sink=Use("ripple_NAME:Rows", "rows since the last checkpoint may be repeated"),
    check="ripple_NAME:check",
    path_of=str,  # for the check that no run writes to its source
)


def check(path):
    return f"{Path(path).stat().st_size} bytes" if Path(path).exists() else "not there yet"


class Lines(RestartableInput):
    def __init__(self, path, reading):
        super().__init__(f"NAME:{path}", reading)
        self._path, self._last_line = path, (0, 0)  # its number, and where it begins

    def records(self, offset):
        number, start = self._last_line if self._last_line[0] <= offset else (0, 0)
        with open(self._path, "rb") as file:
            file.seek(start)
            for number, line in enumerate(file, number):
                if self.follow and not line.endswith(b"\\n"):
                    return  # it is not whole yet
                if number >= offset:
                    self._last_line = number, start
                    yield number, line
                start += len(line)


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
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\\n" for row in rows)
    return str(path)


def remake(folder):
    path = folder / "rows"
    path.write_text(2 * path.read_text().replace("name", "title"))


def target(folder):
    return str(folder / "out")


def read(path):
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return [json.loads(line) for line in lines]


TestSource = source_suite(CONNECTOR, put, changes={"made anew": remake})
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
