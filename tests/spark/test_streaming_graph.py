"""Micro-batches of several sources equal a replay at the same cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ripple.core.errors import InputError
from ripple.spark.portions import Sources, sources_at
from ripple.spark.report import digests_of
from ripple.spark.streaming.resident import here
from ripple.spark.streaming.stream import Stream
from tests.spark.graph_places import OUTPUTS, Place
from tests.spark.here import replayed
from tests.spark.streams import stream_of, turns

WAYS = [
    ("market", (4, 2), 2),
    ("near", (2, 2), 1),
    ("near", (2, 2), 2),
    ("asof", (1, 1), 1),
    ("once_of_both", (2, 2), 2),
    ("joined", (2, 4), 1),
    ("eager", (2, 2), 1),
    ("eager", (2, 2), 2),
]


def streamed(place: Place, partitions: int) -> Stream:
    sinks = {name: f"log:{place.folder}/out-streamed/{name}" for name in OUTPUTS}
    return stream_of(
        place.file, str(place.folder), partitions, source=place.whole, sinks=sinks, batch_rows=20
    )


def at_cut(stream: Stream, cut: dict[str, int]) -> Sources:
    """Return the shares of a stream's sources up to a cut, at which windows stay open."""
    found = sources_at(dict(stream.sources), stream.parcel.plan())
    each = tuple(
        replace(one, shares=tuple(replace(share, end=cut[share.name]) for share in one.shares))
        for one in found.each
    )
    return Sources(each, is_open=stream.partitions == 1)


@pytest.mark.parametrize(("name", "counts", "partitions"), WAYS)
def test_each_micro_batch_of_several_sources_equals_a_replay(
    name: str, counts: tuple[int, ...], partitions: int, tmp_path: Path
) -> None:
    place = Place(tmp_path, name, counts)
    stream = streamed(place, partitions)
    plan, last = stream.parcel.plan(), dict[int, dict[str, Any]]()
    batches = list(turns(stream, 3))
    for number, turn in enumerate(batches, 1):
        last[turn.partition] = turn.run()
        if number <= partitions:
            here().drop(turn)  # another process resumes from the store
        if number % partitions:
            continue
        cut = {name: at for one in last.values() for name, at in one["cut"].items()}
        expected, rows, _ = replayed(stream.parcel, plan, at_cut(stream, cut), closes=False)
        assert digests_of(plan, last.values())[1] == expected.digest
        assert sorted(place.shown("streamed"), key=repr) == rows["events"]
    assert rows["events"]
    for turn in turns(stream, 1):
        assert turn.run()["events"] == 0
        here().drop(turn)


def test_sources_that_cannot_be_streamed_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "near", (4, 2))
    with pytest.raises(InputError, match="read in 2 partitions, which cannot be divided among 3"):
        streamed(place, 3)
    trades = place.whole["trades"]
    with pytest.raises(InputError, match="source 'quotes' is not given"):
        stream_of(place.file, str(tmp_path), 1, source={"trades": trades})
    with pytest.raises(InputError, match="give each, as in"):
        stream_of(place.file, str(tmp_path), 1, source=trades)
    (tmp_path / "other").mkdir()
    other = Place(tmp_path / "other", "venues", (2, 2))
    with pytest.raises(InputError, match="by partition: the sides of venues have other names"):
        streamed(other, 2)
