"""The commands, from one version of a pipeline's code to the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ripple.cli.lib.user_file import load_plan
from ripple.cli.main import main
from ripple.connectors.retries import Name, note_retried, retries_path
from ripple.task.retried import retried_remark
from ripple.world import LiveClock, LiveDisk, LiveRandom
from tests.csv_rows import text_of

RECORD = """
import ripple as rp

@rp.record
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str
"""
CODE = (
    RECORD
    + """
def same(old):
    return old

pipeline = (
    rp.Pipeline("test").source("trades", Trade){events}.partition("by-symbol", key="symbol")
    .fold("{fold}", volume=rp.sum("size"), n=rp.count()){results}.sink("rows")
)
"""
)
RATING = """
import ripple as rp

@rp.record
class Rating:
    grade: int

async def rate(trade):
    return {"grade": 1}

"""
FIRST = "A,1.5,100,1,X\nB,2.5,50,2,X\nA,1.5,10,3,X\n"
SECOND = "A,1.5,7,4,X\nB,1.5,200,5,X\n"
FILTERED = '.filter("large", rp.col("size") >= 10)'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> Path:
    """A folder in which a first version has run over a first part of the log."""
    monkeypatch.chdir(tmp_path)
    assert main(["log", "create", "--schema", "trade", "data/trades"]) == 0
    append(FIRST)
    assert run(version("v1")) == 0
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\n"
    capfd.readouterr()
    return tmp_path


def append(rows: str) -> None:
    Path("more.csv").write_text(rows)
    assert main(["log", "append", "data/trades", "more.csv"]) == 0


def version(name: str, events: str = "", fold: str = "f", results: str = "") -> str:
    code = CODE.format(events=events, fold=fold, results=results)
    Path(f"{name}.py").write_text(code)
    return f"{name}.py"


def run(file: str, *options: str, sink: str = "out.csv") -> int:
    source = ["--source", "log:data/trades", "--sink", sink]
    return main(["run", file, *source, "--checkpoint-dir", "state", *options])


def plan(file: str, *options: str) -> int:
    return main(["plan", file, "--checkpoint-dir", "state", *options])


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if path.suffix != ".pyc"}


def test_renamed_fold_goes_on_where_it_was(folder: Path, capfd) -> None:
    file = version("v2", fold="totals")
    assert plan(file) == 0
    listed = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[:-1]] == ["keep", "keep", "keep"]
    assert "(it was trades/by-symbol/f#" in listed[1]
    assert listed[-1].startswith("ripple run would resume from checkpoint 0000000001-")
    append(SECOND)
    assert run(file) == 0
    assert "restored checkpoint 0000000001-" in capfd.readouterr().err
    assert text_of(Path("out.csv")).endswith("B,50,1\nA,117,3\nB,250,2\n")


SCAN = (
    RECORD
    + """
from dataclasses import dataclass

@rp.record
class Row:
    volume: int

@dataclass
class State:
    volume: int = 0
{more}

def step(state, trade):
    state.volume += trade.size{added}
    return Row(volume=state.volume)

pipeline = (
    rp.Pipeline("scanned").source("trades", Trade)
    .scan("s", "symbol", state=State, step=step, into=Row, show="last", lateness=1)
    {migrate}.sink("rows")
)
"""
)


def test_plan_and_run_go_on_with_the_state_of_a_scan(folder: Path, capfd) -> None:
    def scan(name: str, more: str = "", added: str = "", migrate: str = "") -> str:
        Path(f"{name}.py").write_text(SCAN.format(more=more, added=added, migrate=migrate))
        return f"{name}.py"

    assert run(scan("v1"), sink="last.csv") == 0
    assert text_of(Path("last.csv")) == "A,110\nB,50\n"
    changed = {"more": "    extra: int = 1000", "added": " + state.extra"}
    capfd.readouterr()
    assert plan(scan("v2", **changed)) == 1
    told = capfd.readouterr()
    assert told.out.startswith("keep     trades#")
    assert told.out.splitlines()[1].startswith("rebuild  trades/s#")
    call = told.err.partition("from the old one with ")[2].splitlines()[0]
    assert call.startswith(".migrate('s', from_digest='")
    file = scan("v2", **changed, migrate=call)
    assert plan(file) == 0
    listed = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[:3]] == ["keep", "migrate", "migrate"]
    assert listed[-1].endswith("with migrated state.")
    append(SECOND)
    assert run(file, sink="last.csv") == 0
    # Rows that were not final are run again with the new step.
    assert Path("last.csv").read_text().endswith("A,1110\nB,1050\nA,2117\nB,2250\n")


JOINED = (
    RECORD
    + """
