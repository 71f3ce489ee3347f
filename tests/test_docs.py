"""The Python in the documents runs as it stands."""

from __future__ import annotations

import asyncio
import doctest
import json
import re
import runpy
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import ripple as rp
from bench.kafka_pipeline import PIPELINE
from ripple.cli.lib.connector_template import files_of
from ripple.connectors.registry import OF_STREAMS, USES, UseName, own
from ripple.model.pipeline.topology import stages_of
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import DiskStore
from ripple.world import live_world
from tests.cli.processes import RIPPLE, ripple, run
from tests.csv_rows import lines_of, text_of
from tests.plan_example import TRADES
from tests.storage.checkpoint.kit import fed_engine

ROOT = Path(__file__).resolve().parent.parent
EVENT = """
import pyarrow as pa
event = {"symbol": "A", "price": 1.0, "size": 1, "timestamp_ns": 5, "venue": "X"}
record_batch, next_offset = pa.RecordBatch.from_pylist([event]), 1
"""


def _python(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def _module(folder: Path, code: str) -> str:
    (folder / "module.py").write_text(code)
    return str(folder / "module.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trades.csv").write_text(TRADES)
    return tmp_path


def test_readme_pipeline_writes_a_row_per_window(folder: Path) -> None:
    (code,) = _python("README.md")
    (folder / "vwap.py").write_text(code)
    runpy.run_path("vwap.py", run_name="__main__")
    window = "1708999980000000000,1709000040000000000"
    assert text_of(folder / "vwap.csv") == f"AAPL,{window},150.16666666666666,300,2\n"


def test_pipelines_document_runs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    readme, guide = _python("README.md"), _python("docs/pipelines.md")
    legs, portfolio, totals, branches, ending, finals, distinct, sources, *more, engine, row = guide
    end = 'rp.run(positions, source="trades.csv", sink="positions.csv")\n'
    streams = [branches, ending, finals, distinct, sources, *more]
    code = "".join([*readme, legs, end, portfolio, totals, *streams, EVENT, engine, row])
    (folder / "guide.py").write_text(code)
    names = runpy.run_path("guide.py", run_name="guide")
    assert capfd.readouterr().out == "150.16666666666666,1\n"
    assert text_of(folder / "vwaps.csv") == "AAPL,150.16666666666666,45050.0\n"
    assert text_of(folder / "large.csv") == TRADES.splitlines(keepends=True)[1]
    assert text_of(folder / "volumes.csv") == "AAPL,300\n"
    assert text_of(folder / "positions.csv") == "house,-300\nXNAS,300\n"
    assert text_of(folder / "per-minute.csv") == "1708999980000000000,300,1\n"
    minute = "1708999980000000000,1709000040000000000"
    (closed,) = lines_of(folder / "minutes.csv")
    assert closed.startswith(f"AAPL,{minute},")
    assert text_of(folder / "running.csv").startswith("AAPL,2,")
    first, _ = TRADES.splitlines(keepends=True)
    assert text_of(folder / "opened.csv") == first
    (hour,) = lines_of(folder / "hours.csv")
    assert hour.startswith("AAPL,1708999200000000000,1709002800000000000,1709000040000000000,")
    bars = lines_of(folder / "bars.csv")
    assert [line.rsplit(",", 1)[1] for line in bars] == ["1", "2"]
    assert bars[0].startswith("IBM,1699999980000000000,1700000040000000000,100.0,")
    fills = [line.split(",") for line in lines_of(folder / "fills.csv")]
    assert [line[-3:] for line in fills] == [["150.0", "150.5", "1708999998000000000"], [""] * 3]
    near = [line.split(",") for line in lines_of(folder / "near.csv")]
    assert near == fills
    assert (folder / "accounts.jsonl").read_text() == (
        '{"op":"set","id":1,"country":"DE","balance":12.0}\n'
    )
    assert (folder / "balances.jsonl").read_text() == (
        '{"op":"set","country":"DE","balance":12.0,"accounts":1}\n'
    )
    (row,) = (folder / "rates.jsonl").read_text().splitlines()
    assert row == '{"op":"set","currency":"EUR","rate":1.08,"at":1700000100000000000}'
    (row,) = (folder / "hourly.jsonl").read_text().splitlines()
    assert row.endswith('"changes":2,"last":1.08}')
    assert names["engine"].cut == {"trades": 2}


def test_ordered_state_and_event_time_documents_run(folder: Path) -> None:
    pages = [*_python("README.md"), *_python("docs/ordered-state.md")]
    (folder / "pages.py").write_text("".join([*pages, *_python("docs/event-time.md")]))
    names = runpy.run_path("pages.py", run_name="pages")
    assert names["kept"] == names["made"]
    pulses = lines_of(folder / "pulses.csv")
    assert pulses == ["AAPL,1,false", "AAPL,2,false", "AAPL,2,true"]
    (bar,) = lines_of(folder / "bars.csv")
    assert bar.startswith("AAPL,0,")
    assert bar.endswith(",300")
    assert lines_of(folder / "of-fills.csv") == [
        "a,100,1000.00,0.00,0.00,-1000.00,1.00",
        "a,-20,-220.00,100.00,100.00,320.00,2.00",
        "a,100,1000.00,0.00,0.00,-1000.00,1.00",  # the second fill was busted
    ]
    assert lines_of(folder / "split.csv")[1:] == [
        "a,-49,-343.00,-303.00,-303.00,40.00",
        "a,1,6.67,49.97,50.00,43.30",
    ]


def test_python_document_runs(folder: Path) -> None:
    (folder / "page.py").write_text("".join(_python("docs/python.md")))
    runpy.run_path("page.py", run_name="page")


def test_order_books_document_runs(folder: Path) -> None:
    (folder / "books.py").write_text("".join(_python("docs/order-books.md")))
    with pytest.warns(rp.LostRecordsWarning, match="a gap"):
        runpy.run_path("books.py", run_name="books")
    rows = [json.loads(line) for line in (folder / "tops.jsonl").read_text().splitlines()]
    found = [(row["status"], row["bid"], row["ask"], row["gaps"]) for row in rows]
    assert found == [
        *(("loading", None, None, 0), ("open", 99.0, 101.0, 0), ("open", 100.0, 101.0, 0)),
        *(("gap", None, None, 1), ("open", None, None, 1)),
    ]
    rows = [json.loads(line) for line in (folder / "levels.jsonl").read_text().splitlines()]
    assert {(row["side"], row["price"]): row["size"] for row in rows} == {
        ("B", 396): 10, ("A", 404): 8, ("B", 400): 5,
    }  # fmt: skip


def test_joins_document_runs(folder: Path) -> None:
    at_once, pairs_now, code, many, constants = _python("docs/joins.md")
    (folder / "now.py").write_text(at_once)
    runpy.run_path("now.py", run_name="now")
    rows = [json.loads(line) for line in (folder / "trades.jsonl").read_text().splitlines()]
    assert {row["row_offset"]: row["worth"] for row in rows} == {0: 3.0, 1: 7.5}
    assert json.loads((folder / "totals.jsonl").read_text().splitlines()[-1])["worth"] == 10.5
    (folder / "fills.py").write_text(pairs_now)
    runpy.run_path("fills.py", run_name="fills")
    rows = [json.loads(line) for line in (folder / "pairs.jsonl").read_text().splitlines()]
    of = {(row["order"], row["right_input"]) for row in rows if row["op"] == "set"}
    assert of >= {("a", "fills"), ("b", "")}
    rows = [json.loads(line) for line in (folder / "filled.jsonl").read_text().splitlines()]
    assert {row["order"]: row["n"] for row in rows} == {"a": 1, "b": 0}
    (folder / "orders.csv").write_text("a,1,2.5,1\nb,2,3.5,2\na,1,4.5,3\n")
    (folder / "customers.jsonl").write_text('{"customer":1,"name":"Ann","closed":false}\n')
    (folder / "shop.py").write_text(code)
    runpy.run_path("shop.py", run_name="shop")
    rows = [json.loads(line) for line in (folder / "named.jsonl").read_text().splitlines()]
    newest = {row["order"]: (row["price"], row["changes"], row["name"]) for row in rows}
    assert json.loads((folder / "worth.jsonl").read_text().splitlines()[-1])["price"] == 8.0
    assert newest == {"a": (4.5, 2, "Ann"), "b": (3.5, 1, None)}
    position = '{"account":"%s","symbol":"%s","size":1}\n'
    pairs = [("a", "x"), ("b", "x"), ("b", "y")]
    (folder / "positions.jsonl").write_text("".join(position % one for one in pairs))
    notice = '{"notice":%d,"symbol":%s,"words":"up"}\n'
    said = [(1, '"x"'), (2, '"x"'), (3, "null")]
    (folder / "notices.jsonl").write_text("".join(notice % one for one in said))
    (folder / "desk.py").write_text(many)
    runpy.run_path("desk.py", run_name="desk")
    rows = [json.loads(line) for line in (folder / "concerned.jsonl").read_text().splitlines()]
    found = {(row["account"], row["symbol"], row["notice"]) for row in rows}
    assert found == {(one, "x", number) for one in "ab" for number in (1, 2)}
    (folder / "lots.py").write_text(constants)
    runpy.run_path("lots.py", run_name="lots")
    assert (folder / "lots.jsonl").read_text() == '{"op":"set","venue":"X","lots":3}\n'


def test_sources_document_names_the_clock_as_a_source(folder: Path) -> None:
    (readme,), (times, code) = _python("README.md"), _python("docs/sources.md")
    (folder / "beats.py").write_text(readme + times + code)
    task = runpy.run_path("beats.py", run_name="beats")["task"]
    assert [one.name for one in task.plan.sources] == ["trades", "ticks"]


def test_sinks_document_continues_a_file(folder: Path) -> None:
    (pipeline,), (code, _) = _python("README.md"), _python("docs/sinks.md")
    before = """
from ripple.connectors.contract import Commit
from ripple.engine.machine import Engine
plan = pipeline.plan()
reached = Commit({"trades": 0}, "d")
changes = Engine(plan).stabilize().outputs["output"]
"""
    (folder / "guide.py").write_text("".join([pipeline, before, code, "sink.close()\n"]))
    assert runpy.run_path("guide.py", run_name="guide")["sink"].committed is not None
    record = json.loads((folder / "out.csv.cut").read_text().splitlines()[0])
    shown = re.search(r"^{.*}$", (ROOT / "docs/sinks.md").read_text(), re.MULTILINE)
    assert shown is not None
    assert list(record) == list(json.loads(shown[0]))
    assert record["reached"] == {"cut": {"trades": 0}, "digest": "d"}


def test_sinks_document_shows_a_sink_of_your_own(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (pipeline,), (_, code) = _python("README.md"), _python("docs/sinks.md")
    (folder / "guide.py").write_text(pipeline + code)
    runpy.run_path("guide.py", run_name="guide")
    assert capfd.readouterr().out == "{'AAPL': 150.16666666666666}\n"


def test_changing_document_migrates(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    readme, code = _python("README.md"), _python("docs/changing.md")
    (folder / "guide.py").write_text("".join([*readme, EVENT, *code]))
    names = runpy.run_path("guide.py", run_name="guide")
    assert capfd.readouterr().out == "migrate\n"
    (row,) = names["engine"].table("rows").to_pylist()
    assert row == {"symbol": "A", "trades": 1, "volume": 1}
    (at,) = (node for node in names["going_on"].comparison.nodes if node.migration)
    assert at.kind == "fold"
    engine = names["Engine"](names["first"])
    engine.apply("trades", names["record_batch"], names["next_offset"])
    engine.stabilize()
    scanned = names["decide"](names["then"], engine.snapshot()).comparison.nodes
    assert [one.verdict.value for one in scanned[1:3]] == ["migrate"] * 2


def test_checkpoints_document_finds_the_latest(folder: Path) -> None:
    (code,) = _python("docs/checkpoints.md")
    (folder / "guide.py").write_text(code)
    assert runpy.run_path("guide.py")["snapshot"] is None
    world, engine = live_world("checkpoints"), fed_engine(10, 10)

    async def write() -> None:
        checkpoints = Checkpoints(DiskStore(world.disk, world.random), "vwap")
        owner = await checkpoints.claim(world.clock, world.random)
        await owner.write(engine.snapshot())

    asyncio.run(write())
    snapshot = runpy.run_path("guide.py")["snapshot"]
    assert snapshot == engine.snapshot()


def test_recovery_document_runs_durably_and_in_a_service(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (pipeline,), (call, service) = _python("README.md"), _python("docs/recovery.md")
    assert ripple("log", "create", "--schema", "trade", folder / "data/trades").code == 0
    assert ripple("log", "append", folder / "data/trades", folder / "trades.csv").code == 0
    capfd.readouterr()
    (folder / "guide.py").write_text(pipeline + call + service)
    names = runpy.run_path("guide.py", run_name="guide")
    assert capfd.readouterr().out == "2 events, up to {'trades': 2}\n"

    before = signal.getsignal(signal.SIGTERM)

    async def serve() -> None:
        serving = asyncio.create_task(names["serve"]())
        while signal.getsignal(signal.SIGTERM) is before:
            assert not serving.done()
            await asyncio.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        await serving

    asyncio.run(serve())


@pytest.mark.parametrize("name", ["schemas", "delta", "wire"])
def test_reference_page_says_what_happens(name: str) -> None:
    failed, run = doctest.testfile(str(ROOT / f"docs/{name}.md"), module_relative=False)
    assert failed == 0
    assert run > 5


def test_extending_document_adds_an_aggregate(folder: Path) -> None:
    aggregate, check = _python("docs/extending.md")[:2]
    (folder / "guide.py").write_text(aggregate + check)
    runpy.run_path("guide.py", run_name="guide")
    wrong = aggregate.replace("self._count.remove(slots)", "pass")
    (folder / "guide.py").write_text(wrong + check)
    with pytest.raises(AssertionError, match="rms"):
        runpy.run_path("guide.py", run_name="guide")


@pytest.mark.parametrize(
    ("page", "plain", "continued"),
    [("sources", "source", "continued_source"), ("sinks", "sink", "continued_sink")],
)
def test_schemes_and_promises_on_the_page_are_those_of_the_connectors(
    page: str, plain: UseName, continued: UseName
) -> None:
    expected = []
    for connector in own().values():
        if (way := getattr(connector, plain)) is not None:
            again = getattr(connector, continued)
            assert again is None or again.suffixes == way.suffixes
            names = ", ".join(
                f"`{name}`" for name in (*(f"*{s}" for s in way.suffixes), connector.form)
            )
            expected.append(
                f"| {names} | {way.promise} | {again.promise if again else 'not supported'} |"
            )
    ways = [getattr(own()[OF_STREAMS], use) for use in (plain, continued)]
    promises = " | ".join(way.on_stream if way else "not supported" for way in ways)
    expected.append(f"| `-`, a pipe, a device | {promises} |")
    _, table = (
        (ROOT / f"docs/{page}.md")
        .read_text()
        .split(f"| {page[:-1]} | one-shot run | durable run |\n|---|---|---|\n")
    )
    assert table.split("\n\n")[0].splitlines() == expected
    for use, way in zip((plain, continued), ways, strict=True):
        others = {getattr(each, use) for each in own().values()} - {None}
        assert {other.on_stream for other in others} <= {"", way.on_stream if way else ""}


def test_extending_document_adds_a_scheme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/extending.md").read_text()
    (entries,) = re.findall(
        r"```toml\n\[project.entry-points.\"(.*?)\"\]\n(.*?)```", page, re.DOTALL
    )
    (command,) = re.findall(r"^\$ ripple (.*)$", page, re.MULTILINE)
    (pipeline,), code = _python("README.md"), _python("docs/extending.md")[2]
    site = folder / "site"
    about = site / "ripple_sqlite-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "ripple_sqlite.py").write_text(code)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ripple-sqlite\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[{}]\n{}".format(*entries).replace('"', ""))
    (folder / "vwap.py").write_text(pipeline)
    monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT}")

    missing = run(RIPPLE, *command.split(), folder=folder)
    assert missing.code == 1
    assert "cannot read sqlite:trades.db/trades: unable to open database file" in missing.err
    with closing(sqlite3.connect("vwap.db")) as database:
        assert database.execute("SELECT * FROM vwaps").fetchall() == []
    with closing(sqlite3.connect("trades.db")) as database:
        database.execute("CREATE TABLE trades (venue, symbol, price, size, timestamp_ns)")
        trades = [line.split(",") for line in TRADES.splitlines()]
        rows = [(v, s, float(p), int(n), int(t)) for s, p, n, t, v in trades]
        database.executemany("INSERT INTO trades VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    ended = run(RIPPLE, *command.split(), folder=folder)
    assert ended.code == 0, ended.err
    with closing(sqlite3.connect("vwap.db")) as database:
        shown = database.execute("SELECT op, symbol, vwap, trade_count FROM vwaps").fetchall()
    assert shown == [(0, "AAPL", 150.16666666666666, 2)]
    assert "source, sink  (ripple-sqlite 1.0)" in ripple("info").out


def test_connectors_document_shows_the_package_that_is_written(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    module, tests, settings = _python("docs/connectors.md")
    files = files_of("quotes")  # which tests/cli/test_connector.py tries
    assert (module, tests) == (files["ripple_quotes.py"], files["tests/test_quotes.py"])
    (folder / "guide.py").write_text(settings)
    runpy.run_path("guide.py", run_name="guide")
    assert capfd.readouterr().out == "Settings(depth=5)\n"


def test_connectors_document_has_the_promises_of_all_schemes() -> None:
    wanted = []
    for one in own().values():
        uses = [getattr(one, name) for name in USES]
        told = " | ".join("–" if use is None else use.promise for use in uses)  # noqa: RUF001 - a dash
        wanted.append(f"| `{one.scheme}:` | {told} |")
    _, table = (
        (ROOT / "docs/connectors.md").read_text().split("durable sink |\n|---|---|---|---|---|\n")
    )
    assert table.split("\n\n")[0].splitlines() == wanted


RUN_IN = {
    "tests/test_docs.py": (
        *("README", "changing", "checkpoints", "compared", "connectors", "delta", "event-time"),
        *("extending", "joins", "log", "order-books", "ordered-state", "pipelines", "python"),
        *("recovery", "schemas", "seals", "sinks", "sources", "stages", "wire"),
    ),
    "tests/client/flight/test_clients_page.py": ("clients",),
    "tests/test_coming_from.py": ("bytewax", "csp", "flink", "polars", "quix"),
    "tests/test_cookbook.py": ("cookbook",),
    "tests/test_tutorial.py": ("tutorial",),
    "tests/world/test_testing_document.py": ("testing",),
}
SKETCHES = {
    "exchange": "how a worker calls it, with its world and its assignment",
    "spark": "calls with a user's own session, frames and paths: tests/services/test_spark.py",
    "spark-deploy": "a job for spark-submit",
}


def test_the_python_of_each_page_runs_or_is_named_as_a_sketch() -> None:
    texts = {page.stem: page.read_text() for page in (ROOT / "docs").rglob("*.md")}
    texts["README"] = (ROOT / "README.md").read_text()
    run = [name for names in RUN_IN.values() for name in names]
    assert sorted([*run, *SKETCHES]) == sorted(
        name for name, text in texts.items() if "```python\n" in text
    )
    for test, names in RUN_IN.items():
        text = (ROOT / test).read_text()
        assert all(name in text or "glob" in text for name in names), test


def test_the_compared_pipeline_is_that_of_the_benchmark() -> None:
    (code,) = _python("docs/compared.md")
    asked = PIPELINE.replace("NAME", "minutes").strip()
    assert re.sub(r"\n\n+", "\n", code.strip()) == re.sub(r"\n\n+", "\n", asked)


def test_branches_of_the_stages_document_are_cut_as_it_says(folder: Path) -> None:
    _, branches, united, _ = _python("docs/stages.md")
    names = {"rp": rp, "Trade": runpy.run_path(_module(folder, _python("README.md")[0]))["Trade"]}
    exec(branches, names)
    stages = stages_of(names["pipeline"].plan())
    assert [stage.number for stage in stages] == [0, 1, 2]
    assert united.count("...") == 3  # a sketch: any functions and folds


def test_records_of_a_log_are_written_and_read_as_its_page_does(folder: Path) -> None:
    assert ripple("log", "create", "--schema", "trade", folder / "data/trades").code == 0
    (code,), (owned,) = _python("docs/log.md"), _python("docs/seals.md")
    records = pa.RecordBatch.from_pylist(
        [{"symbol": "A", "price": 1.0, "size": 1, "timestamp_ns": 5, "venue": "X"}]
    )
    names = {"clock": live_world(".").clock, "records": records}
    code = code.replace("        ...", "        assert entry.records.num_rows == 1")
    exec(code, names)
    exec(f"from ripple.storage.log import PartitionWriter\n{owned}\nwriter.close()", names)
