"""State of two stages, and its outputs, move between one process and a cluster's store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from ripple.cli.main import main
from ripple.control.assignment import AssignmentChain, Stage, empty
from ripple.control.assignment.generations import Serving, ServingChain
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.model.batch import Batch
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionReader, Topic
from ripple.storage.store.disk import DiskStore
from ripple.task.outputs import Outputs
from ripple.task.owned_state import OwnedState
from ripple.world import LiveDisk, LiveRandom, live_world
from tests.control.assignment.examples import member

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    t: rp.Timestamp

keyed = rp.Pipeline("two").source("trades", Trade, time="t").partition("by", key="symbol")
each = keyed.fold("f", s=rp.sum("size"), n=rp.count())
pipeline = (each.partition("all", key=()).fold("total", n=rp.sum("s"), most=rp.max("s"))
    .sink("sum").sink("each", of="f"))
"""
WINDOWS = PIPELINE.replace("keyed.fold", 'keyed.window("w", rp.Tumbling(100)).fold')
BARS = WINDOWS.replace('"all", key=()', '"all", key="window_start_ns", partitions=1')


class Place:
    """A folder with a pipeline, a log of its records, and outputs."""

    def __init__(self, folder: Path, pipeline: str, partitions: int) -> None:
        self.folder, self.file = folder, f"{folder}/two.py"
        (folder / "two.py").write_text(pipeline)
        self.random, self.now = Random(pipeline), 0
        self.source = f"log:{folder}/d/trades"
        main(["log", "create", self.source.removeprefix("log:"), "--schema", self.file,
              "--partitions", str(partitions), "--key", "symbol"])  # fmt: skip

    def append(self, count: int) -> None:
        """Put records into the log."""
        lines = ["symbol,size,t"]
        for _ in range(count):
            self.now += self.random.randrange(3)
            lines.append(f"S{self.random.randrange(9)},{self.random.randrange(100)},{self.now}")
        (self.folder / "more.csv").write_text("\n".join(lines) + "\n")
        log = self.source.removeprefix("log:")
        assert main(["log", "append", log, f"{self.folder}/more.csv", "--header"]) == 0

    def given(self, **sinks: str) -> list[str]:
        """Return the arguments that name the pipeline, its source, and outputs."""
        named = {"sum": "sum", "each": "each"} | sinks
        places = [f"{name}=log:{self.folder}/d/{topic}" for name, topic in named.items() if topic]
        return [self.file, "--source", self.source, *(w for p in places for w in ("--sink", p))]

    def run(self, store: str, **sinks: str) -> int:
        """Run it to the end of the log."""
        return main(["run", *self.given(**sinks), "--checkpoint-dir", f"{self.folder}/{store}"])

    def move(self, before: str, after: str, *more: str, **sinks: str) -> int:
        """Move its state from store to store."""
        stores = ["--from", f"{self.folder}/{before}", "--to", f"{self.folder}/{after}"]
        return main(["checkpoint", "move", *self.given(**sinks), *stores, *more])

    def new(self, output: str, topic: str) -> tuple[str, str]:
        """Return the argument that gives an output a new topic."""
        return "--new-sink", f"{output}=log:{self.folder}/d/{topic}"

    def rows(self, topic: str, *, partitions: int = 1) -> dict[Any, Any]:
        """Return the table of a topic, by key and window."""
        opened, rows = Topic.open(LiveDisk(f"{self.folder}/d"), topic), {}
        assert opened.partitions == partitions
        for number in range(partitions):
            with PartitionReader(opened, number) as reader:
                found = [one.records for one in reader.read(0) if isinstance(one, Batch)]
            for row in (row for batch in found for row in batch.to_pylist()):
                op, key = row.pop("op"), (row.get("symbol"), row.get("window_start_ns"))
                rows[key] = None if op == "remove" else row
        return {key: row for key, row in rows.items() if row is not None}


