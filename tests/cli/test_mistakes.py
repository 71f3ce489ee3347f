"""Ordinary mistakes at the command line: the message says what is wrong, and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ripple.cli.lib.environment import warn_of_mistyped
from tests.cli.processes import ripple

PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Level:
    name: str
    level: float
    at_ns: rp.Timestamp

pipeline = (
    rp.Pipeline("levels").source("levels", Level).partition("by-name", key="name")
    .window("minute", rp.Tumbling("1min")).fold("total", level=rp.sum("level")).sink("out")
)
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    file = tmp_path / "levels.py"
    file.write_text(PIPELINE)
    return file


def test_a_run_whose_records_are_all_rejected_fails(pipeline: Path, tmp_path: Path) -> None:
    source, letters = tmp_path / "levels.csv", tmp_path / "bad.jsonl"
    source.write_text("a,high,1\nb\n")
    out = tmp_path / "out.csv"
    out.write_text("before\n")
    ended = ripple("run", pipeline, "--source", source, "--sink", out)
    assert (ended.code, out.read_text()) == (1, "before\n")
    assert ended.err.startswith(f"ripple: {source}, line 1: level is not a number")
    assert ended.err.splitlines()[-1] == (
        f"ripple: all 2 records of {source} were rejected; --dead-letter FILE keeps them"
    )
    ended = ripple("run", pipeline, "--source", source, "--sink", "-", "--dead-letter", letters)
    assert (ended.code, ended.err.splitlines()[-1].endswith(f"they are in {letters}")) == (1, True)
    source.write_text("a,high,1\na,1,1\n")
    assert ripple("run", pipeline, "--source", source, "--sink", "-").code == 0
    source.write_text("")
    assert ripple("run", pipeline, "--source", source, "--sink", "-").code == 0


def test_a_heading_that_is_read_as_a_record_gets_a_hint(pipeline: Path, tmp_path: Path) -> None:
    source = tmp_path / "levels.csv"
    source.write_text("name,level,at_ns\na,1.5,1\nb,high,2\n")
    ended = ripple("run", pipeline, "--source", source, "--sink", "-")
    hinted = [line for line in ended.err.splitlines() if "--header" in line]
    assert [line.partition(", line ")[2][0] for line in hinted] == ["1"]
    assert ripple("run", pipeline, "--source", source, "--sink", "-", "--header").code == 0
    source.write_text(2 * "name,level,at_ns\na,1.5,1\n")
    ended = ripple("run", pipeline, "--source", source, "--sink", "-", "--header")
    assert (ended.code, "line 3: " in ended.err, "--header" in ended.err) == (0, True, False)


def test_csv_of_another_country_gets_hints_at_its_options(pipeline: Path, tmp_path: Path) -> None:
    source = tmp_path / "levels.csv"
    source.write_text("name;level;at_ns\na;1,5;1\nb;high;2\n")

    def errors(options: str, *more: str) -> str:
        return ripple("run", pipeline, "--source", f"{source}{options}", *more).err

    asked = f"(is it divided otherwise? '{source}?delimiter=;' reads it)"
    assert errors("", "--header").strip().endswith(f"it has name;level;at_ns {asked}")
    source.write_text("Name;Level;AT_NS\na;1,5;1\n")
    assert errors("", "--header").strip().endswith(f"it has Name;Level;AT_NS {asked}")
    source.write_text("name;level;at_ns\na;1,5;1\nb;high;2\n")
    assert "level is not a number: 'a;1,5;1' (a decimal comma?" in errors(
        "?delimiter=;", "--header"
    )
    source.write_text("name;level;at_ns\na;1.001,5;1\n")
    assert "(points before thousands?" in errors("?delimiter=;&decimal=,", "--header")
    assert "rejected" not in errors("?delimiter=;&decimal=,&thousands=.", "--header")
    source.write_text("name;level;at_ns\na;1,001.5;1\n")
    assert "(commas before thousands?" in errors("?delimiter=;", "--header")
    source.write_text("Name,Level,AT_NS\na,1.5,1\n")
    assert "(is it 'Name'? Give the field that name" in errors("", "--header")
    array = tmp_path / "levels.jsonl"
    array.write_text('[\n{"name": "a", "level": 1.5, "at_ns": 1}\n]\n')
    told = ripple("run", pipeline, "--source", array, "--sink", "-").err
    assert "line 1: not a JSON record: '[' (an array of records? jq -c '.[]' FILE" in told
    source.write_text("a,1.5,1\n", encoding="utf-16")
    assert "(UTF-16? iconv -f UTF-16 -t UTF-8" in errors("").splitlines()[0]
    source.write_text("name;level;at_ns\na;1,5;1\nb;high;2\n")
    told = errors("?delimiter=;&decimal=,")
    assert "'name;level;at_ns' (is it a heading? --header" in told
    assert "'b;high;2'\n" in told


def test_a_time_that_is_text_gets_a_hint_at_its_transform(pipeline: Path, tmp_path: Path) -> None:
    source, transforms = tmp_path / "levels.csv", tmp_path / "times.toml"
    source.write_text("a,1,2024-02-27T02:13:20Z\na,1,soon\n")
    ended = ripple("run", pipeline, "--source", source, "--sink", "-")
    (hinted,) = (line for line in ended.err.splitlines() if "is it a time?" in line)
    assert "line 1: at_ns is not an integer" in hinted
    assert "ripple log append --schema FILE.py:CLASS" in hinted
    assert 'rp.field(format="iso") of its record' in hinted
    transforms.write_text('[[transform]]\ntimestamp = "at_ns"\nfrom = "iso"\n')
    source.write_text("a,1,2024-02-27T02:13:20Z\n")
    ended = ripple("run", pipeline, "--source", f"through:{transforms},{source}", "--sink", "-")
    assert (ended.code, ended.out.startswith("a,1708999980000000000,")) == (0, True)


def test_a_number_beside_a_time_gets_no_hint_of_times(pipeline: Path, tmp_path: Path) -> None:
    source, whole = tmp_path / "levels.jsonl", tmp_path / "whole.py"
    whole.write_text(pipeline.read_text().replace("level: float", "level: int"))
    time = '"at_ns": "2024-02-27T02:13:20Z"'
    source.write_text("".join(f'{{"name": "a", "level": {one}, {time}}}\n' for one in ('"x"', 1)))
    ended = ripple("run", whole, "--source", source, "--sink", "-")
    assert ["is it a time?" in line for line in ended.err.splitlines()[:2]] == [False, True]


def test_a_time_without_a_zone_gets_a_hint_at_the_zone(pipeline: Path, tmp_path: Path) -> None:
    source, formed = tmp_path / "levels.csv", tmp_path / "formed.py"
    text = pipeline.read_text()
    formed.write_text(
        text.replace("at_ns: rp.Timestamp", 'at_ns: rp.Timestamp = rp.field(format="iso")')
    )
    source.write_text("a,1,2024-02-27T02:13:20.5\na,1,2024-02-27T02:13:61Z\na,1,soon\n")
    ended = ripple("run", formed, "--source", source, "--sink", "-")
    (hinted,) = (line for line in ended.err.splitlines() if "zone=" in line)
    assert "is no time of ISO 8601" in hinted
    assert 'rp.field(format="iso", zone="UTC")' in hinted


def test_events_ahead_of_their_watermark_are_explained(pipeline: Path, tmp_path: Path) -> None:
    source = tmp_path / "levels.csv"
    source.write_text("a,1,0\na,1,600000000000\n")
    ended = ripple("run", pipeline, "--source", source, "--sink", "-")
    future = next(line for line in ended.err.splitlines() if line.startswith("Future:"))
    assert future.split(None, 1)[1] == (
        "1 (applied and counted; further ahead of the watermark than a window's future= or table's "
        "ttl= allows)"
    )
    text = pipeline.read_text()
    pipeline.write_text(text.replace('"levels", Level', '"levels", Level, out_of_order="2min"'))
    ended = ripple("run", pipeline, "--source", source, "--sink", "-")
    assert ended.code == 0
    assert "Future:" not in ended.err


def test_without_a_subcommand_the_help_is_printed() -> None:
    ended = ripple()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == ripple("--help").out


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("bad.sexp", "((name", "2 unclosed"),
        ("bad.avsc", '{"a": 1}', "an Avro schema for events"),
        ("bad.json", "[", ""),
        ("bad.txt", "", "cannot tell what schema it is"),
    ],
)
def test_a_wrong_schema_file_is_named(tmp_path: Path, name: str, text: str, problem: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    ended = ripple("log", "create", tmp_path / "topic", "--schema", file)
    assert ended.code == 3
    assert ended.err.startswith(f"ripple: {file}: {problem}")
    assert ripple("log", "create", tmp_path / "topic", "--schema", tmp_path / "no.sexp").code == 1


def test_a_mistyped_variable_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    right = {"RIPPLE_COORDINATOR": "a", "RIPPLE_KEEP": "3", "RIPPLE_S3_REGION": "r", "HOME": "/"}
    services = dict.fromkeys(("RIPPLE_COORDINATORS_PORT", "RIPPLE_COORDINATOR_0_PORT"), "tcp://h:1")
    warn_of_mistyped("ripple", right | services)
    assert capfd.readouterr().err == ""
    warn_of_mistyped("ripple", {**right, "RIPPLE_TOKENFILE": "t", "RIPPLE_CONTXT": "c"})
    assert capfd.readouterr().err.splitlines() == [
        f"ripple: {given} is set, but is no setting: did you mean {meant}?"
        for given, meant in (
            ("RIPPLE_CONTXT", "RIPPLE_CONTEXT"),
            ("RIPPLE_TOKENFILE", "RIPPLE_TOKEN_FILE"),
        )
    ]


TWO_SOURCES = """\
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    timestamp_ns: rp.Timestamp

