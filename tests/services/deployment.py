"""A cluster of two stages for ``ripple deploy``: its folder, its processes and its feed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ripple as rp
from ripple.cli.cluster.deploying.standing import commits_at
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.cluster import ripple
from tests.patience import PATIENCE_S

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
last = rows.partition("second", key="venue", partitions={partitions})
pipeline = last.fold("of-venue", {fold}).sink("last").sink("shown", of="rows")
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


def code_of(fold: str, *, partitions: int = 2) -> str:
    """Return the code of a generation. fold: the second stage's aggregates, as code."""
    return CODE.replace("{fold}", fold).replace("{partitions}", str(partitions))


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
        """Carry out a command; return its output."""
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

    def has_committed(self, outputs: dict[str, str]) -> bool:
        """Return whether each of these outputs, by name, has a commit."""
        plan = load_plan(f"{self.code[1]}")
        return all(len(commits_at(plan, name, at)) for name, at in outputs.items())

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
        """End it gracefully."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something."""
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_s, "it took too long"
        time.sleep(0.05)


@contextmanager
def fed(place: Place) -> Iterator[Callable[[], None]]:
    """Append trades, a hundred a second; yield a function that ends the feed."""
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


def is_deployable(place: Place, generation: int = 2) -> bool:
    """Return whether the cluster has stored a checkpoint, which a deployment requires."""
    ended = subprocess.run(
        [*RIPPLE, "deploy", *place.given(generation), "--dry-run"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    return ended.returncode == 0
