"""Pipelines of several sources in one-shot and durable runs, crashed and refused."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import ripple as rp
from ripple.cli.main import main
from ripple.connectors.locate import sources_by_name
from ripple.core.errors import InputError, OutputError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.task.next_source import Reading, in_order
from ripple.testing import CrashScenario, Marker, crash_test, explore
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk
from tests.csv_rows import lines_of
from tests.engine.machine.several import (
    INPUTS,
    Quote,
    Starts,
    branches,
    mixed,
    pipeline_of,
    plain,
    separate,
    windowed,
)
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SAMPLED, SCATTERED
from tests.task.scenarios import events


def happened(count: int, parts: int, seed: int = 0) -> list[Any]:
    """Return events of three sources, and two markers."""
    chance = random.Random(seed)
    made = [one for one in events(count, seed) if not isinstance(one, Marker)]
    owners = [chance.choice(INPUTS[parts]) for _ in made]
    some = mixed(made, owners)
    return [*some[:5], Marker(INPUTS[parts][0], 20), *some[5:], Marker(INPUTS[parts][-1], 900)]


def test_several_sources_do_not_tell_of_a_crash_all_over_a_run() -> None:
    ways = [plain, windowed, branches]
    report = crash_test(
        *(pipeline_of(ways), happened(9, 1)),
        inputs=INPUTS[1],
        seeds=range(2),
        pairs=1,
        every=SCATTERED if EXAMPLES == 1 else 5,
    )
    assert report.lives > report.runs > 10


def test_several_sources_of_several_inputs_survive_random_faults() -> None:
    pipeline = pipeline_of([windowed, separate])
    scenario = CrashScenario(pipeline, happened(24, 2, 3), inputs=INPUTS[2])
    explore(scenario, seeds=range(8 * EXAMPLES // SAMPLED))


readings = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=1, max_size=4)


@drawn(known=readings, timed=st.booleans())
def test_the_source_that_is_behind_is_read_first(
    known: list[tuple[int, int]], *, timed: bool
) -> None:
    ranks = range(len(known))
    found = in_order([Reading(at, timed or at > 0, *known[at]) for at in ranks])

    assert sorted(found) == list(ranks)
    keys = [(known[at][0] if timed else 0, known[at][1], at) for at in found]
    assert all(one < other for one, other in itertools.pairwise(keys))


def tick(at: int, size: int = 1) -> dict[str, Any]:
    symbol = "AB"[at % 2]
    return {"symbol": symbol, "price": 1.0, "size": size, "venue": None, "timestamp_ns": at * 10}


def two() -> Pipeline:
    starts = Starts()
    both = rp.union("both", starts.ticks, starts.more)
    counted = both.partition("p", key="symbol").fold("f", n=rp.count(), last=rp.last("size"))
    return both.sink("all").also(counted.sink("n"))


def test_a_one_shot_run_reads_the_source_that_is_behind(tmp_path: Path) -> None:
    sink = {name: str(tmp_path / f"{name}.csv") for name in ("all", "n")}
    report = rp.run(
        two(),
        source={"more": [tick(at, 2) for at in range(8)], "ticks": [tick(at) for at in range(8)]},
        sink=sink,
        batch_rows=2,
    )
    rows = [line.split(",") for line in lines_of(tmp_path / "all.csv")]
    sizes = [int(row[2]) for row in rows]

    assert report.consumed == len(rows) == 16
    assert {*sizes[:8]} == {*sizes[8:]} == {1, 2}, "neither is read to its end first"
    table = dict(line.split(",", 1) for line in lines_of(tmp_path / "n.csv"))
    assert table == {"A": "8,2", "B": "8,2"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            [tick(1)],
            r"sources ticks, more: give each, as in source=.'ticks': ..., 'more': ...",
        ),
        ({"ticks": [tick(1)]}, "source 'more' is not given: the pipeline reads ticks, more"),
        (
            {"ticks": [], "others": []},
            "there is no source 'others': the pipeline reads ticks, more",
        ),
        (
            {"ticks": [], "more1": []},
            "there is no source 'more1': the pipeline reads ticks, more. Did you mean 'more'.",
        ),
        (
            dict.fromkeys(("ticks", "more"), iter([tick(1)])),
            "the sources 'ticks' and 'more' are the same iterator, whose rows come once: give each "
            "its own, as itertools.tee makes them",
        ),
        ({"ticks": "-", "more": "-"}, r"one source can read standard input \(-\), not several"),
    ],
)
def test_each_source_is_given_once(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rp.run(two(), source=source, sink={"n": "-"})


def test_a_source_that_no_branch_reads_is_named() -> None:
    desk = rp.Pipeline("desk")
    ticks, _ = desk.source("ticks", Tick), desk.source("quotes", Tick)
    with pytest.raises(InputError, match="there is no source 'quotes': the pipeline reads ticks"):
        rp.run(ticks.sink("all"), source={"ticks": [tick(1)], "quotes": []}, sink=[])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a.csv"], "say which one a.csv is, as in --source ticks=a.csv"),
        (["ticks=a.csv"], "source 'more' is not given"),
        (["ticks=a", "more=b", "ticks=c"], "source 'ticks' is given twice: a and c"),
        (["ticks=a", "more=b", "quotes=c"], "there is no source 'quotes'"),
    ],
)
def test_each_source_is_named_on_the_command_line(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sources_by_name(two().plan(), texts)


def test_one_source_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Starts().ticks.sink("s").plan()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InputError, match=r"neither a source 'a' nor a file.*reads ticks"):
        sources_by_name(plan, ["a=b.csv"])
    (tmp_path / "a=b.csv").touch()
    assert sources_by_name(plan, ["a=b.csv"]) == {"ticks": "a=b.csv"}
    assert sources_by_name(plan, ["ticks=b.csv"]) == {"ticks": "b.csv"}
    for twice in (["a", "b"], ["ticks=a", "ticks=b"], ["ticks=a", "b"]):
        with pytest.raises(InputError, match=r"given twice: a and b.*a pattern in quotes"):
            sources_by_name(plan, twice)


def logged(path: Path, name: str, cls: type, lanes: list[list[dict[str, Any]]]) -> None:
    topic = Topic.create(LiveDisk(str(path)), name, rp.schema_of(cls), partitions=len(lanes))
    for number, rows in enumerate(lanes):
        with PartitionWriter(topic, number, LiveClock()) as writer:
            writer.append(records_of(rows, topic.schema.fields))


class Ended(Exception):  # noqa: N818 - as if the process had ended
    pass


def run_until(ends_after: int | None, pipeline: Any, source: Any, sink: Any, state: Path) -> Any:
    """Run durably, and raise Ended after so many stabilizations."""

    def watch(_: Any, report: rp.Report) -> None:
        if report.stabilizations == ends_after:
            raise Ended

    return rp.run(
        pipeline,
        source=source,
        sink=sink,
        checkpoint_dir=state,
        batch_rows=4,
        commit_interval="1ms",
        checkpoint_interval="1ms",
        on_batch=watch,
    )


@rp.record
class Plain:
    """An event without a time."""

    symbol: str


def skewed(place: Path, *, with_plain: bool) -> tuple[Pipeline, dict[str, str]]:
    """Return a pipeline and two logs, the second with a later begin and end.

    with_plain: also read a short source without event time.
    """
    pipeline = Pipeline("test")
    ticks = pipeline.source("ticks", Tick)
    more = pipeline.source("more", Tick)
    lanes: dict[str, tuple[type, list[Any]]] = {
        "ticks": (Tick, [tick(at) for at in range(40)]),
        "more": (Tick, [tick(20 + at // 2, 2) for at in range(60)]),
    }
    both = rp.union("both", ticks, more).sink("all")
    if with_plain:
        both = both.also(pipeline.source("plain", Plain).sink("plain-out"))
        lanes["plain"] = (Plain, [{"symbol": "A"}] * 3)
    for name, (cls, rows) in lanes.items():
        logged(place, f"data/{name}", cls, [rows])
    return both, {name: f"log:{place}/data/{name}" for name in lanes}


def test_a_source_is_read_while_its_events_are_earlier_than_those_of_the_other(
    tmp_path: Path,
) -> None:
    pipeline, source = skewed(tmp_path, with_plain=False)
    seen: list[tuple[dict[str, int], dict[str, int]]] = []

    def watch(engine: Any, _: rp.Report) -> None:
        seen.append((engine.cut, engine.watermarks_ns))

    rp.run(
        pipeline, source=source, sink={"all": f"{tmp_path}/all.csv"}, batch_rows=4, on_batch=watch
    )
    ends = {"ticks": 40, "more": 60}
    steps = [(one, other[0]) for one, other in itertools.pairwise(seen) if one[0] != other[0]]
    for (before, marks_ns), after in steps:
        [read] = [name for name in ends if after[name] > before[name]]
        left = [name for name in ends if before[name] < ends[name]]
        assert marks_ns[read] == min(marks_ns[name] for name in left), before
    cuts = [cut for cut, _ in seen]
    assert {"ticks": 20, "more": 4} in cuts, "until then its events are earlier"
    assert {"ticks": 40, "more": 36} in cuts, "and from there on each takes its part"


@pytest.mark.parametrize("with_plain", [False, True])
def test_a_restarted_run_reads_the_source_that_the_first_one_would_have_read(
    tmp_path: Path, *, with_plain: bool
) -> None:
    pipeline, source = skewed(tmp_path, with_plain=with_plain)

    def run(place: str, ends_after: int | None) -> bytes:
        sink = {"all": f"{tmp_path}/{place}.csv"}
        run_until(ends_after, pipeline, source, sink, tmp_path / place)
        return (tmp_path / f"{place}.csv").read_bytes()

    whole = run("whole", None)
    for ends_after in (4, 8, 12, 17):
        place = f"after-{ends_after}"
        with pytest.raises(Ended):
            run(place, ends_after)
        assert run(place, None) == whole, ends_after


def test_a_durable_run_that_ends_in_the_middle_writes_the_same_bytes(tmp_path: Path) -> None:
    ticks = [[tick(at, at % 7) for at in range(part, 60, 2)] for part in (0, 1)]
    quotes = [
        [{"size": 5, "symbol": "A", "at_ns": at * 10 + part, "bid": None} for at in range(40)]
        for part in range(3)
    ]
    logged(tmp_path, "data/ticks", Tick, ticks)
    logged(tmp_path, "data/more", Tick, [[tick(at, 3) for at in range(50)]])
    logged(tmp_path, "data/quotes", Quote, quotes)
    source = {name: f"log:{tmp_path}/data/{name}" for name in ("ticks", "more", "quotes")}

    def run(place: str, ends_after: int | None) -> Any:
        sink = {name: f"{tmp_path}/{place}-{name}.csv" for name in ("both-out", "f1-out")}
        pipeline = pipeline_of([plain, windowed])
        return run_until(ends_after, pipeline, source, sink, tmp_path / place)

    whole = run("whole", None)
    for ends_after in (3, 9, 14):
        with pytest.raises(Ended):
            run("parts", ends_after)
    parts = run("parts", None)

    assert parts.digest == whole.digest
    assert whole.cut == parts.cut
    assert sum(whole.cut.values()) == 60 + 50 + 120
    assert {name.partition("/")[0] for name in whole.cut} == {"ticks", "more", "quotes"}
    for name in ("both-out", "f1-out"):
        one, other = (tmp_path / f"{place}-{name}.csv" for place in ("whole", "parts"))
        assert one.read_bytes() == other.read_bytes()


def test_a_sink_is_none_of_the_sources(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("")
    with pytest.raises(OutputError, match="own source"):
        rp.run(
            two(),
            source={"ticks": [], "more": str(tmp_path / "more.csv")},
            sink={"n": str(tmp_path / "more.csv")},
        )


def strict() -> Pipeline:
    """Refuse records of one size, of either source."""
    starts = Starts()
    one = starts.ticks.derive("d", part=10 // (rp.col("size") - 3)).sink("one")
    return one.also(starts.more.derive("e", part=10 // (rp.col("size") - 3)).sink("other"))


def ends(path: Path, *names: str) -> list[int]:
    return [sum(one.range()[1] for one in readers(path, name)) for name in names]


def readers(path: Path, name: str) -> list[PartitionReader]:
    topic = Topic.open(LiveDisk(str(path)), f"data/{name}")
    return [PartitionReader(topic, number) for number in range(topic.partitions)]


def test_letters_of_one_source_are_retried_into_its_topic(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logged(tmp_path, "data/ticks", Tick, [[tick(1), tick(2, 3)]])
    logged(tmp_path, "data/more", Tick, [[tick(1, 3), tick(2), tick(3, 3)]])
    store = str(tmp_path / "store")
    rp.run(
        strict(),
        source={name: f"log:{tmp_path}/data/{name}" for name in ("ticks", "more")},
        sink={"one": str(tmp_path / "one.csv")},
        checkpoint_dir=store,
    )
    retry = ["dead-letter", "retry", "--checkpoint-dir", store, "--source"]

    assert main([*retry, f"log:{tmp_path}/data/more"]) == 1
    assert "dead letters of more, ticks: choose one" in capfd.readouterr().err
    assert main([*retry, f"others=log:{tmp_path}/data/more"]) == 1
    told = capfd.readouterr()
    assert not told.out
    assert "no dead letters of source 'others': there are those of more, ticks" in told.err
    for given, place, chosen in (  # both topics take the fields of the other
        ("more=", "data/ticks", []),
        ("more=", "data/ticks/", []),
        ("", "data/ticks", ["--offset", "2"]),
        ("", "data/./ticks", ["--input", "more"]),
    ):
        assert main([*retry, f"{given}log:{tmp_path}/{place}", *chosen]) == 1
        assert "ticks is another source of the pipeline than more: give" in capfd.readouterr().err
    assert ends(tmp_path, "ticks", "more") == [2, 3]
    assert main([*retry, f"more=log:{tmp_path}/data/more"]) == 0
    assert capfd.readouterr().out == "test/0: 2 retried\n"
    assert ends(tmp_path, "ticks", "more") == [2, 5]


def test_verify_misses_dead_letters_whose_newest_object_is_gone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logged(tmp_path, "data/ticks", Tick, [[tick(1), tick(2, 3), tick(3, 3)]])
    logged(tmp_path, "data/more", Tick, [[tick(1)]])
    store = tmp_path / "store"
    rp.run(
        strict(),
        source={name: f"log:{tmp_path}/data/{name}" for name in ("ticks", "more")},
        sink={"one": str(tmp_path / "one.csv")},
        checkpoint_dir=str(store),
    )
    assert main(["checkpoint", "verify", "--dir", str(store)]) == 0
    newest = max(store.glob("*/*/letters/*.journal"))
    newest.unlink()
    capfd.readouterr()
    assert main(["checkpoint", "verify", "--dir", str(store)]) == 1
    assert "2 of the 2 dead letters up to " in capfd.readouterr().out
