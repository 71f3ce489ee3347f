"""Everything that can go wrong around a command: one line, the right exit code, no traceback."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ripple.cli.lib import exits
from ripple.cli.lib.exits import SignalledError
from ripple.cli.lib.path_options import a_place, a_store
from ripple.cli.main import SUBCOMMANDS, parser_of
from ripple.cli.run import vwap_demo
from ripple.connectors.identity import check_apart, check_not_read
from ripple.core.errors import InputError, OutputError
from tests.cli.processes import BOOK_TRADES, RIPPLE, ROOT, demo, ripple, shell
from tests.patience import PATIENCE_S, until


def test_missing_file_and_folder_are_said_in_one_line(tmp_path):
    missing = demo("--file", tmp_path / "none.csv")
    assert missing.code == 1
    assert missing.only_line.endswith("none.csv: No such file or directory")
    folder = demo("--file", tmp_path)
    assert (folder.code, folder.out) == (1, "")
    assert folder.only_line == f"ripple-vwap-demo: cannot read {tmp_path}: it is a directory"


def test_closed_pipe_ends_quietly():
    ended = shell("$demo --synthetic 1000000 --batch 10 | head -1; echo ${PIPESTATUS[0]}")
    assert ended.rows == ["SYM0000,100.0000,100,1", "141"]
    assert ended.err == ""


def test_full_disk_is_said_in_one_line():
    ended = shell("$demo --synthetic 1000 > /dev/full")
    assert ended.code == 1
    assert ended.only_line == (
        "ripple-vwap-demo: cannot write standard output: No space left on device"
    )
    ended = shell("$ripple info > /dev/full")
    assert ended.code == 1
    assert "No space left on device" in ended.only_line


def test_closed_standard_streams_fail_instead_of_being_reused(tmp_path):
    letters = tmp_path / "bad.jsonl"
    ended = shell(f"$demo --stdin --dead-letter {letters} <&-")
    assert ended.code == 1
    assert ended.only_line == "ripple-vwap-demo: cannot read standard input: Bad file descriptor"
    ended = shell(f"$demo --synthetic 10 --dead-letter {letters} >&-")
    assert ended.code == 1
    assert ended.only_line == "ripple-vwap-demo: cannot write standard output: Bad file descriptor"
    assert letters.read_text() == ""
    assert shell("$demo --synthetic 10 2>&-").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--batch", "0"],
        ["--synthetic", "-1"],
        ["--synthetic", "9" * 18],
        ["--window", "60"],
        ["--file", "a.csv", "--stdin"],
        ["--dead-letter", "/no/such/folder/bad.jsonl"],
    ],
)
def test_wrong_arguments_end_with_code_1(arguments):
    ended = demo(*arguments)
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1].startswith("ripple-vwap-demo: ")


def test_reading_and_writing_the_same_file_is_refused(tmp_path):
    trades = tmp_path / "trades.csv"
    trades.write_text(BOOK_TRADES)
    ended = demo("--file", trades, "--dead-letter", trades)
    assert ended.code == 1
    assert ended.only_line.endswith("it is the run's own source")
    appended = shell(f"$demo --file {trades} >> {trades}")
    assert appended.code == 1
    (tmp_path / "alias.csv").symlink_to(trades)
    ended = ripple("run", "examples/vwap.py", "--source", trades, "--sink", tmp_path / "alias.csv")
    assert ended.code == 1
    assert ended.only_line.endswith("it is the run's own source")
    assert trades.read_text() == BOOK_TRADES


def test_log_that_is_read_is_not_written(tmp_path):
    assert ripple("log", "create", "--schema", "trade", tmp_path / "t", "--partitions", 2).code == 0
    wanted = [
        "examples/vwap.py",
        "--source",
        f"log:{tmp_path}/t/1",
        "--sink",
        f"log:{tmp_path}/t/0",
    ]
    for more in ([], ["--checkpoint-dir", tmp_path / "state"]):
        ended = ripple("run", *wanted, *more)
        assert ended.code == 1
        assert ended.only_line.endswith(f"cannot write {tmp_path}/t: it is the run's own source")
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("sink", ["out.csv", "0/out.jsonl", "log:out", "csv:./out"])
def test_folder_of_the_log_that_is_read_is_not_written_into(tmp_path, sink):
    assert ripple("log", "create", "--schema", "trade", tmp_path / "t").code == 0
    scheme, _, path = sink.rpartition(":")
    place = f"{scheme}:{tmp_path}/t/{path}" if scheme else tmp_path / "t" / path
    wanted = ["examples/vwap.py", "--source", f"log:{tmp_path}/t", "--sink", place]
    before = sorted(tmp_path.rglob("*"))
    for more in ([], ["--checkpoint-dir", tmp_path / "state"]):
        ended = ripple("run", *wanted, *more)
        assert ended.code == 1
        assert "it is in the folder of the run's own source" in ended.only_line
    assert sorted(tmp_path.rglob("*")) == before
    for to in (f"log:{tmp_path}/t/out", f"log:{tmp_path}/./t/out"):
        with pytest.raises(OutputError, match="it is in the folder of the run's own source"):
            check_not_read(f"log:{tmp_path}/t", {"out": to})
    check_not_read(f"log:{tmp_path}/t", {"out": f"log:{tmp_path}/t2"})


def test_partitions_of_a_log_may_be_written_apart_and_a_file_once(tmp_path):
    check_apart(None, [str(tmp_path), str(tmp_path), None, None])
    with pytest.raises(OutputError, match=r"cannot write two things to .*new.csv"):
        check_apart(None, [f"{tmp_path}/new.csv", f"{tmp_path}/./new.csv"])


# Texts that are no places: an empty one is a name that is not found, or what the help says.
NO_PLACES = {
    *("name", "scheme"),
    *("--pipeline", "--name", "before", "after", "--fold", "--input", "--reason", "--from"),
    *("--key", "--time-field", "--compression", "--retention-age", "--rebuild"),
    *("--checkpoint-interval", "--commit-interval", "--host", "worker"),
    *("--to", "--until", "--identity", "--master", "--conf", "--engine"),
    *("--worker", "--output", "--where", "sql"),
    *("--every", "--sample", "--pause", "--max-rejected", "--order-by", "--fields"),
}


def _texts(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield the arguments that are texts: whose they are, and their names."""
    types = (None, a_place, a_store)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _texts(below)
        elif action.nargs != 0 and action.choices is None and action.type in types:
            yield parser, (action.option_strings or [action.dest])[-1]