def with_state(folder: Path) -> Place:
    """Return a place with state at 60 records in store ``a``."""
    place = Place(folder, PIPELINE, 1)
    place.append(60)
    assert place.run("a") == 0
    return place


@pytest.mark.parametrize("pipeline", [PIPELINE, WINDOWS], ids=["running", "windows"])
def test_state_and_outputs_go_on_there_and_back(
    tmp_path: Path, pipeline: str, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, pipeline, 1)
    place.append(150)
    assert place.run("a") == 0
    capfd.readouterr()
    assert place.move("a", "b", "--json") == 0
    assert json.loads(capfd.readouterr().out)["cut"] == {"trades": 150}
    assert main(["checkpoint", "verify", "--dir", f"{tmp_path}/b", "--pipeline", "two"]) == 0
    capfd.readouterr()
    assert place.run("a") == 1
    assert f"has moved to {tmp_path}/b: resume there" in capfd.readouterr().err
    assert main(["plan", place.file, "--checkpoint-dir", f"{tmp_path}/a"]) == 1
    assert f"has moved to {tmp_path}/b: name that with --checkpoint-dir" in capfd.readouterr().err
    assert place.run("b") == 1  # it is a cluster's now
    assert place.move("b", "c") == 0
    place.append(150)
    assert place.run("c") == 0
    assert place.run("whole", sum="sum2", each="each2") == 0
    assert place.rows("sum") == place.rows("sum2")
    assert place.rows("each") == place.rows("each2")


@pytest.mark.parametrize("pipeline", [PIPELINE, BARS], ids=["running", "windows"])
def test_an_output_with_other_partitions_gets_a_new_topic_with_its_table(
    tmp_path: Path, pipeline: str, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, pipeline, 4)
    place.append(150)
    assert place.run("a") == 0
    capfd.readouterr()
    assert place.move("a", "b", "--partitions", "2") == 1
    refused = capfd.readouterr().err
    assert "output 'each' has 1 partitions here and 2 there: name a new topic" in refused
    assert not (tmp_path / "b" / "two").exists()
    assert place.move("a", "b", "--partitions", "2", *place.new("each", "two")) == 0
    there = place.rows("two", partitions=2)
    assert there.items() >= place.rows("each").items()  # partitions wait for no other
    assert pipeline == BARS or there == place.rows("each")
    assert place.move("b", "c", *place.new("each", "one"), each="two") == 0
    place.append(150)
    assert place.run("c", each="one") == 0
    assert place.run("whole", sum="sum2", each="each2") == 0
    assert place.rows("sum") == place.rows("sum2")
    assert place.rows("one") == place.rows("each2")


