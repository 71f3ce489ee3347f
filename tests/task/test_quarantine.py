"""A record that ends the process, again and again: real processes that really die."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ripple.connectors.letter import QUARANTINE
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import Ended, ripple
from tests.storage.log.trades import SCHEMA, records_of
from tests.task.letter_places import kept
from tests.task.pipeline_mortal import POISON

PIPELINES = Path(__file__).with_name("pipeline_mortal.py")
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
    places = ["--source", f"log:{folder}/ticks", "--sink", folder / "out.csv"]
    places += ["--checkpoint-dir", folder / "state"]
    return ripple("run", f"{PIPELINES}:by_{how}", *places, "--batch", 10)


@pytest.mark.parametrize(("how", "code"), [("kill", -signal.SIGKILL), ("exit", 3), ("raise", 1)])
def test_poison_record_quarantined_once(tmp_path: Path, how: str, code: int) -> None:
    ticks(tmp_path)
    for _ in range(3):
        died = life(tmp_path, how)
        assert died.code == code
        assert ("map 'fragile': the function raised" in died.err) == (how == "raise")
    why = "killed the process 3 times"
    if how == "raise":
        raised = "map 'fragile': the function raised ValueError: raise"
        why = f"ended the run 3 times: {raised}"
        assert (
            f"the previous run ended while it applied records 14 to 15 of ticks: {raised}"
            in died.err
        )
    for is_first in (True, False):
        last = life(tmp_path, how)
        assert last.code == 0
        said = f"ticks, offset {POISON_OFFSET}: {why}"
        assert (said in last.err) == is_first
        assert (tmp_path / "out.csv").read_text().splitlines()[-1] == "A,28,28"
        killer, zero = kept(LiveDisk(tmp_path / "state"), "mortal")
        assert (killer.offset, killer.step) == (POISON_OFFSET, QUARANTINE)
        assert killer.reason == why
        assert killer.row().column("size").to_pylist() == [POISON]
        assert (zero.offset, zero.step) == (ZERO_OFFSET, "check")
