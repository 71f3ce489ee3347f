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
# As a run that is to be fast would have it; batches are what outputs and watermarks cost.
PACE = ("--batch", "16384", "--checkpoint-interval", "1000s")


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        topic = Path(folder) / "trades"
        _ripple("log", "create", topic, "--sync", "0")
        _ripple("log", "append", topic, f"synthetic:{EVENTS}")
        return _rows(Path(folder), topic)


def _rows(folder: Path, topic: Path) -> list[Row]:
    intakes, replays, restores = [], [], []
    for _ in range(ROUNDS):
        state, out = folder / "state", folder / "out.csv"
        run = ("run", PIPELINE, "--source", f"log:{topic}", "--sink", out, *PACE)
        run += ("--checkpoint-dir", state)
        first, _ = _ripple(*run)
        intakes.append(_number(r"Throughput:\s+(\d+)", first))
        with_checkpoint, restore_s = _ripple(*run)
        assert _number(r"replayed (\d+) events", with_checkpoint) == 0
        restores.append(restore_s)
        shutil.rmtree(state)  # as if no checkpoint had been stored: the log is all there is
        without, _ = _ripple(*run)
        assert _number(r"replayed (\d+) events", without) == EVENTS
        replays.append(_number(r"replayed \d+ events to \d+ in ([\d.]+) s", without))
        assert _digest(first) == _digest(without) == _digest(with_checkpoint)
        shutil.rmtree(state)
        out.unlink()
        Path(f"{out}.cut").unlink()
    intake, replay_s = max(intakes), min(replays)
    name = f"{EVENTS / 1e6:g} M events"
    return [
        Row(f"replay of {name} from the log", replay_s, "s", aim=at_most(RECOVERY_MAX_S)),
        Row(
            "replay rate",
            EVENTS / replay_s / 1e6,
            "M events/s",
            "the best intake of the same run",
            intake / 1e6,
            at_least(3, of_ratio=True),
        ),
        Row(f"whole process from the checkpoint after {name}", min(restores), "s"),
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
