"""Pipelines with branches in one-shot and durable runs, crashed and changed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.connector import Use
from ripple.connectors.locate import check_takes
from ripple.connectors.registry import own
from ripple.core.errors import OutputError, PlanError
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.migration.evolution import Verdict, compare
from ripple.engine.operators.stream_rows import StreamRows
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.canonical import digest_of
from ripple.model.pipeline.builder import Pipeline
from ripple.spark.parcel import Parcel
from ripple.storage.log import Topic
from ripple.storage.store import DiskStore
from ripple.task.dead_letters.log import letters_in
from ripple.task.settings import Settings
from ripple.testing import CrashScenario, crash_test, explore
from ripple.world.live_disk import LiveDisk
from tests.csv_rows import text_of
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED
from tests.task.scenarios import events


def halves(tick: Any) -> list[dict[str, Any]]:
    """Make two rows of a tick with a price, none of others, and fail for one kind."""
    if tick.symbol == "C" and tick.size == 3:
        raise ValueError("no such tick was expected")
    one = {"symbol": tick.symbol, "size": tick.size, "venue": None, "price": tick.price}
    times = 0 if tick.price is None else 2
    return [{**one, "timestamp_ns": tick.timestamp_ns + half} for half in range(times)]


def branched() -> Pipeline:
    """Return a tap, a branch with a window, one of several rows a record, and a fold of a fold."""
    ticks = Pipeline("test").source("ticks", Tick, out_of_order=10)
    named = ticks.derive("named", place=rp.col("venue").fill_null("none")).sink("all")
    keyed = named.partition("by-symbol", key="symbol")
    window = keyed.window("w", rp.Tumbling(40), lateness=20)
    fold = window.fold("bars", n=rp.count(), size=rp.sum("size"))
    total = fold.partition("total", key=()).fold("sum", n=rp.sum("n")).sink("sum-out")
    made = ticks.flat_map("halves", halves, into=Tick).filter("some", rp.col("size") > 1)
    last = made.partition("by-size", key="size").fold("last", at=rp.last("timestamp_ns"))
    branches = (fold.sink("bars-out"), total, made.sink("halves-out"), last.sink("last-out"))
    whole = named
    for branch in branches:
        whole = whole.also(branch)
    return whole


def test_outputs_of_branches_do_not_tell_of_a_crash_all_over_a_run() -> None:
    report = crash_test(
        branched(), events(9), seeds=range(4 * EXAMPLES // THINNED), pairs=1, every=SCATTERED
    )
    assert report.lives > report.runs > 10


def test_branches_of_two_inputs_survive_random_faults() -> None:
    both = [(("a", "b")[at % 2], one) for at, one in enumerate(events(12, 3)) if type(one) is dict]
    scenario = CrashScenario(branched(), both, inputs=["a", "b"])
    explore(scenario, seeds=range(8 * EXAMPLES // SAMPLED))


def rows(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "symbol": "AB"[at % 2],
            "price": float(at),
            "size": at % 3 + 1,
            "venue": None,
            "timestamp_ns": at * 10,
        }
        for at in range(first, first + count)
    ]


def tick(row: dict[str, Any]) -> str:
    return f"{row['symbol']},{row['price']},{row['size']},,{row['timestamp_ns']}\n"


def test_a_one_shot_run_writes_events_and_folds(tmp_path: Path) -> None:
    start = Pipeline("p").source("ticks", Tick)
    large = start.filter("large", rp.col("size") > 1).sink("events")
    pipeline = large.also(start.partition("by", key="symbol").fold("f", n=rp.count()).sink("n"))
    sink = {name: str(tmp_path / f"{name}.csv") for name in ("events", "n")}
    report = rp.run(pipeline, source=rows(9), sink=sink)

    kept = [row for row in rows(9) if row["size"] > 1]
    assert text_of(tmp_path / "events.csv") == "".join(map(tick, kept))
    assert text_of(tmp_path / "n.csv") == "A,5\nB,4\n"
    assert report.rows_out == len(kept) + 2


@pytest.fixture
def log(tmp_path: Path) -> Topic:
    schema = Pipeline("p").source("ticks", Tick).sink("x").plan().source.schema
    return Topic.create(LiveDisk(str(tmp_path)), "log/ticks", schema)


def append(log: Topic, given: list[dict[str, Any]]) -> None:
    from ripple.model.schema.columns import records_of
    from ripple.storage.log import PartitionWriter
    from ripple.world.live import LiveClock

    writer = PartitionWriter(log, 0, LiveClock())
    writer.append(records_of(given, log.schema.fields))
    writer.sync()
    writer.close()


class Place:
    """A folder with a log, checkpoints and outputs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, pipeline: Pipeline, *names: str, **more: Any) -> Any:
        return rp.run(
            pipeline,
            source=f"log:{self.path}/log/ticks",
            sink={name: str(self.path / f"{name}.csv") for name in names},
            checkpoint_dir=str(self.path / "store"),
            batch_rows=4,
            **more,
        )

    def read(self, name: str) -> str:
        return text_of(self.path / f"{name}.csv")


