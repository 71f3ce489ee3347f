"""A run that writes to Kafka and is killed again and again, and so is the broker."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.services.kafka import Broker

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = ROOT / "tests" / "task" / "pipeline_branches.py"
TOPICS = ("out", "total", "dear", "plain")


def ripple(*words: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "from ripple.cli.start import ripple; raise SystemExit(ripple())",
        *words,
    ]


def make_log(folder: Path, rows: int) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for words in (
        ("create", "trades", "--schema", "trade"),
        ("append", "trades", f"synthetic:{rows}"),
    ):
        subprocess.run(
            ripple("log", *words), cwd=folder, env=environment, check=True, capture_output=True
        )


class Run:
    """``ripple run`` from the log in a folder to topics with a prefix."""

    def __init__(self, folder: Path, bootstrap: str, prefix: str, name: str) -> None:
        self._folder = folder
        self.state = folder / f"state-{prefix}"
        pipeline = folder / f"{prefix}.py"
        text = PIPELINE.read_text()
        pipeline.write_text(text.replace('rp.Pipeline("vwap-1s")', f'rp.Pipeline("{name}")'))
        sinks = [f"--sink={topic}=kafka:{bootstrap}/{prefix}-{topic}" for topic in TOPICS]
        self._command = ripple(
            *("run", str(pipeline), "--source", "log:trades", *sinks),
            *("--checkpoint-dir", str(self.state), "--commit-interval", "20ms"),
            *("--checkpoint-interval", "100ms", "--batch", "200"),
        )

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command,
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def finish(self) -> str:
        process = self.start()
        output, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, output
        return output


def kill_often(run: Run, broker: Broker, kills: int, broker_kills: int) -> list[str]:
    """Kill the run after random times, and the broker in some of them; return what runs said."""
    draw = random.Random(7)
    at = {draw.randrange(kills) for _ in range(broker_kills)}
    said = []
    for number in range(kills):
        process = run.start()
        assert process.stdout is not None
        first = process.stdout.readline()  # it is at work, or goes on with it
        time.sleep(draw.random())
        if number in at:
            broker.kill()
            broker.start()
            time.sleep(draw.random())
        process.send_signal(signal.SIGKILL)
        said.append(first + process.communicate(timeout=PATIENCE_S)[0])
    return said
