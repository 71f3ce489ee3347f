"""All commands alike: help with examples, forms, suggestions, colours, settings."""

from __future__ import annotations

import json
import math
import os
import pty
import re
import shlex
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

from ripple.cli.complete import tree
from ripple.cli.lib.output_forms import as_sexp, write, write_line
from ripple.cli.main import SUBCOMMANDS, parser_of
from ripple.core import sexp
from ripple.core.arguments import plain
from tests.cli.processes import RIPPLE, ROOT, ripple

# Those whose result is not told but made, or has a form of its own. All others take --format.
WITHOUT_FORMS = {
    "cert": "writes files",
    "checkpoint export": "writes a file",
    "cluster down": "ends what runs",
    "cluster up": "runs until it is told to end, and logs",
    "complete": "prints a script",
    "connector new": "writes files",
    "connector spec": "prints JSON Schema",
    "inspect metrics": "prints what Prometheus reads",
    "log append": "writes; its --format is that of what it reads",
    "log create": "writes",
    "log repair": "writes",
    "log table": "prints rows, as JSON lines",
    "log tail": "prints records, as JSON lines",
    "new": "writes files",
    "run": "writes rows to where --sink says, in its form",
    "spark run": "writes rows to where --sink says",
}


class Standing(Enum):
    LATE = "late"


def test_every_command_that_tells_has_the_same_forms() -> None:
    commands = {" ".join(one.words): one for one in tree().walk() if one.words and not one.below}
    without = {
        name
        for name, one in commands.items()
        if not {"text", "json", "sexp"} <= {*(one.flags.get("--format") or ())}
    }
    assert without == {*WITHOUT_FORMS}


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_examples_are_commands_that_parse(name: str) -> None:
    module, parser = parser_of(name)
    text = ripple(name, "--help")
    assert text.code == 0
    for example in getattr(module, "EXAMPLES", ()):
        assert example in text.out
        assert f"ripple {name}" in example
        words = shlex.split(re.sub(r'"?\$\((.*)\)"?', r"\1", example))  # whatever shells do with it
        given = words[words.index("ripple") + 2 :]
        ends = [at for at, word in enumerate(given) if word in ("--", "|", ">")]
        parser.parse_args(given[: min(ends, default=None)])


def test_every_command_has_an_example_in_its_help() -> None:
    for command in (one for one in tree().walk() if one.words and not one.below):
        words = " ".join(("ripple", *command.words))
        _, parser = parser_of(command.words[0])
        for word in command.words[1:]:
            (below,) = (one for one in parser._actions if isinstance(one.choices, dict))
            parser = below.choices[word]  # type: ignore[index]
        examples = parser.format_help().partition("\nexamples:\n")[2]
        assert f"{words} " in examples.replace("\n", " \n"), words


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["statsu"], "invalid choice: 'statsu': did you mean status?"),
        (["log", "read"], "(choose from create, append, tail, table, info, verify, repair)"),
        (["inspect", "grahp"], "invalid choice: 'grahp': did you mean graph?"),
        (
            ["status", "--fromat", "json"],
            "unrecognized arguments: --fromat json: did you mean --format?",
        ),
        (
            ["connector", "spec", "ws", "--format", "json"],
            "--format json: --format goes with list, check, discover",
        ),
        (
            ["run", "x.py", "--sorce", "x"],
            "unrecognized arguments: --sorce: did you mean --source?",
        ),
        (
            ["spark", "replay", "x.py", "--sorce=x.csv"],
            "unrecognized arguments: --sorce: did you mean --source?",
        ),
        (["run", "x.py"], "the following arguments are required: --source"),
        (["status", "--format", "jsn"], "invalid choice: 'jsn': did you mean json?"),
    ],
)
def test_mistyped_words_get_a_suggestion(arguments: list[str], meant: str) -> None:
    ended = ripple(*arguments)
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.partition(" (see ripple ")[0].endswith(meant)


@pytest.mark.parametrize(
    ("words", "options"),
    [(["help"], ["--help"]), (["help", "run"], ["run", "--help"]), (["version"], ["--version"])],
)
def test_usual_words_are_options(words: list[str], options: list[str]) -> None:
    assert ripple(*words) == ripple(*options)


