"""What goes on from history that was backfilled is what has read all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from ripple.core.errors import InputError
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.backfill.receipt import BackfillError, Receipt, changes, differences
from ripple.spark.checkpoint_check import AgainstCheckpoints
from ripple.spark.output_check import AgainstLog
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.sampling import Sample
from ripple.spark.starting_point import NOTHING, StartingPoint
from tests.cli.processes import RIPPLE, run
from tests.spark.backfilled import backfilled
from tests.spark.backfills import BEGIN, SECOND, SOURCE, TRADES, UNTIL, Place
from tests.spark.kept import falsify
from tests.spark.logs import topic_of


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", ["running", "minutes", "sessions", "total"])
def test_run_from_history_equals_one_that_read_everything(
    name: str, partitions: int, tmp_path: Path
) -> None:
    place = Place(tmp_path, partitions)
    receipt = place.backfilled(name, partitions=1)
    assert not receipt.broken()
    assert not receipt.unproven()
    assert receipt.rows == sum(one["t"] < UNTIL for one in TRADES)
    expected = place.digest(name, place.whole, "whole-store")
    found = place.digest(name, place.live, "store")
    assert found.splitlines()[0] == expected.splitlines()[0]
    if name in ("running", "total"):  # of others the rows that were final before are not written
        assert found == expected
    again = place.digest(name, place.live, "store")
    assert again.splitlines()[0] == found.splitlines()[0]


def test_each_partition_of_a_cluster_has_its_part_of_history(tmp_path: Path) -> None:
    place = Place(tmp_path, 6)
    one, three, six = (
        place.backfilled("running", partitions=count, adopts=False) for count in (1, 3, 6)
    )
    assert one.digests == three.digests == six.digests
    assert [len(part["inputs"]) for part in three.partitions] == [2, 2, 2]
    assert len({one.backfill, three.backfill, six.backfill}) == 3


def test_a_receipt_is_read_again_and_what_differs_is_said(tmp_path: Path) -> None:
    receipt = Place(tmp_path, 2).backfilled("minutes", adopts=False)
    again = Receipt.of(json.dumps(receipt.as_dict()), "r.json")
    assert again == Receipt.of(json.dumps(again.as_dict()), "r.json")
    assert not list(differences(receipt, again))
    assert changes(again, receipt) == []


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (["partitions", 1, "inputs", 0, "rows"], 7, r"inputs\[0\].rows: the receipt has 7, and "),
        (["partitions", 0, "inputs", 0, "offset"], 9, r"inputs\[0\].offset: the receipt has 9, "),
        (
            ["partitions", 0, "inputs", 0, "verdict"],
            "broken",
            "verdict: the receipt has 'broken', ",
        ),
        (["partitions", 0, "counters", "applied"], 1, "counters.applied: the receipt has 1, and "),
        (["partitions", 1, "extra"], 2, r"partitions\[1\].extra: the receipt has 2, and "),
        (["partitions", 1], None, r"partitions\[1\]: the receipt has None, and "),
        (["files", 0, "rows"], 1, r"files\[0\].rows: the receipt has 1, and the store 3"),
        (["backfill"], "0" * 32, "it is of backfill 0{32}, and its history, "),
    ],
)
def test_edited_receipt_is_reported(
    path: list[Any], value: object, says: str, tmp_path: Path
) -> None:
    receipt = Place(tmp_path, 2).backfilled("minutes", adopts=False)
    held = json.loads(json.dumps(receipt.as_dict()))
    at = held
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    if path == ["partitions", 1]:
        held["partitions"].pop()
        held["digests"] = held["partitions"][0]["digests"]
    (line,) = changes(Receipt.of(json.dumps(held), "r.json"), receipt)
    assert re.search(says, line), line


def test_digests_of_a_receipt_are_those_of_its_partitions(tmp_path: Path) -> None:
    held = Place(tmp_path, 2).backfilled("minutes", adopts=False).as_dict()
    changed: list[dict[str, Any]] = [
        {"digests": {"rows": "0" * 16}},
        {"partitions": [{}]},
        {"history": 5},
        {"until_ns": "now"},
        {"header": None},
        {"identity": [["symbol"]]},
    ]
    for wrong in [json.dumps({**held, **one}) for one in changed] + ["[" * 100_000]:
        with pytest.raises(InputError, match=r"^r.json (was changed|is not a receipt)"):
            Receipt.of(wrong, "r.json")
    with pytest.raises(InputError, match=r"its field 'extra' is in no receipt$"):
        Receipt.of(json.dumps({**held, "extra": 1}), "r.json")
    for text, says in [
        (json.dumps({name: one for name, one in held.items() if name != "store"}), "no field 's"),
        (json.dumps({**held, "files": 3}), "its field 'files' is no list"),
        ("null", "it is no object of JSON"),
    ]:
        with pytest.raises(InputError, match=says):
            Receipt.of(text, "r.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[:-1], "1 records of the log are missing in history"),
        (lambda rows: [*rows, rows[-1]], "1 records of history are unknown to the log"),
    ],
)
def test_a_gap_and_an_overlap_are_named(change: Any, says: str, tmp_path: Path) -> None:
    place = Place(tmp_path, 2)
    ordered = sorted((one for one in TRADES if one["t"] < UNTIL), key=lambda one: int(one["t"]))
    place.write({"a.csv": change(ordered)[300:]})
    receipt = place.backfilled("minutes", adopts=False)
    (line,) = receipt.broken()
    assert says in line
    assert ["checkpoint" in part for part in receipt.partitions].count(False) == 1


def test_a_record_that_came_late_and_is_in_history_is_an_overlap(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    late = next(one for one in TRADES[400:] if one["t"] < UNTIL - 3 * SECOND)
    live = [one for one in TRADES[500:] if one["t"] < UNTIL]
    behind = [one for one in TRADES[500:] if one["t"] >= UNTIL]
    plan = load_plan(f"{place.file}:minutes")
    events = [*live, behind[0], late, *behind[1:]]
    place.live = topic_of(tmp_path / "late", plan, events, partitions=1)
    (line,) = place.backfilled("minutes", adopts=False).broken()
    assert "1 records after the live cut are in history, too" in line


def test_log_that_begins_after_history_proves_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    plan = load_plan(f"{place.file}:minutes")
    events = [one for one in TRADES[500:] if one["t"] >= UNTIL]
    place.live = topic_of(tmp_path / "short", plan, events, partitions=1)
    receipt = place.backfilled("minutes", adopts=False)
    assert receipt.unproven() == ["trades"]
    assert not receipt.broken()


def test_history_twice_is_found_by_what_identifies_a_record(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    ordered = sorted((one for one in TRADES if one["t"] < UNTIL), key=lambda one: int(one["t"]))
    numbered = [{**one, "size": 1 + at} for at, one in enumerate(ordered)]
    place.write({"a.csv": numbered[300:], "b.csv": numbered[:121], "c.csv": numbered[120:300]})
    plan = load_plan(f"{place.file}:minutes")
    behind = [one for one in TRADES[500:] if one["t"] >= UNTIL]
    place.live = topic_of(tmp_path / "numbered", plan, [*numbered[-5:], *behind], partitions=1)
    assert not place.backfilled("minutes", adopts=False).broken()
    (line,) = place.backfilled("minutes", identity=("size",), adopts=False).broken()
    assert "1 records of history are unknown" in line


def test_a_store_that_has_begun_is_left_as_it_is(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    expected = place.digest("minutes", place.live, "store")
    place.backfilled("minutes")
    assert place.digest("minutes", place.live, "store").splitlines()[0] == expected.splitlines()[0]


def test_refused_records_of_history_are_kept(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    path = tmp_path / "history" / "b.csv"
    path.write_text(f"{path.read_text()}S1,3.0,-4,{BEGIN}\nnonsense\n")
    receipt = place.backfilled("minutes", adopts=False)
    assert sum(receipt.refused.values()) == 2
    assert {letter["raw"] for letter in receipt.letters} == {f"S1,3.0,-4,{BEGIN}", "nonsense"}


def test_other_code_does_not_forget_history(tmp_path: Path) -> None:
    place = Place(tmp_path, 1)
    place.backfilled("minutes")
    place.digest("minutes", place.live, "store")
    place.file.write_text(SOURCE.replace('rp.vwap("price", "size")', 'rp.mean("price")'))
    ended = run(
        RIPPLE, "run", f"{place.file}:minutes", "--source", place.live,
        "--sink", f"log:{tmp_path}/out-store/x", "--checkpoint-dir", tmp_path / "store",
        "--rebuild", "rows",
    )  # fmt: skip
    assert ended.code != 0
    assert "history that was backfilled" in ended.err


QUOTES = """
import ripple as rp

