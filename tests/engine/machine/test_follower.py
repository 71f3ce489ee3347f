"""A partition of a later stage: accepted and rejected changes, and its errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.edges.senders import BehindError, GapError, SupersededError
from ripple.engine.machine import Engine, Snapshot, SnapshotError
from ripple.engine.machine.follower import Follower
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.snapshots.increment import applied
from ripple.model.pipeline.plan import Plan
from ripple.storage.checkpoint.format import decode, encode


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    size: int
    t: rp.Timestamp


def plan(key: Any = "venue", window: bool = False, **aggregates: Any) -> Plan:
    pipeline = (
        rp.Pipeline("p")
        .source("trades", Trade, time="t")
        .partition("first", key=("symbol", "venue"))
    )
    if window:
        pipeline = pipeline.window("w", rp.Tumbling(10), lateness=0)
    return (
        pipeline.fold("rows", size=rp.sum("size"))
        .partition("second", key=key, partitions=1 if key else None)
        .fold("x", **(aggregates or {"total": rp.sum("size"), "n": rp.count()}))
        .sink("o")
        .plan()
    )


PARTIAL, ROWS = plan(), plan(middle=rp.median("size"))
EVENTS = plan(window=True, middle=rp.median("size"))


class Reader:
    """A first-stage partition that is fed rows."""

    def __init__(self, of: Plan, partition: int = 0) -> None:
        self.engine = Engine(of, partition, staged=True)
        self.schema = pa.schema(arrow_fields(of.source.fields))

    def read(self, *rows: tuple[str, str, int, int]) -> EdgeChanges:
        names = ("symbol", "venue", "size", "t")
        batch = pa.RecordBatch.from_pylist(
            [dict(zip(names, row, strict=True)) for row in rows], self.schema
        )
        self.engine.apply("trades", batch, self.engine.cut["trades"] + len(rows))
        self.engine.stabilize()
        (changes,) = self.engine.outgoing()
        return changes


def stored(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it comes back from a checkpoint."""
    checkpoint, files = encode(snapshot, "name", 1, 0)
    return decode(checkpoint, {name: bytes(data) for name, data in files.items()})


def shown(follower: Follower) -> list[dict[str, Any]]:
    follower.stabilize()
    follower.check_invariants()
    return sorted(follower.table("o").to_pylist(), key=repr)


@pytest.mark.parametrize("of", [PARTIAL, ROWS], ids=["partial", "row"])
def test_changes_must_follow_what_is_here(of: Plan) -> None:
    reader, follower = Reader(of), Follower(of, 1, ["0"])
    first, second = reader.read(("a", "V", 1, 1)), reader.read(("b", "V", 2, 2))
    with pytest.raises(GapError, match=r"since .'trades': 1."):
        follower.follow("0", 0, second)
    assert follower.follow("0", 0, first)
    assert follower.follow("0", 0, second)
    assert not follower.follow("0", 0, second), "a repeat is no news"
    before = shown(follower)
    with pytest.raises(BehindError):
        follower.follow("0", 0, first)
    third = reader.read(("c", "V", 3, 3))
    with pytest.raises(GapError):
        follower.follow("0", 1, third)  # another owner, whose table is not here
    assert follower.follow("0", 1, reader.engine.table_for(0))
    with pytest.raises(SupersededError, match="epoch 0 is over"):
        follower.follow("0", 0, reader.read(("d", "V", 4, 4)))
    assert shown(follower) != before
    assert follower.cut == {"0/trades": 3}


@pytest.mark.parametrize("of", [PARTIAL, ROWS], ids=["partial", "row"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows.drop_columns(["op"]), "its rows are"),
        (lambda rows: pa.concat_batches([rows, rows]), "twice"),
        (lambda rows: rows.set_column(0, rows.schema.field(0), pa.nulls(1, pa.string())), "nulls"),
        (
            lambda rows: rows.set_column(
                rows.schema.get_field_index("op"),
                rows.schema.field("op"),
                pa.array([1], pa.int8()),
            ),
            "no operation 1",
        ),
    ],
    ids=["schema", "twice", "null", "operation"],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_changes(
    of: Plan, change: Any, why: str
) -> None:
    reader, follower = Reader(of), Follower(of, 1, ["0"])
    follower.follow("0", 0, reader.read(("a", "V", 1, 1)))
    before = shown(follower)
    good = reader.read(("a", "V", 2, 2))
    with pytest.raises(InputError, match=why):
        follower.follow("0", 0, replace(good, rows=change(good.rows)))
    assert shown(follower) == before
    assert follower.follow("0", 0, good)
    assert shown(follower) != before


