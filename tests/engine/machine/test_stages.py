"""A pipeline spread over partitions equals one process, under losses, delays and restarts."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.edges.sent_rows import SentRows
from ripple.model.pipeline.stages import EdgeKind
from ripple.model.pipeline.topology import stages_of
from tests.engine.machine.stage_plans import KINDS, PLANS, source, trades
from tests.engine.machine.staged import Reader, Receiver, Spread, sorted_rows, whole_run
from tests.examples import EXAMPLES, SAMPLED, THINNED


@pytest.mark.parametrize("name", PLANS)
def test_edges_are_of_the_kinds_that_are_tried_here(name: str) -> None:
    kinds = [stage.edge.kind for stage in stages_of(PLANS[name]) if stage.edge is not None]
    assert kinds == KINDS.get(name, [EdgeKind.PARTIAL])


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize("name", PLANS)
def test_partitions_together_show_what_one_process_shows(name: str, partitions: int) -> None:
    random = Random(name)
    spread = Spread(PLANS[name], trades(random, 120), partitions, random)
    spread.finish()
    assert spread.digests() == whole_run(PLANS[name], spread.shares).digests


def test_parts_of_wide_sums_are_added() -> None:
    wide = rp.sum(rp.col("size").cast(rp.Decimal(38, 2)) * 10**16)
    plan = source().partition("p2", key=()).fold("x", wide=wide).sink("last").plan()
    assert [one.edge.kind for one in stages_of(plan) if one.edge is not None] == [EdgeKind.PARTIAL]
    random = Random("wide")
    spread = Spread(plan, trades(random, 120), 4, random)
    spread.finish()
    assert spread.digests() == whole_run(plan, spread.shares).digests


@pytest.mark.parametrize("seed", range(2 * EXAMPLES // THINNED))
@pytest.mark.parametrize("name", PLANS)
def test_losses_delays_and_restarts_change_nothing(name: str, seed: int) -> None:
    random = Random(f"{name}/{seed}")
    events = trades(random, 60)
    partitions = random.choice([1, 2, 4])
    spread = Spread(PLANS[name], events, partitions, random)
    for _ in range(200):
        spread.step()
    spread.finish()
    quiet = Spread(PLANS[name], events, partitions, Random(0))
    quiet.finish()
    assert spread.digests() == quiet.digests()


def _untold(self: SentRows, slots: Any, to: Any) -> Any:
    self._sent[slots] = to
    return to


def test_rows_that_their_old_partition_keeps_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SentRows, "_withdraw", _untold)
    plan = PLANS["rows-by-value"]
    for seed in range(1000):
        random = Random(seed)
        spread = Spread(plan, trades(random, 60), 4, random)
        for _ in range(60):
            spread.step()
        spread.finish()
        if spread.digests() != whole_run(plan, spread.shares).digests:
            return
    pytest.fail("no seed finds it")


@pytest.mark.parametrize(
    "name", [name for name in PLANS if EdgeKind.EVENT not in KINDS.get(name, [])]
)
def test_receiver_begun_with_tables_equals_one_that_followed_changes(name: str) -> None:
    random = Random(f"{name}/join")
    spread = Spread(PLANS[name], trades(random, 80), 3, random)
    spread.skipped = spread.skips = 0.0
    for _ in range(10 * EXAMPLES // SAMPLED):
        for number, reader in enumerate(spread.nodes[0]):
            reader.read(random.choice([0, 1, 3]))
            spread.settle(0, number)
        for stage in range(1, len(spread.nodes)):
            for number, receiver in enumerate(spread.nodes[stage]):
                joiner = Receiver(spread.plan, stage, number, receiver.senders).engine
                for way in spread.ways_to(stage, number):
                    while spread.on_way.get(way):
                        spread.deliver(way)
                    sender = spread.nodes[spread.before(stage)][way[1]]
                    table = sender.engine.sending(stage).table_for(number)
                    joiner.follow(sender.name, sender.epoch, table)
                spread.settle(stage, number)
                joiner.stabilize()
                assert joiner.cut == receiver.engine.cut
                assert joiner.digests == receiver.engine.digests
                for output in joiner.digests:
                    assert sorted_rows(joiner.table(output)) == sorted_rows(
                        receiver.engine.table(output)
                    )


@pytest.mark.parametrize("name", ["one-total", "rows-by-value", "rows-of-windows", "three"])
def test_a_target_that_takes_nothing_gets_each_row_once(name: str) -> None:
    """What it missed is in one batch, which makes of its copy what each change would have."""
    random = Random(f"{name}/slow")
    spread = Spread(PLANS[name], trades(random, 80), 1, random)
    (reader,), count = spread.nodes[0], len(spread.nodes[1])
    twin = Reader(spread.plan, 0, reader.events)
    slow = [Receiver(spread.plan, 1, n, ["0"]).engine for n in range(count)]
    steady = [Receiver(spread.plan, 1, n, ["0"]).engine for n in range(count)]
    for at in range(12):
        for one in (reader, twin):
            one.read(5)
            one.engine.stabilize()
        turns = {at % count} if at < 11 else set(range(count))
        for target, changes in reader.engine.outgoing_to(turns).items():
            assert reader.engine.given_to(target) == changes.cut
            names = changes.rows.schema.names
            keys = changes.rows.select(names[: names.index("op")]).to_pylist()
            assert len({repr(key) for key in keys}) == len(keys)
            slow[target].follow("0", 1, changes)
        for target, changes in enumerate(twin.engine.outgoing()):
            steady[target].follow("0", 1, changes)
    for one, other in zip(slow, steady, strict=True):
        one.stabilize()
        other.stabilize()
        assert one.cut == other.cut
        assert one.digests == other.digests


def test_removed_rows_without_a_taker_do_not_accumulate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ripple.engine.edges.outgoing.GONE_ROWS_MIN", 10)
    spread = Spread(PLANS["rows-of-windows"], [], 1, Random(0))
    (reader,) = spread.nodes[0]
    follower = Receiver(spread.plan, 1, 0, ["0"]).engine
    for at in range(60):
        trade = {"symbol": "A", "venue": "A", "price": 1.0, "size": 1, "t": at * 10}
        rows = pa.RecordBatch.from_pylist([trade], reader.schema)
        reader.engine.apply("0", rows, at + 1)
        reader.engine.stabilize()
        for target in range(3):
            reader.engine.release(target, reader.engine.watermark_ns)
        if at == 30:
            assert reader.engine.given_to(0) is None
    kept = reader.engine._outgoing[1]._table
    assert max(kept.gone_rows(target) for target in range(3)) <= 11
    for target in range(3):
        (table,) = reader.engine.outgoing_to([target]).values()
        assert table.since is None or table.rows.num_rows == 0
    follower.follow("0", 1, reader.engine.table_for(0))
    assert follower.followed("0").cut == reader.engine.cut


@pytest.mark.parametrize("name", ["windows", "windows-by-venue", "rows-of-windows"])
def test_windows_that_are_over_leave_nothing_behind(name: str) -> None:
    random = Random(name)
    spread = Spread(PLANS[name], trades(random, 80), 3, random)
    spread.finish()
    retained = [reader.engine.snapshot().retained[1].num_rows for reader in spread.nodes[0]]
    assert sum(retained) > 0, "what nobody has released is kept"
    for number in range(len(spread.nodes[1])):
        spread.save(1, number)
    for nodes in spread.nodes:
        for node in nodes:
            snapshot = node.engine.snapshot()
            assert sum(table.num_rows for table in snapshot.tables.values()) == 0
            assert all(rows.num_rows == 0 for rows in snapshot.retained.values())


def test_final_rows_leave_the_copy_of_an_event_edge_and_stay_in_their_groups() -> None:
    plan, random = PLANS["events"], Random("events")
    spread = Spread(plan, trades(random, 80), 3, random)
    spread.finish()
    folds = {fold.name: fold.node_key for fold in plan.folds}
    groups = 0
    for receiver in spread.nodes[1]:
        tables = receiver.engine.snapshot().tables
        assert tables[folds["rows"]].num_rows == 0
        groups += tables[folds["x"]].num_rows
    assert groups == 3