trades = rp.Pipeline("joined").source("trades", Trade)
sizes = trades.derive("before", last=rp.col("size"))
pipeline = trades.{match}, lateness="{late}", emit="{emit}", how="{how}").sink("rows")
"""
)
ASOF = 'join_asof("j", sizes, on="symbol", tolerance="{}", allow_exact_matches=False'
NEAR = 'join_interval("j", sizes, on="symbol", within=("-{}", "-1ns")'


def joined(span: str, emit: str, late: str, how: str = "left", match: str = ASOF) -> str:
    file = f"{emit}{span}.py"
    code = JOINED.format(match=match.format(span), emit=emit, late=late, how=how)
    Path(file).write_text(code)
    return file


def test_plan_and_run_go_on_with_the_rows_of_a_wider_join(folder: Path, capfd) -> None:
    def shown() -> list[tuple[str, str]]:
        rows = [line.split(",") for line in text_of(Path("final.csv")).splitlines()]
        return [(row[3], row[-1]) for row in rows]

    append("A,1.5,20,4,X\n")
    wide, narrow, wider = (joined(span, "final", "0ns") for span in ("3ns", "1ns", "4ns"))
    assert run(wide, sink="final.csv") == 0
    before = [("1", ""), ("2", ""), ("3", "100")]
    assert shown() == before
    capfd.readouterr()
    assert plan(wider) == 1
    gone = "rows that the wider one needs are not there any more"
    assert f"(its tolerance was 3ns, and is 4ns: {gone})" in capfd.readouterr().out
    assert plan(narrow) == 0
    listed = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed[2:4]] == ["migrate", "changed"]
    assert listed[2].endswith("(its tolerance was 3ns, and is 1ns: its rows are kept)")
    assert listed[-1].endswith("with migrated state.")
    append("A,1.5,7,6,X\nB,1.5,200,7,X\nB,1.5,1,8,X\n")
    assert run(narrow, sink="final.csv") == 0
    # Rows that were shown stay; later ones have no match that is further away.
    assert shown() == [*before, ("4", "10"), ("6", ""), ("7", "")]
    assert plan(narrow) == 0
    assert "migrate" not in capfd.readouterr().out


@pytest.mark.parametrize("how", ["left", "inner"])
def test_final_rows_of_an_eager_join_stay_when_it_is_narrowed(folder: Path, how: str) -> None:
    def shown() -> list[tuple[str, int, int | None]]:
        rows = map(json.loads, Path("rows.jsonl").read_text().splitlines())
        return [(row["op"], row["row_offset"], row["last"]) for row in rows]

    append("A,1.5,20,4,X\nA,1.5,20,6,X\nA,1.5,20,9,X\n")
    assert run(joined("3ns", "eager", "4ns", how), sink="rows.jsonl") == 0
    before = [("set", 2, 100), ("set", 3, 10), ("set", 4, 20), ("set", 5, 20)]
    alone = [("set", 0, None), ("set", 1, None)] if how == "left" else []
    assert sorted(shown(), key=str) == sorted(before + alone, key=str)
    append("B,1.5,200,9,X\n")
    assert run(joined("1ns", "eager", "4ns", how), sink="rows.jsonl") == 0
    # Records 0 to 3 are final, and 4 and 5 have no match within the new tolerance.
    gone = "set" if how == "left" else "remove"
    after = [(gone, 4, None), (gone, 5, None)] + ([("set", 6, None)] if how == "left" else [])
    assert sorted(shown()[len(before + alone) :], key=str) == sorted(after, key=str)


@pytest.mark.parametrize("how", ["left", "inner"])
def test_pairs_that_are_not_final_are_taken_back(folder: Path, how: str) -> None:
    def shown() -> dict[tuple[int, int | None], int | None]:
        rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
        found = {}
        for row in rows:
            pair = row["row_offset"], row["right_offset"]
            found.pop(pair, None)
            if row["op"] == "set":
                found[pair] = row["last"]
        return found

    append("A,1.5,20,4,X\nA,1.5,20,6,X\nA,1.5,20,9,X\n")
    alone = {(0, 0): None, (1, 0): None} if how == "left" else {}
    assert run(joined("3ns", "eager", "4ns", how, NEAR), sink="rows.jsonl") == 0
    final = alone | {(2, 0): 100, (3, 0): 100, (3, 2): 10}
    assert shown() == final | {(4, 2): 10, (4, 3): 20, (5, 4): 20}
    append("B,1.5,200,9,X\n")
    assert run(joined("2ns", "eager", "4ns", how, NEAR), sink="rows.jsonl") == 0
    # The row of record 4 has one partner left, and the row of 5 has none.
    more = {(5, 0): None, (6, 0): None} if how == "left" else {}
    assert shown() == final | {(4, 3): 20} | more


def test_plan_and_run_go_on_with_answers_and_name_what_is_asked_anew(folder: Path, capfd) -> None:
    def asking(name: str, ask: str, fold: str = "f") -> str:
        events = f'.ask("{ask}", rate, into=Rating)'
        text = CODE.format(events=events, fold=fold, results="").replace('"test"', '"asked"')
        Path(f"{name}.py").write_text(RATING + text)
        return f"{name}.py"

    assert run(asking("v1", "rate"), sink="rated.csv") == 0
    file = asking("v2", "rates")
    capfd.readouterr()
    assert plan(file) == 1
    told = capfd.readouterr()
    assert "'rates' was not asked up to trades 3, and outputs hold rows" in told.err
    assert told.out.endswith("ripple run would refuse to start.\n")
    assert run(file, sink="rated.csv") == 1
    assert "'rates' was not asked up to trades 3, and outputs hold rows" in capfd.readouterr().err
    file = asking("v3", "rate", fold="totals")
    assert plan(file) == 0
    assert run(file, sink="rated.csv") == 0
    assert "restored checkpoint" in capfd.readouterr().err


def test_changed_fold_is_refused_and_nothing_is_touched(folder: Path, capfd) -> None:
    file = version("v3", FILTERED)
    before = contents(folder)
    assert plan(file) == 1
    told = capfd.readouterr()
    assert told.out.endswith("ripple run would refuse to start.\n")
    assert "rebuild  trades/by-symbol/f#" in told.out
    assert "step 'large' was put before it" in told.err
    assert "--rebuild f" in told.err
    assert contents(folder) == before
    assert run(file) == 1
    assert "step 'large' was put before it" in capfd.readouterr().err
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\n"


def test_changed_fold_is_rebuilt_where_it_is_asked_for(folder: Path, capfd) -> None:
    file = version("v4", FILTERED)
    assert plan(file, "--rebuild", "f") == 0
    assert "would read the log from its first record" in capfd.readouterr().out
    append(SECOND)
    assert run(file, "--rebuild", "f") == 0
    assert "replayed 3 events from 0 to 3" in capfd.readouterr().err
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\nB,250,2\n"
    assert plan(file) == 0


def test_an_output_of_other_code_is_named_beside_a_new_one(folder: Path, capfd) -> None:
    file = Path(version("v5", FILTERED))
    file.write_text(file.read_text().replace('.sink("rows")', '.sink("rows").sink("f")'))
    both = ["--sink", "f=more.jsonl", "--sink"]
    assert plan(str(file), *both, "rows=out.csv") == 0
    told = capfd.readouterr()
    by_kind = [line.split("(")[1][:4] for line in told.out.splitlines() if "f#" in line]
    assert by_kind == ["fold", "sink"]
    assert (
        "output 'rows' is of other code: if its rows differ at its cut, ripple run ends" in told.err
    )
    assert "commits nothing; say --rebuild f to have them corrected" in told.err
    append(SECOND)
    assert run(str(file), *both[:2], sink="rows=out.csv") == 0  # here they are the same
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\nB,250,2\n"


def test_a_changed_sink_of_events_is_refused_beside_a_new_one_too(folder: Path, capfd) -> None:
    def branches(name: str, events: str, more: str = "") -> list[str]:
        code = CODE.format(events="", fold="f", results="").replace("pipeline =", "rows =")
        taps = (
            f'start = rp.Pipeline("test").source("trades", Trade)\npipeline = start{events}{more}\n'
        )
        Path(f"{name}.py").write_text(code.partition("rows =")[0] + taps)
        return ["--sink", "all=all.csv", *(["--sink", "more=more-rows.csv"] if more else [])]

    def both(name: str, options: list[str]) -> tuple[int, int]:
        start = ["--source", "log:data/trades", "--checkpoint-dir", "events"]
        return (
            main(["plan", f"{name}.py", "--checkpoint-dir", "events", *options]),
            main(["run", f"{name}.py", *start, *options]),
        )

    assert both("e1", branches("e1", '.sink("all")'))[1] == 0
    assert both(
        "e2", branches("e2", '.sink("all")', '.filter("f", rp.col("size") > 9).sink("more")')
    ) == (0, 0)
    Path("more-rows.csv").unlink()
    Path("more-rows.csv.cut").unlink()
    before = Path("all.csv").read_text()
    capfd.readouterr()
    changed = branches("e3", '.filter("g", rp.col("size") > 60).sink("all")', '.sink("more")')
    assert both("e3", changed) == (1, 1)
    assert capfd.readouterr().err.count("give it another name and an empty target") == 1
    assert Path("all.csv").read_text() == before
    Path("all.csv").unlink()
    Path("all.csv.cut").unlink()
    assert both("e3", changed) == (0, 0)


def test_migrated_fold_goes_on_with_the_state_that_was_made(folder: Path, capfd) -> None:
    assert plan(version("v5", FILTERED)) == 1
    digest = capfd.readouterr().err.partition("from_digest='")[2][:32]
    migration = f".migrate('f', same, from_digest='{digest}')"
    file = version("v6", FILTERED, results=migration)
    assert plan(file) == 0
    assert "migrate  trades/by-symbol/f#" in capfd.readouterr().out
    append(SECOND)
    assert run(file) == 0
    assert "restored checkpoint 0000000001-" in capfd.readouterr().err
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\nB,250,2\n"


def test_folder_without_state_of_the_pipeline_is_told_apart(folder: Path, capfd) -> None:
    file = version("v7")
    Path(file).write_text(Path(file).read_text().replace('"test"', '"other"'))
    assert plan(file) == 0
    told = capfd.readouterr()
    assert told.out == "ripple run would begin with the first record of the log.\n"
    assert "no checkpoint of other/0 in state; there is state of test/0\n" in told.err
    Path("state/store").mkdir()
    assert plan(file) == 0
    assert "test/0; a cluster's are in state/store\n" in capfd.readouterr().err
    Path("state/store").rmdir()
    assert main(["plan", file, "--checkpoint-dir", "nowhere"]) == 1
    assert not Path("nowhere").exists()
    assert main(["plan", file, "--rebuild", "f"]) == 1
    assert "--rebuild goes with --checkpoint-dir" in capfd.readouterr().err


READING = (
    RECORD
    + """
