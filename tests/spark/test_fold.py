"""What tasks make of shares, put together, is what one engine makes of everything."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from ripple.model.pipeline.plan import Plan
from ripple.spark import packet_output, packets
from ripple.spark.log_table import open_topic
from ripple.spark.parcel import Parcel
from ripple.spark.shares import source_at
from ripple.storage.log import PartitionReader
from tests.engine.machine.stage_plans import PLANS, trades
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
@pytest.mark.parametrize("name", PLANS)
def test_shares_together_show_what_one_engine_shows(
    name: str, key: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packet_output, "BATCHES_BETWEEN_SENDS", 2)
    monkeypatch.setattr(packet_output, "BATCH_ROWS", 16)
    monkeypatch.setattr(packets, "BODY_ROWS_MAX", 5)
    plan = PLANS[name]
    events = trades(Random(name), 80)
    place = topic_of(tmp_path, plan, events, partitions=2, key=key)
    report, rows, letters = replayed(parcel_of(plan), plan, source_at(place, plan))
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
