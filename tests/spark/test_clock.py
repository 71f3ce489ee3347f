"""Ticks of a clock on Spark: up to the cut of the run that counted them, or to a time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.core.events import Silences
from ripple.model.pipeline.file import load_plan
from ripple.spark.options import Bound
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Sources, sources_at
from ripple.spark.report import digests_of
from ripple.spark.run_cut import at_cut
from ripple.spark.streaming.resident import here
from ripple.storage.fenced.errors import DamagedError
from tests.patience import comes
from tests.spark.here import replayed
from tests.spark.logs import topic_of
from tests.spark.streams import stream_of, turns

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    t: rp.Timestamp

def beats(**idle):
    market = rp.Pipeline("market")
    trades = market.source("trades", Trade, time="t", out_of_order="1s", **idle)
    ticks = market.source("ticks", rp.Tick)
    told = trades.map("told", lambda trade: rp.Tick(trade.t), into=rp.Tick)
    both = rp.union("both", told.derive("a", n=rp.lit(1)), ticks.derive("b", n=rp.lit(0)))
    keyed = both.derive("total", key=rp.lit("all")).partition("by", key="key")
    return (keyed.window("w", rp.Tumbling("500ms"), lateness="5s")
        .fold("count", trades=rp.sum("n"), records=rp.count()).sink("out"))

pipeline = beats()
idle = beats(idle="100ms")
"""
SECOND = 1_000_000_000
TRADES = 150


def placed(folder: Path, name: str, since_ns: int) -> tuple[str, dict[str, str]]:
    """Return a pipeline's file, and its sources: trades of 3 s, and ticks of 50 ms."""
    file = folder / "clock_pipelines.py"
    file.write_text(SOURCE)
    place = f"{file}:{name}"
    rows = [
        {"symbol": f"S{at % 5}", "t": since_ns + at * 20_000_000 - at % 7 * 90_000_000}
        for at in range(TRADES)
    ]
    trades = topic_of(
        folder, load_plan(place), rows, partitions=2, key=("symbol",), source="trades"
    )
    return place, {"trades": trades, "ticks": f"clock:50ms,{since_ns}"}


def ran(file: str, source: dict[str, str], folder: Path) -> Any:
    """Return the report of a run that was stopped after 80 ticks and, with idle=, markers."""
    plan, stored = load_plan(file), list[Silences]()

    def note(event: Any) -> None:
        if isinstance(event, Silences) and event.recorded:
            stored.append(event)  # a second one comes once the first ones have counted

    async def act() -> Any:
        given: dict[str, Any] = {"sink": f"log:{folder}/run", "checkpoint_dir": folder / "state"}
        async with rp.Task(plan, source=source, follow=True, on_event=note, **given) as task:
            running = asyncio.create_task(task.run())
            await comes(
                lambda: (
                    running.done()
                    or (task.report.events > TRADES + 80 and (stored[1:] or not plan.is_idle))
                )
            )
            task.stop()
            return await running

    return asyncio.run(act())


def digest(file: str, sources: Sources) -> str:
    parcel = Parcel.of(file, lambda _: b"", has_markers=True)
    return replayed(parcel, parcel.plan(), replace(sources, is_open=True), closes=False)[0].digest


@pytest.mark.parametrize("name", ["pipeline", "idle"])
def test_a_replay_reads_the_ticks_of_a_run_up_to_its_cut(tmp_path: Path, name: str) -> None:
    file, source = placed(tmp_path, name, time.time_ns() - 5 * SECOND)
    report, plan, state = ran(file, source, tmp_path), load_plan(file), str(tmp_path / "state")
    markers = state if name == "idle" else None
    sources = sources_at(source, plan, cut=state, markers=markers)
    assert sources.rows == report.events > TRADES + 80
    assert digest(file, sources) == report.digest
    ticks = rp.clock("ticks", every="50ms", since=int(source["ticks"].partition(",")[2]))
    given: Any = {**source, "ticks": ticks}
    assert digest(file, sources_at(given, plan, cut=state, markers=markers)) == report.digest

    other = {**source, "ticks": source["ticks"].replace("50ms", "49ms")}
    with pytest.raises(InputError, match="clock 'ticks': the run has read ticks every 50000000"):
        sources_at(other, plan, cut=state, markers=markers)
    one = {**source, "trades": f"{source['trades']}/1"}
    with pytest.raises(InputError, match=r"trades/0.*, and the source has .*: name the source as"):
        sources_at(one, plan, cut=state, markers=markers)
    with pytest.raises(InputError, match=r"is the end of the range: give no other \(--to\)"):
        sources_at(source, plan, cut=state, stop=Bound(time_ns=5))
    if markers is not None:
        with pytest.raises(InputError, match=r"were not given: give --markers DIR"):
            sources_at(source, plan, cut=state)
        of_another_run = sources.with_shares(
            lambda one: replace(
                one, marks=tuple(mark._replace(offset=mark.offset + 1) for mark in one.marks)
            )
        )
        with pytest.raises(
            InputError, match=r"other markers than those of the run of .*: give --ma"
        ):
            at_cut(of_another_run, state, plan)
    for entry in (tmp_path / "state").rglob("manifest/*"):
        entry.write_bytes(b"damaged")
    with pytest.raises(
        DamagedError, match=r": ripple checkpoint verify says .*, or end the replay"
    ):
        at_cut(sources, state, plan)


def test_a_time_ends_ticks_and_without_an_end_they_are_refused(tmp_path: Path) -> None:
    since_ns = 1_000 * SECOND
    file, source = placed(tmp_path, "pipeline", since_ns)
    plan = load_plan(file)
    for first_ns, end_ns, ticks in ((0, 60_000_001, 2), (-1, 100_000_000, 2), (50_000_000, 1, 0)):
        bounds = {
            name: Bound.parse(f"{since_ns + at_ns}ns", name)
            for name, at_ns in (("start", first_ns), ("stop", end_ns))
        }
        share = sources_at(source, plan, **bounds).each[1].shares[0]
        assert share.rows == ticks
        found = [entry.records.num_rows for entry in share.entries(plan)]  # type: ignore[union-attr]
        assert sum(found) == ticks
    with pytest.raises(InputError, match=r"'ticks': clock:50ms,\d+ has more .*: end it with --to"):
        sources_at(source, plan)
    with pytest.raises(InputError, match="has no checkpoints of pipeline 'market'"):
        sources_at(source, plan, cut=str(tmp_path))


def test_micro_batches_of_ticks_equal_a_replay(tmp_path: Path) -> None:
    file, source = placed(tmp_path, "pipeline", time.time_ns() - 5 * SECOND)
    stream = stream_of(file, str(tmp_path), 1, source=source)
    plan = stream.parcel.plan()
    for turn in turns(stream, 3):
        report = turn.run()
        here().drop(turn)  # another process resumes from the store
        sources = sources_at(source, plan, cut=stream.store)
        assert {share.name: share.end for share in sources.shares} == report["cut"]
        assert digests_of(plan, [report])[1] == digest(file, sources)
    assert report["cut"]["ticks"] > 80
