"""Recovery through ``ripple run``, beside the intake of the same run: log, outputs, checkpoint."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.row import Row, at_least, at_most
from bench.timing import QUICK

EVENTS = 600_000 if QUICK else 6_000_000
ROUNDS = 1 if QUICK else 3
RECOVERY_MAX_S = 2.1
RIPPLE = (sys.executable, "-m", "ripple.cli.main")
PIPELINE = Path(__file__).parents[1] / "examples" / "vwap.py"
# The default, and as a run that is to be fast would have it. A replay does without the outputs
# between batches, so that its rate does not depend on them.
BATCH_ROWS = (1_000, 16_384)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        topic = Path(folder) / "trades"
        _ripple("log", "create", "--schema", "trade", topic, "--sync", "0")
        _ripple("log", "append", topic, f"synthetic:{EVENTS}")
        return [row for rows in BATCH_ROWS for row in _rows(Path(folder), topic, rows)]


def _rows(folder: Path, topic: Path, batch_rows: int) -> list[Row]:
    intakes, replays, restores = [], [], []
    for _ in range(ROUNDS):
        state, out = folder / "state", folder / "out.csv"
        run = ("run", PIPELINE, "--source", f"log:{topic}", "--sink", out)
        run += ("--checkpoint-dir", state, "--batch", batch_rows)
        first, _ = _ripple(*run)
        intakes.append(_number(r"Throughput:\s+(\d+)", first))
        with_checkpoint, restore_s = _ripple(*run)
        assert _number(r"replayed (\d+) events", with_checkpoint) == 0
        restores.append(restore_s)
        shutil.rmtree(state)  # as if no checkpoint had been stored: the log is all there is
        without, _ = _ripple(*run)
        assert _number(r"replayed (\d+) events", without) == EVENTS
        replays.append(_number(r"replayed \d+ events.* in ([\d.]+) s", without))
        assert _digest(first) == _digest(without) == _digest(with_checkpoint)
        shutil.rmtree(state)
        out.unlink()
        Path(f"{out}.cut").unlink()
    intake, replay_s = max(intakes), min(replays)
    name, of = f"{EVENTS / 1e6:g} M events", f"batches of {batch_rows:,}"
    return [
        Row(f"replay of {name} from the log, {of}", replay_s, "s", aim=at_most(RECOVERY_MAX_S)),
        Row(
            f"rate of replay, {of}",
            EVENTS / replay_s / 1e6,
            "M events/s",
            "the best intake of the same run",
            intake / 1e6,
            at_least(3, of_ratio=True) if batch_rows == BATCH_ROWS[0] else None,
        ),
        Row(f"whole process from the checkpoint after {name}, {of}", min(restores), "s"),
    ]


def _ripple(*arguments: object) -> tuple[str, float]:
    """Return what a command says on standard error, and its seconds."""
    started = time.perf_counter()
    ended = subprocess.run(
        [*RIPPLE, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr, time.perf_counter() - started


def _number(pattern: str, said: str) -> float:
    return float(re.findall(pattern, said)[-1])


def _digest(said: str) -> str:
    return str(re.findall(r"Digest:\s+(\w+)", said)[-1])


if __name__ == "__main__":
    for row in measure():
        ratio = f"{row.ratio:6.2f}x {row.versus}" if row.ratio else ""
        print(f"{row.name:50} {row.value:8.2f} {row.unit} {ratio}")
