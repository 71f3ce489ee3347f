"""Drivers, executors and Python processes of a standalone cluster, killed and frozen by chance.

python -m tests.services.spark_kills FOLDER [SEED...]; each seed disturbs a replay, a backfill or a
streaming query, in turn; results that differ by a bit end it with exit code 1.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from ripple.model.pipeline.file import load_plan
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from tests.patience import PATIENCE_S, until
from tests.services.family import below
from tests.services.spark_cluster import JVM, ROOT, Cluster, strike
from tests.spark.backfills import UNTIL, Place
from tests.spark.here import replayed
from tests.spark.logs import append, topic_of
from tests.spark.streams import SOURCE, events

KINDS = ("replay", "backfill", "stream")
WHO = ("driver", "executor", "python")
STARTS_MAX = 9
PARTITIONS = 6


@dataclass
class Trial:
    """One seed: a command that is disturbed until nothing is left to do.

    struck: the processes killed or frozen, in order. frozen: processes to remove at the end.
    """

    cluster: Cluster
    folder: Path
    seed: int
    struck: list[str] = field(default_factory=list)
    frozen: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self._chance = Random(self.seed)
        self._log, self._begun = self.folder / "said", 0
        signals = (signal.SIGKILL, signal.SIGSTOP)
        self._left = [
            (self._chance.choice(WHO), self._chance.choice(signals))
            for _ in range(self._chance.randint(1, 3))
        ]

    def run(self) -> None:
        """Disturb the command by the seed, and compare."""
        try:
            getattr(self, KINDS[self.seed % len(KINDS)])()
        finally:
            strike(self.frozen, signal.SIGKILL)

    def replay(self) -> None:
        """A replay has the rows and the digest of one process."""
        file = self._file("streamed.py", SOURCE, "tumbling")
        place = topic_of(
            self.folder, load_plan(file), events(60_000), partitions=PARTITIONS, key=["symbol"]
        )
        report, rows, _ = _here(file, place, closes=True)
        sink, told = self.folder / "rows", self.folder / "report.json"
        words = ["replay", file, "--source", place, "--sink", str(sink), "--overwrite"]
        self._done([*words, "--report", str(told)], bool)
        assert json.loads(told.read_text())["digest"] == report.digest
        found = pq.read_table(sink).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, rows["out"])) != []

    def backfill(self) -> None:
        """A backfill that is resumed in the middle has the state of an undisturbed one."""
        place = Place(self.folder, PARTITIONS)
        file, store = f"{place.file}:minutes", self.folder / "state"
        stored, least = f"{load_plan(file).name}/backfill", self._chance.randint(0, PARTITIONS - 2)
        words = ["backfill", file, "--history", f"csv:{self.folder}/history", "--live", place.live,
                 "--until", f"{UNTIL}ns", "--store", str(store),
                 "--receipt", str(self.folder / "receipt.json")]  # fmt: skip
        self._done(words, lambda _: _objects(store / stored) >= least)
        sink = f"log:{self.folder}/ran/out"
        run = ["run", file, "--source", place.live, "--sink", sink, "--store", str(store)]
        ended = self._start(run, disturbs=False)
        assert ended.wait(2 * PATIENCE_S) == 0, self._tail()
        assert self._digest() == _here(file, place.whole, closes=False)[0].digest

    def stream(self) -> None:
        """A query that is disturbed while records come has the state of an undisturbed one."""
        file, given = self._file("streamed.py", SOURCE, "tumbling"), events(4_000)
        place = topic_of(self.folder, load_plan(file), given[:400], partitions=2, key=["symbol"])
        words = ["run", file, "--source", place, "--sink", f"log:{self.folder}/out/rows",
                 "--store", str(self.folder / "state"), "--batch", "50"]  # fmt: skip
        following = [*words, "--follow", "--every", "0 seconds"]
        driver = self._start(following)
        for at in range(400, len(given), 400):
            if self._left:
                until(lambda one=driver: self.cluster.pythons() or one.poll() is not None)
                self._strike(driver)
            if driver.poll() is not None or driver.pid in self.frozen:
                self._check_struck(driver)
                driver = self._start(following)
            append(place, file, given[at : at + 400])
        self._done(words, bool, instead_of=driver)
        assert self._digest() == _here(file, place, closes=False)[0].digest

    def _file(self, name: str, text: str, pipeline: str) -> str:
        (self.folder / name).write_text(text)
        return f"{self.folder / name}:{pipeline}"

    def _digest(self) -> str:
        return re.findall(r"Digest: +(\w{16})", self._log.read_text())[-1]

    def _tail(self) -> str:
        """Return the end of the last command's output."""
        return self._log.read_bytes()[self._begun :].decode()[-2000:]

    def _done(
        self,
        words: list[str],
        when: Callable[[list[int]], bool],
        instead_of: subprocess.Popen[bytes] | None = None,
    ) -> None:
        """Run a command again and again until it ends well, disturbed ``when`` it is at work."""
        if instead_of is not None:
            self._remove(instead_of)
        for _ in range(STARTS_MAX):
            driver = self._start(words)
            ends = time.monotonic() + 2 * PATIENCE_S
            while driver.poll() is None and driver.pid not in self.frozen:
                pythons = self.cluster.pythons()
                if self._left and pythons and when(pythons):
                    self._strike(driver)
                assert time.monotonic() < ends, self._tail()
                time.sleep(0.02)
            if driver.poll() == 0:
                return
            self._check_struck(driver)
        raise AssertionError(self._tail())

    def _check_struck(self, driver: subprocess.Popen[bytes]) -> None:
        """No other death ends a command; on a busy machine Spark gives up a Python process."""
        said = self._tail()
        if driver.pid in self.frozen or driver.poll() == -signal.SIGKILL:
            return
        # A frozen driver rightly holds its folder; tasks of a killed one do for a moment.
        if "stop that one first" in said:
            assert strike(self.frozen, signal.SIGKILL) or "driver killed" in self.struck, said
            self.frozen.clear()
            return
        assert "waited in vain" in said, said

    def _strike(self, driver: subprocess.Popen[bytes]) -> None:
        who, how = self._left.pop(0)
        time.sleep(self._chance.uniform(0, 1))
        victims = [driver.pid, *below(driver.pid)]
        if who != "driver":
            there = self.cluster.executors() if who == "executor" else self.cluster.pythons()
            victims = [self._chance.choice(there)] if there else []
        if strike(victims, how):
            self.struck.append(f"{who} {'killed' if how == signal.SIGKILL else 'frozen'}")
            self.frozen += victims if how == signal.SIGSTOP else []

    def _remove(self, driver: subprocess.Popen[bytes]) -> None:
        family = [driver.pid, *below(driver.pid)]
        strike(family, signal.SIGKILL)
        driver.wait()

    def _start(self, words: list[str], *, disturbs: bool = True) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ripple.cli.main", "spark", *words]
        command += self.cluster.commands() if disturbs else ["--master", "local[2]"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_TOOL_OPTIONS": JVM,
        }
        with self._log.open("ab") as said:
            self._begun = said.tell()
            return subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=said, stderr=said
            )


def _objects(folder: Path) -> int:
    return sum(1 for one in folder.rglob("*") if one.is_file()) if folder.exists() else -1


def _here(file: str, place: str, *, closes: bool) -> Any:
    plan = load_plan(file)
    parcel = Parcel.of(file, lambda plan: b"")
    return replayed(parcel, plan, sources_at(place, plan), closes=closes)


def main(folder: Path, seeds: list[int]) -> int:
    """Run the seeds on one cluster; return the exit code."""
    wrong = 0
    with Cluster(folder / "cluster") as cluster:
        for seed in seeds:
            one, begun = Trial(cluster, folder / str(seed), seed), time.monotonic()
            try:
                one.run()
                found = "as expected"
            except AssertionError as error:
                wrong, found = wrong + 1, f"DIFFERS: {error}"
            kind, struck = KINDS[seed % len(KINDS)], ", ".join(one.struck) or "none"
            took = time.monotonic() - begun
            sys.stdout.write(f"seed {seed}: {kind}: {struck} ({took:.0f} s): {found}\n")
            sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]] or [1, 2, 3]))
