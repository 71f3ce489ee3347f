"""A replay of files has the same ones at each reading."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from ripple.core.errors import InputError
from ripple.spark.file_states import FileStates
from ripple.spark.portions import Sources, sources_at
from tests.engine.machine.stage_plans import PLANS, trades
from tests.spark.logs import topic_of

PLAN = next(plan for plan in PLANS.values() if len(plan.sources) == 1)


def written(folder: Path, name: str, rows: int = 2) -> None:
    fields = ",".join(one.name for one in PLAN.source.fields)
    (folder / name).write_text(fields + "\n" + "".join(f"{at}\n" for at in range(rows)))


def found_at(place: str) -> Sources:
    return sources_at(place, PLAN, header=True)


@pytest.mark.parametrize("form", ["{}", "{}/*.csv", "csv:{}"])
def test_a_file_that_is_new_gone_or_changed_is_named(tmp_path: Path, form: str) -> None:
    for name in ("a.csv", "b.csv"):
        written(tmp_path, name)
    sources = found_at(form.format(tmp_path))
    before = FileStates.of(sources)
    before.check_unchanged(FileStates.of(sources))
    written(tmp_path, "c.csv")
    with pytest.raises(InputError, match=r"/c\.csv is new since the replay was made"):
        before.check_unchanged(FileStates.of(sources))
    (tmp_path / "c.csv").unlink()
    (tmp_path / "b.csv").unlink()
    with pytest.raises(InputError, match=r"/b\.csv is gone since"):
        before.check_unchanged(FileStates.of(sources))
    written(tmp_path, "b.csv", rows=3)
    with pytest.raises(InputError, match=r"/b\.csv has changed since"):
        before.check_unchanged(FileStates.of(sources))


def test_a_log_has_ends_instead(tmp_path: Path) -> None:
    place = topic_of(tmp_path, PLAN, trades(Random(1), 9), partitions=2)
    assert not FileStates.of(found_at(place)).states


def test_a_file_of_one_is_looked_at_by_size_and_time(tmp_path: Path) -> None:
    written(tmp_path, "a.csv")
    sources = found_at(f"{tmp_path}/a.csv")
    before = FileStates.of(sources)
    os.utime(tmp_path / "a.csv", ns=(1, 1))
    with pytest.raises(InputError, match=r"/a\.csv has changed"):
        before.check_unchanged(FileStates.of(sources))


@pytest.mark.parametrize("files", ["rows/a.csv", "csv:rows/a.csv", "rows", "rows/*.csv"])
def test_transformed_files_are_read_by_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: str
) -> None:
    (tmp_path / "rows").mkdir()
    written(tmp_path / "rows", "a.csv")
    (tmp_path / "masked.toml").write_text('[[transform]]\nmask = "symbol"\n')
    monkeypatch.chdir(tmp_path)
    sources = found_at(f"through:masked.toml,{files}")
    (share,) = sources.shares
    assert share.place.startswith(f"through:{tmp_path}/masked.toml,")
    assert f"{tmp_path}/rows" in share.place  # tasks begin in another folder
    assert [*FileStates.of(sources).states] == [f"{tmp_path}/rows/a.csv"]


def test_transformed_topics_are_refused() -> None:
    with pytest.raises(InputError, match="tasks of Spark transform files, and no records of a to"):
        found_at("through:masked.toml,log:data/trades")
