"""What is right passes every check; what is broken on purpose is found, with key and events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.cli.main import main
from ripple.connectors.log.sink import NOTE
from ripple.core.errors import InputError
from ripple.engine.snapshots.snapshot import Snapshot
from ripple.model.batch import Batch
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.checkpoint_check import AgainstCheckpoints
from ripple.spark.crashes import Crashes
from ripple.spark.log_table import open_topic
from ripple.spark.oracle_check import AgainstOracle
from ripple.spark.output_check import AgainstLog, Divided
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.sampling import Sample
from ripple.spark.starting_point import StartingPoint
from ripple.spark.verdict import Verdict
from ripple.storage.checkpoint import Checkpoint, Checkpoints
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.storage.store.opening import open_store
from ripple.world import LiveClock, LiveDisk, LiveRandom
from tests.examples import EXAMPLES
from tests.spark.kept import falsify
from tests.spark.logs import append, topic_of

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    t: rp.Timestamp

events = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=4)
keyed = events.filter("cheap", rp.col("price") < 1e30).partition("by", key="symbol")

def shown(pipeline):
    return pipeline.fold(
        "rows", n=rp.count(), sum=rp.sum("price"), size=rp.sum("size"), mean=rp.mean("price"),
        vwap=rp.vwap("price", "size"), low=rp.min("price"), high=rp.max("price"),
        var=rp.variance("price"), sd=rp.stddev("price"), var_p=rp.variance_pop("price"),
        sd_p=rp.stddev_pop("price"), first=rp.first("price"), last=rp.last("price"),
        bars=rp.ohlc("price"), middle=rp.median("price"), p90=rp.percentile("price", 90),
        top=rp.top_k("price", 2), kinds=rp.count_distinct("size"),
        latest=rp.last_row(["price", "size"]), best=rp.arg_max("size", "price"),
        rows=rp.top_rows(2, "price", ["size", "t"]),
    ).sink("out")

running = shown(keyed)
tumbling = shown(keyed.window("w", rp.Tumbling(20), lateness=6))
sliding = shown(keyed.window("w", rp.Sliding(20, 7), lateness=6))
session = shown(keyed.window("w", rp.Session(5), lateness=6))
each = shown(keyed.window("w", rp.Session(5), lateness=6, trigger=rp.OnEveryElement()))
interval = shown(keyed.window("w", rp.Tumbling(20), lateness=6, trigger=rp.OnInterval(7)))
counted = shown(keyed.window("w", rp.Sliding(20, 7), lateness=6, trigger=rp.OnCount(3)))
total = (
    keyed.window("w", rp.Tumbling(20), lateness=6).fold("rows", n=rp.count(), high=rp.max("price"))
    .partition("all", key=()).fold("total", n=rp.sum("n"), most=rp.max("high")).sink("out")
)
"""
KINDS = ("running", "tumbling", "sliding", "session", "each", "interval", "counted", "total")
SOME = KINDS if EXAMPLES > 1 else ("running", "session", "counted", "total")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checked") / "checked_pipelines.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture(scope="module")
def plans(file: Path) -> dict[str, Plan]:
    return {kind: load_plan(f"{file}:{kind}") for kind in KINDS}


