"""Whatever a place or a number is: one clear line, exit code 1, and nothing is left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ripple.cli.main import main
from tests.cli.processes import RIPPLE, ROOT, run

PIPELINE = ROOT / "tests" / "task" / "pipeline_vwap.py"
FINE, FAILED = "fine", "failed"

# What a user may write where a file, a folder or a topic is asked for.
NOWHERE = ["", "/", ".", "..", "absent", "absent/x/y", "loop", "x" * 300, "a/" * 1500 + "b"]
ELSEWHERE = [
    "file",
    "file/x",
    "folder",
    "/dev/null",
    "empty",
    "binary",
    "lg/../../x",
    "not\udcfftext",
]
NO_TOPIC = ["log:", "log:/", "log:..", "lg", "lg/t/9", "lg/7", *NOWHERE, *ELSEWHERE]
NO_FILE = ["lg/t", *NOWHERE[:-2], "folder", "file/x"]
NO_NUMBER = ["", "-1", "1e3", "0x10", "1_000", " 1", "\u0661", "nan", "9" * 30]
NO_SPAN = ["-1s", "1", "1s1s", "s", "1e9s", "9" * 25 + "d"]
NO_OFFSETS = [*NO_NUMBER, "1", "3-1", "1-", "-", "0-99"]
LONG_AGO_OR_AHEAD = [
    *("0001-01-01", "0001-01-01T00:00:00+14:00", "1677-01-01", "1970-01-01"),
    *("2262-04-12", "9999-12-31", "9999-12-31T23:59:59-14:00", "2024-02-27T02:13:20.000001Z"),
]
NO_TIME = [
    "2024-02-30",
    "10000-01-01",
    "-0001-01-01",
    "1e400",
    "24:00",
    "20240101",
    "now",
    "",
    "\udcff",
]

STATE = ("--checkpoint-dir", "state")
# A command with V where the value goes, the values, and how it ends.
TABLE: list[tuple[str, list[str], str]] = [
    (
        "log create V --schema trade",
        [*NOWHERE[:4], "loop", "file/x", "lg/t", "7", "a/007", "x/../y", "a\nb"],
        FAILED,
    ),
    ("log create new --schema V", [*NO_FILE, "file", "binary", "/dev/null"], FAILED),
    ("log create new --schema trade --key V", ["absent", "symbol,absent"], FAILED),
    ("log create new --schema trade --time-field V", ["absent", "symbol"], FAILED),
    ("log create new --schema trade --compression V", ["", "rar", "NONE "], FAILED),
    ("log create new --schema trade --retention-age=V", NO_SPAN, FAILED),
    ("log create new --schema trade --partitions=V", [*NO_NUMBER, "0", "10001"], FAILED),
    ("log create new --schema trade --sync=V", NO_NUMBER, FAILED),
    ("log create new --schema trade --segment-bytes=V", [*NO_NUMBER, "0", "1"], FAILED),
    ("log create new --schema trade --retention-bytes=V", NO_NUMBER, FAILED),
    ("log append V trades.csv", NO_TOPIC, FAILED),
    ("log append V trades.csv", ["lg/t/0"], FAILED),
    ("log append lg/t V", [*NO_FILE, "file", "binary", "log:absent/x"], FAILED),
    ("log append lg/t V --format jsonl", NO_FILE, FAILED),
    ("log append lg/t trades.csv --batch=V", [*NO_NUMBER, "0"], FAILED),
    (
        "log append lg/t trades.csv --dead-letter V",
        ["/", ".", "folder", "file/x", "absent/x"],
        FAILED,
    ),
    ("log tail V", NO_TOPIC, FAILED),
    ("log tail lg/t --from=V", [*NO_TIME, "9", "9" * 30], FAILED),
    ("log tail lg/t --from=V", LONG_AGO_OR_AHEAD, FINE),
    ("log tail lg/t --partition=V", [*NO_NUMBER, "1"], FAILED),
    ("log tail lg/t -n V", NO_NUMBER[1:], FAILED),
    ("log tail lg/t -n V", ["0", "1", "9" * 18], FINE),
    ("log info V", [*NO_TOPIC, "lg/t/0"], FAILED),
    ("log verify V", NO_TOPIC, FAILED),
    ("log verify lg/t --partition=V", [*NO_NUMBER, "1"], FAILED),
    ("log repair V --give-up 0-1", NO_TOPIC, FAILED),
    ("log repair lg/t --give-up=V", [*NO_OFFSETS, "0-0"], FAILED),
    ("log repair lg/t --give-up 0-0 --partition=V", [*NO_NUMBER, "1"], FAILED),
    *[
        (f"checkpoint {action} --dir V", [*NOWHERE, *ELSEWHERE, "lg"], FAILED)
        for action in ("list", "show", "verify", "diff", "export --to x.csv")
    ],
    *[
        (f"checkpoint {action} --dir state --partition=V", [*NO_NUMBER, "1"], FAILED)
        for action in ("list", "show", "verify", "diff", "export --to x.csv")
    ],
    ("checkpoint verify --dir state V", [*NOWHERE, *ELSEWHERE], FAILED),
    ("checkpoint verify V", [*NOWHERE, *ELSEWHERE], FAILED),
    ("checkpoint show --dir state --name V", ["", "..", "absent"], FAILED),
    ("checkpoint diff --dir state V", ["", "..", "absent"], FAILED),
    ("checkpoint list --dir state --pipeline V", ["", "..", "absent"], FAILED),
    ("checkpoint export --dir state --to x.csv --fold V", ["absent", ".."], FAILED),
    ("checkpoint export --dir state --fold vwap --to V", [*NOWHERE, *ELSEWHERE], FAILED),
    (
        "checkpoint export --dir state --fold vwap --to V.csv",
        ["/absent/x", "file/x", "folder/"],
        FAILED,
    ),
    ("checkpoint export --dir state --fold vwap --to V.csv", ["log:x", "not\udcfftext"], FINE),
    ("checkpoint export --dir state --fold vwap --to V.parquet", ["log:x", "not\udcfftext"], FINE),
    ("dead-letter list --checkpoint-dir V", [*NOWHERE, *ELSEWHERE, "lg"], FAILED),
    ("dead-letter list --checkpoint-dir state --partition=V", [*NO_NUMBER, "1"], FAILED),
    ("dead-letter list --checkpoint-dir state --pipeline V", ["", "..", "absent"], FAILED),
    ("dead-letter list --checkpoint-dir state --from=V", NO_NUMBER, FAILED),
    ("dead-letter list --checkpoint-dir state --from=V", ["0", "9" * 18], FINE),
    ("dead-letter list --checkpoint-dir state --input V", ["", "..", "\udcff"], FINE),
    ("dead-letter list --checkpoint-dir state --reason V", ["", "..", "\udcff"], FINE),
    ("dead-letter retry --source log:lg/t --checkpoint-dir V", [*NOWHERE, *ELSEWHERE], FAILED),
    (
        "dead-letter retry --checkpoint-dir state --source V",
        [*NO_TOPIC, "lg/t", "log:lg/t/0"],
        FAILED,
    ),
    ("dead-letter retry --checkpoint-dir state --source log:V", NO_TOPIC, FAILED),
    ("dead-letter retry --checkpoint-dir state --source log:lg/t --offset=V", NO_NUMBER, FAILED),
]
CASES = [(command, value, end) for command, values, end in TABLE for value in values]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a log, the state of a run over it, and things that are neither."""
    place = tmp_path_factory.mktemp("place")
    before = Path.cwd()
    os.chdir(place)
    try:
        Path("trades.csv").write_text("A,1.5,1,1709000000000000000,X\n")
        for arguments in (
            ("log", "create", "--schema", "trade", "lg/t"),
            ("log", "append", "lg/t", place / "trades.csv"),
            ("run", PIPELINE, "--source", "log:lg/t", "--sink", "out=o.csv", *STATE),
        ):
            assert main(list(map(str, arguments))) == 0
    finally:
        os.chdir(before)
    (place / "file").write_text("neither a log nor a checkpoint\n")
    (place / "binary").write_bytes(bytes(range(256)))
    (place / "empty").touch()
    (place / "folder").mkdir()
    (place / "loop").symlink_to("loop")
    return place


