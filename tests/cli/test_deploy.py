"""``ripple deploy`` before anything starts: what would change, and what is refused."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ripple.cli.cluster.deploying.comparison import difference
from ripple.cli.cluster.deploying.counts import (
    counts_by_output,
    groups,
    let_take,
    mates,
    moving,
    problem_of_topic,
    problems_of,
    undivided,
)
from ripple.cli.cluster.deploying.standing import (
    check_is_code,
    generations_in,
    has_served,
    previews,
    serving_in,
)
from ripple.cli.cluster.deploying.switching import serve
from ripple.cli.cluster.down import LOCK
from ripple.cli.main import main
from ripple.control.assignment import AssignmentChain, Stage, empty
from ripple.control.assignment.generations import store_of
from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import Topic
from ripple.storage.store.opening import open_store
from ripple.world import LiveDisk
from tests.spark.logs import topic_of

BEGIN = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int

start = rp.Pipeline("one").source("trades", Trade)
keyed = start.partition("by", key="symbol")
"""
SUM = 'keyed.fold("f", s=rp.sum("size")).sink("sum")'
MOST = 'keyed.fold("f", s=rp.max("size")).sink("sum")'


async def found(store: str) -> None:
    """Let a store be that of a cluster of one partition."""
    async with open_store(store) as opened:
        chain = AssignmentChain(opened, "a coordinator")
        first = replace(empty([Stage("main", 1)]), version=1, cause="it begins")
        assert await chain.propose(await chain.newest(), first)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster's state, its source and its output."""
    folder = tmp_path_factory.mktemp("deploy")
    file = folder / "one.py"
    file.write_text(BEGIN + f"pipeline = {SUM}")
    rows = [{"symbol": "A", "size": 1}, {"symbol": "A", "size": 2}, {"symbol": "B", "size": 4}]
    log = topic_of(folder, load_plan(f"{file}"), rows, partitions=1)
    (folder / "source").write_text(log)
    (folder / "other").mkdir()
    topic_of(folder / "other", load_plan(f"{file}"), rows[:1], partitions=1)
    given = ["--source", log, "--sink", f"log:{folder}/sum"]
    assert main(["run", f"{file}", *given, "--checkpoint-dir", f"{folder}/c/store"]) == 0
    asyncio.run(found(f"{folder}/c/store"))
    return folder


def deploy(folder: Path, pipeline: str, *options: str, **given: str) -> int:
    file = folder / "one.py"
    file.write_text(BEGIN + f"pipeline = {pipeline}")
    places = {"--source": (folder / "source").read_text(), "--sink": f"log:{folder}/sum"} | {
        f"--{name}": value for name, value in given.items()
    }
    flags = [word for flag in places.items() for word in flag]
    return main(["deploy", f"{file}", *flags, "--dir", f"{folder}/c", *options])