LIMIT = 100

class Conf:
    def __init__(self, factor):
        self.factor = factor

def closed(c):
    return lambda r: Trade(
        r.symbol, r.price * c.factor if r.size > LIMIT else 0.0, r.size, r.timestamp_ns, r.venue
    )

pipeline = (
    rp.Pipeline("reading").source("trades", Trade).map("scaled", closed(Conf(1.0)), into=Trade)
    .partition("by-symbol", key="symbol").fold("f", s=rp.sum("price")).sink("rows")
)
"""
)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [("LIMIT = 100", "LIMIT = 500", "LIMIT"), ("Conf(1.0)", "Conf(3.0)", "c.factor")],
)
def test_changed_value_that_a_function_reads_is_refused(
    folder: Path, capfd, old: str, new: str, place: str
) -> None:
    Path("reading.py").write_text(READING)
    assert run("reading.py", sink="other.csv") == 0
    assert plan("reading.py") == 0
    before = Path("other.csv").read_text()
    Path("reading.py").write_text("# moved down\n\n" + READING)
    assert plan("reading.py") == 0
    Path("reading.py").write_text(READING.replace(old, new))
    capfd.readouterr()
    assert plan("reading.py") == 1
    told = capfd.readouterr()
    assert f"step 'scaled' before it changed: what it does, at {place}" in told.out
    append(SECOND)
    assert run("reading.py", sink="other.csv") == 1
    assert f"what it does, at {place}" in capfd.readouterr().err
    assert Path("other.csv").read_text() == before
    assert run("reading.py", "--rebuild", "f", sink="other.csv") == 0
    assert plan("reading.py") == 0


def test_plan_says_what_of_a_step_it_cannot_see(folder: Path, capfd) -> None:
    code = READING.replace("r.size > LIMIT", "getattr(r, NAME) > LIMIT").replace(
        "LIMIT =", "NAME = 'size'\nLIMIT ="
    )
    Path("reading.py").write_text(code)
    assert run("reading.py", sink="other.csv") == 0
    capfd.readouterr()
    assert plan("reading.py") == 0
    lines = capfd.readouterr().out.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("keep     trades/scaled#"))
    said = "cannot see: getattr (attributes by names that are computed)"
    assert lines[at + 1] == f"         {said}"
    assert main(["plan", "reading.py"]) == 0
    assert f"    {said}" in capfd.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("change", "sink", "code", "said"),
    [
        ((), "out.csv", 0, ""),
        (("n=rp.count()", "n=rp.count(), m=rp.max('size')"), "out.csv", 1, "has the columns"),
        (('Pipeline("test")', 'Pipeline("other")'), "out.csv", 1, "belongs to output"),
        (('.sink("rows")', '.sink("lines")'), "out.csv", 1, "belongs to output"),
        (('.sink("rows")', '.sink("lines")'), "new.csv", 0, ""),
        (("n=rp.count()", "n=rp.count(), m=rp.max('size')"), "new.csv", 0, ""),
    ],
)
def test_plan_and_run_decide_alike_where_outputs_matter(
    folder: Path, capfd, *, change: tuple[str, str], sink: str, code: int, said: str
) -> None:
    file = version("changed")
    if change:
        Path(file).write_text(Path(file).read_text().replace(*change))
    before = contents(folder)
    assert plan(file, "--sink", sink) == code
    told = capfd.readouterr()
    assert said in told.err
    assert ("would refuse" in told.out) == bool(code)
    assert {**contents(folder), **before} == contents(folder)
    assert run(file, sink=sink) == code
    assert said in capfd.readouterr().err


def test_plan_says_where_it_does_not_know_the_outputs(folder: Path, capfd) -> None:
    file = version("changed")
    assert plan(file) == 0
    assert "--sink" not in capfd.readouterr().err
    Path(file).write_text(Path(file).read_text().replace('.sink("rows")', '.sink("lines")'))
    assert plan(file) == 0
    assert "name them with --sink" in capfd.readouterr().err


def test_plan_does_not_know_a_new_branch_whose_output_is_not_named(folder: Path, capfd) -> None:
    file = version("branches")
    more = """
