"""``ripple.run``: what may be read and written, what is told of records that do not count."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pydantic
import pytest

import ripple as rp
from ripple.connectors.contract import BasicSink, Commit
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.locate import open_sink, open_source
from ripple.connectors.memory import MemorySink, MemorySource
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.source_inputs import SourceInputs
from ripple.model.batch import Batch
from ripple.storage.log import LogSettings, Topic
from ripple.storage.log.router import TopicWriter
from ripple.task.one_shot import at_once, entries
from ripple.world import LiveClock, LiveDisk


@rp.record(version=1)
class Reading:
    name: str
    level: float
    note: str | None = None
    at_ns: rp.Timestamp = 0


@dataclasses.dataclass
class Plain:
    name: str
    level: float
    at_ns: int = 0


class Struct(msgspec.Struct):
    name: str
    level: float
    at_ns: int = 0


class Model(pydantic.BaseModel):
    name: str
    level: float
    at_ns: int = 0


READINGS = rp.Pipeline("p").source("s", Reading)
LINE = READINGS.partition("k", key="name")
PIPELINE = LINE.fold("f", n=rp.count(), sum=rp.sum("level")).sink("o")
WINDOWED = LINE.window("w", rp.Tumbling(10), lateness=0).fold("f", n=rp.count()).sink("o")
ROWS: list[dict[str, Any]] = [
    {"name": name, "level": level, "at_ns": at}
    for at, (name, level) in enumerate([("a", 1.0), ("b", 2.5), ("a", 4.0)])
]
TABLE = pa.Table.from_pylist(ROWS)


class Lazy:
    """A lazy frame of a library that is not known."""

    def collect(self) -> None: ...


async def arows() -> AsyncIterator[dict[str, Any]]:
    yield ROWS[0]


SOURCES: dict[str, Callable[[], Any]] = {
    "mappings": lambda: ROWS,
    "a tuple of mappings": lambda: tuple(ROWS),
    "an iterator of mappings": lambda: iter(ROWS),
    "records": lambda: [Reading(**row) for row in ROWS],
    "dataclasses": lambda: [Plain(**row) for row in ROWS],
    "structs": lambda: [Struct(**row) for row in ROWS],
    "models": lambda: [Model(**row) for row in ROWS],
    "an iterator of records": lambda: (Reading(**row) for row in ROWS),
    "a table": lambda: TABLE,
    "a record batch": lambda: TABLE.to_batches()[0],
    "tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "an iterator of batches": lambda: iter(TABLE.to_batches(max_chunksize=2)),
    "a reader": TABLE.to_reader,
    "a pandas frame": lambda: pd.DataFrame(ROWS),
    "a polars frame": lambda: pl.DataFrame(ROWS),
    "a lazy frame": lambda: pl.LazyFrame(ROWS).with_columns(other=1),
    "a dataset": lambda: ds.dataset(TABLE),
    "a relation of duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "several kinds": lambda: [ROWS[0], TABLE.slice(1, 1), Reading(**ROWS[2])],
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("batch_rows", [1, 1000])
def test_whatever_holds_records_can_be_read(kind: str, batch_rows: int) -> None:
    sink = MemorySink()
    report = rp.run(PIPELINE, source=SOURCES[kind](), sink=sink, batch_rows=batch_rows)
    shown = {row["name"]: (row["n"], row["sum"]) for row in sink.rows()}
    assert shown == {"a": (2, 5.0), "b": (1, 2.5)}
    assert (report.consumed, report.applied, report.rejected.total()) == (3, 3, 0)


def test_records_of_several_kinds_keep_their_order() -> None:
    source = open_source(SOURCES["several kinds"](), rp.schema_of(Reading), name="s")
    rows = [row for batch in entries(source, 10) for row in batch.records.to_pylist()]
    assert [row["at_ns"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize(
    "slices",
    [
        [TABLE],
        [TABLE.to_pandas()],
        [pl.DataFrame(TABLE)],
        [ROWS],
        ROWS,
        [Reading(**row) for row in ROWS],
        [[], ROWS[:1], tuple(ROWS[1:])],
        TABLE.to_batches(max_chunksize=1),
    ],
)
@pytest.mark.parametrize("pipeline", [PIPELINE, PIPELINE.also(READINGS.sink("rows"))])
def test_an_engine_takes_what_a_run_takes(slices: list[Any], pipeline: Any) -> None:
    engine, expected = (rp.Engine(pipeline.plan()) for _ in range(2))
    expected.apply("s", TABLE.combine_chunks().to_batches()[0], 3)
    for rows in slices:
        engine.apply("s", rows)
    assert engine.cut == {"s": 3}
    for one in (engine, expected):
        one.stabilize()
    assert engine.digest == expected.digest


def test_iterator_is_read_as_far_as_is_needed_and_once() -> None:
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield ROWS[0]

    source = open_source(endless(), rp.schema_of(Reading), name="s", batch_rows=10)
    batches = entries(source, 10, {"s": 25})
    assert [next(batches).next_offset for _ in range(3)] == [30, 40, 50]
    assert taken <= 3001  # two blocks, what a thread has ready, and its next one
    at_once(source.close())
    with pytest.raises(rp.InputError, match="s: an iterator can be read once"):
        next(entries(source, 10))


class TestRefusals:
    """Each names what was given and what is wanted."""

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (None, "cannot read from None: give a path .*, -, log:DIR/TOPIC"),
            (7, "cannot read from an object of type int: give a path"),
            (b"a.csv", "cannot read from an object of type bytes"),
            (
                Lazy(),
                "type Lazy: .*; a lazy frame is one after .collect",
            ),
            (
                arows(),
                r"type async_generator: .*; an async iterable is one in await rp\.arun",
            ),
            (
                {"name": ["a"]},
                "type dict: .*; put one record into a list, and columns into a pa.*here 's'",
            ),
            ({"x": [ROWS[0]]}, "there is no source 'x': the pipeline reads s. Leave it out"),
            (arows, r"type function: .*; call it, as in arows\(\): what it returns yields"),
            (MemorySource, "cannot read from <class .*MemorySource'>"),
            ([b"a"], "row 0 of the source is b'a' .bytes.: rows are mappings by field name"),
            ([ROWS[0], ("a", 1.0)], "row 1 of the source is .'a', 1.0. .tuple."),
            (iter([3]), "row 0 of the source is 3 .int."),
            (pd.Series([1.0]), "the Series has no columns with names"),
        ],
    )
    def test_sources(self, source: Any, message: str) -> None:
        sink = MemorySink()
        with pytest.raises(rp.InputError, match=message):
            rp.run(PIPELINE, source=source, sink=sink)
        assert not sink.finished

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ([{"Name": "a", "level": 1.0, "at_ns": 1}] * 3, "no column 'name': it has Name, level"),
            (iter([{"Name": "a", "level": 1.0}]), "the source has no column 'name'"),
            ([{}], "no column 'name': it has none"),
            ([TABLE.drop_columns("level")], "the table has no column 'level': it has name, at_ns"),
            (pl.DataFrame({"a": [1]}), "the DataFrame has no column 'name': it has a"),
        ],
    )
    def test_a_column_that_no_record_has(self, source: Any, message: str) -> None:
        with pytest.raises(rp.SchemaError, match=message):
            rp.run(PIPELINE, source=source, sink=MemorySink())

    def test_records_with_none_of_the_fields(self) -> None:
        @rp.record
        class Loose:
            name: str | None
            level: float | None

        schema = rp.schema_of(Loose)
        for source in ([{"Name": "a"}], [pa.table({"Name": ["a"]})]):
            with pytest.raises(rp.SchemaError, match="none of the columns name, level: it has Na"):
                open_source(source, schema, name="s")
        [batch] = entries(open_source([{"level": 1.0}], schema, name="s"), 10)
        assert batch.records.to_pylist() == [{"name": None, "level": 1.0}]

    @pytest.mark.parametrize("batch_rows", [0, -1, "5", 1.5, True])
    @pytest.mark.parametrize("source", [ROWS, iter(ROWS), TABLE, "none.csv", "none.parquet"])
    def test_batches_of_no_rows(self, source: Any, batch_rows: Any) -> None:
        with pytest.raises(rp.InputError, match=r"batch_rows must be a whole number of at least 1"):
            rp.run(PIPELINE, source=source, sink=MemorySink(), batch_rows=batch_rows)

    @pytest.mark.parametrize("sink", [None, 7, (), MemorySink, {"o": None}])
    def test_sinks(self, sink: Any) -> None:
        with pytest.raises(rp.OutputError, match=r"cannot write to .*: give a .csv, .jsonl"):
            rp.run(PIPELINE, source=ROWS, sink=sink)
        if isinstance(sink, dict):
            return
        with pytest.raises(rp.OutputError, match=r"cannot write .*: .* .jsonl or .parquet"):
            open_sink(sink, PIPELINE.plan(), "o", continues=True)

    def test_pipelines(self) -> None:
        with pytest.raises(rp.PlanError, match="runs is a Pipeline or its plan, not NoneType"):
            rp.run(None, source=ROWS, sink="-")  # type: ignore[arg-type]
        with pytest.raises(
            rp.PlanError, match=r"must be what pipeline.plan\(\) returns, not <Pipeline"
        ):
            rp.Engine(PIPELINE)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda run: run(PIPELINE, source=[]), r"rp\.run: .*'sink': write rp\.run\(pipeline, "),
            (
                lambda run: run(PIPELINE, [], "-"),
                r"rp\.run: .*: write .*source=\.\.\., sink=\.\.\.\)",
            ),
            (
                lambda run: run(PIPELINE, source=[], sink="-", batch=1),
                r"rp\.run: .*'batch': write .*, optionally with batch_rows=, ",
            ),
            # Not that there is no sink, which is not what is wrong.
            (
                lambda run: run(PIPELINE, source=[], snk="-"),
                r"'snk' \(did you mean 'sink'\?\): w",
            ),
            (lambda run: run("p.py", source=[], sink="-"), r"not str: import it .*ripple run FILE"),
            (lambda _: rp.Task(PIPELINE), r"rp\.Task: .*'source': write rp\.Task\(pipeline, so"),
            (lambda _: rp.Engine(), r"rp\.Engine: .*'plan': write rp\.Engine\(plan\)"),
        ],
    )
    def test_calls_that_do_not_fit(self, call: Callable[[Any], Any], said: str) -> None:
        with pytest.raises(rp.PlanError, match=said):
            call(rp.run)

    @pytest.mark.parametrize("name", ["on_batch", "header", "strict", "dead_letters"])
    def test_arguments(self, name: str) -> None:
        with pytest.raises(rp.RippleError, match=f"^{name} must be .* not 5$"):
            rp.run(PIPELINE, source=[], sink=MemorySink(), **{name: 5})

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (3, "apply takes a row as a dict .* not 3"),
            ([*ROWS, 3], "apply takes a row as a dict .* not 3"),
            ([{"name": "a", "level": 1.0, "at_ns": 1.5}], "does not have the declared types"),
            ({"name": "a", "level": "high", "at_ns": 1}, "does not have the declared types"),
            ([{"name": "a", "level": 1.0}, {"name": 2}], "apply takes .* not .*: "),
            ({"name": "a"}, "lacks the fields .'level'"),
        ],
    )
    def test_rows_for_an_engine(self, rows: Any, said: str) -> None:
        engine = rp.Engine(PIPELINE.plan())
        with pytest.raises(rp.InputError, match=said):
            engine.apply("s", rows)
        assert engine.cut == {"s": 0}

    def test_output_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "o.csv").write_text("mine")
        with pytest.raises(rp.InputError):
            rp.run(PIPELINE, source=[*ROWS, 3], sink=tmp_path / "o.csv")
        assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]
        assert (tmp_path / "o.csv").read_text() == "mine"


class Failing:
    """A source that fails, and cannot be closed either."""

    name = "failing"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        assert from_offset == 0
        if self._error is not None:
            raise self._error
        [batch] = MemorySource(ROWS, RecordShape(rp.schema_of(Reading))).batches()
        yield batch

    def close(self) -> None:
        raise OSError("cannot be closed")


class Closed(MemorySource):
    """A source that counts its closings."""

    times = 0

    def close(self) -> None:
        self.times += 1


class ClosedLater(MemorySource):
    """A source whose close would have to be awaited."""

    async def close(self) -> None:  # type: ignore[override]
        raise AssertionError("nobody calls it")


class ReadLater(MemorySource):
    """A source whose batches would have to be awaited."""

    async def batches(self, from_offset: int = 0) -> Any:  # type: ignore[override]
        yield from_offset


class TwoInputs(SourceInputs):
    """A source as two inputs."""

    names = ("s/0", "s/1")


@pytest.mark.parametrize(("kind", "method"), [(ClosedLater, "close"), (ReadLater, "batches")])
def test_a_source_with_an_async_method_is_refused(kind: type, method: str) -> None:
    source, sink = kind([], RecordShape(rp.schema_of(Reading))), MemorySink()
    with pytest.raises(rp.InputError, match=f"{method} is async, .* write def {method}"):
        rp.run(PIPELINE, source=source, sink=sink)
    assert not sink.finished


@pytest.mark.parametrize("method", ["write", "commit", "close"])
def test_a_sink_with_an_async_method_is_refused(method: str) -> None:
    async def later(self: BasicSink, *_: Any) -> None:
        raise AssertionError("nobody calls it")

    sink = type("Later", (BasicSink,), {"write": BasicSink.write, method: later})()
    with pytest.raises(rp.OutputError, match=f"sink 'Later': {method} is async, .* write def"):
        rp.run(PIPELINE, source=ROWS[:1], sink=sink)


def test_inputs_that_are_refused_are_closed() -> None:
    keyed = rp.Pipeline("p").source("s", Reading).partition("by", key="name")
    window = keyed.window("w", rp.Tumbling("1s"), trigger=rp.OnCount(2))
    source = Closed([], RecordShape(rp.schema_of(Reading)))
    with pytest.raises(rp.InputError, match="by OnCount or OnInterval"):
        rp.run(
            window.fold("f", n=rp.count()).sink("o"), source=TwoInputs(source), sink=MemorySink()
        )
    assert source.times == 1


def test_a_source_is_never_its_own_sink(tmp_path: Path) -> None:
    file = tmp_path / "levels.csv"
    file.write_text("a,1.0,0\n")
    for given in ({"sink": file}, {"sink": MemorySink(), "dead_letters": str(file)}):
        with pytest.raises(rp.OutputError, match="it is the run's own source"):
            rp.run(PIPELINE, source=file, **given)
    assert file.read_text() == "a,1.0,0\n"


def test_a_strict_error_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "levels.csv"
    file.write_text("a,high,0\n")
    with pytest.raises(rp.InputError, match=rf"{file}, line 1: level is not a number"):
        rp.run(PIPELINE, source=file, sink=MemorySink(), strict=True)


def test_why_a_run_failed_is_not_hidden_by_what_fails_then(tmp_path: Path) -> None:
    letters = tmp_path / "bad.jsonl"
    with pytest.raises(rp.InputError, match="the cause") as caught:
        rp.run(
            PIPELINE,
            source=Failing(rp.InputError("the cause")),
            sink=MemorySink(),
            dead_letters=letters,
        )
    assert caught.value.__notes__ == ["and then: cannot be closed"]
    with pytest.raises(OSError, match="cannot be closed"):
        rp.run(PIPELINE, source=Failing(None), sink=MemorySink(), dead_letters=letters)
    assert letters.read_text() == ""  # completed all the same


BAD = [
    {"name": "a", "level": 1.0, "at_ns": 0},
    {"name": None, "level": 1.0, "at_ns": 1},
    {"name": "a", "level": None, "at_ns": 500},
    {"name": "a", "level": 1.0, "at_ns": 400},
    {"name": "a", "level": 1.0, "at_ns": 300},
    {"name": None, "level": 1.0, "at_ns": 2},
]


def test_records_that_do_not_count_are_told_once_and_reported() -> None:
    with pytest.warns(rp.LostRecordsWarning) as told:
        report = rp.run(WINDOWED, source=BAD, sink=MemorySink(), batch_rows=1)
    [warning] = told
    assert str(warning.message) == (
        "pipeline 'p': of 6 records, some do not count: 3 rejected (name is empty: 2, "
        "level is empty: 1; dead_letters= keeps them), 1 too late for their windows "
        "(a larger out_of_order= of the source, or lateness=, counts them)"
    )
    assert warning.filename == __file__
    assert (report.consumed, report.applied, report.very_late) == (6, 2, 1)
    assert report.rejected == {"name is empty": 2, "level is empty": 1}
    assert report.letters is None
    assert report.consumed == report.applied + report.very_late + report.rejected.total()


def test_records_that_are_kept_are_not_warned_of(tmp_path: Path) -> None:
    letters = tmp_path / "bad.jsonl"
    report = rp.run(PIPELINE, source=BAD, sink=MemorySink(), dead_letters=letters)
    assert report.letters == str(letters)
    offsets = [json.loads(line)["offset"] for line in letters.read_text().splitlines()]
    assert offsets == [1, 2, 5]
    counted = DeadLetters()
    rp.run(PIPELINE, source=BAD, sink=MemorySink(), dead_letters=counted)
    assert counted.total == 3


def test_only_the_most_frequent_reasons_are_told() -> None:
    def fail(row: Reading) -> Reading:
        raise ValueError(f"no {row.level}")

    pipeline = rp.Pipeline("p").source("s", Reading).map("m", fail, into=Reading)
    folded = pipeline.partition("k", key="name").fold("f", n=rp.count()).sink("o")
    rows = [{"name": "a", "level": float(n % 7), "at_ns": 0} for n in range(70)]
    with pytest.warns(rp.LostRecordsWarning, match=r"70 rejected \(.*ValueError: no 4.0: 10, ...;"):
        rp.run(folded, source=rows, sink=MemorySink(), max_rejected="100%")


def test_strict_run_stops_at_the_first_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(rp.InputError, match="s, offset 1: name is empty"):
            rp.run(PIPELINE, source=BAD, sink=MemorySink(), strict=True)
        assert rp.run(PIPELINE, source=ROWS, sink=MemorySink()).applied == 3


def test_counts_are_there_while_it_runs() -> None:
    seen: list[tuple[int, int]] = []
    rp.run(
        PIPELINE,
        source=BAD,
        sink=MemorySink(),
        batch_rows=2,
        dead_letters=DeadLetters(),
        on_batch=lambda _, report: seen.append((report.consumed, report.rejected.total())),
    )
    assert seen == [(2, 1), (4, 2), (6, 3), (6, 3)]


def test_run_goes_inside_of_a_running_event_loop() -> None:
    """A notebook has one."""

    async def cell() -> list[dict[str, Any]]:
        sink = MemorySink()
        rp.run(PIPELINE, source=ROWS, sink=sink)
        return sink.rows()

    assert len(asyncio.run(cell())) == 2


class Written(BasicSink):
    """Notes the calls; the second write fails if it is told so."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[Any] = []
        self._fails = fails

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        if self._fails and self.calls:
            raise rp.OutputError("no room")
        self.calls.append(("write", reached.cut))

    def commit(self, reached: Commit) -> None:
        self.calls.append(("commit", reached.cut))

    def close(self) -> None:
        self.calls.append("close")


