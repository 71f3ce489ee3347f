"""Rows with answers: against the reference and ``.map``, in any order of answers."""

from __future__ import annotations

import asyncio
import random
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.connectors.memory import MemorySink
from ripple.core.errors import InputError, LostRecordsWarning, PlanError
from ripple.core.row_ops import OP
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import decide
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.model.batch import Answers
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.topology import stages_of
from ripple.model.schema.columns import records_of
from ripple.model.window import watermark
from ripple.spark.parcel import check_plan
from ripple.testing import Answered, check_pipeline
from tests.engine.machine.ticks import Tick, ticks
from tests.examples import EXAMPLES

SIZES = (1, 7, 1000)
LOG = "ripple.answers/0"


@rp.record
class Rating:
    """The answer to a tick."""

    grade: str
    points: int


@rp.record
class RatedTick(Tick):
    """A tick with the fields of its answer, as a map makes it."""

    grade: str
    points: int


async def rate(tick: Tick) -> Rating:
    return Rating(**answer_to(tick))


def answer_to(tick: Any) -> dict[str, Any]:
    return {"grade": f"{tick.symbol}{tick.size % 3}", "points": tick.size}


def start(source: str = "ticks", pipeline: Pipeline | None = None) -> Pipeline:
    begun = pipeline or Pipeline("test")
    return begun.source(source, Tick, out_of_order=10, reject_future=100_000)


def asked(rows: Pipeline) -> Pipeline:
    return rows.ask("rated", rate, into=Rating)


def partly(rows: Pipeline) -> Pipeline:
    windows = rows.partition("p", key="grade")
    return windows.window("w", rp.Tumbling(50), trigger=rp.OnCount(3))


def mapped(rows: Pipeline) -> Pipeline:
    names = [field.name for field in rp.schema_of(Tick).fields]

    def rated(tick: Any) -> dict[str, Any]:
        return {name: getattr(tick, name) for name in names} | answer_to(tick)

    return rows.map("rated", rated, into=RatedTick)


