"""Whoever only reads a log needs no right to write to it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.processes import BOOK_TRADES, RIPPLE, Ended, ripple, run

PIPELINE = Path(__file__).parents[2] / "task" / "pipeline_vwap.py"
# Root may write wherever it likes, until it gives that up.
POWERLESS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()

pytestmark = pytest.mark.skipif(
    bool(POWERLESS) and shutil.which("setpriv") is None, reason="root cannot do without its powers"
)


def powerless(*arguments: object) -> Ended:
    return run(RIPPLE, *arguments, through=POWERLESS)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    """A folder that is read-only, with a log and the state of a run over it."""
    kept = tmp_path / "kept"
    assert ripple("log", "create", "--schema", "trade", kept / "trades").code == 0
    assert ripple("log", "append", kept / "trades", "-", given=BOOK_TRADES).code == 0
    state = ("--checkpoint-dir", kept / "state", "--sink", f"out={tmp_path / 'first.csv'}")
    assert ripple("run", PIPELINE, "--source", f"log:{kept / 'trades'}", *state).code == 0
    folders = [kept, *(path for path in kept.rglob("*") if path.is_dir())]
    for path in [*kept.rglob("*"), kept]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    assert run(["tee", "-a"], kept / "trades" / "0" / "lock", through=POWERLESS).code != 0
    yield kept
    for folder in folders:
        folder.chmod(0o755)


def test_log_is_looked_into_without_the_right_to_write(kept: Path) -> None:
    topic = kept / "trades"
    assert len(powerless("log", "tail", topic).rows) == 4
    assert "offsets 0 to 4" in powerless("log", "info", topic).out
    assert powerless("log", "verify", topic).code == 0
    refused = powerless("log", "append", topic, "synthetic:1")
    assert (refused.code, "Permission denied" in refused.err) == (1, True)


def test_log_is_read_by_plain_and_lasting_runs_without_the_right_to_write(
    kept: Path, tmp_path: Path
) -> None:
    source = ("run", PIPELINE, "--source", f"log:{kept / 'trades'}")
    plain = powerless(*source, "--sink", f"out={tmp_path / 'plain.csv'}")
    assert plain.code == 0, plain.err
    lasting = powerless(
        *source, "--sink", f"out={tmp_path / 'out.csv'}", "--checkpoint-dir", tmp_path / "state"
    )
    assert lasting.code == 0, lasting.err
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "first.csv").read_text()


def test_state_is_looked_into_without_the_right_to_write(kept: Path) -> None:
    assert powerless("checkpoint", "list", "--dir", kept / "state").code == 0
    assert powerless("checkpoint", "verify", "--dir", kept / "state").code == 0
    assert powerless("dead-letter", "list", "--checkpoint-dir", kept / "state").code == 0
