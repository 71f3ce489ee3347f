"""What an engine is fed, whoever brings it: pieces, killers, refusals."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

import ripple as rp
from ripple.model.batch import Batch, Marker, Rejected
from ripple.task.dead_letters.suspicion import Range
from ripple.task.drive import Drive


@rp.record(version=1)
class Tick:
    symbol: str
    size: int


def refuse(row: Tick) -> Tick:
    if row.size == 7:
        raise ValueError("seven")
    return row


PLAN = (
    rp.Pipeline("p")
    .source("ticks", Tick)
    .map("checked", refuse, into=Tick)
    .partition("by", key="symbol")
    .fold("f", n=rp.count(), total=rp.sum("size"))
    .sink("out")
).plan()
BATCH = Batch(
    pa.record_batch({"symbol": ["a", "b", "a", "a"], "size": [1, 7, 3, 9]}),
    5,
    (Rejected(2, None, "too few fields", b"x"),),
)


class Suspected:
    """The record at 4 is a killer; the others are looked at one by one."""

    def quarantined(self, name: str) -> Mapping[int, str]:
        return {4: "it kills"} if name == "ticks" else {}

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        return [Range(name, at, at + 1) for at in range(first_offset, next_offset)]


def accounts(rejected: list[Rejected]) -> list[tuple[int, str]]:
    return sorted((bad.offset, bad.cause) for bad in rejected)


def test_refused_records_are_told_with_their_offset_and_step() -> None:
    drive = Drive(rp.Engine(PLAN))
    rejected = drive.apply("ticks", BATCH)
    seven = "checked: ValueError: seven"
    assert accounts(rejected) == [(1, seven), (2, "too few fields")]
    (bad,) = (one for one in rejected if one.step == "checked")
    assert bad.raw == b'{"symbol": "b", "size": 7}'
    assert drive.stabilize().cut == {"ticks": 5}


def test_pieces_of_suspects_are_applied_one_by_one_and_change_nothing() -> None:
    whole = Drive(rp.Engine(PLAN))
    rejected = whole.apply("ticks", Batch(BATCH.records.slice(0, 3), 4, BATCH.rejected))
    whole.stabilize()
    drive = Drive(rp.Engine(PLAN), Suspected())
    apart, parts = drive.parts("ticks", BATCH)
    assert [piece.first_offset for piece, _ in parts] == [0, 1, 2, 3, 4]
    for piece, part in parts:
        apart += drive.apply_part("ticks", part)
        assert drive.engine.cut == {"ticks": piece.next_offset}
    drive.stabilize()
    assert accounts(apart) == [*accounts(rejected), (4, "quarantine: it kills")]
    assert drive.engine.digest == whole.engine.digest
    counters = drive.engine.counters
    assert counters.consumed == counters.applied + counters.dead_lettered == 5
    at_once = Drive(rp.Engine(PLAN), Suspected())
    assert accounts(at_once.apply("ticks", BATCH)) == accounts(apart)


def test_marker_moves_the_cut_and_is_refused_by_nobody() -> None:
    drive = Drive(rp.Engine(PLAN))
    assert drive.apply("ticks", Marker(10, 1)) == []
    assert drive.close().cut == {"ticks": 1}
