"""Pipelines on one set of processes, with SIGKILL of each kind of them, beside a failing one.

Their outputs are those of a run alone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import RIPPLE, ROOT
from tests.cli.processes import run as run_command
from tests.patience import PATIENCE_S, until
from tests.services.server import free_port

pytestmark = pytest.mark.services

HEAD = """import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp


trades = rp.Pipeline("NAME").source("trades", Trade).partition("by-symbol", key="symbol")
"""
TOTALS = 'trades.fold("totals", n=rp.count(), size=rp.sum("size"))'
FILES = {
    "totals": f'pipeline = {TOTALS}.sink("rows")',
    "grand": f"""pipeline = (
    {TOTALS}.partition("all", key=(), partitions=1)
    .fold("all", n=rp.sum("n"), size=rp.sum("size")).sink("rows"))""",
    "third": 'pipeline = trades.fold("biggest", size=rp.max("size")).sink("rows")',
    "exits": """import os
from dataclasses import dataclass


@dataclass
class State:
    n: int = 0


@rp.record
class Row:
    n: int


def end(state, trade):
    os._exit(7)


source = rp.Pipeline("exits").source("trades", Trade)
pipeline = source.scan("s", key="symbol", state=State, step=end, into=Row).sink("rows")""",
}


class Cluster:
    """Coordinators and hosts in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: [free_port() for _ in range(3)] for name in ("c1", "c2", "w1", "w2")}
        self.at = ",".join(f"127.0.0.1:{self.ports[name][0]}" for name in ("c1", "c2"))
        files = folder / "files"
        files.mkdir()
        for name, code in FILES.items():
            (files / f"{name}.py").write_text(HEAD.replace("NAME", name) + code + "\n")
        about = ("--schema=files/totals.py", "--partitions=4", "--key=symbol")
        self.ripple("log", "create", "in", *about)

    def ripple(self, *words: str, inside: str = "") -> str:
        ended = run_command(RIPPLE, *words, folder=self.folder / inside)
        assert ended.code == 0, ended.err
        return ended.out

    def begin(self, name: str) -> None:
        port, health, metrics = self.ports[name]
        common = [f"--health-port={health}", f"--metrics-port={metrics}", "--store=state"]
        if name.startswith("c"):
            own = [
                "-m",
                "coordinator",
                "--several-pipelines",
                f"--port={port}",
                f"--peers={self.at}",
            ]
        else:
            own = ["-m", "worker", "--pipelines=files", f"--coordinator={self.at}", "--rpc-port=0"]
            own += [f"--worker-id={name}", "--spares=0", "--log-format=text"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *own, *common],
                cwd=self.folder,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def append(self, first: int, end: int) -> None:
        rows = [
            f"S{i % 50},{1 + i % 97},{1_700_000_000_000_000_000 + i * 1_000_000}"
            for i in range(first, end)
        ]
        more = self.folder / "more.csv"
        more.write_text("\n".join(rows) + "\n")
        self.ripple("log", "append", "in", "more.csv")

    def pipeline(self, action: str, name: str) -> None:
        ends = [f"--source=log:{self.folder}/in", f"--sink=log:{self.folder}/out/{name}"]
        named = [f"{name}.py", *ends] if action in ("add", "change") else [name]
        self.ripple("pipeline", action, *named, f"--store={self.folder}/state", inside="files")

    def processes(self, host: str) -> dict[str, Any]:
        at = f"http://127.0.0.1:{self.ports[host][1]}/pipelines"
        with urllib.request.urlopen(at, timeout=PATIENCE_S) as reply:
            return {one["name"]: one for one in json.load(reply)}

    def rows(self, name: str) -> list[Any]:
        if not (self.folder / "out" / name).exists():
            return []
        lines = self.ripple("log", "table", f"out/{name}").splitlines()
        return sorted(json.dumps(json.loads(line), sort_keys=True) for line in lines)

    def count(self, name: str) -> int:
        return sum(json.loads(row).get("n", 0) for row in self.rows(name))

    def follows(self, end: int) -> None:
        """Wait until both outputs have all records."""
        for name in ("totals", "grand"):
            until(lambda name=name: self.count(name) == end)  # type: ignore[misc]


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    one = Cluster(folder)
    try:
        yield one
    finally:
        for name in ("w1", "w2", "c1", "c2"):
            if name in one.running:
                one.running[name].send_signal(signal.SIGTERM)
        for running in one.running.values():
            running.wait(PATIENCE_S)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_pipelines_go_on_whatever_happens_to_processes_and_to_each_other(tmp_path: Path) -> None:
    with cluster(tmp_path) as there:
        for name in ("c1", "c2", "w1", "w2"):
            there.begin(name)
        until((tmp_path / "state").is_dir)  # the coordinators have opened it
        there.pipeline("add", "totals")
        there.pipeline("add", "grand")
        there.append(0, 2000)
        there.follows(2000)

        there.pipeline("add", "third")
        there.pipeline("add", "exits")
        log = tmp_path / "w1.log"
        until(lambda: "process 0 has ended: with exit code 7" in log.read_text())
        there.append(2000, 3000)
        there.follows(3000)
        until(lambda: len(there.rows("third")) == 50)

        (engine,) = children(there.processes("w1")["totals"]["process"])
        os.kill(engine, signal.SIGKILL)
        there.append(3000, 4000)
        there.follows(4000)

        os.kill(there.processes("w1")["grand"]["process"], signal.SIGKILL)
        there.append(4000, 5000)
        there.follows(5000)

        # A file that ends its process at import.
        (tmp_path / "files/exits.py").write_text("import os\n\nos._exit(9)\n")
        there.pipeline("stop", "exits")
        there.pipeline("start", "exits")
        until(lambda: "exit code 9" in there.processes("w1")["exits"]["problem"])

        there.kill("c1")
        there.append(5000, 6000)
        there.follows(6000)
        there.begin("c1")

        there.kill("w2")
        there.pipeline("remove", "third")
        there.append(6000, 7000)
        there.follows(7000)
        there.begin("w2")
        until(lambda: set(there.processes("w1")) == {"totals", "grand", "exits"})

        shown = json.loads(there.ripple("status", f"--coordinator={there.at}", "--format=json"))
        assert set(shown["pipelines"]) == {"totals", "grand", "exits"}
        sizes = [1 + i % 97 for i in range(7000)]
        assert there.rows("grand") == [json.dumps({"n": 7000, "size": sum(sizes)})]
        assert there.rows("totals") == sorted(
            json.dumps({"n": 140, "size": sum(sizes[s::50]), "symbol": f"S{s}"}) for s in range(50)
        )
