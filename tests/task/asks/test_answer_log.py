"""Answers are recorded before they count: crashes at any effect, replays, and other questions."""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
from itertools import count, pairwise
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

import ripple as rp
from ripple.cli.main import main
from ripple.core.errors import InputError, PlanError
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.model.schema.columns import records_of
from ripple.storage.fenced import FencedError
from ripple.storage.log import PartitionWriter, Topic
from ripple.storage.store.opening import open_store
from ripple.task.asks import answer_log, answer_objects, calling
from ripple.task.asks.answer_log import AnswerLog
from ripple.task.asks.answer_objects import Recorded
from ripple.testing import CrashScenario, Faults, crash_test, explore
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from ripple.testing.sim.world import sim_world
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SCATTERED

if TYPE_CHECKING:
    from pathlib import Path

calls = count()


@rp.record(version=1)
class Grade:
    """An answer that differs in each call."""

    grade: int


async def grade(tick: Any) -> dict[str, int]:
    number = next(calls)
    await asyncio.sleep(number * 7 % 5 / 100)
    if tick.size == 3 and number % 2:
        raise ConnectionError
    return {"grade": number}


def asked(idle: str | None = None) -> rp.Pipeline:
    begun = rp.Pipeline("asked").source("ticks", Tick, out_of_order="2ns", idle=idle)
    graded = begun.ask("grade", grade, into=Grade, retries=0, concurrency=3)
    by = graded.partition("by-symbol", key="symbol")
    sums = by.window("window", rp.Tumbling("10ns"), lateness="5ns").fold(
        "sums", graded=rp.sum("grade"), n=rp.count(), last=rp.last("grade")
    )
    counts = begun.partition("all", key="symbol").fold("counts", n=rp.count())
    return graded.sink("graded").also(sums.sink("out")).also(counts.sink("counted"))


INPUTS = ("ticks/0", "ticks/1")


def events(length: int, seed: int = 0) -> list[Any]:
    draw, clock_ns, made = random.Random(seed), 0, []
    for _ in range(length):
        clock_ns += draw.choice((0, 1, 3, 8))
        row = {
            "symbol": draw.choice(["AA", "BB"]),
            "price": 1.0,
            "size": draw.choice([1, 2, 3]),
            "venue": None,
            "timestamp_ns": clock_ns + draw.choice((0, 0, 0, -1, -4, -20)),
        }
        made.append((draw.choice(INPUTS), row))
    return made


scenario = CrashScenario(asked(), events(8), inputs=INPUTS)


def test_crash_at_any_effect_around_answers_changes_no_output() -> None:
    report = crash_test(scenario, enumerated=(2,), seeds=(), pairs=0, every=3 * SCATTERED)
    assert report.lives > report.runs > 2


def test_answers_survive_random_faults() -> None:
    explore(scenario, seeds=range(4 * EXAMPLES))


def test_answers_beside_markers_of_idle_inputs_survive_random_faults() -> None:
    silent = CrashScenario(asked(idle="60ms"), events(8), inputs=INPUTS)
    explore(silent, seeds=range(2 * EXAMPLES))