def test_a_move_that_was_interrupted_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = with_state(tmp_path)
    left, commit = [1], Outputs.commit

    def failing(self: Outputs, partition: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("no space left")
        return commit(self, partition)

    with monkeypatch.context() as patched:
        patched.setattr(Outputs, "commit", failing)
        assert place.move("a", "b") == 1
    assert place.run("a") == 1
    assert place.move("a", "other") == 1
    assert place.move("a", "b") == 0
    assert place.move("b", "c") == 0
    place.append(60)
    assert place.run("c") == 0
    assert place.run("whole", sum="sum2", each="each2") == 0
    assert place.rows("sum") == place.rows("sum2")
    assert place.rows("each") == place.rows("each2")


def test_a_home_that_still_writes_keeps_its_state(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = with_state(tmp_path)
    lock = LiveDisk(f"{tmp_path}/d").lock("sum/0/lock", "a run")
    capfd.readouterr()
    assert place.move("a", "b") == 1
    assert "sum/0/lock: is held by a run: stop that one first" in capfd.readouterr().err
    lock.release()
    place.append(60)
    assert place.run("a") == 0  # nothing has changed
    assert place.move("a", "b") == 0
    state = OwnedState(Checkpoints(DiskStore(LiveDisk(f"{tmp_path}/a")), "two"), live_world("."))
    with pytest.raises(ChangedPlanError, match=r"has moved to .*/b: resume there"):
        asyncio.run(state.own(None, None))  # type: ignore[arg-type] # it asks before it takes


def test_a_home_that_may_still_write_outputs_that_are_not_named_keeps_its_state(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = with_state(tmp_path)
    assert place.move("a", "b") == 0
    chain = AssignmentChain(DiskStore(LiveDisk(f"{tmp_path}/b"), LiveRandom()), "x")
    version = replace(empty((Stage("main", 1),)), version=1, members=(member("w1", 1),))
    assert asyncio.run(chain.propose(asyncio.run(chain.newest()), version))
    capfd.readouterr()
    assert place.move("b", "c", sum="", each="") == 1
    assert "w1 of the cluster of 'two' may still write its outputs" in capfd.readouterr().err
    assert not (tmp_path / "b/two/moved.json").exists()
    assert place.move("b", "c") == 0  # which shuts w1 out
    lock = LiveDisk(f"{tmp_path}/c").lock("two/00000/life.lock", "a run")
    assert place.move("c", "d", sum="", each="") == 1
    assert "life.lock: is held by a run: stop that one first" in capfd.readouterr().err
    lock.release()
    assert place.move("c", "d", sum="", each="") == 0


def test_a_repeated_move_leaves_what_has_gone_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = with_state(tmp_path)
    assert place.move("a", "b") == 0
    assert place.move("b", "c", sum="", each="") == 0
    assert place.move("b", "c", sum="") == 1
    assert "name sum, too, with --sink" in capfd.readouterr().err
    assert place.move("b", "c") == 0  # now with its outputs
    place.append(60)
    assert place.run("c") == 0
    capfd.readouterr()
    assert place.move("b", "c") == 1
    assert f"its state is at 60: it has gone on in {tmp_path}/c" in capfd.readouterr().err
    assert place.move("b", "c", sum="", each="") == 0
    assert place.run("c") == 0
    assert "replayed 0 events" in capfd.readouterr().err
    total = sum(one["s"] for one in place.rows("each").values())
    assert place.rows("sum")[None, None]["n"] == total


def test_what_does_not_move_is_refused_with_nothing_changed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = with_state(tmp_path)
    capfd.readouterr()
    for before, after, why in (
        ("missing", "b", "there is no folder"),
        ("a", "a", "has state of 'two' already: name a store without any"),
    ):
        assert place.move(before, after) == 1
        assert why in capfd.readouterr().err
    assert main(["checkpoint", "move", *place.given(sum="", each=""), "--sink",
                 f"sum={tmp_path}/sum.csv", "--from", f"{tmp_path}/a", "--to",
                 f"{tmp_path}/b"]) == 1  # fmt: skip
    assert "only those in logs move" in capfd.readouterr().err
    assert place.move("a", "b", sum="other") == 1
    assert "output 'sum' holds nothing, and its state is at 60" in capfd.readouterr().err
    (tmp_path / "two.py").write_text(PIPELINE.replace("rp.max", "rp.min"))
    assert place.move("a", "b") == 1
    assert "is that of other code: move it with the code that wrote it" in capfd.readouterr().err
    (tmp_path / "two.py").write_text(PIPELINE)
    assert place.move("a", "b") == 0


def test_state_of_generations_does_not_move(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, PIPELINE, 1)
    place.append(20)
    assert place.run("state") == 0
    store = DiskStore(LiveDisk(f"{tmp_path}/state"), LiveRandom())
    chain, before = ServingChain(store, "x"), Serving()
    assert asyncio.run(chain.put(before, before.next(2, 1)))
    assert place.move("state", "other") == 1
    assert "has had more than one generation" in capfd.readouterr().err
    (tmp_path / "state/cluster/g2").mkdir()
    assert place.move("state/cluster/g2", "other") == 1
    assert "has had more than one generation" in capfd.readouterr().err
    assert not (tmp_path / "other").exists()
