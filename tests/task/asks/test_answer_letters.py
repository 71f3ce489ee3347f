"""Failures of asks are dead letters: listed with their rows, and retried once."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

import ripple as rp
from ripple.cli.main import main
from ripple.model.schema.columns import records_of
from ripple.storage.log import PartitionWriter, Topic
from ripple.task.asks import answer_letters, answer_log
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import ripple
from tests.storage.log.trades import read_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., tuple[int, str, str]]


@rp.record(version=1)
class Order:
    """An event."""

    symbol: str
    size: int


@rp.record(version=1)
class Grade:
    """The answer to it."""

    grade: int


async def grade(order: Any) -> dict[str, Any]:
    if order.size > 3:
        raise ConnectionError("no route")
    return {"grade": "none" if order.size == 3 else order.size}


ASKING = """
import ripple as rp

@rp.record(version=1)
class Order:
    symbol: str
    size: int

async def grade(order):
    raise ConnectionError("no route")

@rp.record(version=1)
class Grade:
    grade: int

orders = rp.Pipeline("graded").source("orders", Order)
pipeline = orders.ask("grade", grade, into=Grade, retries=0).sink("out")
"""
ROWS = [{"symbol": "AA", "size": size} for size in range(1, 6)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a durable run of which three of five calls fail."""
    disk = LiveDisk(tmp_path)
    for name in ("orders", "again"):
        Topic.create(disk, name, rp.schema_of(Order), partitions=1)
    pipeline = rp.Pipeline("graded").source("orders", Order)
    with PartitionWriter(Topic.open(disk, "orders"), 0, LiveClock()) as writer:
        writer.append(records_of(ROWS, pipeline.sink("out").plan().source.fields))
    asked = pipeline.ask("grade", grade, into=Grade, retries=0).sink("out")
    run(tmp_path, asked)
    return tmp_path


def run(place: Path, asked: rp.Pipeline) -> None:
    source, state = f"log:{place}/orders", place / "state"
    rp.run(asked, source=source, sink=place / "out.csv", checkpoint_dir=state)


@pytest.fixture
def command(place: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run an action; return its exit code and what it printed."""
    capfd.readouterr()

    def run(action: str, *arguments: str) -> tuple[int, str, str]:
        code = main(["dead-letter", action, "--checkpoint-dir", f"{place}/state", *arguments])
        said = capfd.readouterr()
        return code, said.out, said.err

    return run


def test_failures_are_listed_with_their_rows_and_retried_once(
    place: Path, command: Command
) -> None:
    listed = [json.loads(line) for line in command("list", "--json")[1].splitlines()]
    assert [(one["input"], one["step"]) for one in listed] == [("ripple.answers/0", "grade")] * 3
    reasons = {json.loads(one["raw"])["size"]: one["reason"] for one in listed}
    assert sorted(reasons) == [3, 4, 5]
    assert reasons[4] == "no answer in a call: ConnectionError: no route"
    assert "grade" in reasons[3]

    again = ["--source", f"log:{place}/again", "--input", "ripple.answers/0", "--reason", "route"]
    assert command("retry", *again)[:2] == (0, "graded/0: 2 retried\n")
    rows = read_all(Topic.open(LiveDisk(place), "again"))
    assert sorted(row["size"] for row in rows) == [4, 5]
    assert "2  were retried before" in command("retry", *again)[1]
    assert len(read_all(Topic.open(LiveDisk(place), "again"))) == 2
    assert command("list")[1].count("(retried)") == 2


def test_a_run_names_the_command_that_lists_its_failed_calls(place: Path) -> None:
    file = place / "asking.py"
    file.write_text(ASKING)
    given = ["--source", f"log:{place}/orders", "--sink", place / "rated.csv"]
    ended = ripple("run", file, *given, "--checkpoint-dir", place / "a folder")
    listing = f"dead-letter list --checkpoint-dir '{place}/a folder' --input ripple.answers/0"
    assert f"  failed calls:    ripple {listing}\n" in ended.err
    listed = ripple(*shlex.split(listing))
    assert listed.out.count("ripple.answers/0  offset ") == len(ROWS), listed.err


def test_rows_go_to_a_topic_that_no_other_branch_reads(place: Path, command: Command) -> None:
    code, _, said = command("retry", "--source", f"log:{place}/orders")
    assert code
    assert "other branches would count these rows again: give a topic of their own" in said


def test_failures_in_segments_are_listed_and_the_oldest_left_out(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_log, "SEGMENT_BYTES", 1)
    asked = rp.Pipeline("graded").source("orders", Order).ask("grade", grade, into=Grade, retries=0)
    with PartitionWriter(Topic.open(LiveDisk(place), "orders"), 0, LiveClock()) as writer:
        writer.append(records_of(ROWS[:1], asked.sink("out").plan().source.fields))
    run(place, asked.sink("out"))
    assert list(place.glob("state/graded/00000/answers/*.segment"))
    assert command("list")[1].count("ripple.answers/0") == 3

    monkeypatch.setattr(answer_letters, "FAILURES_BYTES_MAX", 1)
    _, out, said = command("list")
    assert out.count("ripple.answers/0") == 1
    assert "of the failures in ripple.answers/0 2 are older than" in said
