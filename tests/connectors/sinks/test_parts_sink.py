"""Folders of Parquet files that a restarted pipeline continues."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.contract import Commit, Sink
from ripple.connectors.files.parquet import parts
from ripple.connectors.files.parquet.parts import PartsSink
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP_NAMES
from ripple.testing import SimulationError, SimWorld, enumerate_crashes
from ripple.testing.sim.disk import SimDisk
from ripple.world import Disk, DiskFullError, World
from tests.connectors.sinks.kit import (
    CUTS,
    OWNER,
    ROWS,
    Kind,
    changes,
    number_after,
    pipeline,
    reached,
    world_of,
    write,
)

COLUMNS = ("op", "symbol", "total")
Row = dict[str, Any]


def opened(world: World) -> Sink:
    return PartsSink(world.disk, "out", OWNER, COLUMNS, guards=world.guards)


def read(disk: Disk) -> list[Row]:
    names = [name for name in disk.list("out") if name.endswith(".parquet")]
    assert names == sorted(names)
    files = [disk.read_bytes(f"out/{name}", length_max=1 << 20) for name in names]
    return [row for data in files for row in pq.read_table(pa.BufferReader(data)).to_pylist()]


def expected(cuts: int) -> list[Row]:
    rows = [row for number in range(cuts) for row in changes(number).to_pylist()]
    return [{**row, "op": OP_NAMES[row["op"]]} for row in rows]


KIND = Kind(opened, read, read, is_fast=True)


@pytest.fixture(params=[1, 4, 1 << 17])
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(parts, "PART_ROWS", request.param)
    return SimDisk()


@pytest.mark.parametrize("stop", range(CUTS + 1))
@pytest.mark.parametrize("commit_every", [1, 3])
def test_a_restart_resumes_after_the_last_commit(disk: Disk, stop: int, commit_every: int) -> None:
    write(opened(world_of(disk)), 0, stop, commit_every=commit_every)
    committed = stop - stop % commit_every
    sink = opened(world_of(disk))
    assert sink.committed == (reached(committed - 1) if committed else None)
    assert read(disk) == expected(committed)
    write(sink, number_after(sink.committed), CUTS)
    assert read(disk) == expected(CUTS)


def test_files_grow_with_rows_and_not_with_commits(disk: Disk) -> None:
    write(opened(world_of(disk)), 0, CUTS)
    count = sum(name.endswith(".parquet") for name in disk.list("out"))
    assert count == {1: sum(map(bool, ROWS)), 4: 3, 1 << 17: 1}[parts.PART_ROWS]


def test_each_crash_leaves_whole_cuts() -> None:
    enumerate_crashes(pipeline(KIND), every=3)


def each_cut(world: SimWorld, _seed: int) -> None:
    """Commit each cut, also one without rows."""
    sink = opened(world)
    number = number_after(sink.committed)
    assert number >= world.witness.get("promised", 0), "what was committed is forgotten"
    assert read(world.disk) == expected(number)
    while number < CUTS:
        sink.write(changes(number), reached(number))
        sink.commit(reached(number))
        number += 1
        world.witness["promised"] = number
    sink.close()
    assert read(world.disk) == expected(CUTS), "not each cut once, in order"


@pytest.mark.parametrize(
    "safeguard", ["data_sync", "name_sync", "record_sync", "record_name_sync", ""]
)
def test_each_sync_is_needed(safeguard: str) -> None:
    if safeguard:
        with pytest.raises(SimulationError):
            enumerate_crashes(each_cut, without=(safeguard,))
    else:
        enumerate_crashes(each_cut)


def test_a_disk_that_was_full_is_tried_again(disk: SimDisk) -> None:
    sink = opened(world_of(disk))
    failures = 0
    for number in range(CUTS):
        sink.write(changes(number), reached(number))
        room = (1 << 40) - 1
        disk.capacity_bytes = room
        disk.capacity_bytes = room - disk.free_bytes() + 20
        try:
            sink.commit(reached(number))
        except DiskFullError:
            failures += 1
            disk.capacity_bytes = room
            sink.commit(reached(number))
    sink.close()
    assert failures == CUTS
    assert read(disk) == expected(CUTS)


def test_keys_are_read_back(disk: Disk) -> None:
    sink = opened(world_of(disk))
    sink.write(changes(3), reached(3))
    sink.commit(reached(3))
    assert isinstance(sink, PartsSink)
    found = [row for batch in sink.shown_keys(["symbol"]) for row in batch.to_pylist()]
    assert found == [{"op": row["op"], "symbol": row["symbol"]} for row in read(disk)]
    sink.close()


def test_a_file_says_its_cut_in_a_form_that_later_versions_read() -> None:
    disk = SimDisk()
    sink = opened(world_of(disk))
    sink.write(changes(3), reached(3))
    sink.commit(reached(3))
    data = disk.read_bytes("out/part-000000000001.parquet", length_max=1 << 20)
    told = pq.read_metadata(pa.BufferReader(data)).metadata[b"ripple.commit"]
    assert told == (
        b'{"columns": ["op", "symbol", "total"], "number": 1, "output": "out", "pipeline": "vwap", '
        b'"reached": {"cut": {"trades": 40}, "digest": "0000000000000003"}}'
    )


def test_another_folder_is_refused(tmp_path: Path) -> None:
    disk = SimDisk()
    write(opened(world_of(disk)), 0, 2)
    with pytest.raises(OutputError, match="belongs to output 'out' of pipeline 'vwap'"):
        PartsSink(disk, "out", OWNER._replace(pipeline="other"), COLUMNS)
    with pytest.raises(OutputError, match="has the columns op, symbol, total, but the output has"):
        PartsSink(disk, "out", OWNER, ("op", "symbol"))
    disk.remove("out/part-000000000001.parquet")
    write_one(disk, "out/part-000000000002.parquet")
    with pytest.raises(OutputError, match=r"part-000000000001\.parquet is gone"):
        opened(world_of(disk))
    write_one(disk, "other/part-000000000001.parquet")
    with pytest.raises(OutputError, match="Parquet files that are not of this output"):
        PartsSink(disk, "other", OWNER, COLUMNS)
    write_one(disk, "more/x.parquet")
    with pytest.raises(OutputError, match=r"more holds x\.parquet, which is not of this output"):
        PartsSink(disk, "more", OWNER, COLUMNS)
    write_one(disk, "file/one.parquet")
    with pytest.raises(OutputError, match="is a file"):
        PartsSink(disk, "file/one.parquet", OWNER, COLUMNS)


def write_one(disk: Disk, path: str) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"k": [1]}), sink)
    disk.make_folder(path.rpartition("/")[0])
    file = disk.open(path, create=True)
    file.append(sink.getvalue().to_pybytes())
    file.close()


def test_a_sink_that_wrote_nothing_leaves_nothing(disk: Disk) -> None:
    sink = opened(world_of(disk))
    sink.close()
    sink.close()
    assert not disk.exists("out")
    with pytest.raises(OutputError, match="it was closed: open it again"):
        sink.write(changes(0), Commit({}, ""))


@rp.record(version=1)
class Seen:
    who: str
    n: int


@rp.record
class Dated:
    who: str
    day: date
    n: int


def test_a_run_writes_a_folder_and_resumes(tmp_path: Path) -> None:
    seen = rp.Pipeline("seen").source("seen", Seen).partition("by", key="who")
    plan = seen.fold("f", n=rp.sum("n")).sink("out")
    (tmp_path / "in").mkdir()
    for day in range(3):
        (tmp_path / "in" / f"{day}.csv").write_text(f"a,{day}\nb,1\n")
        rp.run(
            plan,
            source=tmp_path / "in",
            sink=tmp_path / "out.parquet",
            checkpoint_dir=tmp_path / "state",
        )
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert json.dumps(rows[-2:]) == json.dumps(
        [{"op": "set", "who": "a", "n": 3}, {"op": "set", "who": "b", "n": 3}]
    )
    assert len(rows) <= 6


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_run_without_rows_leaves_a_file_with_the_columns_of_one_with_rows(
    tmp_path: Path, is_stream: bool
) -> None:
    seen = rp.Pipeline("dated").source("dated", Dated).filter("large", rp.col("n") > 1)
    folded = seen.partition("by", key=["who", "day"]).fold("f", n=rp.sum("n"), most=rp.max("day"))
    plan = (seen.sink("out") if is_stream else folded.sink("out")).plan()
    path, day = tmp_path / "out.parquet", date(2024, 2, 26)
    rp.run(plan, source=[{"who": "a", "day": day, "n": 2}], sink=path)
    before = pq.read_schema(path).remove_metadata()
    assert pq.read_table(path).num_rows == 1
    rp.run(plan, source=[{"who": "a", "day": day, "n": 1}], sink=path)
    assert pq.read_table(path).num_rows == 0
    after = pq.read_schema(path)
    assert [(one.name, one.type) for one in after] == [(one.name, one.type) for one in before]
    assert list(tmp_path.iterdir()) == [path]