@rp.record(version=1)
class Quote:
    symbol: str
    bid: float | None
    ask: float | None
    t: rp.Timestamp

quotes = rp.Pipeline("quotes").source("quotes", Quote, time="t").partition("s", key="symbol").fold(
    "rows", n=rp.count(), bid=rp.last("bid"), ask=rp.last("ask")).sink("out")
"""


@pytest.mark.parametrize(
    ("of_history", "of_the_log"),
    [
        ({"bid": 5.0, "ask": None}, {"bid": None, "ask": 5.0}),
        ({"bid": 0.0, "ask": None}, {"bid": -0.0, "ask": None}),
        ({"bid": 0.0, "ask": None}, {"bid": None, "ask": None}),
    ],
)
def test_records_are_the_same_only_bit_for_bit_and_null_for_null(
    of_history: dict[str, Any], of_the_log: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "q.py"
    file.write_text(QUOTES)

    def quote(at: int, values: dict[str, Any]) -> dict[str, Any]:
        return {"symbol": "A", **values, "t": BEGIN + at * SECOND}

    (tmp_path / "h.jsonl").write_text(
        "".join(json.dumps(quote(at, of_history)) + "\n" for at in range(100))
    )
    logged = [quote(at, of_the_log) for at in range(60, 110)]
    live = topic_of(tmp_path, load_plan(str(file)), logged, partitions=1)
    until = BEGIN + 100 * SECOND
    history = f"jsonl:{tmp_path}/h.jsonl"
    receipt = backfilled(str(file), history, live, tmp_path / "s", until, adopts=False)
    (side,) = receipt.partitions[0]["inputs"]
    assert (side["missing"], side["unknown"], side["before"]) == (40, 24, 40)
    with pytest.raises(BackfillError, match="40 records of the log are missing in history"):
        receipt.check(allows_unproven=True)


def test_until_before_all_of_history_is_rejected(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, 1)
    early = BEGIN - 100 * SECOND
    receipt = place.backfilled("minutes", until_ns=early, adopts=False)
    assert receipt.unproven() == ["trades"]
    count = sum(one["t"] < UNTIL for one in TRADES)
    says = rf"no record before .*: {count}, the first of 2023-11-14T22:13:19\.5\d+Z, are later, 0 r"
    for allows in (False, True):
        with pytest.raises(BackfillError, match=says):
            receipt.check(allows_unproven=allows)
    assert f"left out   {count}, the first of " in receipt.text()


def test_input_without_comparisons_is_unproven_among_proven_ones(tmp_path: Path) -> None:
    place = Place(tmp_path, 6)
    plan = load_plan(f"{place.file}:minutes")
    places = partition_numbers(pa.RecordBatch.from_pylist(TRADES, place.schema), ["symbol"], 6)
    chosen = int(places[-1])
    history = [
        one for one, at in zip(TRADES, places, strict=True) if one["t"] < UNTIL and at != chosen
    ]
    place.write({"a.csv": [], "b.csv": [], "c.csv": sorted(history, key=lambda one: int(one["t"]))})
    live = [
        one
        for one, at in zip(TRADES[500:], places[500:], strict=True)
        if one["t"] >= UNTIL or at != chosen
    ]
    place.live = topic_of(tmp_path / "some", plan, live, partitions=6, key=("symbol",))
    receipt = place.backfilled("minutes", adopts=False)
    assert receipt.unproven() == [f"trades/{chosen}"]
    with pytest.raises(BackfillError, match=f"history reaches the log in trades/{chosen}: the log"):
        receipt.check(allows_unproven=False)
    receipt.check(allows_unproven=True)
    sides = [side for part in receipt.partitions for side in part["inputs"]]
    unwritten = {f"trades/{at}" for at in range(6)} - {f"trades/{at}" for at in places}
    nothing = {side["name"] for side in sides if side["verdict"] == "nothing to prove"}
    assert nothing == unwritten  # no key has ever come there


def checked(place: Place, plan: Plan, beginning: StartingPoint) -> list[dict[str, Any]]:
    """Return what a validation finds of the output and the checkpoints of a run."""
    parcel, shares = Parcel.of(plan, lambda plan: b""), sources_at(place.live, plan).shares
    out, store = f"log:{place.folder}/out-store/x", f"{place.folder}/store"
    sample = None if plan.name == "total" else Sample(2, 1)  # of first folds only
    jobs = [
        AgainstLog(parcel, shares, "out", out, 0, beginning=beginning),
        AgainstLog(parcel, shares, "out", out, 0, beginning=beginning, sample=sample),
        AgainstCheckpoints(parcel, shares, store, plan.name, 0, beginning=beginning),
    ]
    return [dict(packet.about) for job in jobs for packet in job.run()]


@pytest.mark.parametrize("name", ["running", "minutes", "total"])
def test_pipeline_from_history_is_validated_from_there(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(tmp_path, 2)
    place.backfilled(name, partitions=1)
    place.digest(name, place.live, "store")
    plan = load_plan(f"{place.file}:{name}")
    monkeypatch.setattr(Parcel, "plan", lambda self: plan)
    known = StartingPoint.of(f"{tmp_path}/store", name, [0])
    found = checked(place, plan, known)
    assert [one["differences"] for one in found] == [[], [], []]
    assert all(one["cases"] and "began from history" in one["note"] for one in found)
    blind = checked(place, plan, NOTHING)
    assert blind[0]["differences"]
    assert "add --against checkpoints:STORE" in blind[0]["note"]
    if name == "running":  # what is wrong is found from there, too
        falsify(f"{tmp_path}/store", name, "count")
        *_, kept = checked(place, plan, known)
        assert "the snapshot recorded: it is damaged" in kept["differences"][0]["what"]
    other = load_plan(f"{place.file}:sessions")
    with pytest.raises(InputError, match="began from history of topology"):
        known.state(other, {"trades/0": 1, "trades/1": 1})
