"""``ripple dead-letter``: what it prints, what it appends, and how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ripple.cli.main import main
from ripple.client.dashboard.stored import letters_of
from ripple.connectors.retries import retries_path
from ripple.engine.machine import RejectedRow
from ripple.model.batch import Batch
from ripple.model.schema.arrow import from_arrow
from ripple.storage.log import PartitionWriter, Topic, TopicWriter
from ripple.storage.store import DiskStore
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.log import DeadLetterLog
from ripple.task.drive import refused
from ripple.world import LiveClock, LiveDisk, LiveRandom
from tests.storage.log.trades import read_all
from tests.task.kept_letters import TRADES, write_letters

PIPELINE = Path(__file__).parent / "pipeline_vwap.py"
NO_RECORD = "only its text was kept: its source could not read it as a record"


@pytest.fixture
def disk(tmp_path) -> LiveDisk:
    """A folder of checkpoints with the letters of one partition, beside an empty topic."""
    disk = LiveDisk(tmp_path)
    write_letters(LiveDisk(tmp_path / "checkpoints"), "vwap")
    assert main(["log", "create", "--schema", "trade", f"{tmp_path}/trades"]) == 0
    return disk


@pytest.fixture
def command(disk, capfd):
    """Run an action; return its exit code and what it printed."""
    capfd.readouterr()

    def run(action: str, *arguments: object) -> tuple[int, str, str]:
        given = ["dead-letter", action, "--checkpoint-dir", f"{disk.root}/checkpoints"]
        if action == "retry" and "--source" not in arguments:
            given += ["--source", f"log:{disk.root}/trades"]
        code = main([*given, *map(str, arguments)])
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


def stored(disk: LiveDisk) -> list[object]:
    return read_all(Topic.open(disk, "trades"))


def test_list_shows_letters_and_totals_and_cannot_touch_the_terminal(command) -> None:
    code, out, err = command("list")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    assert out.splitlines() == [
        "Dead letters of vwap/0",
        "  trades  offset 10 (line 4)  version f00d  price is empty: '\\x1b[2JAMZN,,1'",
        "  trades  offset 12  version f00d  check: it is\\x1b[2J negative: "
        '\'{"symbol": "GOOG", "price": -2.0, "size": 2, "timestamp_ns":\'...',
        "  trades  offset 13  version f00d  check: too low: "
        '\'{"symbol": "MSFT", "price": -3.0, "size": 3, "timestamp_ns":\'...',
        "3 letters",
        *(f"         1  {why}" for why in ("price is empty", "check: it is\\x1b[2J negative")),
        "         1  check: too low",
    ]


def test_letters_that_are_damaged_are_told_and_the_others_listed(command, disk) -> None:
    write_letters(LiveDisk(disk.root / "checkpoints"), "vwap", partition=1)
    damaged, *_ = disk.root.glob("checkpoints/vwap/00000/letters/*2.journal")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    code, out, err = command("list")
    assert (code, out.splitlines()[-5]) == (0, "3 letters")
    assert out.splitlines()[-1] == "3 letters in 2 partitions"
    assert f"vwap/0: vwap/00000/letters/{damaged.name} is damaged" in err
    assert "its dead letters are not listed" in err


def test_letters_are_listed_past_what_cannot_be_read(command, disk) -> None:
    checkpoints = disk.root / "checkpoints"
    write_letters(LiveDisk(checkpoints), "vwap", partition=1)
    (retried := checkpoints / retries_path("vwap", 1)).mkdir()
    (retried / "topic").write_bytes(b"")
    unreadable, *_ = checkpoints.glob("vwap/00000/letters/*2.journal")
    unreadable.unlink()
    unreadable.mkdir()
    code, out, err = command("list")
    assert code == 0
    assert "3 letters" in out
    assert f"vwap/0: vwap/00000/letters/{unreadable.name} cannot be read" in err
    assert "vwap/1: it is not known which dead letters were retried" in err
    shown = asyncio.run(letters_of(DiskStore(LiveDisk(checkpoints)), {"partition": "0"}, "s"))
    assert [unreadable.name in one for one in shown["damage"]] == [True]
    lines = command("list", "--json", "--partition", 1)[1].splitlines()
    assert [json.loads(line)["retried"] for line in lines] == [None] * 3


@pytest.mark.parametrize("action", ["list", "retry"])
def test_unknown_input_is_told_with_those_that_have_letters(command, action) -> None:
    code, _, err = command(action, "--input", "trade")
    assert code == 0
    assert err.endswith("no dead letters of input 'trade': there are those of trades\n")
    _, _, err = command(action, "--input", "trades", "--reason", "of none")
    assert err == ""


def test_retry_goes_on_once_what_was_noted_of_it_is_repaired(command, disk, capfd) -> None:
    for offset in (12, 13):
        assert command("retry", "--offset", offset)[0] == 0
    journal = disk.root / "checkpoints" / retries_path("vwap")
    segment, *_ = (journal / "0").glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1  # of the second one's
    segment.write_bytes(data)
    code, _, err = command("retry", "--offset", 12)
    assert (code, "ripple log repair" in err) == (1, True)
    assert main(["log", "verify", str(journal)]) == 1
    advice = capfd.readouterr().out.split("ripple log repair ")[-1].split()
    assert main(["log", "repair", *advice]) == 0
    capfd.readouterr()
    for offset, count in ((12, 0), (13, 1)):
        assert command("retry", "--offset", offset)[1].startswith(f"vwap/0: {count} retried\n")
    assert stored(disk) == [TRADES[1], TRADES[2], TRADES[2]]


def test_list_as_json_and_chosen(command) -> None:
    def listed(*arguments: object) -> list[dict[str, object]]:
        return [json.loads(line) for line in command("list", "--json", *arguments)[1].splitlines()]

    first, second, _ = listed()
    assert (first["offset"], first["line_number"], first["can_be_retried"]) == (10, 4, False)
    assert (second["step"], second["retried"]) == ("check", False)
    assert json.loads(str(second["raw"])) == TRADES[1]
    assert [one["offset"] for one in listed("--reason", "negative")] == [12]
    assert [one["offset"] for one in listed("--from", 13)] == [13]
    assert listed("--input", "quotes") == []


def test_retry_appends_each_record_once_and_tells_what_it_cannot(command, disk) -> None:
    code, out, err = command("retry", "--offset", 12, "--offset", 10)
    assert code == 0
    assert out.splitlines() == [
        "vwap/0: 1 retried",
        "         1  cannot be retried",
        f"                   1  {NO_RECORD}",
    ]
    assert err == f"trades, offset 10 cannot be retried: {NO_RECORD}\n"
    assert command("retry", "--reason", "check: ")[1].splitlines() == [
        "vwap/0: 1 retried",
        "         1  were retried before",
    ]
    assert stored(disk) == TRADES[1:]
    assert command("list")[1].count("(retried)") == 2


def test_record_of_a_log_that_its_class_refuses_is_given_back_whole(tmp_path, capfd) -> None:
    """With the fields that the class does not have."""
    rows = [row | {"note": "kept"} for row in TRADES]
    rows[1]["size"] = 0
    records = pa.RecordBatch.from_pylist(rows)
    disk, schema = LiveDisk(tmp_path), from_arrow(records.schema, name="trade")
    with PartitionWriter(Topic.create(disk, "given", schema), 0, LiveClock()) as writer:
        writer.append(records)
    kept = ["--checkpoint-dir", f"{tmp_path}/kept"]
    sinks = [f"--sink={name}={tmp_path}/{name}.csv" for name in ("out", "total")]
    assert main(["run", str(PIPELINE), "--source", f"log:{tmp_path}/given", *sinks, *kept]) == 0
    Topic.create(disk, "again", schema)
    assert main(["dead-letter", "retry", *kept, "--source", f"log:{tmp_path}/again"]) == 0
    assert "1 retried" in capfd.readouterr().out
    assert read_all(Topic.open(disk, "again")) == rows[1:2]


def test_schema_that_no_longer_fits_is_told(command, disk, tmp_path) -> None:
    (tmp_path / "trade.avsc").write_text(
        json.dumps(
            {"type": "record", "name": "t", "fields": [{"name": "symbol", "type": "string"}]}
        )
    )
    schema = str(tmp_path / "trade.avsc")
    assert main(["log", "create", f"{disk.root}/narrow", "--schema", schema]) == 0
    code, out, _ = command("retry", "--source", f"log:{disk.root}/narrow", "--offset", 12)
    assert code == 0
    assert "vwap/0: 0 retried" in out
    assert "1  the topic has no field 'price'" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--source", "trades"], "not of the form log:DIR/TOPIC"),
        (["--source", "log:/a/trades/0"], "one partition: name the topic, log:/a/trades"),
        (["--source", "log:/nowhere/trades"], "no topic"),
        (["--pipeline", "other"], "there are vwap/0"),
        (["--partition", "1"], "there are vwap/0"),
    ],
)
def test_wrong_arguments_end_in_one_line(command, arguments, complaint) -> None:
    code, out, err = command("retry", *arguments)
    assert (code, out) == (1, "")
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_letters_that_belong_to_several_topics_must_be_chosen(command, disk) -> None:
    checkpoints = LiveDisk(disk.root / "checkpoints")
    write_letters(checkpoints, "vwap", name="quotes")
    assert "choose one with --input" in command("retry")[2]
    assert "say both quotes= and --input" in command("retry", "--input", "quotes")[2]
    source = f"quotes=log:{disk.root}/trades"
    assert command("retry", "--source", source, "--input", "quotes")[0] == 0
    write_letters(checkpoints, "other")
    assert "other, vwap" in command("retry")[2]
    write_letters(checkpoints, "vwap", partition=1)
    code, out, _ = command("retry", "--pipeline", "vwap", "--input", "trades")
    assert code == 0
    assert "vwap/0: 2 retried" in out
    assert "vwap/1: 2 retried" in out


def test_topic_that_is_being_written_is_left_alone(command, disk) -> None:
    with TopicWriter(Topic.open(disk, "trades"), LiveClock(), holder="somebody"):
        assert "held by somebody" in command("retry")[2]
    assert "2 retried" in command("retry")[1]


def test_letters_that_workers_have_left_in_the_store_are_listed_and_retried(disk, command) -> None:
    async def leave() -> None:
        store = DiskStore(LiveDisk(f"{disk.root}/checkpoints"), LiveRandom())
        for partition, offsets in ((1, [7, 9]), (2, [])):
            place = HintStore(store, "vwap", partition, random=LiveRandom())
            await place.open(1024)
            log = DeadLetterLog(place.letters(), pipeline="vwap", version="f", clock=LiveClock())
            batch = Batch(pa.RecordBatch.from_pylist(TRADES[:2]), 10, (), np.array([7, 9]))
            rows = [RejectedRow(offsets.index(at), "check", "it is bad") for at in offsets]
            log.write("trades", refused(batch, rows), batch)
            await place.close()

    asyncio.run(leave())
    code, out, _ = command("list", "--json")
    assert code == 0
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [10, 12, 13, 7, 9]
    listed = command("list")[1]
    assert "vwap/2" not in listed
    assert listed.endswith("\n5 letters in 2 partitions\n")
    code, out, _ = command("retry", "--partition", 1)
    assert (code, out) == (0, "vwap/1: 2 retried\n")
    assert [row["symbol"] for row in read_all(Topic.open(disk, "trades"))] == ["AAPL", "GOOG"]
    assert "2  were retried before" in command("retry", "--partition", 1)[1]
