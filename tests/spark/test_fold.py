"""What tasks make of shares, put together, is what one engine makes of everything."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.model.pipeline.plan import Plan
from ripple.spark import packet_output, packets
from ripple.spark.log_table import open_topic
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.storage.log import PartitionReader
from tests.engine.machine.stage_plans import PLANS, Trade, trades
from tests.spark.here import replayed
from tests.spark.logs import topic_of, whole_engine


def parcel_of(plan: Plan) -> Parcel:
    return Parcel.of(plan, lambda plan: b"")


class Held(Parcel):
    """A parcel of what cannot be pickled, for one process."""


@pytest.fixture(autouse=True)
def _no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    by_hash = {plan.topology_hash: plan for plan in PLANS.values()}
    monkeypatch.setattr(Parcel, "plan", lambda self: by_hash[self.topology_hash])


def shares_of(place: str) -> list[pa.RecordBatch]:
    topic, _ = open_topic(place)
    found = []
    for partition in range(topic.partitions):
        with PartitionReader(topic, partition) as reader:
            found.append(pa.concat_batches([entry.records for entry in reader.read()]))
    return found


@pytest.mark.parametrize("key", [("symbol",), ()])
@pytest.mark.parametrize("name", [name for name, plan in PLANS.items() if plan.is_chain])
def test_shares_together_show_what_one_engine_shows(
    name: str, key: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_output, "BATCHES_BETWEEN_SENDS", 2)
    monkeypatch.setattr(packet_output, "BATCH_ROWS", 16)
    monkeypatch.setattr(packets, "BODY_ROWS_MAX", 5)
    plan = PLANS[name]
    events = trades(Random(name), 80)
    place = topic_of(tmp_path, plan, events, partitions=2, key=key)
    report, rows, letters = replayed(parcel_of(plan), plan, sources_at(place, plan))
    whole = whole_engine(plan, shares_of(place))
    assert report.digests == whole.digests
    assert report.digest == whole.digest
    assert report.counters["consumed"] == 80
    assert not letters
    for output in plan.outputs:
        assert len(rows[output.name]) == report.rows[output.name]
        if not plan.frees(plan.fold(output.of)):
            expected = sorted(whole.table(output.name).to_pylist(), key=repr)
            assert rows[output.name] == expected


def branched() -> Plan:
    """Return a plan that shows events, and folds them by two keys with a field in common."""
    start = rp.Pipeline("branched").source("trades", Trade, time="t", out_of_order=3)
    some = start.filter("some", rp.col("size") > 1)
    by_symbol = start.partition("by-symbol", key="symbol").window("w", rp.Tumbling(10))
    by_both = some.partition("by-both", key=("venue", "symbol"))
    return (
        some.sink("events")
        .also(by_symbol.fold("bars", n=rp.count()).sink("bars-out"))
        .also(by_both.fold("last", price=rp.last("price")).sink("last-out"))
        .plan()
    )


def test_shares_of_branches_show_each_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = branched()
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    place = topic_of(tmp_path, plan, trades(Random(3), 80), partitions=2, key=("symbol",))
    parcel = Parcel.of(plan, lambda plan: b"")
    report, rows, _ = replayed(parcel, plan, sources_at(place, plan))
    shares = shares_of(place)
    assert report.digests == whole_engine(plan, shares).digests
    expected = [row for share in shares for row in share.to_pylist() if row["size"] > 1]
    assert rows["events"] == sorted(expected, key=repr)
    assert report.rows["events"] == len(expected) > 10
    assert rows["last-out"]


def test_keys_end_alike_whichever_input_ends_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = rp.Pipeline("ending").source("trades", Trade, time="t", out_of_order=3)
    plan = start.partition("p", key="symbol").fold("f", n=rp.count(), ttl="40ns").sink("out").plan()
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    events = trades(Random(4), 80)
    for late in events[40::2]:  # the first of two inputs ends early
        late["t"] = events[38]["t"]
    place = topic_of(tmp_path, plan, events, partitions=2)
    report, rows, _ = replayed(Parcel.of(plan, lambda plan: b""), plan, sources_at(place, plan))
    whole = whole_engine(plan, shares_of(place))
    ends = [int(np.asarray(share.column("t")).max()) for share in shares_of(place)]
    assert abs(ends[0] - ends[1]) > 40
    assert report.digests == whole.digests
    assert 0 < len(rows["out"]) < len({one["symbol"] for one in events})


def further() -> Plan:
    """Return a plan with a fold by another key over one of events, which begins a stage."""
    start = rp.Pipeline("further").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    last = start.partition("by-symbol", key="symbol").fold("last", size=rp.count())
    sizes = last.partition("by-size", key="size").fold("sizes", n=rp.count())
    return start.sink("events").also(sizes.sink("last-out")).plan()


@pytest.mark.parametrize(
    ("plan", "key", "why"),
    [
        (branched(), (), "by nothing"),
        (further(), ("symbol",), "sizes divides rows of last anew"),
    ],
)
def test_branches_whose_records_must_come_together_are_read_by_one_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: Plan, key: tuple[str, ...], why: str
) -> None:
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    place = topic_of(tmp_path, plan, trades(Random(3), 80), partitions=2, key=key)
    sources = sources_at(place, plan)
    parcel = Parcel.of(plan, lambda plan: b"")
    report, rows, _ = replayed(parcel, plan, sources)
    assert why in str(sources.together_why(plan))
    assert len(report.partitions) == 1
    whole = whole_engine(plan, shares_of(place))
    assert report.digests == whole.digests
    assert len(rows["last-out"]) == whole.table("last-out").num_rows
    assert sources_at(f"{place}/0", plan).together_why(plan) is None


def test_letters_of_a_folder_name_its_files(tmp_path: Path) -> None:
    plan = next(plan for plan in PLANS.values() if plan.is_chain)
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("nonsense\n")
    _, _, letters = replayed(parcel_of(plan), plan, sources_at(str(tmp_path), plan))
    assert [(one["file"], one["line_number"]) for one in letters] == [
        (f"{tmp_path}/a.csv", 1),
        (f"{tmp_path}/b.csv", 1),
    ]
