"""``ripple deploy`` of real processes: killed at each step, and what readers see meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.cli.cluster.deploying.standing import commits_at, generations_in, previews
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.cluster import ripple
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

CODE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    price: float
    t: rp.Timestamp

start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order="3s")
rows = start.partition("first", key=("symbol", "venue"))
rows = rows.fold("rows", n=rp.count(), total=rp.sum("price"))
last = rows.partition("second", key="venue", partitions=2)
pipeline = last.fold("of-venue", total=rp.{of}("total")).sink("last").sink("shown", of="rows")
"""
FEED = """
import json, sys, time
at = 0
while True:
    row = {"symbol": f"s{at % 50}", "venue": f"v{at % 7}", "price": at % 97 / 4, "t": at * 1000000}
    print(json.dumps(row), flush=at % 10 == 0)
    at += 1
    if at % 10 == 0:
        time.sleep(0.1)
"""
OUTPUTS = {"last": ("venue",), "shown": ("symbol", "venue")}


class Place:
    """A folder with a source that grows, a cluster's state, and its outputs."""

    def __init__(self, folder: Path, *code: str) -> None:
        """Make them. code: of each generation."""
        self.folder = folder
        self.code = {at: folder / f"code{at}.py" for at, _ in enumerate(code, start=1)}
        for file, text in zip(self.code.values(), code, strict=True):
            file.write_text(text)
        given = ["--partitions", 4, "--key", "symbol,venue"]
        ripple("log", "create", folder / "trades", "--schema", self.code[1], *given)
        self.outputs = {name: f"log:{folder / name}" for name in OUTPUTS}
        self.store = f"{folder}/c/store"

    def given(self, generation: int) -> list[str]:
        """Return the arguments for a pipeline of a generation."""
        sinks = [flag for one in self.outputs.items() for flag in ("--sink", "=".join(one))]
        source = ["--source", f"log:{self.folder / 'trades'}"]
        return [f"{self.code[generation]}", *source, *sinks, "--dir", f"{self.folder}/c"]

    def deploy(self, act: str, generation: int = 2) -> str:
        """Carry out a command; return what it said."""
        said = subprocess.run(
            [*RIPPLE, "deploy", *self.given(generation), act],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert said.returncode == 0, said.stderr
        return said.stderr

    def check(self, generation: int) -> None:
        """Raise AssertionError unless the outputs are a fresh evaluation of a generation's code."""
        plan = load_plan(f"{self.code[generation]}")
        for name, key in OUTPUTS.items():
            with warnings.catch_warnings(action="ignore"):
                source = f"log:{self.folder / 'trades'}"
                expected = rp.collect(plan, source=source, output=name).rows()
            made = map(json.loads, ripple("log", "table", self.folder / name).splitlines())
            assert keyed(made, key) == keyed(expected, key), name

    def is_at_end(self) -> bool:
        """Return whether all records are in the outputs."""
        topic, plan = Topic.open(LiveDisk(f"{self.folder}"), "trades"), load_plan(f"{self.code[1]}")
        ends = {}
        for one in range(topic.partitions):
            with PartitionReader(topic, one) as reader:
                ends[f"trades/{one}"] = reader.range()[1]
        cuts = [
            (name.rpartition("trades/"), offset)
            for output, at in self.outputs.items()
            for commit in commits_at(plan, output, at).values()
            for name, offset in commit.cut.items()
        ]
        return all(offset == ends[f"trades/{number}"] for (_, _, number), offset in cuts)


def keyed(rows: Any, key: tuple[str, ...]) -> dict[Any, Any]:
    """Return rows by their key."""
    return {tuple(row[name] for name in key): row for row in rows}


class Running:
    """``ripple cluster up`` or ``ripple deploy``, with its lines in a file."""

    def __init__(self, place: Place, log: Path, *command: str) -> None:
        self._log = log
        with log.open("w") as out:
            self.process = subprocess.Popen(
                [*RIPPLE, *command], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
            )

    def kill(self, name: str) -> None:
        """Kill a process of it, which it starts again."""
        found = re.findall(rf"^{name} +\| process (\d+)$", self._log.read_text(), re.MULTILINE)
        os.kill(int(found[-1]), signal.SIGKILL)

    def end(self) -> None:
        """End it in good order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something."""
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_s, "it took too long"
        time.sleep(0.05)


class Reader:
    """Looks at the ends of all partitions of an output; ``gap_s``: the longest without news."""

    def __init__(self, folder: Path, output: str) -> None:
        topic = Topic.open(LiveDisk(f"{folder}"), output)
        self._readers = [PartitionReader(topic, one) for one in range(topic.partitions)]
        self._is_ended = threading.Event()
        self.gap_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        ends = [one.range()[1] for one in self._readers]
        came_s = [time.monotonic()] * len(ends)
        while not self._is_ended.wait(0.01):
            for at, one in enumerate(self._readers):
                end, now_s = one.range()[1], time.monotonic()
                if end != ends[at]:
                    self.gap_s = max(self.gap_s, now_s - came_s[at])
                    ends[at], came_s[at] = end, now_s

    def end(self) -> float:
        """End; return the longest time without news."""
        self._is_ended.set()
        self._thread.join()
        return self.gap_s


@contextmanager
def fed(place: Place) -> Iterator[Callable[[], None]]:
    """Append trades, a hundred a second; yield what ends that."""
    writes = subprocess.Popen([sys.executable, "-c", FEED], stdout=subprocess.PIPE)
    appends = subprocess.Popen(
        [*RIPPLE, "log", "append", f"{place.folder / 'trades'}", "jsonl:-"],
        cwd=ROOT,
        stdin=writes.stdout,
        stdout=subprocess.DEVNULL,
    )
    assert writes.stdout is not None
    writes.stdout.close()

    def end() -> None:
        writes.terminate()
        writes.wait(PATIENCE_S)
        appends.wait(PATIENCE_S)

    try:
        yield end
    finally:
        end()


def test_new_code_of_two_stages_serves_goes_back_and_serves_while_processes_die(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, *(CODE.replace("{of}", of) for of in ("sum", "max")))
    plan = load_plan(f"{place.code[1]}")

    def has_committed(outputs: dict[str, str]) -> bool:
        return all(len(commits_at(plan, name, at)) for name, at in outputs.items())

    workers = ["--workers", "2"]
    with ExitStack() as closing:
        end_feed = closing.enter_context(fed(place))
        up = ["cluster", "up", *place.given(1), *workers, "--free-ports"]
        one = Running(place, tmp_path / "one.log", *up)
        closing.callback(one.end)
        until(lambda: has_committed(place.outputs))
        begin = ["deploy", *place.given(2), *workers]
        until(lambda: is_deployable(place))
        two = Running(place, tmp_path / "two.log", *begin)
        closing.callback(two.end)
        until(lambda: has_committed(previews(place.store, 2, place.outputs)))
        two.kill("worker-1")  # while it warms up
        reader = Reader(tmp_path, "last")
        said = place.deploy("--approve")
        assert "generation 2 serves" in said
        with capsys.disabled():
            sys.stdout.write(f"\n{reader.end():.2f} s without news at most; {said}")
        one.kill("worker-1")
        two.kill("coordinator-1")
        assert "generation 1 serves" in place.deploy("--rollback")
        two.kill("worker-2")
        one.kill("worker-2")
        assert "generation 2 serves" in place.deploy("--approve")
        end_feed()
        until(place.is_at_end)
        place.check(2)
        assert generations_in(place.store).serving.entry == 3


def is_deployable(place: Place, generation: int = 2) -> bool:
    """Return whether the cluster has stored a checkpoint, before which none is deployed."""
    ended = subprocess.run(
        [*RIPPLE, "deploy", *place.given(generation), "--dry-run"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return ended.returncode == 0