# The first seed that notices.
SEGMENT_SEED = 0
SAFEGUARDS = {"answer_put": 0, "answer_replay": 5}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_answers_without_a_safeguard_are_found_out(safeguard: str) -> None:
    seeds = (SAFEGUARDS[safeguard], *range(32))
    runs = (run(scenario, seed, Drawn(seed, Faults()), without=(safeguard,)) for seed in seeds)
    assert any(one.error for one in runs)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers become segments after some objects."""
    monkeypatch.setattr(answer_log, "SEGMENT_BYTES", 3_000)
    monkeypatch.setattr(answer_log, "ANSWER_OBJECTS_MAX", 3)


@pytest.mark.usefixtures("small")
def test_crash_at_any_effect_around_segments_changes_no_output() -> None:
    report = crash_test(scenario, enumerated=(3,), seeds=(), pairs=0, every=9 * SCATTERED)
    assert report.lives > report.runs > 2


@pytest.mark.usefixtures("small")
def test_segments_survive_random_faults() -> None:
    explore(scenario, seeds=range(2 * EXAMPLES))


@pytest.mark.usefixtures("small")
def test_segments_deleted_early_are_found_out() -> None:
    seeds = (SEGMENT_SEED, *range(32))
    runs = (run(scenario, seed, Drawn(seed, Faults()), without=("answer_kept",)) for seed in seeds)
    assert any(one.error for one in runs)


# --- of a durable run, in a folder ---


@rp.record(version=1)
class Optional:
    """Another answer, with one field of the recorded ones."""

    grade: int
    why: str | None = None


@rp.record(version=1)
class Needed:
    """The same, with the second field required."""

    grade: int
    why: str


@rp.record(version=1)
class Other:
    """Another answer."""

    grade: str


def simple(name: str = "grade", into: type = Grade, more: int = 0) -> rp.Pipeline:
    begun = rp.Pipeline("asked").source("ticks", Tick)
    if more:
        begun = begun.filter("large", rp.col("size") > more)
    return begun.ask(name, graded, into=into).sink("out")


async def graded(_tick: Any) -> dict[str, int]:
    return {"grade": next(calls)}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    Topic.create(LiveDisk(tmp_path), "ticks", rp.schema_of(Tick), partitions=1)
    append(tmp_path, 5)
    return tmp_path


def append(place: Path, length: int) -> None:
    with PartitionWriter(Topic.open(LiveDisk(place), "ticks"), 0, LiveClock()) as writer:
        rows = [row for _, row in events(length)]
        writer.append(records_of(rows, simple().plan().source.fields))


def ran(place: Path, pipeline: rp.Pipeline, out: str = "out.jsonl") -> list[dict[str, Any]]:
    state, source = place / "state", f"log:{place}/ticks"
    rp.run(pipeline, source=source, sink=place / out, checkpoint_dir=state)
    return [json.loads(line) for line in (place / out).read_text().splitlines()]


def problems(place: Path, pipeline: rp.Pipeline) -> list[str]:
    async def act() -> list[str]:
        async with open_store(str(place / "state")) as store:
            cuts = [{"ticks": 5, "ripple.answers/0": 5}]
            return await answer_log.problems_of(store, "asked", 0, cuts, pipeline.plan())

    return asyncio.run(act())


def test_calls_wait_for_a_store_that_is_away(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all held rows are called for, and their answers gather in memory."""
    made: list[Any] = []
    at_puts, put = [0], AnswerLog.add

    async def long(tick: Any) -> dict[str, Any]:
        made.append(tick)
        return {"grade": len(made), "why": "x" * 100_000}

    async def slow(log: AnswerLog, parts: Any) -> None:
        before = -1
        while before != len(made):
            before = len(made)
            for _ in range(200):
                await asyncio.sleep(0)
        at_puts.append(len(made))
        await put(log, parts)

    monkeypatch.setattr(AnswerLog, "add", slow)
    append(place, 395)
    begun = rp.Pipeline("asked").source("ticks", Tick)
    assert len(ran(place, begun.ask("grade", long, into=Needed).sink("out"))) == 400
    assert at_puts[-1] == 400
    assert max(b - a for a, b in pairwise(at_puts)) <= 2 * (calling.NEW_BYTES_MAX // 100_000 + 16)


def test_replay_without_outputs_and_checkpoints_makes_no_calls(place: Path) -> None:
    first = ran(place, simple())
    shutil.rmtree(place / "state" / "asked" / "00000" / "state")
    shutil.rmtree(place / "state" / "asked" / "00000" / "manifest")
    for lost in place.glob("out.*"):
        lost.unlink()
    before = next(calls)

    assert ran(place, simple()) == first
    assert next(calls) == before + 1
    append(place, 2)
    assert len(ran(place, simple())) == 7


def test_a_new_optional_field_is_null_in_recorded_answers(place: Path) -> None:
    first = ran(place, simple())
    wider = ran(place, simple(into=Optional), "wider.jsonl")
    assert wider == [row | {"why": None} for row in first]


def test_field_missing_in_recorded_answers_must_be_optional(place: Path) -> None:
    ran(place, simple())
    ran(place, simple(into=Optional), "wider.jsonl")
    said = "recorded answers of 'grade' have no 'why': let it be optional, or give the pipeline"
    with pytest.raises(PlanError, match=said):
        ran(place, simple(into=Needed), "needed.jsonl")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            simple(into=Other),
            "'grade' were recorded as {grade: int64}: give the pipeline another name",
        ),
        (simple("another"), "'another' was not asked up to ticks 5, and outputs hold rows of"),
        (simple(more=1), "'grade' was not asked up to ticks 5"),
    ],
)
def test_other_questions_are_refused_where_outputs_hold_rows(
    changed: rp.Pipeline, said: str, place: Path
) -> None:
    ran(place, simple())
    (told,) = problems(place, changed)
    with pytest.raises(PlanError, match=re.escape(said)):
        ran(place, changed)

    assert said in told


ASKING = """
import ripple as rp
from tests.task.asks.test_answer_log import Grade, Tick, graded

pipeline = rp.Pipeline("asked").source("ticks", Tick).ask("{name}", graded, into=Grade).sink("out")
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("grade", "ripple run would resume"),
        ("another", "'another' was not asked up to ticks 5, and outputs hold rows of these"),
    ],
)
def test_plan_says_whether_recorded_answers_fit(
    place: Path, capfd: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    ran(place, simple())
    (place / "asking.py").write_text(ASKING.format(name=name))
    asked = ["plan", f"{place}/asking.py", "--checkpoint-dir", f"{place}/state"]
    assert main(asked) == (name != "grade")
    assert said in " ".join("".join(capfd.readouterr()).split())


def test_a_damaged_and_a_lost_log_of_answers_are_named(place: Path) -> None:
    ran(place, simple())
    hurt = max(place.glob("state/asked/00000/answers/*.journal"))
    whole = hurt.read_bytes()
    hurt.write_bytes(whole[:-3])
    with pytest.raises(InputError, match="the log of answers is damaged: asked/00000/answers/"):
        ran(place, simple())
    hurt.unlink()
    assert problems(place, simple())[0].startswith("5 answers of services were read, and their log")
    hurt.write_bytes(whole)
    assert problems(place, simple()) == []


def test_answers_in_many_objects_are_read_as_in_one(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_log, "ANSWER_OBJECTS_MAX", 2)
    monkeypatch.setattr(answer_objects, "OBJECT_BYTES_MAX", 1)
    monkeypatch.setattr(answer_objects, "KNOWN_ROWS_MAX", 2)
    first = ran(place, simple())
    for lost in place.glob("out.*"):
        lost.unlink()

    assert ran(place, simple()) == first


@pytest.fixture
def segmented(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the segments of a run with 5 answers in each."""
    monkeypatch.setattr(answer_log, "SEGMENT_BYTES", 1)
    ran(place, simple())
    append(place, 5)
    ran(place, simple())
    return sorted(place.glob("state/asked/00000/answers/*.segment"))


