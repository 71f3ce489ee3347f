"""Tables of Iceberg in a catalog of SQLite: each commit once, and a snapshot as a source."""

from __future__ import annotations

import datetime as dt
import decimal
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyiceberg.types import StringType
from pyiceberg.utils.config import Config

import ripple as rp
from ripple.connectors.connector import Writing
from ripple.connectors.iceberg.sink import continue_table, look
from ripple.connectors.registry import own
from ripple.core.errors import InputError, OutputError
from ripple.testing import sink_suite
from ripple.testing.connectors.rows import OUTPUT, PLAN, changes, newest, reached

pytestmark = pytest.mark.services
CONNECTOR = own()["iceberg"]


def catalog() -> Catalog:
    return load_catalog("test")


def opened(path: str) -> Any:
    return continue_table(path, Writing(PLAN, OUTPUT))


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "warehouse").mkdir()
    of = "PYICEBERG_CATALOG__TEST__"
    monkeypatch.setenv(f"{of}URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv(f"{of}WAREHOUSE", f"file://{tmp_path}/warehouse")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it reads them at its import


def place(folder: Path) -> str:
    """A namespace for each folder of a test, of which all have one catalog."""
    return f"test/n{re.sub('[^a-z0-9]', '', folder.name)}.ticks"


def name_of(path: str) -> tuple[str, ...]:
    return tuple(path.partition("/")[2].split("."))


def table(path: str) -> Table:
    return catalog().load_table(name_of(path))


def read(path: str) -> list[dict[str, Any]]:
    if not catalog().table_exists(name_of(path)):
        return []
    rows = table(path).scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["name"]))


def remake(folder: Path) -> None:
    catalog().drop_table(name_of(place(folder)))
    opened(place(folder)).close()


def alter(folder: Path) -> None:
    with table(place(folder)).update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("number")


CHANGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda folder: catalog().drop_table(name_of(place(folder))),
    "made anew": remake,
    "altered": alter,
}

TestContinued = sink_suite(CONNECTOR, place, read, changes=CHANGES)
TestWhole = sink_suite(CONNECTOR, place, read, plain=True)


def test_a_cut_is_one_commit_among_those_of_others(tmp_path: Path) -> None:
    path = place(tmp_path)
    sink = opened(path)
    for cut in range(4):
        for _ in range(2):  # the second is the newest of each key
            sink.write(changes(cut), reached(cut))
        sink.commit(reached(cut))
    table(path).delete("name = 'S1'")
    sink.write(changes(4), reached(4))
    sink.commit(reached(4))
    gone = changes(4).slice(0, 1).set_column(1, "op", pa.array([2], pa.int8()))
    sink.write(gone, reached(5))
    sink.commit(reached(5))
    sink.commit(reached(6))  # without changes
    found = {row["name"]: row["number"] for row in read(path)}
    expected = newest(5)
    del expected["S0"]
    assert found == {name: number for name, number in expected.items() if name in found}
    assert "S0" not in found
    assert opened(path).committed == reached(6)
    present = table(path).current_snapshot()
    assert present is not None
    assert present.summary is not None
    assert '"number": 8' in present.summary.additional_properties["ripple"]


def test_another_table_is_left_unchanged(tmp_path: Path) -> None:
    path = place(tmp_path)
    catalog().create_namespace("other")
    catalog().create_table(("other", "t"), pa.schema([("name", pa.string())]))
    opened(path).close()
    about = table(path).properties["ripple"]
    for change, told in {
        about.replace('"out"', '"other"'): "belongs to output 'other' of pipeline 'ticks'",
        "{": "what its log says of us cannot be read",
    }.items():
        with table(path).transaction() as transaction:
            transaction.set_properties({"ripple": change})
        with pytest.raises(OutputError, match=told):
            opened(path)
    for text, told in {
        "test/other.t": "which no run has made",
        "nowhere/a.b": "set PYICEBERG_CATALOG__NOWHERE__URI, or name it in ~/.pyiceberg.yaml",
        "test/a.b@1": "a snapshot is read alone",
        "test/ticks": "it must be iceberg:CATALOG/NAMESPACE.TABLE",
    }.items():
        with pytest.raises(OutputError, match=told) as refused:
            opened(text)
        assert "\n" not in str(refused.value)


def test_columns_may_be_moved_by_others_and_not_added(tmp_path: Path) -> None:
    path = place(tmp_path)
    sink = opened(path)
    sink.write(changes(0), reached(0))
    sink.commit(reached(0))
    with table(path).update_schema() as change:
        change.move_first("number")
    for cut in (1, 2):
        sink.write(changes(cut), reached(cut))
        sink.commit(reached(cut))
    assert {row["name"]: row["number"] for row in read(path)} == newest(3)
    with table(path).update_schema() as change:
        change.add_column("note", StringType())
    for write in (lambda: opened(path), lambda: sink.commit(reached(3))):
        with pytest.raises(OutputError, match="has a column 'note', which the output has not"):
            write()


def test_a_run_comes_after_the_owners_that_the_table_knows(tmp_path: Path) -> None:
    path = place(tmp_path)
    assert look(path, Writing(PLAN, OUTPUT)) == 0
    there = continue_table(path, Writing(PLAN, OUTPUT, epoch=3072))
    there.write(changes(1), reached(1))
    there.commit(reached(1))
    run = opened(path)
    assert (run.committed, look(path, Writing(PLAN, OUTPUT))) == (reached(1), 3073)
    there.write(changes(2), reached(2))
    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        there.commit(reached(2))
    key = [field.name for field in PLAN.fold(OUTPUT.of).row_key]
    found = [row for keys in run.shown_keys(key) for row in keys.to_pylist()]
    names = sorted(changes(1).column("name").to_pylist())
    assert sorted((row["name"], row["op"]) for row in found) == [(name, "set") for name in names]


