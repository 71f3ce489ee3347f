"""Replays with recorded answers: no call is made, and rows without an answer wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import InputError, PlanError
from ripple.model.pipeline.file import load_plan
from ripple.spark.options import Bound
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Sources, sources_at
from ripple.spark.report import Report
from ripple.task.asks import answer_log
from tests.patience import comes
from tests.spark.here import replayed
from tests.spark.logs import append, topic_of

SOURCE = """
import asyncio
from itertools import count

import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    t: rp.Timestamp

@rp.record(version=1)
class Rating:
    grade: int

calls = count()

async def rate(trade):
    number = next(calls)
    await asyncio.sleep(number * 7 % 5 / 1000)
    if number % 23 == 5:
        raise ConnectionError
    return Rating(number)  # another answer to each call

def asked(name, function=rate):
    trades = rp.Pipeline("rated").source("trades", Trade, time="t", out_of_order=4)
    return trades.ask(name, function, into=Rating, retries=0, concurrency=5)

def graded(rows):
    keyed = rows.partition("by", key="symbol")
    return (rows.sink("events").also(keyed.fold("sums", n=rp.sum("grade")).sink("sums-out"))
        .also(keyed.window("w", rp.Tumbling(20), lateness=6)
            .fold("bars", n=rp.count(), last=rp.last("grade")).sink("bars-out")))

async def never(trade):
    raise SystemExit("a replay calls nobody")

pipeline = graded(asked("rating"))
unable = graded(asked("rating", never))
renamed = graded(asked("other"))
"""


def trades(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {"symbol": f"S{at % 5}", "size": at, "t": max(0, at - at % 3 * 4)}
        for at in range(first, first + count)
    ]


def placed(folder: Path) -> tuple[str, str]:
    """Return a pipeline's file, and a topic of two partitions."""
    (folder / "ask_pipelines.py").write_text(SOURCE)
    file = f"{folder}/ask_pipelines.py:pipeline"
    place = topic_of(folder, load_plan(file), trades(0, 150), partitions=2, key=("symbol",))
    return file, place


def ran(file: str, place: str, folder: Path, answers: int) -> Any:
    """Return the report of a run that was stopped once so many answers counted."""
    cut: dict[str, int] = {}

    async def act() -> Any:
        plan = load_plan(file)
        sinks = {output.name: f"log:{folder}/run/{output.name}" for output in plan.outputs}
        given: dict[str, Any] = {
            "checkpoint_dir": folder / "state",
            "batch_rows": 20,
            "on_batch": lambda engine, _: cut.update(engine.cut),
        }
        async with rp.Task(plan, source=place, sink=sinks, follow=True, **given) as task:
            running = asyncio.create_task(task.run())
            await comes(lambda: running.done() or cut.get("ripple.answers/0", 0) >= answers)
            task.stop()
            return await running

    return asyncio.run(act())


def replayed_in_one(file: str, sources: Sources, *, closes: bool = False) -> Report:
    parcel = Parcel.of(file, lambda _: b"", has_answers=True)
    return replayed(parcel, parcel.plan(), replace(sources, is_open=not closes), closes=closes)[0]


@pytest.mark.parametrize("segment_bytes", [1 << 24, 2_000])
def test_a_replay_has_the_answers_of_the_run_and_makes_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int
) -> None:
    monkeypatch.setattr(answer_log, "SEGMENT_BYTES", segment_bytes)
    file, place = placed(tmp_path)
    state, unable = str(tmp_path / "state"), file.replace(":pipeline", ":unable")
    plan = load_plan(unable)
    for answers in (40, 120):
        report = ran(file, place, tmp_path, answers)
        sources = sources_at(place, plan, answers=state, cut=state)
        (portion,) = sources.portions(plan)
        assert len(portion.shares) == 2
        found = replayed_in_one(unable, sources)
        assert found.digest == report.digest
        assert found.cut == report.cut
        assert found.uncomputable == {
            name: one.count for name, one in report.uncomputable.items() if one.count
        }
    has_segments = any((tmp_path / "state/rated/00000/answers").glob("*.segment"))
    assert has_segments == (segment_bytes < 10_000)
    append(place, file, trades(150, 40))
    more = replayed_in_one(unable, sources_at(place, plan, answers=state), closes=True)
    assert more.counters["consumed"] == 190
    assert more.unanswered == 190 - more.cut["ripple.answers/0"] >= 40
    assert "rows, to which no answer is recorded" in more.text()
    fewer = replayed_in_one(unable, sources_at(place, plan, answers=state, stop=Bound(offset=9)))
    assert (fewer.counters["consumed"], fewer.unanswered) == (18, 0)


def test_answers_that_are_not_there_are_refused_in_one_line(tmp_path: Path) -> None:
    file, place = placed(tmp_path)
    state = tmp_path / "state"
    with pytest.raises(PlanError, match=r"'rating' asks, and Spark calls nobody: .*\(--answers D"):
        Parcel.of(file, lambda _: b"")
    with pytest.raises(InputError, match="there is no folder"):
        sources_at(place, load_plan(file), answers=str(state))
    state.mkdir()
    with pytest.raises(InputError, match="has no checkpoints of pipeline 'rated'"):
        sources_at(place, load_plan(file), answers=str(state))
    ran(file, place, tmp_path, 60)
    renamed = load_plan(file.replace(":pipeline", ":renamed"))
    with pytest.raises(InputError, match="has no answers to 'other' as this pipeline asks it"):
        sources_at(place, renamed, answers=str(state))
    with pytest.raises(InputError, match=r"records of 'trades/0', .* name the source as the run"):
        sources_at(f"{place}/1", load_plan(file), answers=str(state))


def test_answers_of_another_run_are_refused(tmp_path: Path) -> None:
    file, place = placed(tmp_path)
    plan = load_plan(file)
    for name, answers in (("fewer", 20), ("more", 120)):
        (tmp_path / name).mkdir()
        ran(file, place, tmp_path / name, answers)
    fewer, more = (str(tmp_path / name / "state") for name in ("fewer", "more"))
    with pytest.raises(InputError, match=r"more/state has counted other answers than .*fewer/sta"):
        sources_at(place, plan, answers=fewer, cut=more)


def test_a_cut_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    file, place = placed(tmp_path)
    ran(file, place, tmp_path, 20)
    state = tmp_path / "state"
    max((state / "rated/00000/manifest").iterdir()).unlink()
    with pytest.raises(InputError, match="has no readable checkpoint of pipeline 'rated': name"):
        sources_at(place, load_plan(file), answers=str(state), cut=str(state))


def test_a_missing_segment_is_told_before_the_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_log, "SEGMENT_BYTES", 2_000)
    file, place = placed(tmp_path)
    for answers in (40, 120):
        ran(file, place, tmp_path, answers)
    state = tmp_path / "state"
    segment = min((state / "rated/00000/answers").glob("*.segment"))
    segment.unlink()
    with pytest.raises(InputError, match=f"{segment.name} is missing. Restore that object"):
        sources_at(place, load_plan(file), answers=str(state))
