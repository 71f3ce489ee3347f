"""Tables of Delta Lake: other libraries' readers, and each commit once."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.connector import Writing
from ripple.connectors.registry import own
from ripple.core.errors import OutputError
from ripple.testing import sink_suite
from ripple.testing.connectors.rows import OUTPUT, PLAN, changes, newest, reached

CONNECTOR = own()["delta"]


def apart(story: Callable[[], None]) -> None:
    """Run a story in a copy of this process: deltalake bears no fork once it was used."""
    child = os.fork()
    if child == 0:
        try:
            story()
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, "it says above why"


def place(folder: Path) -> str:
    return str(folder / "table")


def read(path: str) -> list[dict[str, Any]]:
    """What Polars finds."""
    import polars as pl

    if not Path(path, "_delta_log").exists():
        return []
    return pl.read_delta(path).sort("name").to_dicts()


def each_apart(suite: type) -> type:
    for name, rule in list(vars(suite).items()):
        if name.startswith("test_"):
            setattr(suite, name, _apart(rule))
    return suite


def _apart(rule: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    def test(self: Any, tmp_path: Path) -> None:
        apart(lambda: rule(self, tmp_path))

    return test


def remake(folder: Path) -> None:
    """Let another table have the name, as another run makes it."""
    shutil.rmtree(place(folder))
    opened(place(folder)).close()


def alter(folder: Path) -> None:
    """Let a column have another type."""
    import deltalake

    table = deltalake.DeltaTable(place(folder))
    rows = table.to_pyarrow_table()
    at = rows.schema.get_field_index("number")
    other = rows.set_column(at, "number", rows["number"].cast(pa.string()))
    deltalake.write_deltalake(place(folder), other, mode="overwrite", schema_mode="overwrite")


CHANGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda folder: shutil.rmtree(place(folder)),
    "made anew": remake,
    "altered": alter,
}

TestContinued = each_apart(sink_suite(CONNECTOR, place, read, changes=CHANGES))
TestWhole = each_apart(sink_suite(CONNECTOR, place, read, plain=True))


def opened(path: str) -> Any:
    from ripple.connectors.delta_lake.sink import continue_table

    return continue_table(path, Writing(PLAN, OUTPUT))


def history(path: str) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    return DeltaTable(path).history()


def test_a_cut_is_one_commit_among_those_of_others(tmp_path: Path) -> None:
    def story() -> None:
        from deltalake import DeltaTable

        path = place(tmp_path)
        sink = opened(path)
        before = len(history(path))
        for cut in range(4):
            for _ in range(2):  # the second is the newest of each key
                sink.write(changes(cut), reached(cut))
            sink.commit(reached(cut))
        assert len(history(path)) == before + 4
        DeltaTable(path).optimize.compact()
        DeltaTable(path).delete("name = 'S1'")
        sink.write(changes(4), reached(4))
        sink.commit(reached(4))
        gone = changes(4).slice(0, 1).set_column(1, "op", pa.array([2], pa.int8()))
        sink.write(gone, reached(5))
        sink.commit(reached(5))
        found = {row["name"]: row["number"] for row in read(path)}
        expected = newest(5)
        del expected["S0"]
        assert found == {k: v for k, v in expected.items() if k in found}
        assert "S0" not in found
        assert opened(path).committed == reached(5)

    apart(story)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("of nobody", "which no run has made"),
        ("of another", "belongs to output 'other' of pipeline 'ticks'"),
        ("with other columns", r"column 'number' \(int64\), which is string there"),
        ("damaged", "cannot write delta:"),
    ],
)
def test_another_table_is_left_unchanged(tmp_path: Path, kind: str, says: str) -> None:
    def story() -> None:
        from deltalake import write_deltalake

        path = place(tmp_path)
        if kind == "of nobody":
            write_deltalake(path, pa.table({"name": ["A"]}))
        else:
            opened(path)
        log = sorted(Path(path, "_delta_log").glob("*.json"))
        if kind == "of another":
            for one in log:
                text = one.read_text().replace(r"\"output\": \"out\"", r"\"output\": \"other\"")
                one.write_text(text)
        elif kind == "with other columns":
            log[0].write_text(log[0].read_text().replace("long", "string"))
        elif kind == "damaged":
            log[-1].write_text("{")
        files = sorted(Path(path).rglob("*"))
        with pytest.raises(OutputError, match=says) as refused:
            opened(path)
        assert "\n" not in str(refused.value)
        assert sorted(Path(path).rglob("*")) == files

    apart(story)


def test_run_comes_after_the_owners_that_the_table_knows(tmp_path: Path) -> None:
    def story() -> None:
        from ripple.connectors.delta_lake.sink import continue_table, look

        path = place(tmp_path)
        assert look(path, Writing(PLAN, OUTPUT)) == 0
        assert not Path(path).exists()
        there = continue_table(path, Writing(PLAN, OUTPUT, epoch=3072))
        there.write(changes(1), reached(1))
        there.commit(reached(1))
        assert look(path, Writing(PLAN, OUTPUT)) == 3072
        run = opened(path)
        assert run.committed == reached(1)
        assert look(path, Writing(PLAN, OUTPUT)) == 3073
        key = [field.name for field in PLAN.fold(OUTPUT.of).row_key]
        found = [row for keys in run.shown_keys(key) for row in keys.to_pylist()]
        names = changes(1).column("name").to_pylist()
        assert sorted((row["name"], row["op"]) for row in found) == [
            (name, "set") for name in sorted(names)
        ]

    apart(story)


def test_a_rejected_run_fences_no_other_and_the_first_of_two_continues(tmp_path: Path) -> None:
    def story() -> None:
        path = place(tmp_path)
        at_work = opened(path)
        at_work.write(changes(1), reached(1))
        at_work.commit(reached(1))
        opened(path).close()  # refused, since what it would show is not what is there
        at_work.write(changes(2), reached(2))
        at_work.commit(reached(2))
        late = opened(path)
        at_work.write(changes(3), reached(3))
        at_work.commit(reached(3))
        late.write(changes(3), reached(3))
        with pytest.raises(OutputError, match="another run has written it meanwhile"):
            late.commit(reached(3))
        assert opened(path).committed == reached(3)

    apart(story)