def _parsers() -> Iterator[argparse.ArgumentParser]:
    yield vwap_demo._parser()
    for name in SUBCOMMANDS:
        yield parser_of(name)[1]


def test_empty_place_is_refused_by_name_by_every_command(capsys) -> None:
    """As of a variable that is not set: it is not the current folder."""
    asked = []
    for parser, name in (found for whole in _parsers() for found in _texts(whole)):
        if name in NO_PLACES:
            continue
        before = ["x"] if name in ("source", "receipt") else []
        with pytest.raises(SystemExit):
            parser.parse_args([*before, f"{name}=" if name.startswith("-") else ""])
        (said,) = capsys.readouterr().err.splitlines()
        assert said.endswith(f"it is empty (see {parser.prog} --help)"), said
        asked.append((parser.prog, name))
    assert ("ripple run", "--checkpoint-dir") in asked
    assert ("ripple log append", "source") in asked
    assert len(asked) > 20


def test_run_without_a_name_for_its_state_makes_nothing(tmp_path):
    ended = shell(f"cd {tmp_path}; $ripple run p.py --source log:l/t --checkpoint-dir ''")
    assert ended.code == 1
    assert ended.only_line == (
        "ripple run: argument --checkpoint-dir: it is empty (see ripple run --help)"
    )
    assert list(tmp_path.iterdir()) == []


def test_run_goes_on_though_nobody_reads_what_it_says(tmp_path):
    """Not so much as a line fits into the pipe; the statistics at the end wait for a reader."""
    assert ripple("log", "create", "--schema", "trade", tmp_path / "trades").code == 0
    assert ripple("log", "append", tmp_path / "trades", "synthetic:100").code == 0
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 4096):
            pass
    os.set_blocking(writer, True)
    out, cut = tmp_path / "out.csv", tmp_path / "out.csv.cut"
    command = [*RIPPLE, "run", ROOT / "examples/vwap.py", "--source", f"log:{tmp_path}/trades"]
    command += ["--sink", out, "--checkpoint-dir", tmp_path / "state"]
    process = subprocess.Popen(command, cwd=ROOT, stderr=writer)
    os.close(writer)
    try:
        until(lambda: cut.exists() and '"trades": 100' in cut.read_text())
        with os.fdopen(reader, "rb") as said:
            assert b"begins at 0" in said.read()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()


@pytest.mark.parametrize(
    "error", [InputError("no file"), KeyboardInterrupt(), SignalledError(signal.SIGTERM)]
)
def test_signal_ends_a_command_whose_last_line_nobody_reads(error, monkeypatch) -> None:
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = [signal.getsignal(number) for number in numbers]
    meanwhile = []

    def say(_: str) -> None:
        meanwhile.extend(signal.getsignal(number) for number in numbers)

    def fail() -> int:
        raise error

    monkeypatch.setattr(exits, "say", say)
    monkeypatch.setattr(exits, "_drop_output", lambda: None)
    try:
        exits.exit_code("ripple", fail)
        assert meanwhile == [signal.SIG_DFL] * 3
        assert signal.getsignal(signal.SIGINT) is before[0]
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
