"""Checks of branches and of several sources hold, and find what is wrong on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.checkpoint_check import AgainstCheckpoints
from ripple.spark.crashes import Crashes
from ripple.spark.finding import difference, table_of
from ripple.spark.log_table import open_topic
from ripple.spark.oracle_check import AgainstOracle
from ripple.spark.output_check import AgainstLog, Divided
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Portion, Sources, sources_at
from ripple.storage.log import PartitionReader, PartitionWriter
from ripple.world import LiveClock
from tests.examples import FEW
from tests.spark.graph_places import OUTPUTS, Place

WAYS = [
    ("branches", (1,)),
    ("branches", (3,)),
    ("finals", (2,)),
    ("market", (4, 2)),
    ("joined", (4, 2)),
    ("asof", (4, 2)),
    ("eager", (4, 2)),
    ("at_once", (4, 2)),
    ("near", (2, 2)),
    ("later", (2, 3)),
    ("once", (2,)),
    ("many", (2, 3)),
    ("united", (2, 2)),
    ("united", (2, 3)),
]


class Checked:
    """A place with a run over all of its records, and what there is to check it against."""

    def __init__(self, folder: Path, name: str, partitions: tuple[int, ...]) -> None:
        self.place = Place(folder, name, partitions)
        self.plan: Plan = self.place.plan
        self.sources: Sources = sources_at(self.place.whole, self.plan)
        self.portions: tuple[Portion, ...] = self.sources.portions(self.plan)
        self.parcel = Parcel.of(self.place.file, lambda plan: b"")

    def log(self, output: str) -> str:
        return f"log:{self.place.folder}/out-state/{output}"

    def of_output(self, output: str) -> Any:
        job = AgainstLog(self.parcel, self.sources.shares, output, self.log(output), 0)
        return found(job)


def found(job: Any) -> Any:
    (packet,) = job.run()
    return packet.about


@pytest.mark.parametrize(("name", "partitions"), WAYS)
def test_a_run_holds_against_all_checks(
    name: str, partitions: tuple[int, ...], tmp_path: Path
) -> None:
    one = Checked(tmp_path, name, partitions)
    one.place.run(one.place.whole, "state")
    read = compared = 0
    for portion in one.portions:
        crashes = found(Crashes(one.parcel, portion, FEW, seed=5))
        assert (crashes["differences"], crashes["cases"]) == ([], FEW + 1)
        oracle = found(AgainstOracle(one.parcel, portion, 120))
        assert oracle["differences"] == []
        read, compared = read + oracle["rows"], compared + oracle["cases"]
    assert read >= 120
    assert compared > 50
    for output in OUTPUTS:
        about = one.of_output(output)
        assert about["differences"] == []
        assert about["rows"] == 450 * len(one.plan.sources)
        assert about["cases"] > 0
        assert not found(Divided(one.sources.shares, output, one.log(output), 1))["differences"]
    state = str(tmp_path / "state")
    kept = AgainstCheckpoints(one.parcel, one.sources.shares, state, one.plan.name, 0)
    about = found(kept)
    assert about["differences"] == []
    assert about["cases"] > 0


@pytest.mark.parametrize(
    ("engine", "told"),
    [("GraphForgets", "crash at trades "), ("GraphCannotRestore", "it is not mine")],
)
def test_crashes_of_several_sources_that_leave_a_trace_are_found(
    engine: str, told: str, tmp_path: Path
) -> None:
    one = Checked(tmp_path, "united", (1, 1))
    (portion,) = one.portions
    about = found(Crashes(one.parcel, portion, 12, 5, f"tests.spark.broken:{engine}"))
    assert told in about["differences"][0]["what"]


def test_the_oracle_finds_wrong_folds_and_events(tmp_path: Path) -> None:
    one = Checked(tmp_path, "united", (1, 1))
    (portion,) = one.portions
    about = found(AgainstOracle(one.parcel, portion, 50, "tests.spark.broken:GraphInflates"))
    by_output = {each["output"]: each for each in about["differences"]}
    assert set(by_output) == set(OUTPUTS)
    for each in by_output.values():
        assert each["expected"] != each["found"]
    assert by_output["rows-out"]["events"]


def test_events_of_a_difference_are_those_of_the_sources_of_its_output(tmp_path: Path) -> None:
    one = Checked(tmp_path, "market", (1, 1))
    engine = one.place.run(one.place.whole, "state")
    for name, field in (("rows-out", "size"), ("bars-out", "bid")):
        output = one.plan.output(name)
        expected = table_of(engine.table(name), one.plan, output)
        read = one.sources.shares, dict(engine.cut)
        told = difference(one.plan, output, "at the cut", (expected, {}), read)
        assert told.events
        assert all(field in event for event in told.events)


def test_an_event_that_is_too_many_in_a_log_is_found(tmp_path: Path) -> None:
    one = Checked(tmp_path, "branches", (1,))
    one.place.run(one.place.whole, "state")
    topic, _ = open_topic(one.log("events"))
    with PartitionReader(topic, 0) as reader:
        end = reader.range()[1]
        notes = reader.notes_at(end - 1)
        (*_, last) = [entry for entry in reader.read() if isinstance(entry, Batch)]
    again = last.records.slice(last.records.num_rows - 1)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(again, notes=notes)
    (first,) = one.of_output("events")["differences"]
    assert first["expected"] is None
    assert first["found"]["t"] == first["events"][0]["t"] == again.column("t")[0].as_py()


def test_a_watch_of_branches_is_refused(tmp_path: Path) -> None:
    plan = load_plan(Place(tmp_path, "branches", (1,)).file)
    with pytest.raises(Exception, match="and a watch on Spark computes chains"):
        Parcel.of(plan, lambda plan: b"", chain_for="a watch on Spark")


def test_a_source_that_the_run_did_not_have_is_told(tmp_path: Path) -> None:
    one = Checked(tmp_path, "united", (1, 1))
    one.place.run(one.place.whole, "state")
    job = AgainstLog(one.parcel, one.sources.each[0].shares, "events", one.log("events"), 0)
    with pytest.raises(
        InputError, match="the live run has read 'others', and the source has trades"
    ):
        found(job)