@pytest.fixture
def entries(place: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What is in that folder, which is the present one."""
    monkeypatch.chdir(place)
    return set(os.listdir())


@pytest.mark.parametrize(("command", "value", "end"), CASES)
def test_hostile_argument_is_told_in_a_line(
    command: str, value: str, end: str, entries: set[str], capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    try:
        code = main([word.replace("V", value) for word in command.split()])
    except SystemExit as usage:  # argparse says it itself
        code = int(usage.code or 0)
    said = capfd.readouterr()
    if end == FINE:
        assert (code, said.err.count("Traceback")) == (0, 0)
        return
    assert code in (1, 3)
    lines = (said.err or said.out).splitlines()
    assert len(lines) == 1, lines
    assert len(lines[0]) < 10_000
    assert set(os.listdir()) == entries, "it has left something behind"


def test_names_that_are_no_text_do_not_end_a_command(place: Path) -> None:
    """Also where standard output takes nothing else."""
    topic = place / "not\udcfftext" / "t"
    strict = ["env", "PYTHONIOENCODING=utf-8:strict", *RIPPLE]
    assert run(strict, "log", "create", "--schema", "trade", topic).code == 0
    assert run(strict, "log", "append", topic, place / "trades.csv").code == 0
    next((topic / "0").glob("*.log")).unlink()
    verified = run(strict, "log", "verify", topic)
    assert (verified.code, verified.err) == (1, "")
    assert "not\\udcfftext" in verified.out