def behind(rows: Pipeline, base: Pipeline) -> Pipeline:
    """End rows in windows, tables, further waiting nodes and a stream; their records go on too."""
    windows = rows.partition("p", key="grade").window("w", rp.Tumbling(50), lateness=20)
    fold = windows.fold("f", n=ra.count(), points=ra.sum("points"), last=ra.last("size"))
    final = fold.finals("final").sink("final-out")
    table = rows.partition("tp", key="symbol").fold("t", n=ra.count(), first=ra.first("points"))
    fewer = rows.distinct("d", "symbol", within=40, lateness=5).sink("d-out")
    strict = rows.derive("over", part=rp.lit(100) // rp.col("points")).sink("strict-out")
    own = base.partition("bp", key="symbol").window("bw", rp.Tumbling(50)).fold("b", n=ra.count())
    return (
        fold.sink("f-out")
        .also(final)
        .also(table.sink("t-out"))
        .also(fewer)
        .also(strict)
        .also(rows.sink("out"))
        .also(own.sink("b-out"))
    )


def happening(events: list[tuple[str, Any]], chance: random.Random) -> list[Any]:
    """Return events, and an answer to each at any time after it, some twice, some a failure."""
    mixed: list[Any] = []
    waiting: list[Answered] = []
    offsets: dict[str, int] = {}
    for source, event in events:
        mixed.append((source, event))
        offset = offsets[source] = offsets.get(source, -1) + 1
        answer = None if chance.random() < 0.1 else _answer(event)
        reason = "" if answer else "no such symbol"
        waiting.append(Answered("rated", source, offset, answer, reason))
        chance.shuffle(waiting)
        while waiting and chance.random() < 0.5:
            one = waiting.pop()
            mixed += [one, one] if chance.random() < 0.1 else [one]
    return mixed + waiting[: chance.randrange(len(waiting) + 1)]


def _answer(event: Any) -> dict[str, Any]:
    size = event["size"] or 0
    return {"grade": f"{event['symbol']}{size % 3}", "points": size}


@settings(max_examples=4 * EXAMPLES)
@given(happened=ticks(extreme=True), seed=st.integers(0, 1 << 30), restart=st.integers(0, 80))
def test_rows_with_answers_equal_their_evaluation_from_scratch(
    happened: Any, seed: int, restart: int
) -> None:
    base = start()
    mixed = happening([("ticks", one) for one in happened], random.Random(seed))
    check_pipeline(behind(asked(base), base), mixed, SIZES, restarts=[min(restart, len(mixed))])


@pytest.mark.parametrize("seed", range(4 * EXAMPLES))
def test_rows_with_answers_of_several_inputs(seed: int) -> None:
    chance = random.Random(seed)
    pipeline = Pipeline("test")
    one, other = start("ticks", pipeline), start("more", pipeline)
    both = rp.union("both", one, other)
    events = [(chance.choice(["ticks", "more"]), event) for event in some(chance)]
    mixed = happening(events, chance)
    check_pipeline(
        behind(asked(both), one), mixed, SIZES, restarts=[chance.randrange(30) % (len(mixed) + 1)]
    )


def some(chance: random.Random) -> list[dict[str, Any]]:
    """Return ticks in some disorder, some of them late and some not valid."""
    clock, events = 0, []
    for _ in range(chance.randrange(1, 40)):
        clock += chance.choice([0, 1, 8, 70])
        events.append(
            {
                "symbol": chance.choice(["AA", "BB", None]),
                "price": None,
                "size": chance.choice([0, 1, 2, 3]),
                "venue": None,
                "timestamp_ns": clock + chance.choice([0, 0, -25, -60, 40]),
            }
        )
    return events


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_in_any_order_give_what_a_map_gives(size: int) -> None:
    chance = random.Random(size)
    events = [one for one in some(chance) + some(chance) if one["symbol"] and one["size"]]
    sinks = [
        every_output(behind(way(base := start()), base), events, size) for way in (asked, mapped)
    ]

    assert sinks[0] == sinks[1]


def every_output(pipeline: Pipeline, events: list[Any], size: int) -> dict[str, list[Any]]:
    """Return the rows of each output, those of tables by their final state, after a real run."""
    plan = pipeline.plan()
    sinks = {output.name: MemorySink() for output in plan.outputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostRecordsWarning)
        rp.run(plan, source=events, sink=sinks, batch_rows=size)
    shown: dict[str, list[Any]] = {}
    for output in plan.outputs:
        rows = sinks[output.name].rows()
        if not output.is_stream:
            last = {tuple(row[f.name] for f in plan.key_of(output)): row for row in rows}
            rows = sorted(
                ({k: v for k, v in row.items() if k != OP} for row in last.values()), key=repr
            )
        shown[output.name] = rows
    return shown


async def unreliable(tick: Tick) -> Any:
    """Answer by the size of a tick: rightly, never, with an error, or with nonsense."""
    match tick.size:
        case 1:
            raise ValueError("unlucky")
        case 2:
            await asyncio.Event().wait()
        case 3:
            return 7
        case 4:
            return {"grade": None, "points": 1}
        case 5:
            return {"grade": "x" * ((1 << 20) + 1), "points": 1}
        case 6:
            raise asyncio.CancelledError
    return Rating("good", tick.size)


def test_rows_without_an_answer_are_left_out_and_named() -> None:
    rows = start().ask("rated", unreliable, into=Rating, retries=0, timeout="20ms").sink("out")
    events = [{**tick(0), "size": size} for size in range(8)]
    sink, reasons = MemorySink(), {}

    def note(engine: Engine, report: Any) -> None:
        for lost in engine.uncomputable.values():
            reasons.update({one.key[1]: one.reason for one in lost.rows})

    with pytest.warns(LostRecordsWarning, match="6 rows of 'rated' without a result"):
        rp.run(rows, source=events, sink=sink, on_batch=note)

    assert [row["size"] for row in sink.rows()] == [0, 7]
    assert reasons == {
        1: "no answer in a call: ValueError: unlucky",
        2: "no answer in a call: TimeoutError: a call took longer than 0.02 s",
        3: "TypeError: the function must return a dict or an object with grade, points, not int",
        4: "the field 'grade' is null",
        5: "the answer has more than 1048576 bytes",
        6: "no answer in a call: CancelledError: the function ended its own call",
    }


def test_an_answer_is_to_a_record_that_was_read() -> None:
    plan = asked(start()).sink("out").plan()
    engine = Engine(plan, inputs=["ticks", LOG])
    (ask,) = plan.asks
    rows = answer_rows(ask, [Outcome(Identity("ticks", 3, 0), Rating("a", 1))])

    with pytest.raises(InputError, match="at offset 3, and the next offset to read is 0"):
        engine.answer(LOG, Answers(watermark.NONE, 1, "rated", rows))
    assert engine.cut == {"ticks": 0, LOG: 0}


def test_new_rows_are_asked_for_once_and_all_after_a_restart() -> None:
    plan = asked(start()).sink("out").plan()
    engine = Engine(plan, inputs=["ticks", LOG])
    engine.apply("ticks", records_of([tick(0), tick(1)], plan.source.fields), 2)
    first = engine.unanswered()["rated"]
    again = engine.unanswered()
    engine.stabilize()
    restored = Engine.restore(plan, engine.snapshot()).unanswered()["rated"]

    assert first.column("ripple.offset").to_pylist() == [0, 1]
    assert again == {}
    assert restored.equals(first)


def test_held_rows_stay_where_other_code_has_changed() -> None:
    def line(fold: str) -> Pipeline:
        return asked(start()).partition("p", key="symbol").fold(fold, n=ra.count()).sink("out")

    before, now = line("f").plan(), line("g").plan()
    engine = Engine(before, inputs=["ticks", LOG])
    engine.apply("ticks", records_of([tick(0), tick(1), tick(2)], before.source.fields), 3)
    (ask,) = before.asks

    def answer(engine: Engine, offset: int, end: int) -> None:
        outcome = Outcome(Identity("ticks", offset, 0), Rating("a", 1))
        engine.answer(LOG, Answers(watermark.NONE, end, "rated", answer_rows(ask, [outcome])))
        engine.stabilize()

    answer(engine, 1, 1)
    found = decide(now, engine.snapshot()).snapshot
    assert found is not None
    restored = Engine.restore(now, found)

    assert restored.unanswered()["rated"].column("ripple.offset").to_pylist() == [0, 2]
    assert restored.asked_size[0] == 3
    for one in (engine, restored):
        answer(one, 0, 2)
    assert restored.asked_size[0] == 1
    assert restored.digests == engine.digests != {}


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda p: p.ask("a", answer_to, into=Rating), "it takes an async function of a row"),
        (lambda p: p.ask("a", rate, into=Tick), "there is a field 'symbol' already"),
        (lambda p: p.ask("a", rate, into=Rating, timeout=0), "timeout is 0"),
        (lambda p: p.ask("a", rate, into=Rating, retries=1001), "retries is 1001"),
        (lambda p: p.ask("a", rate, into=Rating, concurrency=0), "concurrency is 0"),
        (lambda p: asked(p).ask("b", rate, into=Rating), "'rated' gives rows later: ask before"),
        (lambda p: asked(p.distinct("d", "symbol", within=1)), "'d' gives rows later: ask before"),
        (lambda p: asked(p.partition("k", key="symbol")), "put it before"),
        (lambda p: asked(counted(p)), "ask before .partition"),
        (
            lambda p: asked(p).flat_map("f", list, into=Tick),
            "before .distinct, .scan, .ask and joins",
        ),
        (lambda p: partly(asked(p)), "the order in which rows of 'rated' come: use OnWatermark"),
        (lambda p: rp.union("u", p.ask("a", rate, into=Rating), asked(p)), "rows of the same"),
    ],
)
def test_what_may_not_be_asked(write: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        write(start())


def counted(rows: Pipeline) -> Pipeline:
    return rows.partition("k", key="symbol").fold("f", n=ra.count())


def test_a_cluster_takes_an_ask_and_spark_needs_its_answers() -> None:
    pipeline = asked(start()).sink("out")
    need_one_division(pipeline.plan(), "a cluster", is_one=True)
    with pytest.raises(PlanError, match="'rated' asks, and Spark calls nobody: replay it with ans"):
        check_plan(pipeline.plan())


def test_rows_with_answers_are_divided_anew_by_a_fold_over_a_fold() -> None:
    graded = asked(Pipeline("p").source("ticks", Tick, key="symbol", out_of_order=10))
    by_both = graded.partition("both", key=("symbol", "grade")).fold("f", n=ra.count())
    over = by_both.partition("over", key="grade", partitions=2).fold("g", n=ra.sum("n"))
    need_one_division(plan := over.sink("out").plan(), "a cluster")
    assert [stage.folds for stage in stages_of(plan)] == [("f",), ("g",)]
    at_once = graded.partition("over", key="grade").fold("g", n=ra.count()).sink("out").plan()
    said = r"g needs all of one grade: .* or fold by symbol, grade first, and the rows .* by grade$"
    with pytest.raises(PlanError, match=said):
        need_one_division(at_once, "a cluster")


async def test_a_one_shot_run_that_asks_needs_its_own_event_loop() -> None:
    pipeline = asked(start()).sink("out")
    with pytest.raises(RuntimeError, match=r"await rp\.arun"):
        rp.run(pipeline, source=[tick(0)], sink=MemorySink())
    await rp.arun(pipeline, source=[tick(0)], sink=(sink := MemorySink()))
    assert [row["grade"] for row in sink.rows()] == ["AA1"]


def tick(at_ns: int) -> dict[str, Any]:
    return {"symbol": "AA", "price": 1.0, "size": 1, "venue": None, "timestamp_ns": at_ns}
