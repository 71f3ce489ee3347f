"""``ripple run --checkpoint-dir`` as its users run it: stopped, started again, and hindered."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.cli.lib.user_file import load_plan
from ripple.task.dead_letters.in_flight import InFlight, _line
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.world import LiveDisk
from tests.cli.processes import RIPPLE, Ended, ripple, start
from tests.patience import PATIENCE_S

PIPELINE = Path(__file__).with_name("pipeline_vwap.py")
SYMBOLS = 100  # of the synthetic trades, one a millisecond


class Place:
    """A folder with a log of trades, and what a run makes of it."""

    def __init__(self, folder: Path) -> None:
        self.topic = folder / "log" / "trades"
        self.out = folder / "out.csv"
        self.total = folder / "out" / "total"
        self.state = folder / "state"
        assert ripple("log", "create", "--schema", "trade", self.topic).code == 0

    def append(self, trades: int) -> None:
        assert ripple("log", "append", self.topic, f"synthetic:{trades}").code == 0

    def arguments(self, *more: object, pipeline: Path = PIPELINE) -> list[object]:
        sinks = ["--sink", f"out={self.out}", "--sink", f"total=log:{self.total}"]
        source = ["--source", f"log:{self.topic}", "--checkpoint-dir", self.state]
        return ["run", pipeline, *source, *sinks, *more]

    def run(self, *more: object, pipeline: Path = PIPELINE) -> Ended:
        return ripple(*self.arguments(*more, pipeline=pipeline))

    def follow(self, *more: object) -> subprocess.Popen[bytes]:
        return start(RIPPLE, *self.arguments("--follow", *more))

    def files(self) -> dict[str, bytes]:
        """What a user would not want to see changed by a run that is refused."""
        kept = [self.out, Path(f"{self.out}.cut"), *self.total.rglob("*.log")]
        return {str(path): path.read_bytes() for path in kept}

    def totals(self) -> str:
        return ripple("log", "tail", self.total).out


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("undisturbed"))
    place.append(20_000)
    assert place.run().code == 0
    return place


@pytest.fixture
def place(tmp_path: Path, undisturbed: Place) -> Place:
    """A run that has been through 20,000 trades, ready to go on."""
    here = Place(tmp_path)
    for name in ("topic", "out", "total", "state"):
        was, now = getattr(undisturbed, name), getattr(here, name)
        shutil.rmtree(now, ignore_errors=True)
        (shutil.copytree if was.is_dir() else shutil.copy)(was, now)
    shutil.copy(f"{undisturbed.out}.cut", f"{here.out}.cut")
    return here


def told(process: subprocess.Popen[bytes], wanted: str) -> str:
    """Read what a process says until it has said what is wanted."""
    assert process.stderr is not None
    said = ""
    while wanted not in said:
        line = process.stderr.readline().decode()
        assert line, f"it ended without saying {wanted!r}: {said}"
        said += line
    return said


def test_second_run_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    whole, parts = Place(tmp_path / "whole"), Place(tmp_path / "parts")
    for place in (whole, parts):
        place.append(12_345)
    first = parts.run()
    assert (first.code, "begins at 0" in first.err) == (0, True)
    for place in (whole, parts):
        # The generator begins anew, so these are late: counted, and not lost.
        place.append(30_000)
    second = parts.run()
    assert second.code == 0
    assert "restored checkpoint" in second.err
    assert "replayed 0 events from 12345 to 12345" in second.err
    assert "30000, 42345 in all" in second.err
    assert whole.run().code == 0
    assert parts.out.read_bytes() == whole.out.read_bytes()
    assert parts.totals() == whole.totals()
    assert whole.out.read_bytes().count(b"\n") > 10 * SYMBOLS


def test_signal_ends_a_run_in_good_order(place: Place) -> None:
    for number, code in ((signal.SIGTERM, 0), (signal.SIGINT, 130)):
        with place.follow() as process:
            told(process, "restored checkpoint")
            process.send_signal(number)
            said = told(process, "stopped in good order")
            assert process.wait(PATIENCE_S) == code
        assert "Checkpoint:        0000" in said


def test_new_trades_come_out_while_the_log_is_followed(place: Place) -> None:
    before = place.out.read_bytes()
    with place.follow("--commit-interval", "0s") as process:
        told(process, "restored checkpoint")
        place.append(25_000)
        record = Path(f"{place.out}.cut")
        while '"trades": 45000' not in record.read_text():
            assert process.poll() is None
        process.kill()
    assert place.out.read_bytes().startswith(before)
    assert len(place.out.read_bytes()) > len(before)
    after = place.run()
    assert "to 45000 in" in after.err


def test_run_that_was_killed_in_the_same_step_over_and_over_goes_on(place: Place) -> None:
    """Somebody waits less long than the first step of a run takes."""
    plan = load_plan(str(PIPELINE))
    notes, disk = in_flight_path(plan.name), LiveDisk(place.state)
    for _ in range(50):
        killed = InFlight(NoteFile(disk, notes), version=plan.topology_hash)
        killed.stabilizing({"trades": 20_500})
        killed.close()
    place.append(1000)
    after = place.run()
    assert after.code == 0
    assert "50 runs were killed while they stabilized the views" in after.err
    assert '{"trades": 20500}' in after.err
    assert "runs were killed" not in place.run().err


def test_second_process_is_refused_by_name(place: Place) -> None:
    with place.follow() as process:
        told(process, "restored checkpoint")
        second = place.run()
        assert second.code == 1
        assert f"is held by ripple run, process {process.pid}" in second.only_line
        process.terminate()
        process.wait(PATIENCE_S)


def test_output_that_was_removed_is_written_again_alone(place: Place) -> None:
    held, totals = place.files(), place.totals()
    place.out.unlink()
    Path(f"{place.out}.cut").unlink()
    again = place.run()
    assert again.code == 0
    assert "is ahead of what an output holds" in again.err
    assert place.out.read_bytes() == held[str(place.out)]
    assert place.totals() == totals


def test_lost_checkpoints_cost_time_and_nothing_else(place: Place) -> None:
    held = place.files()
    shutil.rmtree(place.state)
    again = place.run()
    assert again.code == 0
    assert "replayed 20000 events from 0 to 20000" in again.err
    assert place.out.read_bytes() == held[str(place.out)]


def test_damaged_checkpoint_is_passed_over_and_said(place: Place) -> None:
    place.append(1)
    assert place.run().code == 0
    newest = max(place.state.rglob("*-0-vwap.arrow"))
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 4
    newest.write_bytes(data)
    again = place.run()
    assert again.code == 0
    assert f"{newest.name} is damaged" in again.err
    assert "replayed 1 event from 20000 to 20001" in again.err


def test_log_that_is_not_the_one_is_refused(place: Place) -> None:
    held = place.files()
    kept = place.topic.rename(place.topic.with_name("kept"))
    gone = place.run()
    assert (gone.code, f"cannot read log:{place.topic}" in gone.only_line) == (1, True)
    other = Place(place.topic.parents[1] / "other")
    other.topic.rename(place.topic)
    place.append(300)
    short = place.run()
    assert short.code == 1
    assert "ends at offset 300, but records up to 20000 were read" in short.only_line
    place.append(40_000)
    longer = place.run()
    assert longer.code == 1
    assert "holds other records before offset 20000" in longer.only_line
    assert place.files() == held
    shutil.rmtree(place.topic)
    kept.rename(place.topic)
    assert place.run().code == 0
    assert place.files() == held


@pytest.mark.parametrize("first", ["{new}/new.csv", "log:{new}/topic"])
def test_failed_start_leaves_no_new_outputs(place: Place, tmp_path: Path, first: str) -> None:
    """Neither those opened before one that cannot be, nor those of a run that cannot go on."""
    new = tmp_path / "new"
    new.mkdir()
    sinks = ["--sink", f"out={first.format(new=new)}", "--sink"]
    source = ["run", PIPELINE, "--source", f"log:{place.topic}"]
    failed = ripple(
        *source, *sinks, f"total={new}/absent/t.csv", "--checkpoint-dir", tmp_path / "other"
    )
    assert (failed.code, "there is no folder" in failed.only_line) == (1, True)
    assert list(new.iterdir()) == []
    notes = place.state / "vwap-1s" / "00000" / "in-flight.jsonl"
    notes.write_bytes(b"".join(map(_line, [["kept", 1], ["of a later release"]])))
    failed = ripple(*source, *sinks, f"total=log:{place.total}", "--checkpoint-dir", place.state)
    assert (failed.code, "in-flight.jsonl" in failed.only_line) == (1, True)
    assert list(new.iterdir()) == []
    assert place.out.exists()


def test_output_that_somebody_changed_is_refused(place: Place) -> None:
    data = bytearray(place.out.read_bytes())
    data[5] ^= 1
    place.out.write_bytes(data)
    refused = place.run()
    assert refused.code == 1
    assert "was changed within" in refused.only_line
    assert place.out.read_bytes() == data


def test_changed_fold_is_refused_until_it_may_be_rebuilt(place: Place, tmp_path: Path) -> None:
    held = place.files()
    changed = tmp_path / "pipeline_vwap.py"
    text = PIPELINE.read_text()
    changed.write_text(text.replace('rp.vwap("price", "size")', 'rp.mean("price")'))
    refused = place.run(pipeline=changed)
    assert refused.code == 1
    assert "--rebuild vwap" in refused.only_line
    assert place.files() == held
    rebuilt = place.run("--rebuild", "vwap", pipeline=changed)
    assert rebuilt.code == 0
    assert "replayed 20000 events from 0 to 20000" in rebuilt.err
    # What can still change is shown again as the new code has it; what is over stays.
    assert place.out.read_bytes().startswith(held[str(place.out)])
    assert len(place.out.read_bytes()) > len(held[str(place.out)])
    place.append(1)
    again = place.run(pipeline=changed)
    assert (again.code, "restored checkpoint" in again.err) == (0, True)


def test_record_is_judged_as_a_plain_run_judges_it(place: Place, tmp_path: Path) -> None:
    trade = {"symbol": "A", "price": 1.0, "size": 0, "timestamp_ns": 0, "venue": "X"}
    pq.write_table(pa.Table.from_pylist([trade]), tmp_path / "one.parquet")
    assert ripple("log", "append", place.topic, tmp_path / "one.parquet").code == 0
    plain = ripple("run", PIPELINE, "--source", f"log:{place.topic}", "--sink", "out=-")
    assert plain.err.startswith("ripple: not written: output total; write it with --sink total=URI")
    lasting = place.run()
    assert "not written" not in lasting.err
    for ended in (plain, lasting):
        assert ended.code == 0
        assert "Rejected:          1" in ended.err
        assert "size is not positive" in ended.err


def test_log_that_does_not_fit_is_refused_before_it_is_read(place: Place, tmp_path: Path) -> None:
    changed = tmp_path / "pipeline_vwap.py"
    changed.write_text(PIPELINE.read_text().replace("venue: str", "exchange: str"))
    refused = place.run(pipeline=changed)
    assert refused.code == 3
    assert f"log:{place.topic} has no column 'exchange'" in refused.only_line


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ["--source", "trades.csv"],
            "needs a source that can be read again, not 'trades.csv' (as files:trades.csv it can",
        ),
        (["--source", "log:"], "cannot tell which log 'log:' is"),
        (["--sink", "out=x.txt"], "x.txt"),
        (["--commit-interval", "0.1"], "--commit-interval: it must be a number and a unit"),
        (["--header"], "'files:trades.csv?header'"),
        (["--keep", "0"], "keep must be a whole number from 1 on"),
        (["--rebuild", "vwop"], "there is no fold 'vwop'"),
        (["--strict"], "ripple dead-letter list"),
    ],
)
def test_wrong_arguments_are_named(place: Place, given: list[str], said: str) -> None:
    held = place.files()
    arguments = place.arguments()
    if given[0] in ("--source", "--sink"):
        at = arguments.index(given[0])
        arguments[at : at + 2] = given
        given = []
    refused = ripple(*arguments, *given)
    assert refused.code == 1
    assert said in refused.only_line
    assert place.files() == held


def test_standard_output_says_what_it_cannot_promise(place: Place) -> None:
    place.append(30_000)
    source = ["--source", f"log:{place.topic}", "--checkpoint-dir", place.state]
    shown = ripple("run", PIPELINE, *source, "--sink", "out=-")
    assert shown.code == 0
    assert "may be repeated after a restart" in shown.err
    assert shown.out.count("\n") >= SYMBOLS


def test_result_that_cannot_be_computed_stops_no_start_and_comes_back(tmp_path: Path) -> None:
    pipeline = tmp_path / "dividing.py"
    pipeline.write_text(
        "import ripple as rp\n"
        "from ripple.connectors.files.csv.format import TRADE_SCHEMA\n"
        'trades = rp.Pipeline("d").source("trades", TRADE_SCHEMA).partition("k", key="symbol")\n'
        'sums = trades.fold("f", n=rp.sum("size"), c=rp.count())\n'
        'pipeline = sums.derive("r", q=rp.col("n") // (rp.col("c") - 2)).sink("out")\n'
    )
    topic, out, state = tmp_path / "log" / "trades", tmp_path / "out.jsonl", tmp_path / "state"
    lines = tmp_path / "some.csv"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0

    def run_after(*sizes: int) -> tuple[int, str, list[str]]:
        lines.write_text("".join(f"A,1.5,{size},{size},X\n" for size in sizes))
        assert not sizes or ripple("log", "append", topic, lines).code == 0
        places = ["--source", f"log:{topic}", "--sink", out, "--checkpoint-dir", state]
        ended = ripple("run", pipeline, *places, "--batch", 1)
        return ended.code, ended.err, out.read_text().splitlines()

    for sizes in ((1, 5), (), (), (), ()):  # no start is one too many
        code, told, written = run_after(*sizes)
        assert code == 0, told
        assert "1 in 'f'; the first: key ('A',), step 'r': integer division by zero" in told
        assert [line.partition(",")[0] for line in written] == ['{"op":"set"', '{"op":"remove"']
    code, told, written = run_after(7)
    assert (code, "Not computed" in told) == (0, False)
    assert written[-1] == '{"op":"set","symbol":"A","n":13,"c":3,"q":13}'
