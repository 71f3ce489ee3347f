"""Several sources in portions: the results of tasks equal those of one process."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.dead_letter import DeadLetters
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.model.pipeline.plan import Plan
from ripple.model.window import watermark
from ripple.spark.backfill.live import Live
from ripple.spark.marks import Mark
from ripple.spark.merge import entries_in_time
from ripple.spark.options import Bound, absolute
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Sources, sources_at
from ripple.spark.shares import _files
from ripple.task.drive import Drive
from ripple.task.one_shot import at_once
from ripple.task.one_shot_run import open_sources, plain_life
from tests.engine.machine.several import WAYS, pipeline_of, quoted
from tests.engine.machine.stage_plans import Trade, trades
from tests.spark.graph_places import Place
from tests.spark.here import replayed
from tests.spark.logs import topic_of


def market(key: str | tuple[str, ...] = "symbol") -> Plan:
    """Return a plan of two sources: events, a windowed fold of both, and a fold of one."""
    start = rp.Pipeline("market")
    left = start.source("trades", Trade, time="t", out_of_order=3)
    right = start.source("quotes", Trade, time="t", out_of_order=9)
    both = rp.union("both", left, right.filter("some", rp.col("size") > 1))
    keyed = both.partition("by", key=key)
    bars = keyed.window("w", rp.Tumbling(10), lateness=2).fold(
        "bars", n=rp.count(), vwap=rp.vwap("price", "size"), last=rp.last("price")
    )
    last = right.partition("by-quote", key=("venue", "symbol")).fold("seen", n=rp.count())
    return both.sink("events").also(bars.sink("bars-out")).also(last.sink("seen-out")).plan()


def in_process(plan: Plan, places: dict[str, Any]) -> Any:
    """Return the engine of a run over whole sources in this process."""
    inputs = open_sources(plan, places, 7)
    life = plain_life(plan, inputs, {}, DeadLetters, batch_rows=7)
    at_once(life.run())
    return life.engine


def replay(plan: Plan, places: Any, monkeypatch: pytest.MonkeyPatch, **how: Any) -> Any:
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    parcel = Parcel.of(plan, lambda plan: b"")
    return replayed(parcel, plan, sources_at(places, plan, **how))


def topics(
    folder: Path, plan: Plan, counts: tuple[int, int], key: tuple[str, ...] = ("symbol",)
) -> dict[str, str]:
    return {
        name: topic_of(
            folder, plan, trades(Random(name), 90), partitions=count, key=key, source=name
        )
        for name, count in zip(("trades", "quotes"), counts, strict=True)
    }


@pytest.mark.parametrize(
    ("counts", "key", "why"),
    [
        ((4, 2), ("symbol",), None),
        ((3, 3), ("symbol",), None),
        ((1, 1), ("symbol",), None),
        ((4, 3), ("symbol",), "no number but 1 divides"),
        ((2, 2), ("venue",), "are divided by venue, and bars needs all of one symbol"),
        ((2, 2), (), "of trades are divided by nothing, and bars needs all of one symbol"),
    ],
)
def test_portions_of_two_sources_show_what_one_process_shows(
    counts: tuple[int, int],
    key: tuple[str, ...],
    why: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = market()
    places = topics(tmp_path, plan, counts, key)
    report, rows, letters = replay(plan, places, monkeypatch)
    whole = in_process(plan, places)
    assert report.digests == whole.digests
    assert report.digest == whole.digest
    assert report.counters == whole.counters.as_dict()
    assert report.counters["very_late"] or report.counters["mildly_late"]
    assert report.cut == dict(whole.cut)
    together_why = sources_at(places, plan).together_why(plan)
    assert (together_why is None) == (why is None)
    assert (why or "None") in str(together_why)
    assert len(report.partitions) == (min(counts) if why is None else 1)
    assert not letters
    assert len(rows["events"]) == report.rows["events"] > 90
    assert rows["seen-out"] == sorted(whole.table("seen-out").to_pylist(), key=repr)


@pytest.mark.parametrize("way", WAYS)
def test_three_sources_show_what_one_process_shows(
    way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, chance = pipeline_of([way]).plan(), Random(way.__name__)
    places = {}
    for source in plan.sources:
        made = [
            {
                "symbol": chance.choice("AB"),
                "price": chance.choice([None, 0.1, 2.5]),
                "size": chance.choice([1, 2, 3, 7]),
                "venue": None,
                "timestamp_ns": at * 4 + chance.randrange(-30, 30),
            }
            for at in range(70)
        ]
        if source.name == "quotes":
            made = [quoted(one) for one in made]
        places[source.name] = topic_of(
            tmp_path, plan, made, partitions=chance.choice([1, 2]), source=source.name
        )
    report, _, letters = replay(plan, places, monkeypatch)
    whole = in_process(plan, places)
    assert report.digests == whole.digests
    assert report.counters == whole.counters.as_dict()
    assert len(letters) == report.counters["dead_lettered"]


def turned(trade: Any) -> dict[str, Any]:
    """Return a trade with a key of another partition."""
    return {
        "symbol": trade.venue or "",
        "venue": trade.symbol,
        "price": trade.price,
        "size": trade.size,
        "t": trade.t,
    }


@pytest.mark.parametrize("more", [False, True])
def test_a_map_before_a_fold_may_make_other_keys(
    more: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = rp.Pipeline("p")
    trade = start.source("trades", Trade, time="t")
    mapped = trade.map("m", turned, into=Trade)
    quote = start.source("quotes", Trade, time="t") if more else None
    rows = mapped if quote is None else rp.union("both", mapped, quote)
    out = rows.partition("by", key="symbol").fold("n", n=rp.count()).sink("out")
    plan = trade.sink("events").also(out).plan()
    places = topics(tmp_path, market(), (2, 2))
    given = {source.name: places[source.name] for source in plan.sources}
    assert sources_at(given, plan).together_why(plan) == "m may make other keys"
    report, _, _ = replay(plan, given, monkeypatch)
    assert report.digests == in_process(plan, given).digests


def test_a_map_before_a_sink_alone_divides_nothing_anew(tmp_path: Path) -> None:
    start = rp.Pipeline("p")
    trade = start.source("trades", Trade, time="t")
    mapped = trade.map("m", turned, into=Trade).sink("events")
    plan = (
        trade.partition("by", key="symbol").fold("n", n=rp.count()).sink("out").also(mapped).plan()
    )
    sources = sources_at(topics(tmp_path, market(), (2, 2))["trades"], plan)
    assert sources.together_why(plan) is None
    assert len(sources.portions(plan)) == 2


@pytest.mark.parametrize("has_branches", [False, True])
def test_a_log_that_is_divided_by_other_fields_than_the_pipeline_says_is_read_right(
    has_branches: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade = rp.Pipeline("p").source("trades", Trade, time="t", key="symbol")
    out = trade.partition("by", key="symbol").fold("n", n=rp.count()).sink("out")
    plan = (out.also(trade.sink("events")) if has_branches else out).plan()
    made = [{**one, "venue": f"v{at % 7}"} for at, one in enumerate(trades(Random(1), 90))]
    place = topic_of(tmp_path, plan, made, partitions=3, key=("venue",), source="trades")
    sources = sources_at(place, plan)
    why = sources.together_why(plan) if has_branches else sources.divided_anew(plan)
    assert f"{place.partition(':')[2]} is partitioned by venue, but the pipeline says that " in str(
        why
    )
    report, _, _ = replay(plan, place, monkeypatch)
    assert report.digests == in_process(plan, {"trades": place}).digests
    with pytest.raises(InputError, match="into one partition only, since "):
        Live.at(place, plan, 40, 3)


def test_a_record_in_the_partition_of_another_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = market()
    places = topics(tmp_path, plan, (2, 2))
    wrong = topic_of(tmp_path / "w", plan, trades(Random(1), 90), partitions=2, source="quotes")
    sources = sources_at({**places, "quotes": wrong}, plan)
    declared = sources.each[0], type(sources.each[1])(
        "quotes", wrong, sources.each[1].shares, ("symbol",)
    )  # fmt: skip
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    parcel = Parcel.of(plan, lambda plan: b"")
    with pytest.raises(InputError, match=r"partition 0 of the input, and Kafka's partitioner"):
        replayed(parcel, plan, type(sources)(declared))


def test_the_input_with_the_lowest_watermark_is_read_next(tmp_path: Path) -> None:
    plan = market()

    def at(time: int) -> dict[str, Any]:
        return {"symbol": "A", "venue": "X", "price": 1.0, "size": 2, "t": time}

    places = {
        "trades": topic_of(
            tmp_path, plan, [at(t) for t in range(600)], partitions=1, source="trades"
        ),
        "quotes": topic_of(
            tmp_path, plan, [at(t) for t in range(200, 400)], partitions=1, source="quotes"
        ),
    }
    shares = sources_at(places, plan).shares
    engine = Engine(plan, 0, tuple(share.name for share in shares), finals=True)
    drive, open_windows, order = Drive(engine), [], []
    for name, entry in entries_in_time(plan, shares, engine, 10, closes=True):
        drive.apply(name, entry)
        drive.stabilize()
        open_windows.append(engine.table("bars-out").num_rows)
        order.append(name)
    assert order[:20] == ["trades", "quotes", *["trades"] * 18]
    assert order[-20:] == ["trades"] * 20
    # Quotes that have ended hold no window of trades.
    assert max(open_windows) < 10
    assert engine.watermarks_ns["quotes"] == watermark.END


def test_sources_that_do_not_fit_are_refused_in_one_line(tmp_path: Path) -> None:
    plan = market()
    places = topics(tmp_path, plan, (2, 2))
    with pytest.raises(InputError, match=r"give each, as in source=\{'trades': \.\.\."):
        sources_at(places["trades"], plan)
    with pytest.raises(InputError, match="source 'quotes' is not given"):
        sources_at({"trades": places["trades"]}, plan)
    with pytest.raises(InputError, match="there is no source 'bids': the pipeline reads trades"):
        sources_at({**places, "bids": places["trades"]}, plan)
    same = {"trades": places["trades"], "quotes": f"{places['trades']}/1"}
    with pytest.raises(InputError, match="'trades' and 'quotes' read the same records, of log:"):
        sources_at(same, plan)
    (tmp_path / "x.csv").touch()
    file = str(tmp_path / "x.csv")
    with pytest.raises(InputError, match="'trades' and 'quotes' read the same records, of "):
        sources_at({"trades": file, "quotes": f"csv:{file}"}, plan)
    ticks: Any = rp.clock("quotes", every="1s", since=0)
    with pytest.raises(InputError, match=r"source 'quotes': the records of clock:.* are rp\.Tick"):
        sources_at({**places, "quotes": ticks}, plan)
    with pytest.raises(InputError, match=r"a log or a topic, .* not ClockInputs$"):
        Live.at({**places, "quotes": ticks}, plan, 40)
    for empty in (tmp_path / "none", tmp_path / "none/nested"):
        empty.mkdir()
    for place in (f"{tmp_path}/none", f"parquet:{tmp_path}/none/nested", f"{tmp_path}/none/*.csv"):
        with pytest.raises(InputError, match=r"there are no files at "):
            sources_at({**places, "quotes": place}, plan)
    with pytest.raises(InputError, match="range of the sources trades, quotes begins and ends at"):
        sources_at(places, plan, start=Bound.parse("3", ""))
    with pytest.raises(InputError, match=f"{file} cannot be searched by time: "):
        sources_at({**places, "quotes": file}, plan, stop=Bound.parse("2024-01-01", ""))


def test_a_range_of_several_sources_is_one_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = market()
    places = topics(tmp_path, plan, (2, 2))
    report, _, _ = replay(plan, places, monkeypatch, stop=Bound(time_ns=40))
    assert set(report.cut) == {"trades/0", "trades/1", "quotes/0", "quotes/1"}
    assert 0 < report.counters["consumed"] < 180


AT_ONCE = ("eager", "at_once", "scanned", "lasts")
JOINS = [
    ("asof", (4, 2)),
    ("eager", (4, 2)),
    ("at_once", (4, 2)),
    ("near", (2, 2)),
    ("later", (2, 3)),
    ("once", (2,)),
    ("booked", (2,)),
    ("many", (2, 2)),
    ("scanned", (4, 2)),
    ("lasts", (4, 2)),
]


@pytest.mark.parametrize(("name", "partitions"), JOINS)
def test_joins_in_partitions_show_what_one_process_shows(
    name: str, partitions: tuple[int, ...], tmp_path: Path
) -> None:
    place = Place(tmp_path, name, partitions)
    plan, parcel = place.plan, Parcel.of(place.file, lambda plan: b"")
    sources = sources_at(place.whole, plan)
    whole = in_process(plan, place.whole)
    is_divided = name != "many" and partitions != (2, 3)
    assert len(sources.portions(plan)) == (2 if is_divided else 1)
    report, rows, _ = replayed(parcel, plan, sources)
    assert report.digests == whole.digests
    assert report.counters == whole.counters.as_dict()
    assert all(rows[output.name] for output in plan.outputs)
    still = replace(sources, is_open=True)
    assert len(still.portions(plan)) == (2 if name in AT_ONCE else 1)
    begun, _, _ = replayed(parcel, plan, still, closes=False)
    live = place.run(place.whole, "state")
    assert begun.digests == live.digests


@pytest.mark.parametrize("more", [False, True])
def test_final_rows_are_those_of_one_process(
    more: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = rp.Pipeline("market")
    trade = start.source("trades", Trade, time="t", out_of_order=3)
    both = rp.union("both", trade, start.source("quotes", Trade, time="t")) if more else trade
    keyed = both.partition("by", key="symbol").window("w", rp.Tumbling(10), lateness=2)
    final = keyed.fold("bars", n=rp.count()).finals("final")
    hours = final.partition("again", key="symbol").window("h", rp.Tumbling(40))
    fold = hours.fold("hours", n=rp.sum("n"), last=rp.last("n"))
    plan = final.sink("final-out").also(fold.sink("hours-out")).plan()
    given: Any = {
        source.name: topic_of(
            tmp_path, plan, trades(Random(1), 90), partitions=4, key=("symbol",), source=source.name
        )
        for source in plan.sources
    }
    report, rows, _ = replay(plan, given, monkeypatch)

    sources = sources_at(given, plan)
    assert (sources.together_why(plan), len(sources.portions(plan))) == (None, 4)
    still = replace(sources, is_open=True)
    assert "rows of final follow by the watermark of all" in str(still.together_why(plan))
    assert len(still.portions(plan)) == 1
    assert report.digests == in_process(plan, given).digests
    assert rows["final-out"]
    assert rows["hours-out"]


def uneven(sources: Sources) -> Sources:
    """Return the sources at an open cut with unevenly read partitions."""
    each = tuple(
        replace(
            one,
            shares=tuple(
                replace(share, end=share.end // (1 + 2 * (share.number % 2)))
                for share in one.shares
                if share.end is not None
            ),
        )
        for one in sources.each
    )
    return Sources(each, is_open=True)


@pytest.mark.parametrize(
    ("name", "partitions"), [("market", (4, 2)), ("united", (2, 2)), ("joined", (2, 4))]
)
def test_open_windows_of_partitions_read_unevenly_are_those_of_one_process(
    name: str, partitions: tuple[int, ...], tmp_path: Path
) -> None:
    place = Place(tmp_path, name, partitions)
    plan, parcel = place.plan, Parcel.of(place.file, lambda plan: b"")
    sources = uneven(sources_at(place.whole, plan))
    assert "end by the watermark of all inputs" in str(sources.together_why(plan))
    report, _, _ = replayed(parcel, plan, sources, closes=False)
    assert report.digests == at_cut(plan, sources).digests
    apart, _, _ = replayed(parcel, plan, replace(sources, is_open=False), closes=False)
    assert apart.digests != report.digests, "each partition ends windows by its own watermark"


@pytest.mark.parametrize("window", [rp.Tumbling(20), rp.Session(3)])
def test_open_windows_of_a_chain_are_those_of_one_process(
    window: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3)
    keyed = trade.partition("by", key="symbol")

    def plan_of(**how: Any) -> Plan:
        rows = keyed.window("w", window, lateness=2, **how).fold("bars", n=rp.count())
        return rows.partition("all", key=()).fold("total", n=rp.sum("n")).sink("out").plan()

    plan = plan_of()
    place = topic_of(
        tmp_path, plan, trades(Random(2), 90), partitions=3, key=("symbol",), source="trades"
    )
    sources = uneven(sources_at(place, plan))
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    parcel = Parcel.of(plan, lambda plan: b"")
    report, _, _ = replayed(parcel, plan, sources, closes=False)
    assert report.digests == at_cut(plan, sources).digests
    assert sources.divided_anew(plan) == "the windows of bars end by the watermark of all inputs"
    assert sources.divided_anew(plan_of(trigger=rp.OnEveryElement())) is None
    partial = plan_of(trigger=rp.OnCount(2))
    with pytest.raises(InputError, match="partial results by OnCount or OnInterval cannot be"):
        replayed(parcel, partial, sources, closes=False)


@pytest.mark.parametrize("key", [("symbol",), ()])
def test_open_windows_of_a_chain_end_by_the_markers_of_idle_inputs_as_in_one_process(
    key: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, idle="1s")
    keyed = trade.partition("by", key="symbol").window("w", rp.Tumbling(20), lateness=2)
    rows = keyed.fold("bars", n=rp.count())
    plan = rows.partition("all", key=()).fold("total", n=rp.sum("n")).sink("out").plan()
    place = topic_of(tmp_path, plan, trades(Random(2), 90), partitions=3, key=key, source="trades")
    (one,) = sources_at(place, plan).each
    ends = (30, 2, 12)  # of which the first is far ahead, and the last holds windows back
    shares = [replace(share, end=end) for share, end in zip(one.shares, ends, strict=True)]
    bare = Sources((replace(one, shares=tuple(shares)),), is_open=True)
    first, second, third = at_cut(plan, bare).watermarks_ns.values()
    assert second < third < first
    shares[0] = replace(shares[0], marks=(Mark(10, first - 40, 1),))
    shares[1] = replace(shares[1], marks=(Mark(2, third, 2),))
    sources = replace(bare, each=(replace(one, shares=tuple(shares)),))

    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    report, _, _ = replayed(
        Parcel.of(plan, lambda plan: b"", has_markers=True), plan, sources, closes=False
    )
    whole = at_cut(plan, sources)
    assert report.digests == whole.digests != at_cut(plan, bare).digests
    assert report.counters == whole.counters.as_dict() != at_cut(plan, bare).counters.as_dict()
    assert sources.divided_anew(plan)
    if key:  # as a cluster's partitions ended windows
        assert replace(sources, are_apart=True).divided_anew(plan) is None


def at_cut(plan: Plan, sources: Sources) -> Engine:
    """Return the engine of one process, waiting at the ends of shares."""
    engine = Engine(plan, 0, tuple(share.name for share in sources.shares), finals=True)
    drive = Drive(engine)
    for name, entry in entries_in_time(plan, sources.shares, engine, 50):
        drive.apply(name, entry)
        drive.stabilize()
    return engine


def test_addresses_of_buckets_are_no_paths_of_this_machine() -> None:
    assert absolute("csv:s3://bucket/x.csv", "source") == "csv:s3://bucket/x.csv"
    assert absolute("parquet:s3://bucket/out", "continued_sink") == "parquet:s3://bucket/out"
    assert absolute("csv:x.csv", "source") == f"csv:{os.getcwd()}/x.csv"
    assert _files("csv:s3://bucket/x.csv?header") == ["csv:s3://bucket/x.csv?header"]
