"""Micro-batches over an input that falls silent: its markers are recorded, and read again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.input_names import markers_of
from ripple.spark.marks import counted
from ripple.spark.portions import Sources, sources_at
from ripple.spark.report import digests_of
from ripple.spark.streaming.resident import here
from ripple.spark.streaming.stream import Stream
from ripple.spark.streaming.turn import BEAT, Turn
from ripple.spark.streaming.turn import turns as turns_of
from tests.patience import until
from tests.spark.here import replayed
from tests.spark.logs import append, topic_of
from tests.spark.streams import nobody, stream_of, turns

PIPELINE = f"{Path(__file__).parents[1]}/services/pipeline_idle.py:pipeline"


def ticks(count: int) -> list[dict[str, Any]]:
    """Return trades of the last two seconds, so that markers by the clock are after them."""
    began_ns = time.time_ns() - 2_000_000_000
    return [
        {"symbol": "A", "size": at, "timestamp_ns": began_ns + at * 2_000_000_000 // count}
        for at in range(count)
    ]


def replay_at(place: str, stream: Stream, cut: dict[str, int]) -> tuple[str, dict[str, int]]:
    """Return the digest of a replay at a cut, with the markers that count there, and its rows."""
    plan = stream.parcel.plan()
    (only,) = sources_at(place, plan, markers=stream.store).each
    shares = tuple(replace(one, end=cut[one.name]) for one in counted(only.shares, cut))
    sources = Sources((replace(only, shares=shares),), is_open=True)
    report, _, _ = replayed(stream.parcel, plan, sources, closes=False)
    return report.digest, dict(report.rows)


def visited(turn: Turn, marked: int) -> dict[str, Any]:
    """Visit a partition, as beats do, until it has read more markers; return its last report."""
    found = dict[str, Any]()

    def is_marked() -> bool:
        found.update(turn.run())
        return bool(found["cut"].get(markers_of(0), 0) > marked)

    until(is_marked)
    return found


def test_markers_of_micro_batches_are_read_by_other_processes_and_replays(tmp_path: Path) -> None:
    plan = load_plan(PIPELINE)
    place = topic_of(tmp_path, plan, [], partitions=2, key=("symbol",))
    sinks = {"sizes-out": f"log:{tmp_path}/out/sizes"}
    stream = stream_of(PIPELINE, str(tmp_path), 1, sinks=sinks)
    marked = 0
    for _ in range(3):
        append(place, PIPELINE, ticks(50))  # to one partition: the other one stays silent
        (turn,) = turns(stream, 1)
        marked = visited(turn, marked)["cut"][markers_of(0)]
        here().drop(turn)  # another process resumes from the store
        report = turn.run()
        here().drop(turn)
        assert report["cut"][markers_of(0)] >= marked
        digest, rows = replay_at(place, stream, report["cut"])
        assert digests_of(plan, [report])[1] == digest
        assert rows["sizes-out"] > 0
    with pytest.raises(InputError, match="were not given: give --markers DIR"):
        sources_at(place, plan, cut=stream.store)


def test_a_beat_visits_partitions_in_silence(tmp_path: Path) -> None:
    place = topic_of(tmp_path, load_plan(PIPELINE), ticks(50), partitions=2)
    sinks = {"sizes-out": f"log:{tmp_path}/out/sizes"}
    stream = stream_of(PIPELINE, str(tmp_path), 1, source=place, sinks=sinks)
    assert stream.beat_ns == 10_000_000_000
    hints: Any = SimpleNamespace(known={}, hint_receiver=nobody(stream))
    end = {"trades/0": 25, "trades/1": 25}
    assert not turns_of(stream, hints, {**end, BEAT: 1}, {**end, BEAT: 1})
    (turn,) = turns_of(stream, hints, {**end, BEAT: 1}, {**end, BEAT: 2})
    assert turn.stop == end