def test_a_key_from_two_partitions_is_named_and_not_added_up() -> None:
    one, other, follower = Reader(ROWS), Reader(ROWS, 1), Follower(ROWS, 1, ["0", "1"])
    follower.follow("0", 0, one.read(("a", "V", 1, 1)))
    before = shown(follower)
    with pytest.raises(InputError, match=r"\('a', 'V'\) comes from two partitions, 0 and 1"):
        follower.follow("1", 0, other.read(("a", "V", 5, 1)))
    assert shown(follower) == before


def test_a_row_may_move_from_one_sender_to_another() -> None:
    one, other, follower = Reader(ROWS), Reader(ROWS, 1), Follower(ROWS, 1, ["0", "1"])
    follower.follow("0", 0, one.read(("a", "V", 1, 1)))
    follower.stabilize()
    gone = replace(one.engine.table_for(0), rows=one.engine.table_for(0).rows.slice(0, 0))
    follower.follow("0", 1, gone)
    follower.follow("1", 0, other.read(("a", "V", 5, 1)))
    assert shown(follower) == [{"venue": "V", "middle": 5.0}]


@pytest.mark.parametrize("of", [PARTIAL, ROWS, EVENTS], ids=["partial", "row", "event"])
def test_a_follower_is_restored_from_a_snapshot_and_what_changed_since(of: Plan) -> None:
    reader, follower = Reader(of), Follower(of, 1, ["0", "1"])
    other = Reader(of, 1)
    follower.follow("0", 7, reader.read(("a", "V", 1, 1), ("b", "W", 2, 2)))
    follower.follow("1", 3, other.read(("c", "V", 3, 3)))
    follower.stabilize()
    base = follower.snapshot()
    follower.follow("0", 7, reader.read(("a", "V", 5, 12), ("e", "U", 9, 31)))
    follower.follow("1", 3, other.read(("f", "V", 5, 40)))
    follower.stabilize()
    pending = follower.begin_snapshot(base.number)
    while not pending.step(1):
        pass
    later = applied(base, pending.finish())
    again = Follower.restore(of, stored(later))
    assert shown(again) == shown(follower)
    assert again.digests == follower.digests
    assert again.live_digests == follower.live_digests
    assert again.cut == follower.cut
    assert again.followed("0").epoch == 7
    more = reader.read(("a", "V", 1, 50))
    assert again.follow("0", 7, more)
    assert follower.follow("0", 7, more)
    assert shown(again) == shown(follower)


def test_retained_rows_are_stored_with_the_senders_state() -> None:
    of = plan(key="window_start_ns", window=True)
    reader = Reader(of)
    reader.read(("a", "V", 1, 1), ("b", "V", 2, 12), ("a", "V", 3, 25))
    again = Engine.restore(of, stored(reader.engine.snapshot()))
    table = reader.engine.table_for(0)
    assert table.rows.column("op").to_pylist() == [3, 3]
    assert again.table_for(0).rows.equals(table.rows)
    again.release(0, 10)
    assert again.table_for(0).rows.column("op").to_pylist() == [3]


def test_changes_of_another_stage_are_refused() -> None:
    reader, follower = Reader(PARTIAL), Follower(PARTIAL, 1, ["0"])
    follower.follow("0", 0, reader.read(("a", "V", 1, 1)))
    follower.stabilize()
    with pytest.raises(SnapshotError, match="stage 1"):
        Engine.restore(PARTIAL, follower.snapshot())
    with pytest.raises(SnapshotError, match="stage 0"):
        Follower.restore(PARTIAL, reader.engine.snapshot())
    with pytest.raises(InputError, match="2 stages"):
        Follower(PARTIAL, 2, ["0"])
    with pytest.raises(InputError, match="no sender 'x'"):
        follower.follow("x", 0, reader.read())
    with pytest.raises(InputError, match="no partition 1"):
        reader.engine.table_for(1)


def test_final_rows_are_told_and_leave_the_table() -> None:
    of = plan(key="window_start_ns", window=True)
    engine = Engine(of, finals=True)
    schema = pa.schema(arrow_fields(of.source.fields))
    rows = [{"symbol": "a", "venue": "V", "size": 1, "t": at} for at in (1, 2, 11, 25)]
    engine.apply("trades", pa.RecordBatch.from_pylist(rows, schema), 4)
    changes = engine.stabilize()
    assert changes.final["o"].to_pylist() == [
        {"window_start_ns": 0, "total": 2, "n": 1},
        {"window_start_ns": 10, "total": 1, "n": 1},
    ]
    assert engine.table("o").num_rows == 0
    assert engine.live_digests == {"o": f"{0:016x}"}
    assert engine.digests != engine.live_digests
