"""A pipeline of two stages goes from a run to a cluster, back, to Spark, and to another cluster.

In the run, the cluster and the moves processes are killed; the outputs are those of one run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from time import sleep

import pytest

from ripple.model.pipeline.file import load_plan
from tests.engine.machine.stage_plans import trades
from tests.patience import PATIENCE_S
from tests.services.s3 import ObjectServer
from tests.services.test_spark_moves import asked, found
from tests.spark.logs import TRADES, append, topic_of

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("quick_jvms")]
ROOT = Path(__file__).parents[2]

PIPELINE = f"""{TRADES}
keyed = rp.Pipeline("homes").source("trades", Trade, time="t", out_of_order=20)
bars = keyed.partition("by-symbol", key="symbol").window("w", rp.Tumbling(200), lateness=20)
bars = bars.fold("bars", vwap=rp.vwap("price", "size"), n=rp.count(), high=rp.max("price"))
venues = bars.partition("by-time", key="window_start_ns", partitions=1)
pipeline = (venues.fold("market", n=rp.sum("n"), high=rp.max("high"), of=rp.count())
    .sink("market-out").sink("bars-out", of="bars"))
"""


def begun(*words: str) -> subprocess.Popen[bytes]:
    """Return a started command, the leader of its processes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ripple.cli.main", *words]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def bytes_in(folder: Path) -> int:
    """Return the length of all files below a folder."""
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())


def kill_once_it_has_written(folder: Path, *words: str) -> None:
    """Start a command, and kill all its processes when the files of a folder have grown."""
    before, process = bytes_in(folder), begun(*words)
    try:
        for _ in range(int(PATIENCE_S / 0.02)):
            if bytes_in(folder) != before or process.poll() is not None:
                break
            sleep(0.02)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert bytes_in(folder) != before


def test_two_stages_are_one_run_in_all_homes(tmp_path: Path) -> None:
    file, given = f"{tmp_path}/homes.py", trades(Random("homes"), 5000)
    Path(file).write_text(PIPELINE)
    place = topic_of(tmp_path, load_plan(file), given[:1000], partitions=1, key=["symbol"])
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    here = [file, "--source", place]
    for name in ("market", "bars"):
        here += ["--sink", f"{name}-out=log:{outputs}/{name}"]

    def run(state: str, *more: str) -> tuple[str, ...]:
        return ("run", *here, "--batch", "50", "--checkpoint-dir", f"{tmp_path}/{state}", *more)

    def move(before: str, after: str) -> None:
        stores = ["--from", f"{tmp_path}/{before}", "--to", f"{tmp_path}/{after}"]
        words = ("checkpoint", "move", *here, *stores)
        kill_once_it_has_written(tmp_path, *words)  # perhaps when it has moved
        if not (tmp_path / after / "homes").exists():
            asked(*words)
            return
        process = begun(*words)  # what was done is found done
        assert process.wait(PATIENCE_S) == 0

    def up(folder: str) -> tuple[str, ...]:
        return ("cluster", "up", *here, "--dir", f"{tmp_path}/{folder}", "--free-ports",
                "--workers", "2")  # fmt: skip

    kill_once_it_has_written(outputs, *run("first", "--follow"))
    asked(*run("first"))
    move("first", "cluster/store")
    append(place, file, given[1000:2000])
    kill_once_it_has_written(outputs, *up("cluster"))
    said = asked(*up("cluster"), "--until-end")[1]
    assert "2,000 of 2,000 records are in the outputs" in said
    move("cluster/store", "second")
    append(place, file, given[2000:3000])
    said = asked(*run("second"))[1]
    assert "at 2000; replayed 0 events" in said, said
    append(place, file, given[3000:4000])
    said = asked(
        "spark", "run", *here, "--store", f"{tmp_path}/second", "--partitions", "1",
        "--batch", "50", "--master", "local[1]",
    )[1]  # fmt: skip
    assert "Events processed:  1000\n" in said, said
    move("second", "last/store")
    append(place, file, given[4000:])
    asked(*up("last"), "--until-end")

    alone = [file, "--source", place]
    for name in ("market", "bars"):
        alone += ["--sink", f"{name}-out=log:{tmp_path}/alone/{name}"]
    said = asked("run", *alone, "--checkpoint-dir", f"{tmp_path}/other")[1]
    assert found(r"Events processed: +(\d+)", said) == "5000"
    for name in ("market", "bars"):
        one, other = (
            asked("log", "table", f"{folder}/{name}")[0] for folder in (outputs, tmp_path / "alone")
        )
        assert one == other
        assert one.count("\n") > 20


def test_state_moves_between_stores_in_s3(tmp_path: Path, s3_server: ObjectServer) -> None:
    file, given = f"{tmp_path}/homes.py", trades(Random("s3"), 2000)
    Path(file).write_text(PIPELINE)
    place = topic_of(tmp_path, load_plan(file), given[:1000], partitions=1, key=["symbol"])
    here = [file, "--source", place]
    for name in ("market", "bars"):
        here += ["--sink", f"{name}-out=log:{tmp_path}/out/{name}"]
    stores = [f"s3://bucket/{name}" for name in ("first", "second", "third")]
    asked("run", *here, "--checkpoint-dir", stores[0])
    for before, after in pairwise(stores):
        asked("checkpoint", "move", *here, "--from", before, "--to", after)
    append(place, file, given[1000:])
    said = asked("run", *here, "--checkpoint-dir", stores[2])[1]
    assert "at 1000; replayed 0 events" in said, said
    alone = asked("run", file, "--source", place, "--checkpoint-dir", f"{tmp_path}/other",
                  "--sink", f"bars-out=log:{tmp_path}/alone/bars",
                  "--sink", f"market-out=log:{tmp_path}/alone/market")[1]  # fmt: skip
    assert found(r"Digest: +(\w{16})", said) == found(r"Digest: +(\w{16})", alone)