market = rp.Pipeline("market")
trades = market.source("trades", Trade)
quotes = market.source("quotes", Trade)
pipeline = trades.sink("trades-out").also(quotes.sink("quotes-out"))
"""


def test_a_topic_takes_records_as_their_class_has_them(tmp_path: Path) -> None:
    file, source, topic = tmp_path / "ticks.py", tmp_path / "ticks.csv", tmp_path / "logs" / "ticks"
    file.write_text(
        "import ripple as rp\n\n\n@rp.record\nclass Tick:\n    name: str\n"
        '    at: rp.Timestamp = rp.field(format="iso")\n    size: int = rp.field(gt=0)\n\n\n'
        "@rp.record\nclass Other:\n    name: str\n    size: float\n"
    )
    source.write_text("a,1970-01-01T00:00:01Z,1\nb,soon,1\nc,1970-01-01T00:00:02Z,0\n")
    assert ripple("log", "create", topic, "--schema", f"{file}:Tick").code == 0
    assert "all 3 records" in ripple("log", "append", topic, source).err
    ended = ripple("log", "append", topic, source, "--schema", f"{file}:Tick")
    assert "appended 1 record\n" in ended.err
    assert "at is no time of ISO 8601" in ended.err
    assert "size" in ended.err
    assert ripple("log", "tail", topic).out == '{"name":"a","at":1000000000,"size":1}\n'
    refused = ripple("log", "append", topic, source, "--schema", f"{file}:Other")
    assert refused.only_line == (
        f"ripple: the records of {file}:Other are not those of ticks: they differ in at, size "
        "(ripple log info shows the topic's fields)"
    )


def test_a_topic_has_the_schema_of_one_of_several_sources(tmp_path: Path) -> None:
    file = tmp_path / "market.py"
    file.write_text(TWO_SOURCES)
    for place, has in ((file, "the sources trades, quotes"), (f"{file}:market", "no source")):
        refused = ripple("log", "create", tmp_path / "both", "--schema", place)
        assert refused.code == 1
        assert refused.only_line == (
            f"ripple: the pipeline at {place} has {has}: say --schema FILE.py:NAME, where NAME = "
            "pipeline.source(...) is the source of the topic's records, or their class"
        )

    made = ripple("log", "create", tmp_path / "trades", "--schema", f"{file}:trades")
    assert made.code == 0, "that branch has no sink"
    assert "partition of trade" in made.out


def test_mistake_in_a_pipeline_is_a_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        "import ripple as rp\n@rp.record\nclass T:\n    a: str\n"
        "def made(name):\n    return rp.Pipeline(name).source('t', T).fold('n', n=rp.count())\n"
        "pipeline = made('x')\n"
    )
    assert ripple("plan", file).err == (
        f"{file}:6: fold 'n': events need a group first: add .partition(..., key=...) (called at "
        f"{file}:7)\n"
        "    return rp.Pipeline(name).source('t', T).fold('n', n=rp.count())\n"
        "                                            ^^^^\n"
    )


@pytest.mark.parametrize(
    ("step", "marks"),
    [
        ('rp.Pipeline("x").source("t", T).partition("ö", key="b")', "^" * 9),
        ('(\n    rp.Pipeline("x")\n    .source("t", T).partition("ö", key="b")\n)', "^" * 9),
        ('(\n    rp.Pipeline("x")\n    .partition(\n        "p", key="b")\n)', "^" * 9),
        ('T(1).b or rp.Tumbling("ö")', "^" * 8),
    ],
)
def test_marks_are_below_the_name_of_the_step(tmp_path: Path, step: str, marks: str) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        f"import ripple as rp\n@rp.record\nclass T:\n    a: int\nT.b = 0\npipeline = {step}\n"
    )
    _, code, below = ripple("plan", file).err.splitlines()
    assert below.strip() == marks
    name = code[below.index("^") : len(below)]
    assert name in ("partition", "Tumbling")


def test_a_name_that_nothing_takes_is_a_line(pipeline: Path) -> None:
    pipeline.write_text(PIPELINE.replace('Tumbling("1min"', 'Tumbling("1min", calendar="XNYS"'))
    told, code, marks = ripple("plan", pipeline).err.splitlines()
    assert told == (
        f"{pipeline}:12: rp.Tumbling: got an unexpected keyword argument 'calendar': "
        'write rp.Tumbling("1min"), optionally with zone=, offset='
    )
    assert code[marks.index("^") : len(marks)] == "Tumbling"


@pytest.mark.parametrize(
    "command",
    [
        "plan {file}",
        "run {file} --source x.csv --sink -",
        "validate {file} --source x.csv --against y.csv",
        "spark run {file} --source x.csv --sink y.csv --store s",
        "spark replay {file} --source x.csv",
        "cluster up {file} --source log:a/b --sink log:a/c --dir d",
        "log create logs/levels --schema {file}",
        "log append logs/levels x.csv --schema {file}",
    ],
)
def test_a_mistake_in_the_file_is_a_line_and_a_traceback_with_v(
    pipeline: Path, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    pipeline.write_text(PIPELINE.replace('key="name"', 'key="nama"'))
    assert ripple("log", "create", "logs/levels", "--schema", "trade").code in (0, 1)
    words = command.format(file=pipeline).split()
    ended = ripple(*words)
    assert ended.code == 1
    assert "levels.py:11: partition 'by-name': there is no field 'nama'" in ended.err
    assert "Traceback" not in ended.err
    ended = ripple(*words, "-v")
    assert ended.code == 1
    assert "Traceback" in ended.err
    assert 'partition("by-name", key="nama")' in ended.err
    assert "levels.py:11: partition 'by-name': there is no field 'nama'" in ended.err