def test_replay_reads_segments_and_makes_no_calls(place: Path, segmented: list[Path]) -> None:
    first = ran(place, simple())
    shutil.rmtree(place / "state" / "asked" / "00000" / "state")
    shutil.rmtree(place / "state" / "asked" / "00000" / "manifest")
    for lost in place.glob("out.*"):
        lost.unlink()
    before = next(calls)

    assert len(segmented) > 1
    assert ran(place, simple()) == first
    assert next(calls) == before + 1


def test_field_missing_in_segments_must_be_optional(place: Path, segmented: list[Path]) -> None:
    assert segmented
    ran(place, simple(into=Optional), "wider.jsonl")
    with pytest.raises(PlanError, match="recorded answers of 'grade' have no 'why'"):
        ran(place, simple(into=Needed), "needed.jsonl")


def test_damaged_and_lost_segments_are_named(
    place: Path, segmented: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for lost in place.glob("out.*"):
        lost.unlink()
    hurt = segmented[0]
    whole = hurt.read_bytes()
    hurt.write_bytes(bytes([*whole[:-1], whole[-1] ^ 1]))
    name = f"asked/00000/answers/{hurt.name}"
    with pytest.raises(InputError, match=f"damaged: {name} does not hold.*Restore that object"):
        ran(place, simple())
    hurt.unlink()
    with pytest.raises(InputError, match=f"damaged: {name} is missing"):
        ran(place, simple())

    assert main(["checkpoint", "verify", "--dir", str(place / "state")]) != 0
    assert f"the log of answers is damaged: {name} is missing" in capsys.readouterr().out


def test_segments_go_once_neither_records_nor_checkpoints_need_them() -> None:
    world, plan = sim_world(), simple().plan()
    until = world.loop.run_until_complete
    log, reader = AnswerLog(world.store, "asked"), AnswerLog(world.store, "asked")
    until(log.open(1, world.random))
    until(log.declare(plan))
    ask, (key,) = plan.asks[0], answer_log.question_keys(plan).values()

    def put(inputs: dict[str, int], offset: int) -> list[str]:
        at = log.end
        rows = answer_rows(ask, [Outcome(Identity("ticks", at, 0), {"grade": at})])
        until(log.add([Recorded("grade", key, at, rows)]))
        until(log.tidy(inputs, offset))
        return [one for one in until(world.store.list("asked/")) if one.endswith(".segment")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_log, "SEGMENT_BYTES", 1)
        assert len(put({}, 0)) == 1
        assert len(put({"ticks": 1}, 0)) == 2  # the checkpoint is before
        assert len(put({}, 2)) == 3  # its records can be read
        assert len(put({"ticks": 2}, 1)) == 3
    until(reader.read())

    assert (reader.first, reader.end) == (1, 4)
    with pytest.raises(InputError, match="are read from 0 on, and their log begins at 1"):
        reader.check_first(0)
    until(reader.load(3))
    found = reader.after(3)
    assert found is not None
    assert found.rows.column("grade").to_pylist() == [3]


def test_threads_of_cancelled_calls_delay_neither_the_store_nor_the_end(
    place: Path,
) -> None:
    append(place, 60)
    over = Event()

    async def block(_tick: Any) -> None:
        await asyncio.to_thread(over.wait)

    begun = rp.Pipeline("asked").source("ticks", Tick)
    rows = begun.ask("grade", block, into=Grade, timeout="1ms", retries=0, concurrency=64)
    try:
        assert ran(place, rows.sink("out")) == []
    finally:
        over.set()

    assert len(ran(place, rows.sink("out"), "again.jsonl")) == 0


def test_pipeline_that_lost_its_ask_keeps_the_log_as_an_input(place: Path) -> None:
    ran(place, simple())
    append(place, 2)
    begun = rp.Pipeline("asked").source("ticks", Tick)
    assert len(ran(place, begun.sink("all"), "all.jsonl")) == 7


def test_a_former_owner_records_nothing() -> None:
    world = sim_world()
    until = world.loop.run_until_complete
    former, owner = (AnswerLog(world.store, "asked") for _ in range(2))
    until(former.open(1, world.random))
    until(owner.open(2, world.random))
    with pytest.raises(FencedError):
        until(former.declare(simple().plan()))
