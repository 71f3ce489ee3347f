"""Tables from topics in one-shot and durable runs: crashes, and histories that were compacted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import decide
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.schema.columns import records_of
from ripple.storage.log import PartitionWriter, Topic
from ripple.testing import CrashScenario, cluster_test, crash_test, explore
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED


@rp.record(version=1)
class Item:
    id: int
    group: str
    price: float = rp.field(gt=0)
    gone: bool


@rp.record(version=1)
class Sale:
    id: int
    n: int
    timestamp_ns: rp.Timestamp


def items(**options: Any) -> rp.Pipeline:
    table = rp.Pipeline("shop").table("items", Item, **{"key": "id", "deleted": "gone", **options})
    groups = table.sink("rows").partition("by-group", key="group")
    return groups.fold("groups", n=rp.count(), most=rp.arg_max("price", "id")).sink("groups-out")


def change(number: int) -> dict[str, Any]:
    row = {"id": number * 7 % 5, "group": "ab"[number % 2], "price": number % 4 + 0.5}
    return {**row, "gone": number % 3 == 0}


def test_a_table_and_a_fold_over_it_do_not_tell_of_a_crash_all_over_a_run() -> None:
    changes = [change(number) for number in range(24)]
    report = crash_test(
        items(), changes, seeds=range(4 * EXAMPLES // THINNED), pairs=1, every=SCATTERED
    )
    assert report.lives > report.runs > 10


def test_a_table_of_two_inputs_survives_random_faults() -> None:
    both = [(f"items/{number * 7 % 5 % 2}", change(number)) for number in range(24)]
    explore(
        CrashScenario(items(), both, inputs=["items/0", "items/1"]),
        seeds=range(8 * EXAMPLES // SAMPLED),
    )


def test_a_cluster_of_two_stages_shows_the_same_table_whatever_happens() -> None:
    cluster_test(items(), [change(number) for number in range(60)], seeds=range(EXAMPLES))


def test_folds_over_a_table_in_branches_have_stages_of_their_own_on_a_cluster() -> None:
    table = rp.Pipeline("shop").table("items", Item, key="id", deleted="gone")
    groups = table.partition("by-group", key="group").fold("groups", most=rp.arg_max("price", "id"))
    total = table.partition("all", key=()).fold("total", n=rp.count(), price=rp.sum("price"))
    whole = table.sink("rows").also(groups.sink("groups-out")).also(total.sink("total-out"))
    cluster_test(whole, [change(number) for number in range(60)], seeds=range(EXAMPLES))


def test_a_table_and_a_stream_are_read_side_by_side_on_a_cluster() -> None:
    shop = rp.Pipeline("shop")
    table = shop.table("items", Item, key="id", deleted="gone").sink("rows")
    sales = shop.source("sales", Sale, key="id").partition("by-id", key="id")
    sold = sales.window("w", rp.Tumbling(10)).fold("sold", n=rp.sum("n")).sink("sold-out")
    sale = [{"id": at % 4, "n": at, "timestamp_ns": at} for at in range(50)]
    pairs = [[("items", change(at)), ("sales", one)] for at, one in enumerate(sale)]
    cluster_test(table.also(sold), [one for pair in pairs for one in pair], seeds=range(EXAMPLES))


@rp.record(version=1)
class Sold:
    sale: int
    item: int | None
    timestamp_ns: rp.Timestamp


def test_rows_that_name_those_of_a_table_meet_in_one_partition_of_a_cluster() -> None:
    shop = rp.Pipeline("shop")
    items = shop.table("items", Item, key="id", deleted="gone")
    newest = shop.source("sales", Sold).partition("by-sale", key="sale")
    sold = newest.fold("newest", item=rp.last("item"), n=rp.count())
    named = sold.join("named", items, left_on="item", right_on="id", how="left").sink("rows")
    total = named.partition("all", key=()).fold("total", price=rp.sum("price"))
    sales = [{"sale": at % 7, "item": at % 6 or None, "timestamp_ns": at} for at in range(50)]
    pairs = [[("items/0", change(at)), ("sales/0", one)] for at, one in enumerate(sales)]
    cluster_test(
        total.sink("total-out"),
        [one for pair in pairs for one in pair],
        inputs=["items/0", "sales/0"],
        seeds=range(EXAMPLES),
    )


@rp.record(version=1)
class Wanted:
    sale: int
    group: str | None
    timestamp_ns: rp.Timestamp


def test_pairs_of_rows_meet_in_one_partition_of_a_cluster() -> None:
    shop = rp.Pipeline("shop")
    items = shop.table("items", Item, key="id", deleted="gone")
    newest = shop.source("sales", Wanted).partition("by-sale", key="sale")
    wanted = newest.fold("wanted", n=rp.count(), group=rp.last("group"))
    pairs = wanted.join("pairs", items, on="group").sink("rows")
    total = pairs.partition("all", key=()).fold("total", pairs=rp.count(), price=rp.sum("price"))
    sales = [
        {"sale": at % 7, "group": [None, "a", "b"][at % 3], "timestamp_ns": at} for at in range(50)
    ]
    both = [[("items/0", change(at)), ("sales/0", one)] for at, one in enumerate(sales)]
    cluster_test(
        total.sink("total-out"),
        [one for pair in both for one in pair],
        inputs=["items/0", "sales/0"],
        seeds=range(EXAMPLES),
    )


@rp.record(version=1)
class Timed:
    id: int
    price: float = rp.field(gt=0)
    gone: bool
    at: int


def timed() -> rp.Pipeline:
    table = rp.Pipeline("timed").table(
        "items", Timed, key="id", deleted="gone", time="at", out_of_order=2, ttl=8
    )
    versions = table.versions("versions")
    bars = versions.partition("by-id", key="id").window("w", rp.Tumbling(10), lateness=3)
    whole = bars.fold("bars", n=rp.count(), last=rp.last("gone")).sink("bars-out")
    return table.sink("rows").also(versions.sink("versions-out")).also(whole)


def versions(count: int) -> list[dict[str, Any]]:
    """Return changes of which some times go back, and of which a deletion may have none."""
    found = []
    for number in range(1, count + 1):
        at = None if number % 6 == 0 else number - (number % 5 == 0) * 6
        row = {"id": number * 7 % 5, "price": number % 4 + 0.5, "at": at}
        found.append({**row, "gone": number % 3 == 0})
    return found


def test_a_table_and_its_versions_do_not_tell_of_a_crash_all_over_a_run() -> None:
    report = crash_test(
        timed(), versions(30), seeds=range(4 * EXAMPLES // THINNED), pairs=1, every=SCATTERED
    )
    assert report.lives > report.runs > 10


def test_a_cluster_has_the_versions_of_a_table_beside_its_rows() -> None:
    cluster_test(timed(), versions(60), seeds=range(EXAMPLES))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_are_set_and_removed_by_their_keys(tmp_path: Path) -> None:
    given = [
        {"id": 1, "group": "a", "price": 1.0, "gone": False},
        {"id": 2, "group": "a", "price": 3.0, "gone": False},
        {"id": 2, "gone": True},
        {"id": 1, "group": "b", "price": 1.0, "gone": False},
    ]
    sinks = {"rows": tmp_path / "rows.jsonl", "groups-out": tmp_path / "groups.jsonl"}
    report = rp.run(items(), source=given, sink=sinks, batch_rows=1)
    assert (report.consumed, report.rejected) == (4, {})
    first, second = ({"op": "set", **row} for row in given[:2])
    for row in (first, second):
        del row["gone"]
    assert lines(sinks["rows"]) == [
        first,
        second,
        {"op": "remove", "id": 2, "group": None, "price": None},
        {**first, "group": "b"},
    ]
    groups = lines(sinks["groups-out"])
    assert {"op": "set", "group": "b", "n": 1, "most": 1} in groups[-2:]
    assert {"op": "remove", "group": "a", "n": None, "most": None} in groups[-2:]


@rp.record(version=1)
class Row:
    id: int
    group: str | None = None
    price: float | None = None


@pytest.mark.parametrize("batch_rows", [1, 3])
def test_a_log_of_an_outputs_changes_is_that_output_again(tmp_path: Path, batch_rows: int) -> None:
    """A removed row is a deletion, though its record is a row of nulls."""
    given = [change(number) for number in range(24)]
    log, out = f"log:{tmp_path}/rows", tmp_path / "again.jsonl"
    rp.run(items(), source=given, sink={"rows": log}, batch_rows=1)
    again = rp.Pipeline("again").table("rows", Row, key="id").sink("again")
    run: dict[str, Any] = {"source": log, "sink": out, "batch_rows": batch_rows}
    rp.run(again, checkpoint_dir=tmp_path / "state", **run)
    newest = {one["id"]: one for one in given}
    rows = {one["id"]: one for one in lines(out)}
    there = {one["id"] for one in newest.values() if not one["gone"]}
    assert {one["id"] for one in rows.values() if one["op"] == "set"} == there
    assert len(there) < len(newest)
    assert all(rows[at]["price"] == newest[at]["price"] for at in there)


def test_envelopes_without_record_keys_and_transforms_are_refused(tmp_path: Path) -> None:
    table = rp.Pipeline("cdc").table("items", Item, key="id", format="debezium").sink("out")
    (tmp_path / "items.jsonl").write_text("{}\n")
    for source in (tmp_path / "items.jsonl", [{"op": "c"}]):
        with pytest.raises(
            InputError, match="'items' is of Debezium's envelopes, which name their"
        ):
            rp.run(table, source=source, sink={"out": tmp_path / "out.csv"})
    with pytest.raises(InputError, match="'items' through transforms, which take no deletions"):
        rp.run(items(), source=f"through:t.toml,{tmp_path}/items.jsonl", sink={})


def filled(folder: Path, rows: list[dict[str, Any]]) -> None:
    fields = items().plan().source.schema
    topic = Topic.create(LiveDisk(str(folder)), "log/items", fields)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(records_of(rows, fields.fields))
        writer.sync()


def test_a_run_that_cannot_reach_its_digest_again_names_compaction(tmp_path: Path) -> None:
    log, state = tmp_path / "log", tmp_path / "state"
    rows = [{**change(1), "id": 99}, *(change(number) for number in range(12))]
    filled(tmp_path, rows)
    given = {
        "source": f"log:{log}/items",
        "sink": {"rows": tmp_path / "rows.jsonl", "groups-out": tmp_path / "groups.jsonl"},
        "checkpoint_dir": state,
    }
    rp.run(items(), **given)
    shutil.rmtree(state)
    shutil.rmtree(log)
    filled(tmp_path, [rows[1], *rows[1:]])  # as if the first record had been compacted away
    with pytest.raises(SnapshotError, match="If the topic of 'items' is compacted, records before"):
        rp.run(items(), **given)
    with pytest.raises(SnapshotError, match=r"or say --rebuild items\.newest \(to ripple run\)"):
        rp.run(items(), **given)
    rp.run(items(), **given, rebuild=["items.newest"])
    shown: dict[int, Any] = {}
    for row in lines(given["sink"]["rows"]):
        shown[row["id"]] = row.pop("op") == "set" and row
    newest = {row["id"]: row for row in rows[1:]}
    assert {at for at, row in shown.items() if row} == {
        at for at, row in newest.items() if not row["gone"]
    }


def test_a_table_that_is_built_again_may_differ_from_what_was_shown() -> None:
    """As where a checkpoint is older than an output, and records between were compacted away."""
    plan = items().plan()
    snapshot = Engine(plan).snapshot()
    assert decide(plan, snapshot).kept_outputs == ("rows", "groups-out")
    assert decide(plan, snapshot, ["groups"]).kept_outputs == ("rows",)
    assert decide(plan, snapshot, ["items.newest"]).kept_outputs == ()