@pytest.fixture(autouse=True)
def _in_one_process(plans: dict[str, Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    by_hash = {plan.topology_hash: plan for plan in plans.values()}
    monkeypatch.setattr(Parcel, "plan", lambda self: by_hash[self.topology_hash])


def events(count: int, seed: int = 1) -> list[dict[str, Any]]:
    chance, now, made = Random(seed), 0, []
    for _ in range(count):
        now += chance.choice([0, 0, 1, 1, 2, 9])
        made.append(
            {
                "symbol": f"S{chance.randrange(4)}",
                "price": chance.choice([0.1, 0.2, 1e17, -1e17, 2.5, -0.0, 1e-9, 1e40]),
                "size": chance.choice([1, 2, 3, 100]),
                "t": max(0, now - chance.choice([0, 0, 0, 3, 8, 15])),
            }
        )
    return made


def parcel_of(plan: Plan) -> Parcel:
    return Parcel.of(plan, lambda plan: b"")


def found(packets: Iterator[Any]) -> dict[str, Any]:
    (packet,) = packets
    return dict(packet.about)


def against_checkpoints(folder: Path, place: str, plan: Plan) -> dict[str, Any]:
    """Compare the checkpoints of a run in a folder with its source."""
    shares = sources_at(place, plan).shares
    return found(AgainstCheckpoints(parcel_of(plan), shares, f"{folder}/kept", "p", 0).run())


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_agrees_with_the_oracle(
    kind: str, seed: int, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans[kind]
    place = topic_of(tmp_path, plan, events(150, seed), partitions=1)
    (portion,) = sources_at(place, plan).portions(plan)
    about = found(AgainstOracle(parcel_of(plan), portion, 120).run())
    assert about["differences"] == []
    assert about["rows"] == 120
    assert about["cases"] > 0


@pytest.mark.parametrize("engine", ["ripple.engine.machine:Engine", "tests.spark.broken:Miscounts"])
def test_the_oracle_compares_counters_where_records_were_refused(
    engine: str, plans: dict[str, Plan], tmp_path: Path
) -> None:
    path = tmp_path / "some.csv"
    path.write_text("S1,1.5,2,100\nS1,nothing,2,101\nS1,1.5,2,102\n")
    plan = plans["running"]
    (portion,) = sources_at(str(path), plan).portions(plan)
    about = found(AgainstOracle(parcel_of(plan), portion, 9, engine).run())
    told = [one["what"] for one in about["differences"]]
    assert len(told) == (engine != "ripple.engine.machine:Engine"), told
    assert all("counters: {'consumed': 3, 'applied': 2" in one for one in told)


@pytest.mark.parametrize("kind", SOME)
def test_the_oracle_finds_an_engine_that_adds_wrongly(
    kind: str, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans[kind]
    one = {"symbol": "S1", "price": 1.5, "size": 2, "t": 100}
    place = topic_of(tmp_path, plan, [one, one], partitions=1)
    (portion,) = sources_at(place, plan).portions(plan)
    about = found(AgainstOracle(parcel_of(plan), portion, 9, "tests.spark.broken:Inflates").run())
    first = about["differences"][0]
    assert first["output"] == "out"
    assert first["expected"] != first["found"]
    assert [event["offset"] for event in first["events"]] == [0, 1]


@pytest.mark.parametrize("kind", SOME)
def test_crashes_leave_no_trace(kind: str, plans: dict[str, Plan], tmp_path: Path) -> None:
    plan = plans[kind]
    place = topic_of(tmp_path, plan, events(300), partitions=1)
    (portion,) = sources_at(place, plan).portions(plan)
    about = found(Crashes(parcel_of(plan), portion, 12, seed=5).run())
    assert about["differences"] == []
    assert about["cases"] == 13
    assert len(about["at"]) == 12


@pytest.mark.parametrize(
    ("engine", "told"), [("Forgets", "crash at offset"), ("CannotRestore", "it is not mine")]
)
def test_engine_restored_with_other_state_is_found(
    engine: str, told: str, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans["running"]
    place = topic_of(tmp_path, plan, events(300), partitions=1)
    (portion,) = sources_at(place, plan).portions(plan)
    about = found(Crashes(parcel_of(plan), portion, 12, 5, f"tests.spark.broken:{engine}").run())
    first = about["differences"][0]
    assert told in first["what"]
    if engine == "Forgets":
        assert first["expected"] != first["found"]
        key = first["expected"]["symbol"]
        assert {event["symbol"] for event in first["events"]} == {key}


@pytest.fixture
def live(file: Path, plans: dict[str, Plan], tmp_path: Path) -> tuple[Path, str]:
    """A run with checkpoints, whose output is a log; it has ended before its input does."""
    place = topic_of(tmp_path / "lg", plans["tumbling"], events(300), partitions=1)
    arguments = ["--checkpoint-dir", f"{tmp_path}/kept", "--batch", "50"]
    arguments += ["--commit-interval", "0s", "--checkpoint-interval", "0s"]
    assert main(["run", f"{file}:tumbling", "--source", place, "--sink", f"log:{tmp_path}/lg/out",
                 *arguments]) == 0  # fmt: skip
    return tmp_path, place


def test_outputs_of_a_run_equal_a_fresh_evaluation(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    parcel, shares = parcel_of(plan), sources_at(place, plan).shares
    about = found(AgainstCheckpoints(parcel, shares, f"{folder}/kept", "p", 0).run())
    assert (about["differences"], about["rows"]) == ([], 300)
    assert about["cases"] >= 1
    about = found(AgainstLog(parcel, shares, "out", f"log:{folder}/lg/out", 0).run())
    assert about["differences"] == []
    assert about["cases"] > 10
    broken = "tests.spark.broken:Inflates"
    about = found(AgainstCheckpoints(parcel, shares, f"{folder}/kept", "p", 0, broken).run())
    assert about["differences"]


def test_output_of_a_later_stage_of_a_cluster_is_compared(
    file: Path, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan, out = plans["total"], f"log:{tmp_path}/lg/out"
    place = topic_of(tmp_path / "lg", plan, events(300), partitions=1)
    given = [f"{file}:total", "--source", place, "--sink", out]
    assert main(["run", *given, "--checkpoint-dir", f"{tmp_path}/kept"]) == 0
    stores = ["--from", f"{tmp_path}/kept", "--to", f"{tmp_path}/cluster"]
    assert main(["checkpoint", "move", *given, *stores]) == 0  # its cut is one of senders now
    parcel, shares = parcel_of(plan), sources_at(place, plan).shares
    assert found(Divided(shares, "out", out, 1).run())["differences"] == []
    about = found(AgainstLog(parcel, shares, "out", out, 0).run())
    assert (about["differences"], about["rows"], about["cases"]) == ([], 300, 2)
    with pytest.raises(InputError, match=r"later stage, and its changes are by the cuts"):
        found(AgainstLog(parcel, shares, "out", out, 0, changes=True).run())
    broken = "tests.spark.broken:Inflates"
    assert found(AgainstLog(parcel, shares, "out", out, 0, broken).run())["differences"]


@pytest.mark.parametrize("kind", SOME)
def test_checkpoints_of_a_run_hold_what_a_fresh_evaluation_has(
    kind: str, file: Path, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans[kind]
    place = topic_of(tmp_path / "lg", plan, events(300), partitions=1)
    arguments = ["--checkpoint-dir", f"{tmp_path}/kept", "--batch", "17", "--keep", "9"]
    arguments += ["--commit-interval", "0s", "--checkpoint-interval", "0s"]
    assert main(["run", f"{file}:{kind}", "--source", place, "--sink", f"log:{tmp_path}/lg/out",
                 *arguments]) == 0  # fmt: skip
    about = against_checkpoints(tmp_path, place, plan)
    assert about["differences"] == []
    assert about["cases"] >= 2


def test_a_checkpoint_that_no_engine_has_computed_is_found(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    # It is at the cut of the one before, which is right.
    folder, place = live
    plan = plans["tumbling"]
    wrong = falsify(f"{folder}/kept", "p", "count")
    about = against_checkpoints(folder, place, plan)
    (first,) = about["differences"]
    assert f"checkpoint {wrong} at 300: the state of rows" in first["what"]  # of open windows
    assert first["found"]["n.count"] == first["expected"]["n.count"] + 1
    assert len(first["events"]) == min(10, first["expected"]["n.count"])


def test_a_checkpoint_that_is_damaged_is_a_difference(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    *_, file = sorted((folder / "kept").glob("p/00000/state/*.arrow"))
    file.write_bytes(file.read_bytes()[:-9])
    about = against_checkpoints(folder, place, plan)
    (first,) = about["differences"]
    assert f"cannot be read: p/00000/state/{file.name} is cut" in first["what"]


def test_a_checkpoint_that_its_owner_deletes_meanwhile_is_no_difference(
    live: tuple[Path, str], plans: dict[str, Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    read, gone = Checkpoints.read, []

    async def late(self: Checkpoints, checkpoint: Checkpoint) -> Snapshot:
        if not gone:
            async with open_store(f"{folder}/kept") as store:
                owner = await Checkpoints(store, "p", 0).claim(LiveClock(), LiveRandom())
                gone.append(owner.present[0].name)
                await owner.delete(gone[0])
        return await read(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "read", late)
    about = against_checkpoints(folder, place, plan)
    assert about["differences"] == []
    assert about["cases"] >= 1


def test_inputs_of_one_partition_stand_in_the_order_of_their_numbers(
    file: Path, plans: dict[str, Plan], tmp_path: Path
) -> None:
    # A stored cut has trades/10 before trades/2, and which of two records of one time is the first
    # depends on which input is before the other.
    plan = plans["running"]
    made = [{"symbol": "S", "price": float(n), "size": 1, "t": 5} for n in range(22)]
    place = topic_of(tmp_path / "lg", plan, made, partitions=11)
    arguments = ["--sink", f"log:{tmp_path}/lg/out", "--checkpoint-dir", f"{tmp_path}/kept"]
    assert main(["run", f"{file}:running", "--source", place, *arguments]) == 0
    parcel, shares = parcel_of(plan), sources_at(place, plan).shares
    kept = found(AgainstCheckpoints(parcel, shares, f"{tmp_path}/kept", "p", 0).run())
    out = found(AgainstLog(parcel, shares, "out", f"log:{tmp_path}/lg/out", 0).run())
    assert (kept["differences"], out["differences"]) == ([], [])
    assert (kept["rows"], out["rows"]) == (22, 22)


def test_output_with_only_a_wrong_digest_is_reported(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    topic, _ = open_topic(f"log:{folder}/lg/out")
    with PartitionReader(topic, 0) as reader:
        *_, last = reader.read()
        notes = reader.notes_at(reader.range()[1] - 1)
    wrong = re.sub(r'("digest": ")\w+', r"\g<1>0123456789abcdef", notes[NOTE])
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(last.records.slice(last.records.num_rows - 1), notes={**notes, NOTE: wrong})
    about = found(
        AgainstLog(
            parcel_of(plan), sources_at(place, plan).shares, "out", f"log:{folder}/lg/out", 0
        ).run()
    )
    (first,) = about["differences"]
    assert "has recorded digest 0123456789abcdef, a fresh evaluation has " in first["what"]
    assert first["what"].endswith("; the rows are the same")
    text = Verdict.of("p", "t", place, [about]).text()
    assert text.splitlines()[-4:-2] == [
        f"outputs of {about['of']}: {first['what']}",
        "  output    out",
    ]
    assert "no row" not in Verdict.of("p", "t", place, [about]).html()


def test_a_check_that_compared_nothing_holds_nothing() -> None:
    def about(check: str, cases: int, rows: int, note: str = "") -> dict[str, Any]:
        done = {"check": check, "of": "p/0", "cases": cases, "rows": rows, "note": note}
        return {**done, "differences": [], "differing": 0, "at": []}

    crashes, none = about("crashes", 5, 9), about("checkpoints", 0, 0)
    for findings, idle in (
        ([about("crashes", 3, 0), about("oracle", 0, 0)], ["crashes", "oracle"]),
        ([crashes, none], ["checkpoints"]),
        ([crashes, none, about("checkpoints", 1, 9)], []),
        ([crashes, about("outputs", 0, 9, "its code has changed")], []),
    ):
        verdict = Verdict.of("p", "t", "log:x", findings)
        assert (verdict.idle, verdict.holds) == (idle, not idle)
        end = f"does not hold (no comparisons by: {', '.join(idle)})" if idle else "holds"
        assert verdict.text().splitlines()[-1] == end
    assert not Verdict.of("p", "t", "log:x", []).holds


def tamper(folder: Path) -> dict[str, Any]:
    """Show the last row of an output again, with another count; return it as it was."""
    topic, _ = open_topic(f"log:{folder}/lg/out")
    with PartitionReader(topic, 0) as reader:
        *_, last = reader.read()
        notes = reader.notes_at(reader.range()[1] - 1)
    row: dict[str, Any] = last.records.slice(last.records.num_rows - 1).to_pylist()[0]
    wrong = pa.RecordBatch.from_pylist([{**row, "n": row["n"] + 1}], last.records.schema)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(wrong, notes=notes)
    return row


def test_an_output_with_one_wrong_row_is_found(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    tamper(folder)
    (first,) = found(
        AgainstLog(
            parcel_of(plan), sources_at(place, plan).shares, "out", f"log:{folder}/lg/out", 0
        ).run()
    )["differences"]
    assert first["found"]["n"] == first["expected"]["n"] + 1
    assert len(first["events"]) == min(10, first["expected"]["n"])


@pytest.mark.parametrize("kind", [kind for kind in SOME if kind != "total"])
def test_samples_of_the_keys_are_together_what_was_written(
    kind: str, file: Path, plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans[kind]
    place = topic_of(tmp_path / "lg", plan, events(300), partitions=1)
    arguments = ["--sink", f"log:{tmp_path}/lg/out", "--checkpoint-dir", f"{tmp_path}/kept"]
    assert main(["run", f"{file}:{kind}", "--source", place, *arguments, "--batch", "50"]) == 0
    parcel, shares, out = parcel_of(plan), sources_at(place, plan).shares, f"log:{tmp_path}/lg/out"
    whole = found(AgainstLog(parcel, shares, "out", out, 0).run())
    parts = [
        found(AgainstLog(parcel, shares, "out", out, 0, sample=Sample(3, at)).run())
        for at in range(3)
    ]
    assert [part["differences"] for part in parts] == [[], [], []]
    assert sum(part["cases"] for part in parts) == whole["cases"] - 1
    assert sum(part["cases"] > 0 for part in parts) > 1


def test_the_sample_that_has_the_wrong_row_finds_it(
    live: tuple[Path, str], plans: dict[str, Plan]
) -> None:
    folder, place = live
    plan = plans["tumbling"]
    row = tamper(folder)
    parcel, shares, out = parcel_of(plan), sources_at(place, plan).shares, f"log:{folder}/lg/out"
    differing = [
        one
        for at in range(3)
        for one in found(AgainstLog(parcel, shares, "out", out, 0, sample=Sample(3, at)).run())[
            "differences"
        ]
    ]
    assert [one["found"]["n"] for one in differing] == [row["n"] + 1]
    assert differing[0]["expected"]["n"] == row["n"]


@pytest.mark.parametrize(("text", "of"), [("1%", 100), ("0.25", 4), ("100%", 1)])
def test_a_sample_is_a_share_of_the_keys(text: str, of: int) -> None:
    assert Sample.of_share(text).of == of
    for wrong in ("", "0%", "120%", "all"):
        with pytest.raises(InputError, match="a sample is a share"):
            Sample.of_share(wrong)


CHANGING = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int

def moved(old):
    at = old.column_names.index("size.sum")
    return old.set_column(at, "size.max", old.column(at).cast("int64"))

trades = rp.Pipeline("p").source("trades", Trade).partition("by", key="symbol")
before = trades.fold("rows", size=rp.sum("size")).sink("out")
after = trades.fold("rows", size=rp.max("size")).sink("out")
moving = (
    trades.fold("rows", size=rp.max("size"))
    .migrate("rows", moved, from_digest=before.plan().fold("rows").node_key)
    .sink("out")
)
"""


@pytest.mark.parametrize(("chosen", "more"), [("after", ("--rebuild", "rows")), ("moving", ())])
def test_outputs_of_code_that_has_changed_raise_no_alarm(
    chosen: str, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "changing.py"
    file.write_text(CHANGING)
    plan = load_plan(f"{file}:before")
    rows = [{"symbol": symbol, "size": size} for symbol in "AB" for size in (3, 5)]
    place = topic_of(tmp_path / "lg", plan, rows, partitions=1)
    out = f"log:{tmp_path}/lg/out"
    arguments = ["--source", place, "--sink", out, "--checkpoint-dir", f"{tmp_path}/kept"]
    assert main(["run", f"{file}:before", *arguments]) == 0
    append(place, f"{file}:before", [{"symbol": "A", "size": 4}])
    assert main(["run", f"{file}:{chosen}", *arguments, *more]) == 0
    append(place, f"{file}:before", [{"symbol": "A", "size": 4}])
    assert main(["run", f"{file}:{chosen}", *arguments]) == 0  # what was noted is carried on
    plan = load_plan(f"{file}:{chosen}")
    monkeypatch.setattr(Parcel, "plan", lambda self: plan)
    parcel, shares = parcel_of(plan), sources_at(place, plan).shares
    known = StartingPoint.of(f"{tmp_path}/kept", "p", [0])
    written = found(AgainstLog(parcel, shares, "out", out, 0, beginning=known).run())
    blind = found(AgainstLog(parcel, shares, "out", out, 0).run())
    if chosen == "moving":
        with pytest.raises(InputError, match="earlier changes are of other code; leave out"):
            found(AgainstLog(parcel, shares, "out", out, 0, beginning=known, changes=True).run())
    if chosen == "after":  # what it shows is what the new code makes of all, so it is compared
        assert (blind["differences"], written["cases"] > 0) == ([], True)
    else:
        assert blind["differences"]
        assert (
            "its code has changed, and its rows up to 4 were made by other code" in written["note"]
        )
    assert written["differences"] == []
    kept = found(
        AgainstCheckpoints(parcel, shares, f"{tmp_path}/kept", "p", 0, beginning=known).run()
    )
    assert kept["differences"] == []
    assert ("its state was migrated at 4" in kept["note"]) == (chosen == "moving")


def falsified(place: str, into: Path, change: Any) -> str:
    """Write an output's log again; ``change`` gives the rows of each frame from its rows."""
    topic, _ = open_topic(place)
    with PartitionReader(topic, 0) as reader, PartitionReader(topic, 0) as looking:
        frames = [
            (entry.records, looking.notes_at(entry.next_offset - 1))
            for entry in reader.read()
            if isinstance(entry, Batch)
        ]
    wrong = Topic.create(LiveDisk(into), "out", topic.schema)
    with PartitionWriter(wrong, 0, LiveClock()) as writer:
        for number, (records, notes) in enumerate(frames):
            rows = change(number, records.to_pylist())
            writer.append(pa.RecordBatch.from_pylist(rows, records.schema), notes=notes)
    return f"log:{into}/out"


def test_changes_are_compared_at_each_cut(
    plans: dict[str, Plan], file: Path, tmp_path: Path
) -> None:
    plan, out = plans["running"], f"log:{tmp_path}/lg/out"
    place = topic_of(tmp_path / "lg", plan, events(200), partitions=1)
    arguments = ["--sink", out, "--checkpoint-dir", f"{tmp_path}/kept", "--batch", "20"]
    assert main(["run", f"{file}:running", "--source", place, *arguments]) == 0

    def differing(name: str, change: Any) -> list[dict[str, Any]]:
        wrong = falsified(out, tmp_path / name, change)
        shares = sources_at(place, plan).shares
        about = found(AgainstLog(parcel_of(plan), shares, "out", wrong, 0, changes=True).run())
        assert about["differing"] >= len(about["differences"])
        return list(about["differences"])

    assert differing("same", lambda _, rows: rows) == []

    def superseded(number: int, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**rows[0], "n": rows[0]["n"] + 1}, *rows[1:]] if number == 2 else rows

    (first,) = differing("superseded", superseded)
    assert "the changes up to the cut" in first["what"]
    assert first["found"]["n"] == first["expected"]["n"] + 1
    assert [text.partition(":")[0] for text in first["fields"]] == ["n"]
    assert first["events"]

    def ghost(rows: list[dict[str, Any]], op: str) -> dict[str, Any]:
        return {**rows[0], "symbol": "ghost", "op": op}

    (first,) = differing(
        "within",
        lambda at, rows: [ghost(rows, "set"), ghost(rows, "remove"), *rows] if at == 3 else rows,
    )
    assert "neither the one before nor after" in first["what"]
    assert first["key"] == "('ghost',)"
    (first,) = differing(
        "across",
        lambda at, rows: (
            [ghost(rows, {3: "set", 5: "remove"}[at]), *rows] if at in (3, 5) else rows
        ),
    )
    assert (first["key"], first["expected"]) == ("('ghost',)", None)