def test_sink_is_committed_once_when_the_input_has_ended() -> None:
    sink = Written()
    rp.run(PIPELINE, source=ROWS, sink=sink, batch_rows=2)
    assert sink.calls == [
        ("write", {"s": 2}),
        ("write", {"s": 3}),
        ("commit", {"s": 3}),
        "close",
    ]


def test_sink_of_a_run_that_fails_is_closed_without_a_commit() -> None:
    failing, other = Written(fails=True), Written()
    pipeline = LINE.fold("f", n=rp.count()).sink("a").sink("b")
    with pytest.raises(rp.OutputError, match="no room"):
        rp.run(pipeline, source=ROWS, sink={"a": failing, "b": other}, batch_rows=2)
    assert failing.calls == [("write", {"s": 2}), "close"]
    assert other.calls[-1] == "close"
    assert ("commit", {"s": 3}) not in other.calls


def test_all_partitions_of_a_log_are_read_as_a_run_that_goes_on_reads_them(tmp_path: Path) -> None:
    @rp.record(version=1)
    class Tick:
        k: str
        n: int
        t: rp.Timestamp

    windows = rp.Pipeline("p").source("ticks", Tick).partition("by", key="k")
    plan = windows.window("w", rp.Tumbling("10s")).fold("f", n=rp.sum("n")).sink("out").plan()
    disk = LiveDisk(tmp_path)
    settings = LogSettings(segment_bytes_max=4096, retention_bytes_max=1 << 40)
    topic = Topic.create(disk, "t", plan.source.schema, partitions=3, key=["k"], settings=settings)
    rows = [{"k": f"k{i % 7}", "n": i, "t": i * 10**9} for i in range(200)]
    with TopicWriter(topic, LiveClock()) as writer:
        for first in range(0, 200, 20):
            batch = pa.RecordBatch.from_pylist(rows[first : first + 20])
            writer.append(batch)
    sink = MemorySink()
    report = rp.run(plan, source=f"log:{tmp_path}/t", sink=sink, batch_rows=7)
    expected = MemorySink()
    rp.run(plan, source=rows, sink=expected)
    key = itemgetter("k", "window_start_ns")
    assert sorted(sink.rows(), key=key) == sorted(expected.rows(), key=key)
    assert report.consumed == 200
    assert report.very_late == 0