again = pipeline.also(
    rp.Pipeline("test").source("trades", Trade).partition("by-venue", key="venue")
    .window("w", rp.Tumbling("1s")).fold("v", n=rp.count()).sink("venues")
)
"""
    start = 'rp.Pipeline("test").source("trades", Trade)'
    code = Path(file).read_text().replace("\npipeline =", f"\nstart = {start}\npipeline =")
    Path(file).write_text(code.replace(f"    {start}", "    start") + more.replace(start, "start"))
    outputs = ["rows=out.csv", "venues=venues.csv"]
    sinks = [word for output in outputs for word in ("--sink", output)]
    assert plan(f"{file}:again") == 2
    told = capfd.readouterr()
    assert told.out.splitlines()[-1].startswith("it is not known whether ripple run would start")
    assert "unless the target of venues is empty" in told.out
    assert plan(f"{file}:again", *sinks) == 0
    assert plan(f"{file}:again", "--rebuild", "v") == 0
    options = ["--source", "log:data/trades", *sinks, "--checkpoint-dir", "state"]
    assert main(["run", f"{file}:again", *options]) == 0
    assert text_of(Path("out.csv")) == "A,110,2\nB,50,1\n"


def test_rebuild_says_first_which_records_it_reads_twice(tmp_path: Path) -> None:
    disk, plan = LiveDisk(tmp_path), load_plan(version_in(tmp_path))
    assert retried_remark(["f"], plan, disk, "log:data/trades") == ""
    note_retried(
        disk,
        retries_path(plan.name),
        "there",
        [Name("trades", 17)],
        clock=LiveClock(),
        random=LiveRandom(),
        holder="a test",
    )
    assert retried_remark([], plan, disk, "log:data/trades") == ""
    remark = retried_remark(["f"], plan, disk, "log:data/trades")
    assert "1 dead letters were retried" in remark
    assert remark.endswith(": trades 17")


def version_in(folder: Path) -> str:
    path = folder / "code.py"
    path.write_text(CODE.format(events="", fold="f", results=""))
    return str(path)