@rp.record
class Cheap:
    symbol: str
    price: float = rp.field(lt=3.0)
    size: int
    timestamp_ns: rp.Timestamp


def source() -> Pipeline:
    return Pipeline("p").source("ticks", Tick)


def counted(start: Pipeline) -> Pipeline:
    return start.partition("by", key="symbol").fold("f", n=rp.count()).sink("n")


def test_a_durable_run_goes_on_with_each_event_once(log: Topic, tmp_path: Path) -> None:
    place = Place(tmp_path)
    start = source()
    pipeline = start.sink("events").also(counted(start))
    append(log, rows(9))
    place.run(pipeline, "events", "n")
    append(log, rows(6, 9))
    place.run(pipeline, "events", "n")

    assert place.read("events") == "".join(map(tick, rows(15)))
    assert place.read("n").endswith("A,8\nB,7\n")


def test_a_replay_holds_no_more_events_than_it_applies_at_once(
    log: Topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, held = Place(tmp_path), []
    append(log, rows(30))
    place.run(source().sink("events"), "events")
    before, take = place.read("events"), StreamRows.take

    def taken(stream: StreamRows) -> Any:
        found = take(stream)
        held.append(found.num_rows)
        return found

    monkeypatch.setattr(StreamRows, "take", taken)
    monkeypatch.setattr(Settings, "rows_per_replay_step", lambda *_: 4)
    shutil.rmtree(tmp_path / "store")
    place.run(source().sink("events"), "events")
    assert (sum(held), max(held)) == (30, 4)
    assert place.read("events") == before


def test_a_new_branch_beside_old_ones_keeps_them(log: Topic, tmp_path: Path) -> None:
    place = Place(tmp_path)
    append(log, rows(9))
    place.run(counted(source()), "n")
    before = place.read("n")
    start = source()
    more = counted(start).also(start.filter("large", rp.col("size") > 1).sink("events"))

    with pytest.raises(ChangedPlanError, match=r"sink 'events' of events is new.*--rebuild events"):
        place.run(more, "n")
    append(log, rows(2, 9))
    place.run(more, "n", "events")
    kept = [row for row in rows(11) if row["size"] > 1]
    assert place.read("events") == "".join(map(tick, kept))
    assert place.read("n") == before + "B,5\nA,6\n"


def strict(one: Any) -> dict[str, Any]:
    """Fail for records that other branches count."""
    if one.size == 3:
        raise ValueError("too large")
    return {**rows(1)[0], "size": one.size}


async def test_a_run_that_its_outputs_refuse_has_rejected_nothing(
    log: Topic, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    start = source()
    old = counted(start).also(start.sink("events"))
    more = old.also(start.map("strict", strict, into=Tick).sink("new"))
    append(log, rows(9))
    await asyncio.to_thread(place.run, old, "n", "events")
    shown = place.read("events")

    store = DiskStore(LiveDisk(str(tmp_path / "store")))
    with pytest.raises(SnapshotError, match=r"recorded .* Nothing was committed"):
        await asyncio.to_thread(place.run, more, "n", "events", "new")
    assert (await letters_in(store, "p", superseded=True)).letters == []
    append(log, rows(1, 9))
    await asyncio.to_thread(place.run, old, "n", "events")
    assert place.read("events") == shown + tick(rows(1, 9)[0])

    # A version that commits keeps what it has rejected.
    await asyncio.to_thread(
        place.run, start.map("strict", strict, into=Tick).sink("fresh"), "fresh"
    )
    found = (await letters_in(store, "p")).letters
    assert [letter.offset for letter in found] == [2, 5, 8]


def snapshot_of(pipeline: Pipeline, given: list[dict[str, Any]]) -> Any:
    from ripple.model.schema.columns import records_of

    engine = rp.Engine(pipeline.plan())
    engine.apply("ticks", records_of(given, engine.plan.source.fields), len(given))
    engine.stabilize()
    return engine.snapshot()


def verdicts(pipeline: Pipeline, snapshot: Any, *rebuild: str) -> dict[str, Verdict]:
    found = compare(pipeline.plan(), snapshot, rebuild).nodes
    return {one.key.rpartition("#")[0].rpartition("/")[2]: one.verdict for one in found}


def test_the_verdict_on_each_branch() -> None:
    start = source()
    old = counted(start).also(start.sink("events"))
    snapshot = snapshot_of(old, rows(5))
    dear = start.filter("dear", rp.col("price") > 2.0)
    more = old.also(dear.sink("dear-out")).also(
        start.partition("by-size", key="size").fold("g", n=rp.count()).sink("g-out")
    )
    keep = {"ticks": Verdict.KEEP, "f": Verdict.KEEP, "n": Verdict.KEEP, "events": Verdict.KEEP}
    new = {"dear": Verdict.NEW, "dear-out": Verdict.REBUILD, "g": Verdict.REBUILD}

    assert verdicts(old, snapshot) == keep
    assert verdicts(more, snapshot) == {**keep, **new, "g-out": Verdict.NEW}
    problems = compare(more.plan(), snapshot).problems
    assert [name in why for name, why in zip(("'g'", "'dear-out'"), problems, strict=True)]
    assert not compare(more.plan(), snapshot, ["dear-out", "g"]).problems


def test_a_changed_sink_of_events_is_refused() -> None:
    snapshot = snapshot_of(source().filter("f", rp.col("size") > 1).sink("events"), rows(5))
    changed = source().filter("f", rp.col("size") > 2).sink("events").plan()

    (problem,) = compare(changed, snapshot).problems
    assert "sink 'events' holds events of other code, and" in problem
    assert "give it another name" in problem


def test_branches_that_compute_the_same_each_find_their_own_state() -> None:
    keyed = source().partition("by", key="symbol").window("w", rp.Tumbling(20))
    some = keyed.fold("f", n=rp.count()).filter("some", rp.col("n") > 0).sink("some-out")
    more = keyed.fold("g", n=rp.count()).filter("more", rp.col("n") > 1).sink("more-out")
    snapshot = snapshot_of(some.also(more), rows(5))

    compared = compare(some.sink("again").also(more).plan(), snapshot)
    assert not compared.problems
    assert not [one for one in compared.nodes if one.verdict is Verdict.DROP]


def test_a_sink_that_moves_to_a_fold_with_other_steps_has_changed() -> None:
    def shown(first: str, second: str) -> Pipeline:
        keyed = start.partition("by", key="symbol")
        few = keyed.fold("f", n=rp.count()).filter("few", rp.col("n") < 3).sink(first)
        return few.also(keyed.fold("g", n=rp.count()).sink(second))

    start = source()
    found = verdicts(shown("b", "a"), snapshot_of(shown("a", "b"), rows(5)))
    assert [found[name] for name in ("f", "g", "a", "b")] == [Verdict.KEEP] * 2 + [
        Verdict.CHANGED
    ] * 2


def test_a_sink_of_events_may_move_to_a_step_that_does_the_same() -> None:
    def tapped(name: str, other: str) -> Pipeline:
        steps = {one: source_.filter(one, rp.col("size") > 1) for one in (name, other)}
        return steps[name].sink("events").also(counted(steps[other]))

    source_ = source()
    snapshot = snapshot_of(tapped("a", "b"), rows(5))
    restored = decide(tapped("b", "a").plan(), snapshot).snapshot
    assert restored is not None
    assert restored.digests["b"] == snapshot.digests["a"]


def test_events_that_were_shown_do_not_become_part_of_others(log: Topic, tmp_path: Path) -> None:
    place = Place(tmp_path)
    append(log, rows(9))
    start = source()
    old = counted(start).also(start.sink("events"))
    place.run(old, "n", "events")
    before = place.read("events")
    strict = start.derive("strict", part=10 // (rp.col("size") - 3)).sink("parts")

    with pytest.raises(SnapshotError, match=r"output 'n' .*say --rebuild f"):
        place.run(old.also(strict), "n", "events", "parts")
    with pytest.raises(SnapshotError, match=r"output 'events' .*give the sink another name"):
        place.run(old.also(strict), "n", "events", "parts", rebuild=["f"])
    assert place.read("events") == before


@pytest.mark.parametrize("assigner", [rp.Tumbling(20), rp.Session(5)])
def test_state_of_windows_is_migrated_in_a_branch(
    assigner: rp.Tumbling | rp.Session, log: Topic, tmp_path: Path
) -> None:
    def pipeline(size: rp.Expr, *from_digest: str) -> Pipeline:
        start = source()
        keyed = start.partition("by-window", key="symbol")
        bars = keyed.window("w", assigner, lateness=20).fold("bars", n=rp.sum(size))
        both = counted(start).also(bars.sink("bars-out"))
        for digest in from_digest:
            both = both.migrate("bars", doubled, from_digest=digest)
        return both

    def doubled(state: pa.Table) -> pa.Table:
        at = state.schema.get_field_index("n.sum")
        twice = [2 * value for value in state.column(at).to_pylist()]
        return state.set_column(at, state.schema.field(at), pa.array(twice, state.schema.types[at]))

    append(log, rows(9))
    old = pipeline(rp.col("size") * 1)
    sink = {name: str(tmp_path / f"{name}.jsonl") for name in ("n", "bars-out")}
    given = {"source": f"log:{tmp_path}/log/ticks", "checkpoint_dir": str(tmp_path / "store")}
    rp.run(old, sink=sink, **given)
    before = (tmp_path / "bars-out.jsonl").read_text()
    digest = old.plan().fold("bars").node_key.rpartition("#")[2]
    rp.run(pipeline(rp.col("size") * 2, digest), sink=sink, **given)

    lines = (tmp_path / "bars-out.jsonl").read_text().removeprefix(before).splitlines()
    assert [json.loads(line)["n"] for line in lines] == [
        2,
        4,
    ]  # those of windows that are open


def test_a_branch_that_refused_records_is_not_removed_unseen() -> None:
    start = source()
    strict = start.derive("strict", part=10 // (rp.col("size") - 3)).sink("parts")
    both = counted(start).also(strict)
    clean, refused = snapshot_of(both, rows(2)), snapshot_of(both, rows(5))

    assert not compare(counted(source()).plan(), clean).problems
    (problem,) = compare(counted(source()).plan(), refused).problems
    assert "records were rejected before, by step 'strict'" in problem
    unknown = {n: count for n, count in refused.counters.items() if "/" not in n}
    (problem,) = compare(
        counted(source()).plan(), dataclasses.replace(refused, counters=unknown)
    ).problems
    assert "records were rejected before, perhaps by step 'strict'" in problem


def test_records_that_the_source_rejects_hinder_no_change_of_a_branch() -> None:
    start = Pipeline("p").source("ticks", Cheap)
    dear = counted(start).also(start.derive("d", part=10 // rp.col("size")).sink("parts"))
    snapshot = snapshot_of(dear, rows(5))
    assert snapshot.rejected == {digest_of(snapshot.nodes[0]): snapshot.counters["dead_lettered"]}
    engine = rp.Engine.restore(dear.plan(), snapshot)
    assert engine.snapshot().counters == snapshot.counters

    same = Pipeline("p").source("ticks", Cheap)
    assert not compare(counted(same).plan(), snapshot).problems
    assert rp.Engine.restore(counted(same).plan(), snapshot).counters == engine.counters


def test_state_of_a_kept_branch_is_restored() -> None:
    start = source()
    old = counted(start).also(start.sink("events"))
    fewer = counted(source())
    snapshot = snapshot_of(old, rows(5))

    engine = rp.Engine.restore(fewer.plan(), snapshot)
    assert engine.digests["n"] == rp.Engine.restore(old.plan(), snapshot).digests["n"]
    with pytest.raises(Exception, match="has not shown the rows of 'ticks'"):
        rp.Engine.restore(old.plan(), snapshot_of(fewer, rows(5)))


def test_a_connector_that_does_not_say_so_takes_no_events() -> None:
    (output,) = source().sink("events").plan().outputs
    with pytest.raises(OutputError, match=r"'events' to 'db:t': it shows events, which have no op"):
        check_takes(Use("db:open", "appended"), "db:t", output)
    for connector in own().values():
        for use in (connector.sink, connector.continued_sink):
            assert use is None or use.takes_events, connector.scheme


def test_runtimes_with_stages_refuse_branches() -> None:
    pipeline = source().sink("events")

    with pytest.raises(PlanError, match=r"'p' has branches.*a watch on Spark computes chains"):
        Parcel.of(pipeline, lambda plan: b"", chain_for="a watch on Spark")
