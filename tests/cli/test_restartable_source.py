"""The source that ``ripple connector new`` writes survives ``kill -9``."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from ripple.cli.main import main
from tests.cli.processes import RIPPLE, ROOT, run
from tests.patience import PATIENCE_S

ROWS, KILLS = 20_000, 2
PIPELINE = """\
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float

pipeline = (
    rp.Pipeline("sums")
    .source("trades", Trade, topic="trades")
    .partition("by-symbol", key="symbol")
    .fold("sums", total=rp.sum("price"), count=rp.count())
    .sink("output", topic="sums")
)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed connector of its own, a pipeline and a file of trades."""
    monkeypatch.chdir(tmp_path)
    assert run(RIPPLE, "connector", "new", "quotes", folder=tmp_path).code == 0
    package = tmp_path / "ripple-quotes"
    about = package / "ripple_quotes-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ripple-quotes\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(
        "[ripple.connectors]\nquotes = ripple_quotes:CONNECTOR\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{package}:{ROOT}")
    (tmp_path / "sums.py").write_text(PIPELINE)
    add(tmp_path, 0, ROWS)
    return tmp_path


def add(folder: Path, first: int, end: int) -> None:
    with (folder / "trades").open("a") as file:
        for number in range(first, end):
            line = json.dumps({"symbol": f"S{number % 7}", "price": number / 4})
            file.write("no record\n" if number % 1009 == 0 else f"{line}\n")


def arguments(name: str) -> list[str]:
    """Return the arguments of a run whose state and output are called ``name``."""
    keeps = ["--checkpoint-dir", f"{name}-state", "--checkpoint-interval", "100ms"]
    places = ["--source", "quotes:trades", "--sink", f"{name}.jsonl", "--commit-interval", "20ms"]
    return ["run", "sums.py", *places, *keeps, "--batch", "20"]


def whole(name: str) -> bytes:
    """Run to the end, and return the output."""
    ended = run(RIPPLE, *arguments(name), folder=Path.cwd())
    assert ended.code == 0, ended.err
    return Path(f"{name}.jsonl").read_bytes()


@pytest.mark.services
def test_killed_run_writes_what_an_undisturbed_run_does(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = whole("undisturbed")
    output = folder / "killed.jsonl"
    for kill in range(1, KILLS + 1):
        enough = len(wanted) * kill // (2 * KILLS)  # far from the end, which it might reach
        process = subprocess.Popen([*RIPPLE, *arguments("killed")], stderr=subprocess.PIPE)
        try:
            deadline_s = time.monotonic() + PATIENCE_S
            while not (output.exists() and output.stat().st_size >= enough):
                assert process.poll() is None, process.communicate()[1].decode()
                assert time.monotonic() < deadline_s, "nothing more is written"
                time.sleep(0.001)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == -9
        assert output.stat().st_size < len(wanted)
    assert whole("killed") == wanted
    letters = []
    for name in ("killed", "undisturbed"):
        assert main(["dead-letter", "list", "--checkpoint-dir", f"{name}-state"]) == 0
        letters.append(capsys.readouterr().out)
    assert "no record" in letters[0]
    assert letters[0] == letters[1]


def test_restart_on_another_file_is_refused(folder: Path) -> None:
    trades = folder / "trades"
    trades.unlink()
    add(folder, 0, 200)
    whole("first")
    trades.write_text(trades.read_text().replace("price", "cost"))
    add(folder, 200, 210)
    again = run(RIPPLE, *arguments("first"), folder=folder)
    assert again.code == 1
    assert "is another one than the one that was read" in again.err


def test_source_is_not_written_to(folder: Path) -> None:
    for sink in ("quotes:trades", "quotes:./trades", "jsonl:trades"):
        places = ["--source", "quotes:trades", "--sink", sink]
        ended = run(RIPPLE, "run", "sums.py", *places, folder=folder)
        assert ended.code == 1
        assert ended.err.rstrip().endswith("trades: it is the run's own source")