def test_verdict_is_by_stage_and_fold_and_tells_the_cost(
    begun: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sorted(begun.rglob("*"))
    assert deploy(begun, MOST, "--dry-run", "--json") == 0
    value: dict[str, Any] = json.loads(capfd.readouterr().out)
    (stage,) = value["stages"]
    assert [one["verdict"] for one in stage["folds"]] == ["changed"]
    assert value["outputs"] == [{"name": "sum", "verdict": "changed"}]
    assert (value["generation"], value["serving"], value["records"]) == (2, 1, 3)
    assert value["log_bytes"] > 0
    assert value["checkpoint_bytes"] > 0
    assert deploy(begun, SUM, "--dry-run") == 0
    told = capfd.readouterr().out.splitlines()
    assert told[0] == "stage main: 1 partition"
    assert told[1].startswith("  same     trades/by/f#")
    assert told[2] == "output sum: same"
    assert told[3].startswith("generation 2 would read 3 records from the first (")
    assert sorted(begun.rglob("*")) == before


EVENTS = f"{SUM}.also(start.sink('all'))"
STAGED = (
    'keyed.fold("f", s=rp.sum("size")).partition("over", key="s", partitions=2)'
    '.fold("g", n=rp.count()).sink("sum")'
)


@pytest.mark.parametrize(
    ("pipeline", "given", "why"),
    [
        (SUM.replace("s=", "other="), {}, "has the field"),
        (EVENTS, {"sink": "all=log:{folder}/all"}, "output 'all' is new"),
        (SUM, {"sink": "postgres://h/d/t"}, "generations share outputs that are log:"),
        (SUM, {"store": "s3://bucket/prefix"}, "is in S3"),
        (SUM, {"store": "{folder}/nothing"}, "there is no folder"),
        (STAGED, {}, "a generation has the same stages"),
        (
            SUM,
            {"source": "log:{folder}/other/trades"},
            "source 'trades': trades/0 ends at offset 1",
        ),
    ],
)
def test_what_is_refused_is_named_in_one_line_before_anything_starts(
    begun: Path, capfd: pytest.CaptureFixture[str], pipeline: str, given: dict[str, str], why: str
) -> None:
    given = {name: text.format(folder=begun) for name, text in given.items()}
    assert deploy(begun, pipeline, "--dry-run", **given) == 1
    assert why in capfd.readouterr().err
    assert deploy(begun, pipeline, **given) == 1  # nothing was started
    assert not (begun / "c" / "g2").exists()


BEGUN = (Stage("main", 4), Stage("stage-1", 4), Stage("stage-2", 2))
LINE = """
v = start.partition("s", key=("symbol", "size")).fold("f", n=rp.count())
w = v.partition("second", key="symbol", partitions={0}).fold("g", n=rp.sum("n")).sink("mid")
pipeline = w.partition("third", key="n", partitions={1}).fold("h", k=rp.count()).sink("sum")
"""
WINDOWED = """
@rp.record
class Timed(Trade):
    t: rp.Timestamp

start = rp.Pipeline("one").source("trades", Timed, time="t")
keyed = start.partition("s", key=("symbol", "size")).window("w", rp.Tumbling("1s"))
v = keyed.fold("f", n=rp.count())
w = v.partition("second", key="window_start_ns", partitions={0}).fold("g", n=rp.sum("n"))
pipeline = w.sink("sum")
"""


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((4, 4, 2), None),
        ((4, 4, 8), None),
        ((4, 4, 1), None),
        ((4, 4, 3), "stage-2 has 2 partitions, and would have 3: say a multiple, as partitions=4"),
        (
            (3, 4, 2),
            "main has 4 partitions, and would have 3: say with --partitions a multiple",
        ),
        ((8, 4, 2), None),
        ((4, 8, 2), None),
    ],
)
def test_which_numbers_of_partitions_can_be(
    tmp_path: Path, counts: tuple[int, ...], why: str | None
) -> None:
    file = tmp_path / "line.py"
    file.write_text(BEGIN + LINE.format(*counts[1:]))
    plan = load_plan(f"{file}")
    named = [(one.name, count) for one, count in zip(BEGUN, counts, strict=True)]
    problems = [*problems_of(plan, BEGUN, named)]
    assert [why is not None and why in one for one in problems] == ([] if why is None else [True])
    assert counts_by_output(plan, named)["sum"] == counts[2]


def test_a_stage_with_final_rows_keeps_its_partitions(tmp_path: Path) -> None:
    file = tmp_path / "windowed.py"
    file.write_text(BEGIN + WINDOWED.format(8))
    (problem,) = problems_of(load_plan(f"{file}"), BEGUN[:2], [("main", 4), ("stage-1", 8)])
    assert "output 'sum' has final rows" in problem


def test_a_first_stage_keeps_its_partitions_where_it_shows_events(tmp_path: Path) -> None:
    file = tmp_path / "events.py"
    file.write_text(BEGIN + f"pipeline = {EVENTS}")
    (problem,) = problems_of(load_plan(f"{file}"), BEGUN[:1], [("main", 8)])
    assert "output 'all' has events" in problem
    assert undivided([("trades", 8), ("quotes", 4)], 0) == []
    (problem,) = undivided([("trades", 8), ("quotes", 4)], 8)
    assert "source 'quotes' has 4 partitions, which 8 does not divide" in problem


