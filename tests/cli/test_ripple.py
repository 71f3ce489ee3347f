from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ripple.cli.lib.user_file import load_plan, load_sources
from ripple.cli.run.run import sinks_by_output
from ripple.core.errors import InputError, OutputError, PlanError
from tests.cli.processes import BOOK_TRADES, ROOT, ripple, shell

EXAMPLES = ROOT / "examples"
HEAD = """
import ripple as rp
from ripple.connectors.files.csv.format import TRADE_SCHEMA
"""
PIPELINE = (
    'rp.Pipeline("{0}").source("trades", TRADE_SCHEMA).partition("p", key="symbol")'
    '.fold("f", n=rp.count()).sink("out")'
)


@pytest.fixture(autouse=True)
def _same_modules_afterwards(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(folder: Path, body: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(HEAD + body)
    return str(path)


def test_example_with_windows_runs_over_a_file(tmp_path):
    trades, output = tmp_path / "trades.csv", tmp_path / "vwap.csv"
    trades.write_text("symbol,venue,price,size,timestamp_ns\nA,X,10,1,5\nA,X,20,3,6\n")
    ended = ripple("run", EXAMPLES / "vwap.py", "--source", trades, "--header", "--sink", output)
    assert ended.code == 0, ended.err
    names = "symbol,window_start_ns,window_end_ns,vwap,total_volume,trade_count"
    assert output.read_text() == f"{names}\nA,0,60000000000,17.5,4,2\n"
    both = ["--source", f"csv:{trades}?header", "--no-header", "--sink", output]
    assert ripple("run", EXAMPLES / "vwap.py", *both).code == 0
    assert output.read_text() == "A,0,60000000000,17.5,4,2\n"
    assert ended.err.startswith("--- vwap-60s ---\nEvents processed:  2\n")


def test_example_with_two_outputs_writes_both(tmp_path):
    total = tmp_path / "total.jsonl"
    ended = ripple(
        "run",
        f"{EXAMPLES / 'portfolio.py'}:pipeline",
        "--source",
        "-",
        "--sink",
        f"total={total}",
        "--sink",
        "by-symbol=-",
        given=BOOK_TRADES + "oops\n",
    )
    assert ended.code == 0, ended.err
    assert [row.split(",")[0] for row in ended.rows] == ["AAPL", "GOOG"]
    assert '"symbols":2' in total.read_text()
    assert ended.err.startswith("ripple: trades, line 7: too few fields: 'oops'\n")


def test_pipe_without_a_name_is_read_as_csv():
    ended = shell("$ripple run examples/vwap.py --source <(echo A,10,1,5,X) --sink /dev/stdout")
    assert ended.rows == ["A,0,60000000000,10.0,1,1"]


def test_plan_info_and_version_are_shown():
    told = ripple("plan", EXAMPLES / "vwap.py").out
    assert "sink output:" in told
    assert "fold vwap: lateness 1min; a window until the watermark is 1min past its end" in told
    info = ripple("info").out
    assert "Ripple v" in info
    assert ", compiled core" in info
    assert ripple("--version").out.startswith("ripple ")


def test_unknown_subcommand_ends_with_code_1():
    ended = ripple("fly")
    assert ended.code == 1
    assert "invalid choice: 'fly'" in ended.err


def test_schema_that_does_not_fit_ends_with_code_3(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"symbol": ["A"]}), tmp_path / "trades.parquet")
    ended = ripple("run", EXAMPLES / "vwap.py", "--source", tmp_path / "trades.parquet")
    assert ended.code == 3
    assert "has no column 'price'" in ended.only_line


def test_exception_in_the_file_shows_its_own_frames_only(tmp_path):
    place = written(tmp_path, "def price():\n    return 1 / 0\n\nprice()\n")
    ended = ripple("plan", place)
    assert ended.code == 1
    assert ended.err.count('File "') == ended.err.count("mine.py") == 2
    assert ended.err.endswith("ZeroDivisionError: division by zero\n")


def test_wrong_pipeline_in_the_file_says_where_and_what_to_change(tmp_path, capfd):
    place = written(tmp_path, 'rp.Pipeline("p").fold("f", n=rp.count())')
    with pytest.raises(SystemExit):
        load_plan(place)
    said = capfd.readouterr().err
    line, code, carets = said.splitlines()
    assert line.startswith(f"{tmp_path}/mine.py:")
    assert line.endswith("start with .source(...)")
    assert code.index("fold") == carets.index("^")
    place = written(tmp_path, "this is no Python", "broken.py")
    with pytest.raises(SystemExit):
        load_plan(place)
    assert "SyntaxError" in capfd.readouterr().err


