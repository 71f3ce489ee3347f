"""A folder of Parquet is there as a whole, or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.core.errors import OutputError
from ripple.spark.draft import DONE, Draft

SCHEMA = pa.schema([("symbol", pa.string()), ("n", pa.int64())])
ROWS = pa.RecordBatch.from_pylist([{"symbol": "A", "n": 1}, {"symbol": "B", "n": 2}], SCHEMA)


def report(partition: int, rows: int) -> dict[str, object]:
    return {"stage": 0, "partition": partition, "rows": {"shown": rows}}


def draft(folder: Path, *, overwrite: bool = False) -> Draft:
    return Draft("shown", str(folder), SCHEMA, overwrite=overwrite)


def put(one: Draft, number: int) -> None:
    part = one.desk.begin(0, number)
    part.add(ROWS)
    part.finish()


def test_parts_of_tasks_are_committed_and_replaced_atomically(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    with draft(folder) as one:
        put(one, 0)
        put(one, 0)  # a task that was tried again
        put(one, 7)  # and one of which nobody has heard
        assert not folder.exists()
        one.adopt([report(0, 2), report(1, 0)])
    assert {path.name for path in folder.iterdir()} == {DONE, "part-0-00000.parquet"}
    assert pq.read_table(folder).to_pylist() == ROWS.to_pylist()
    with pytest.raises(OutputError, match="already exists"):
        draft(folder)
    with draft(folder, overwrite=True) as one:
        one.adopt([])
    assert pq.read_table(folder).schema == SCHEMA
    assert pq.read_table(folder).num_rows == 0
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_mismatching_parts_are_rejected_and_the_old_folder_stays(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    (folder / "mine").touch()
    for reports, why in [
        ([report(0, 3)], "has 2 rows, and its task"),
        ([report(1, 1)], "lacks a part"),
    ]:
        with draft(folder, overwrite=True) as one:
            put(one, 0)
            with pytest.raises(OutputError, match=why):
                one.adopt(reports)
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_one_replay_at_a_time_writes_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    (tmp_path / ".rows.draft" / "left").mkdir(parents=True)  # by a driver that was killed
    with draft(folder) as one:
        assert not (tmp_path / ".rows.draft" / "left").exists()
        with pytest.raises(OutputError, match="is held by a replay into"), draft(folder):
            pass
        put(one, 0)
        one.adopt([report(0, 2)])
    with pytest.raises(OutputError, match="an executor does not see"):
        one.desk.begin(0, 1)