def test_a_topic_has_a_multiple_or_a_part_of_what_it_had(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text(BEGIN + f"pipeline = {SUM}")
    schema = load_plan(f"{file}").sources[0].schema
    for name, count in (("o", 4), ("preview", 8)):
        Topic.create(LiveDisk(f"{tmp_path}"), name, schema, partitions=count)
    place = f"log:{tmp_path}/o"
    wrong = problem_of_topic("sum", place, 6)
    assert wrong is not None
    assert "4 partitions, and 6 neither divides them" in wrong
    assert [problem_of_topic("sum", place, one) for one in (2, 4, 8, None)] == [None] * 4
    let_take({"sum": place}, {"sum": f"log:{tmp_path}/preview"})
    assert Topic.open(LiveDisk(f"{tmp_path}"), "o").before == (4,)
    assert [*mates(5, 8, 4)] == [1]
    assert [*mates(1, 4, 8)] == [1, 5]
    assert [([*one], [*other]) for one, other in groups(2, 4)] == [([0], [0, 2]), ([1], [1, 3])]
    with pytest.raises(InputError, match="no keys apart"):
        groups(4, 6)
    assert moving(2, 8) == ", 2 before: of every 8 rows of its outputs, 6 move"


def test_a_renamed_source_is_refused(begun: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = begun / "renamed.py"
    text = BEGIN.replace('"trades"', '"sales"')
    file.write_text(text + f"pipeline = {SUM}")
    ends = ["--source", (begun / "source").read_text(), "--sink", f"log:{begun}/sum"]
    assert main(["deploy", f"{file}", *ends, "--dir", f"{begun}/c", "--dry-run"]) == 1
    told = "the cluster reads trades, and the new code sales: a generation reads the same"
    assert told in capfd.readouterr().err


@pytest.mark.parametrize("act", ["--approve", "--compare", "--abort"])
def test_nothing_waits_to_serve(begun: Path, capfd: pytest.CaptureFixture[str], act: str) -> None:
    assert deploy(begun, SUM, act) == 1
    assert "waits to serve" in capfd.readouterr().err


def test_no_generation_has_served_before(begun: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert deploy(begun, SUM, "--rollback") == 1
    assert "no other one has before it" in capfd.readouterr().err


def test_preview_is_compared_with_the_output_and_abort_removes_it(
    begun: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = f"{begun}/c/store"
    own = store_of(store, 2)
    asyncio.run(found(own))
    (preview,) = previews(store, 2, ["sum"]).values()
    file = begun / "one.py"
    file.write_text(BEGIN + f"pipeline = {MOST}")
    given = ["--source", (begun / "source").read_text(), "--sink", preview]
    assert main(["run", f"{file}", *given, "--checkpoint-dir", own]) == 0
    capfd.readouterr()
    assert generations_in(store).candidate == 2
    assert deploy(begun, MOST, "--compare") == 0
    told = capfd.readouterr().out
    assert told == (
        "output sum: 2 rows, 0 added, 0 removed, 1 changed\n  now {'symbol': 'A', 's': 2}\n"
    )
    assert difference("sum", preview, preview).is_none
    for act in ("--compare", "--approve"):
        assert deploy(begun, SUM, act) == 1
        assert "generation 2 computes other code than this file" in capfd.readouterr().err
    file.write_text(BEGIN + f"pipeline = {MOST}")
    most = load_plan(f"{file}")
    check_is_code(most, generations_in(store), 2, [("main", 0)])
    with pytest.raises(InputError, match="generation 2 has 1 partition of stage main, and"):
        check_is_code(most, generations_in(store), 2, [("main", 2)])
    assert deploy(begun, MOST, "--abort") == 0
    assert generations_in(store).candidate is None
    assert not Path(own).exists()


def test_generation_that_does_not_take_over_gives_way_to_the_one_before(
    begun: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = f"{begun}/c/store"
    asyncio.run(found(store_of(store, 2)))
    there = generations_in(store)
    entry = serve(store, there.serving, 2)
    assert (serving_in(store), has_served(store, 2), has_served(store, 3)) == (2, True, False)
    with pytest.raises(InputError, match="another command"):
        serve(store, there.serving, 2)
    assert (entry.before, entry.entry) == (1, 1)
    assert deploy(begun, SUM, "--rollback", "--within", "1") == 1  # nobody runs
    told = capfd.readouterr().err
    assert "generation 1 has not taken over sum/0 within 1 s: generation 2 serves again" in told
    assert generations_in(store).serving.entry == 3
    # Nor is it tried where its processes are known to have ended: readers would wait for it.
    LiveDisk(f"{begun}/c").lock(LOCK, "a cluster").release()
    assert deploy(begun, SUM, "--rollback") == 1
    assert "generation 1 does not run in" in capfd.readouterr().err
    assert generations_in(store).serving.entry == 3


def test_a_rollback_said_twice_is_done_once(begun: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = f"{begun}/c/store"
    there = generations_in(store).serving
    now = there if there.generation == 2 else serve(store, there, 2)
    back = serve(store, now, 1)
    assert deploy(begun, SUM, "--rollback") == 1
    assert "generation 1 serves again already" in capfd.readouterr().err
    assert generations_in(store).serving == back
