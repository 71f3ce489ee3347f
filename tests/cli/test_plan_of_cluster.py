"""``ripple plan`` on the store of a cluster: what workers would do, in their words."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from ripple.cli.main import main
from ripple.connectors.connector import Part
from ripple.connectors.locate import open_sink
from ripple.control.assignment import AssignmentChain, Stage, empty
from ripple.model.pipeline.file import load_plan
from ripple.storage.store.opening import open_store
from tests.spark.logs import topic_of

BEGIN = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int

start = rp.Pipeline("two").source("trades", Trade)
keyed = start.partition("by", key="symbol")
"""
ONE = 'keyed.fold("f", s=rp.sum("size")).sink("sum")'
MOST = 'keyed.fold("most", m=rp.max("size")).sink("out")'


async def found(store: Path, partitions: int) -> None:
    """Let a store be that of a cluster with so many partitions."""
    async with open_store(f"{store}") as opened:
        chain = AssignmentChain(opened, "a coordinator")
        first = replace(empty([Stage("main", partitions)]), version=1, cause="it begins")
        assert await chain.propose(await chain.newest(), first)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A folder with a cluster's first partition, of two, and with its output."""
    file = tmp_path / "one.py"
    file.write_text(f"{BEGIN}pipeline = {ONE}")
    plan = load_plan(f"{file}")
    log = topic_of(tmp_path, plan, [{"symbol": "A", "size": 1}], partitions=1)
    open_sink(f"log:{tmp_path}/sum", plan, "sum", continues=True, part=Part(0, 2)).close()
    given = ["--source", log, "--sink", f"log:{tmp_path}/sum/0"]
    assert main(["run", f"{file}", *given, "--checkpoint-dir", f"{tmp_path}/store"]) == 0
    asyncio.run(found(tmp_path / "store", 2))
    return tmp_path


def plan(folder: Path, pipeline: str, *options: str) -> int:
    file = folder / "one.py"
    file.write_text(f"{BEGIN}pipeline = {pipeline}")
    return main(["plan", f"{file}", "--checkpoint-dir", f"{folder}/store", *options])


def test_whether_new_outputs_of_a_partition_are_empty(begun: Path, capfd) -> None:
    outputs = ["--sink", f"sum=log:{begun}/sum", "--sink", f"out=log:{begun}/out"]
    assert plan(begun, f"{ONE}.also({MOST})") == 2
    told = capfd.readouterr()
    assert "not known whether workers would start: they would refuse, unless the target of out" in (
        told.out
    )
    assert "what workers would do depends on their contents" in told.err
    assert plan(begun, f"{ONE}.also({MOST})", *outputs) == 0
    told = capfd.readouterr()
    assert told.out.endswith("first record: out would be written from there.\n")
    assert told.err == ""
    # A new branch is taken, also where another one has changed, by ripple run alone.
    changed = ONE.replace("rp.sum", "rp.min")
    assert plan(begun, f"{changed}.also({MOST})", *outputs) == 1
    told = capfd.readouterr()
    assert told.out.endswith("workers would refuse to start.\n")
    assert "name another store and other outputs" in told.err


def test_only_what_a_cluster_takes(begun: Path, capfd) -> None:
    assert plan(begun, ONE) == 0
    assert "workers would resume from checkpoint" in capfd.readouterr().out
    assert plan(begun, ONE, "--sink", f"{begun}/sum.csv") == 1
    assert "sum.csv' in a cluster: an owner that was replaced" in capfd.readouterr().err
    assert plan(begun, ONE, "--rebuild", "f") == 1
    assert "the store of a cluster, whose workers have no --rebuild" in capfd.readouterr().err
    keyed = ["log", "create", f"{begun}/other", "--schema", f"{begun}/one.py"]
    assert main([*keyed, "--partitions", "2", "--key", "size"]) == 0
    assert plan(begun, ONE, "--source", f"log:{begun}/other") == 1
    told = capfd.readouterr().err
    assert "divides no records anew, and some are, of these sources: give the sources" in told


def test_sources_are_not_asked_about_beside_the_state_of_one_process(begun: Path, capfd) -> None:
    for version in (begun / "store" / "assign").iterdir():
        version.unlink()
    assert plan(begun, ONE, "--source", "log:other") == 1
    assert "--source asks about a cluster, and" in capfd.readouterr().err