def test_pipeline_is_found_by_name_by_custom_name_or_because_it_is_alone(tmp_path):
    one, two = PIPELINE.format("one"), PIPELINE.format("two")
    alone = written(tmp_path, f"mine = {one}\nalias = mine\n", "alone.py")
    assert load_plan(alone).name == "one"
    begun = written(tmp_path, f'base = rp.Pipeline("base")\nwhole = {one}\n', "begun.py")
    assert load_plan(begun).name == "one"
    several = written(tmp_path, f"first = {one}\nsecond = {two}.plan()\nn = 3\n", "several.py")
    assert load_plan(f"{several}:second").name == "two"
    with pytest.raises(PlanError, match=r"several.py:NAME, one of first, second"):
        load_plan(several)
    custom = written(tmp_path, f"first = {one}\npipeline = {two}\n", "custom.py")
    assert load_plan(custom).name == "two"
    with pytest.raises(InputError, match=r"'third' in .* does not exist; .*: first, second"):
        load_plan(f"{several}:third")
    with pytest.raises(InputError, match=r"'n' in .* is no pipeline"):
        load_plan(f"{several}:n")
    row = written(tmp_path, f"first = {one}\n@rp.record\nclass Row:\n    a: int\n", "row.py")
    with pytest.raises(InputError, match=r"'row' .*: first; the record classes: .*Row$"):
        load_sources(f"{row}:row")


def test_file_that_is_no_pipeline_file_is_refused_in_words(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        load_plan(str(tmp_path / "none.py"))
    with pytest.raises(InputError, match="it is a directory"):
        load_plan(str(tmp_path))
    with pytest.raises(InputError, match=r"does not end in .py"):
        load_plan(written(tmp_path, "", "pipeline.txt"))
    with pytest.raises(PlanError, match="there is no pipeline in"):
        load_plan(written(tmp_path, "x = 1", "empty.py"))
    with pytest.raises(PlanError, match=r"end it with .sink"):
        load_plan(written(tmp_path, 'pipeline = rp.Pipeline("p")', "unfinished.py"))


def test_file_may_import_its_neighbours_and_have_the_name_of_a_module(tmp_path):
    written(tmp_path, f"shared = {PIPELINE.format('shared')}", "neighbour_of_mine.py")
    import json

    place = written(tmp_path, "from neighbour_of_mine import shared as pipeline", "json.py")
    assert load_plan(place).name == "shared"
    assert sys.modules["json"] is json


def test_sinks_are_told_apart_by_the_outputs_of_the_plan():
    two = load_plan(str(EXAMPLES / "portfolio.py"))
    assert sinks_by_output(two, ["total=a=b.csv"]) == {"total": "a=b.csv"}
    with pytest.raises(OutputError, match="say which one goes to -, as in --sink by-symbol=-"):
        sinks_by_output(two, ["-"])
    with pytest.raises(OutputError, match="no output 'totle': the pipeline has by-symbol, total"):
        sinks_by_output(two, ["totle=a.csv"])
    with pytest.raises(OutputError, match="'total' has 2 sinks"):
        sinks_by_output(two, ["total=a.csv", "total=b.csv"])
    one = load_plan(str(EXAMPLES / "vwap.py"))
    assert sinks_by_output(one, ["./a=b.csv"]) == {"output": "./a=b.csv"}


DIVIDING = (
    'rp.Pipeline("z").source("trades", TRADE_SCHEMA).partition("p", key="symbol")'
    '.fold("f", n=rp.sum("size"), c=rp.count())'
    '.derive("r", q=rp.col("n") // (rp.col("c") - 2)).sink("out")'
)


@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_row_that_cannot_be_computed_at_some_cuts_is_there_in_the_end(tmp_path, batch):
    path = written(tmp_path, f"pipeline = {DIVIDING}\n")
    trades = "A,1.5,1,1,X\nA,1.5,5,2,X\nA,1.5,7,3,X\n"
    output = tmp_path / "out.csv"
    ended = ripple("run", path, "--source", "-", "--sink", output, "--batch", batch, given=trades)
    assert (ended.code, output.read_text().splitlines()[-1]) == (0, "A,13,3,13"), ended.err
    assert "Not computed" not in ended.err


def test_row_that_cannot_be_computed_in_the_end_is_told_with_its_key_and_reason(tmp_path):
    path = written(tmp_path, f"pipeline = {DIVIDING}\n")
    ended = ripple("run", path, "--source", "-", given="A,1.5,1,1,X\nA,1.5,5,2,X\n")
    assert (ended.code, ended.out) == (0, "")
    told = "1 in 'f'; the first: key ('A',), step 'r': integer division by zero in col("
    assert f"Not computed:      {told}" in ended.err


def test_integer_sum_beyond_64_bits_is_told_and_stops_nothing(tmp_path):
    path = written(tmp_path, f"pipeline = {DIVIDING}\n")
    trades = f"A,1.5,{2**63 - 1},1,X\nA,1.5,{2**63 - 1},2,X\nB,1.5,1,3,X\n"
    ended = ripple("run", path, "--source", "-", given=trades)
    assert (ended.code, ended.out) == (0, "B,1,1,-1\n")
    assert "step 'f': 'n': the exact integer sum 18446744073709551614 does not fit" in ended.err
