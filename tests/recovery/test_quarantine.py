"""A record that ends the process, again and again: real processes that really die."""

from __future__ import annotations

import signal
import sys
from ast import literal_eval
from pathlib import Path

import pytest

from ripple.log import PartitionWriter, Topic
from ripple.recovery.dead_letters import letters_path, read_letters
from ripple.recovery.letter import QUARANTINE
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import Ended, run
from tests.log.trades import SCHEMA, records_of
from tests.recovery.mortal import POISON

POISON_OFFSET, ZERO_OFFSET = 14, 17


def ticks(folder: Path) -> None:
    """Thirty ticks of size 1; one kills, and one of size 0 is refused by the pipeline."""
    sizes = [1] * 30
    sizes[POISON_OFFSET], sizes[ZERO_OFFSET] = POISON, 0
    rows = [{"symbol": "A", "size": size, "at_ns": at} for at, size in enumerate(sizes)]
    topic = Topic.create(LiveDisk(folder), "ticks", SCHEMA)
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(records_of(rows))


def life(folder: Path, how: str) -> Ended:
    return run([sys.executable, "-m", "tests.recovery.mortal", str(folder), how])


@pytest.mark.parametrize(("how", "code"), [("kill", -signal.SIGKILL), ("exit", 3), ("raise", 1)])
def test_killer_dies_three_times_and_then_all_others_go_through(
    tmp_path: Path, how: str, code: int
) -> None:
    ticks(tmp_path)
    for _ in range(3):
        died = life(tmp_path, how)
        assert (died.code, died.out) == (code, "")
        assert ("map 'fragile': the function raised" in died.err) == (how == "raise")
    for _ in range(2):
        last = life(tmp_path, how)
        assert (last.code, last.err) == (0, "")
        (row,) = literal_eval(last.out)
        assert (row["size"], row["ticks"]) == (28, 28)
        killer, zero = read_letters(LiveDisk(tmp_path), letters_path("mortal"))
        assert (killer.offset, killer.step) == (POISON_OFFSET, QUARANTINE)
        assert killer.reason == "killed the process 3 times"
        assert killer.row().column("size").to_pylist() == [POISON]
        assert (zero.offset, zero.step) == (ZERO_OFFSET, "check")