def test_no_commit_is_repeated_by_the_library_over_that_of_another(tmp_path: Path) -> None:
    path = place(tmp_path)
    first, second = opened(path), opened(path)
    between = second._table.record  # the table as it is now, and then the commit of the other one

    def record() -> Any:
        found = between()
        second._table.record = between
        first.write(changes(0), reached(0))
        first.commit(reached(0))
        return found

    second._table.record = record
    second.write(changes(1), reached(1))
    with pytest.raises(OutputError, match="another run has written it meanwhile"):
        second.commit(reached(1))
    assert opened(path).committed == reached(0)


@rp.record
class Quote:
    venue: str | None
    symbol: uuid.UUID
    at: dt.datetime
    day: dt.date
    price: Annotated[decimal.Decimal, rp.Decimal(12, 4)]
    raw: bytes


def quotes(count: int) -> list[dict[str, Any]]:
    at = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    return [
        {
            "venue": None if number % 3 == 0 else f"v{number % 3}",
            "symbol": str(uuid.UUID(int=number)),
            "at": at + dt.timedelta(microseconds=number),
            "day": at.date(),
            "price": decimal.Decimal(number) / 8,
            "raw": bytes([number % 256]),
        }
        for number in range(count)
    ]


def test_types_keys_and_snapshots_go_there_and_back(tmp_path: Path) -> None:
    events = rp.Pipeline("events").source("quotes", Quote).sink("rows")
    rp.run(events, source=quotes(1000), sink="iceberg:test/q.events")
    first = catalog().load_table(("q", "events")).current_snapshot()
    assert first is not None
    back = rp.collect(events, "iceberg:test/q.events")
    assert back == quotes(1000)
    by_key = (
        rp.Pipeline("by-key").source("quotes", Quote).partition("k", key="symbol")
        .fold("last", price=rp.last("price")).sink("prices")
    )  # fmt: skip
    state = tmp_path / "state"
    (tmp_path / "in").mkdir()
    for day in range(3):
        rows = "".join(
            f'{{"symbol": "{uuid.UUID(int=n)}", "at": "2026-03-02T00:00:00Z", "day": "2026-03-02", '
            f'"price": "{day}.5", "raw": ""}}\n'
            for n in range(0, 600, 1 + day)
        )
        (tmp_path / f"in/{day}.jsonl").write_text(rows)
        rp.run(by_key, source=f"{tmp_path}/in", sink="iceberg:test/q.prices", checkpoint_dir=state)
    found = catalog().load_table(("q", "prices")).scan().to_arrow().to_pylist()
    last = {n: max(day for day in range(3) if n % (1 + day) == 0) for n in range(600)}
    assert {row["symbol"]: row["price"] for row in found} == {
        str(uuid.UUID(int=n)): decimal.Decimal(f"{day}.5") for n, day in last.items()
    }
    assert len(found) == 600
    rp.run(events, source=quotes(10), sink="iceberg:test/q.events")
    assert len(rp.collect(events, "iceberg:test/q.events")) == 10
    assert rp.collect(events, f"iceberg:test/q.events@{first.snapshot_id}") == quotes(1000)
    for text, told in {
        "test/q.events@7": "it has no snapshot 7: it may have expired",
        "test/q.nothing": "there is no such table",
        "test/q": "it must be iceberg:CATALOG/NAMESPACE.TABLE, a source also with @SNAPSHOT",
    }.items():
        with pytest.raises(InputError, match=told):
            rp.collect(events, f"iceberg:{text}")
    with pytest.raises(OutputError, match="a durable run writes it"):
        rp.run(by_key, source=quotes(1), sink="iceberg:test/q.prices")
    with pytest.raises(InputError, match="needs a source that can be read again"):
        rp.run(events, source="iceberg:test/q.events", sink=[], checkpoint_dir=state / "2")
    with pytest.raises(OutputError, match="it is the run's own source"):
        rp.run(events, source="iceberg:test/q.events@1", sink="iceberg:test/q.events")


@rp.record
class Visit:
    at: int
    labels: dict[str, str]
    sizes: dict[str, int] | None
    days: list[dt.date]


def test_maps_and_lists_go_there(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"at": 1, "labels": {"b": "2", "a": "1"}, "sizes": None, "days": [dt.date(2026, 1, 31)]},
        {"at": 2, "labels": {}, "sizes": {"a": 1}, "days": []},
    ]
    visits = rp.Pipeline("p").source("visits", Visit, time="at").sink("o")
    source = tmp_path / "in"
    source.mkdir()
    path = f"iceberg:{place(tmp_path)}"
    for number, row in enumerate(rows):
        rp.run(visits, source=[row], sink=str(source / f"{number}.jsonl"))
        rp.run(visits, source=f"files:{source}", sink=path, checkpoint_dir=str(tmp_path / "state"))
    found = table(place(tmp_path)).scan().to_arrow().sort_by("at").to_pylist()
    assert [[*row.values()] for row in found] == [
        [1, [("a", "1"), ("b", "2")], None, [dt.date(2026, 1, 31)]],
        [2, [], [("a", 1)], []],
    ]
