"""Runs that are killed, for real: does anybody who reads their outputs notice?

    python -m tests.task.kill_nine --trades 1000000 --kills 50

A log of synthetic trades is run through a pipeline once undisturbed and once killed with SIGKILL
again and again, mostly somewhere in the run, sometimes while it starts; then the outputs are
compared: the file byte for byte, the log record for record.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cli.processes import RIPPLE, ROOT, ripple

PIPELINE = Path(__file__).with_name("pipeline_vwap.py")
PACE = ("--batch", "500", "--commit-interval", "5ms", "--checkpoint-interval", "50ms")
# Every so many kills one strikes while the process starts, up to so many seconds into it.
STARTS = 5
START_S_MAX = 1.0
LATE_S_MAX = 0.02
POLL_S = 0.001


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a run leaves. digest: as the run that came to the end has said it."""

    file: bytes
    log: str
    digest: str


@dataclass(frozen=True, slots=True)
class Killed:
    """What became of a run that was killed. restored: lives that began with a checkpoint."""

    outputs: Outputs
    kills: int
    restored: int
    replayed: int
    seconds: float


class Place:
    """A folder for the outputs and, unless ``state`` is elsewhere, the state of one run."""

    def __init__(self, folder: Path, topic: Path, state: str = "") -> None:
        folder.mkdir()
        self.out = folder / "out.csv"
        self.total = folder / "total"
        self._command = self._made(topic, state or str(folder / "state"))

    def _made(self, topic: Path, state: str) -> list[str]:
        return [
            *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{topic}", *PACE),
            *("--sink", f"out={self.out}", "--sink", f"total=log:{self.total}"),
            *("--checkpoint-dir", state),
        ]

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start the run."""
        command = [*self._command, *more]
        return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)

    def committed(self) -> int:
        """Return the offset up to which the file is committed."""
        try:
            line = Path(f"{self.out}.cut").read_text().partition("\n")[0]
        except FileNotFoundError:
            return 0
        reached = json.loads(line)["reached"]
        return int(reached["cut"]["trades"]) if reached else 0

    def outputs(self, said: str) -> Outputs:
        """Return what is there after a run that came to the end and said this."""
        (digest,) = re.findall(r"Digest\W+(\w+)", said)
        log = _ripple("log", "tail", str(self.total))
        return Outputs(self.out.read_bytes(), log, digest)


class ProgramPlace(Place):
    """The same, of a program that calls ``rp.run``."""

    def _made(self, topic: Path, state: str) -> list[str]:
        arguments = [f"log:{topic}", str(self.out), f"log:{self.total}", state]
        return [sys.executable, "-m", "tests.task.program", *arguments]


def append(topic: Path, trades: int) -> None:
    """Make the log."""
    _ripple("log", "create", "--schema", "trade", str(topic))
    _ripple("log", "append", str(topic), f"synthetic:{trades}")


def undisturbed(place: Place) -> Outputs:
    """Run to the end."""
    return place.outputs(_end(place.start()))


def killed(place: Place, trades: int, kills: int, seed: int) -> Killed:
    """Run to the end with ``kills`` kills in between, at offsets and moments from the seed.

    Every other one strikes a run that follows its input, and has not ended before it is struck.
    """
    chance = random.Random(seed)
    targets = sorted(chance.randrange(trades) for _ in range(kills))
    began_s = time.perf_counter()
    said = []
    done = 0
    for number, target in enumerate(targets):
        process = place.start(*(("--follow",) if number % 2 == 0 else ()))
        if number % STARTS == STARTS - 1:
            time.sleep(chance.random() * START_S_MAX)
        else:
            while place.committed() < target and process.poll() is None:
                time.sleep(POLL_S)
            time.sleep(chance.random() * LATE_S_MAX)
        done += process.poll() is None
        process.kill()
        said.append(process.communicate()[1])
    last = _end(place.start())
    seconds = time.perf_counter() - began_s
    text = "\n".join([*said, last])
    replayed = sum(map(int, re.findall(r"replayed (\d+) events", text)))
    restored = len(re.findall(r"restored checkpoint", text))
    return Killed(place.outputs(last), done, restored, replayed, seconds)


def _end(process: subprocess.Popen[str]) -> str:
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return said


def _ripple(*arguments: str) -> str:
    ended = ripple(*arguments)
    assert ended.code == 0, ended.err
    return ended.out


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the command; return its exit code: 1 if the outputs differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.task.kill_nine")
    parser.add_argument("--trades", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        topic = Path(folder) / "trades"
        append(topic, chosen.trades)
        began_s = time.perf_counter()
        expected = undisturbed(Place(Path(folder) / "undisturbed", topic))
        _say(f"undisturbed: {time.perf_counter() - began_s:.1f} s, digest {expected.digest}")
        found = killed(
            Place(Path(folder) / "killed", topic), chosen.trades, chosen.kills, chosen.seed
        )
    _say(
        f"killed: {found.kills} kills, {found.restored} lives began with a checkpoint, "
        f"{found.replayed} events were replayed, {found.seconds:.1f} s, "
        f"digest {found.outputs.digest}"
    )
    lines = expected.file.count(b"\n"), expected.log.count("\n")
    same = found.outputs == expected
    _say(f"{lines[0]} lines and {lines[1]} records: {'the same' if same else 'DIFFERENT'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