def test_help_loads_nothing_but_the_command_line() -> None:
    script = (
        "import sys; from ripple.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name for name in ended.stderr.split() if name in ("ripple", "numpy", "pyarrow")}
    assert loaded == {"ripple"}


def test_info_says_the_same_in_each_form() -> None:
    value = json.loads(ripple("info", "--format", "json").out)
    assert value["format_version"] == 1
    assert value == json.loads(ripple("info", "--json").out)
    assert sexp.loads(ripple("info", "--format", "sexp").out.strip()) == as_sexp(value)
    assert ripple("info").out.startswith(f"Ripple v{value['ripple']}\n")


def test_json_has_null_for_what_is_not_finite_and_each_other_bit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 123456789.12345679]
    told = {"rows": [{"x": math.nan, "of": (math.inf, [-math.inf])}, *values], "é": Standing.LATE}
    write("json", told, lambda: None)
    write_line("json", told)
    whole, line = capsys.readouterr().out.rsplit("\n", 2)[:2]
    said = json.loads(line, parse_constant=pytest.fail)
    assert said == {"rows": [{"x": None, "of": [None, [None]]}, *values], "é": "late"}
    assert list(map(repr, said["rows"][1:])) == list(map(repr, values))
    assert line.isascii()
    assert json.loads(whole, parse_constant=pytest.fail) == {"format_version": 1} | said


def test_settings_are_shown_with_where_they_come_from(tmp_path: Path) -> None:
    file = tmp_path / "ripple.toml"
    file.write_text('[worker]\nstore = "s3://bucket/prefix"\nkeep = 7\n')
    environment = {
        **os.environ,
        "RIPPLE_WORKER_ID": "w9",
        "RIPPLE_SINK": "out=x://me:hushhush@host/t",
        "RIPPLE_KEEP": "8",
    }
    ended = subprocess.run(
        [
            *(*RIPPLE, "config", "show", "worker", "--config", str(file), "--format", "json"),
            *("--", "--processes", "3"),
        ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = {one["name"]: one for one in json.loads(ended.stdout)["settings"]}
    assert found["store"] == {
        "name": "store",
        "value": "s3://bucket/prefix",
        "origin": "worker.store in the file",
    }
    assert (found["keep"]["value"], found["keep"]["origin"]) == (8, "RIPPLE_KEEP")
    assert (found["processes"]["value"], found["processes"]["origin"]) == (3, "--processes")
    assert found["batch_rows"]["origin"] == "default"
    assert found["source"]["origin"] == "missing"
    assert "hushhush" not in ended.stdout
    wrong = ripple("config", "show", "worker", "--", "--procesess", "3")
    assert wrong.code == 1
    assert "did you mean --processes?" in wrong.err


def test_colours_are_for_a_terminal_that_wants_them() -> None:
    script = "from ripple.cli.lib.output_forms import write_table; write_table(('A',), [('b',)])"

    def shown(**more: str) -> bytes:
        read, write = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", **more}
        environment.pop("NO_COLOR", None) if "NO_COLOR" not in more else None
        subprocess.run(
            [sys.executable, "-c", script], cwd=ROOT, stdout=write, env=environment, check=True
        )
        os.close(write)
        text = os.read(read, 1000)
        os.close(read)
        return text

    assert b"\x1b[1mA" in shown()
    assert b"\x1b" not in shown(NO_COLOR="1")
    piped = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True
    )
    assert b"\x1b" not in piped.stdout


def test_a_plan_and_a_topic_are_told_in_each_form(tmp_path: Path) -> None:
    plan = json.loads(ripple("plan", "examples/portfolio.py", "--format", "json").out)
    assert plan["format_version"] == 1
    assert plan["folds"][0]["name"] in plan["stages"][0]["folds"]
    assert [one["name"] for one in plan["keeps"]] == [one["name"] for one in plan["folds"]]
    assert ripple("plan", "examples/portfolio.py", "--format", "sexp").out.startswith("((format_")
    assert ripple("log", "create", "--schema", "trade", tmp_path / "t").code == 0
    info = json.loads(ripple("log", "info", tmp_path / "t", "--format", "json").out)
    assert info["partitions"] == 1


def test_nothing_in_data_acts_on_the_terminal() -> None:
    assert plain("a\x1b[2Jb\x9bc\n") == "a\\x1b[2Jb\\x9bc\\n"
    absent = ripple("log", "info", "no\x1b[2J")
    assert r" no\x1b[2J: there is no topic" in absent.only_line
