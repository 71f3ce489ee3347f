"""More partitions for a stage of a running cluster: its readers, under kills of processes."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ripple.cli.cluster.deploying.standing import previews
from ripple.core.row_ops import OP
from ripple.model.batch import Batch
from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.services.deployment import Place, Running, code_of, fed, is_deployable, until

pytestmark = pytest.mark.services

COUNTS = (2, 4, 8)


class Follower:
    """Follows all partitions of an output, also later ones, and merges their rows by key.

    missing, twice: the number of looks with a known row in no partition, or in two. back: rows with
    fewer records than before in their partition.
    """

    def __init__(self, folder: Path, output: str) -> None:
        self._disk, self._output = LiveDisk(f"{folder}"), output
        self.tables: dict[int, dict[str, int]] = {}
        self._ends: dict[int, int] = {}
        self._known: set[str] = set()
        self.missing = self.twice = self.looks = 0
        self.back: list[str] = []
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ended.wait(0.02):
            self._look()
        self._look()

    def _look(self) -> None:
        topic = Topic.open(self._disk, self._output)
        for number in range(topic.partitions):
            table = self.tables.setdefault(number, {})
            with PartitionReader(topic, number) as reader:
                for entry in reader.read(self._ends.get(number)):
                    self._ends[number] = entry.next_offset
                    for row in entry.records.to_pylist() if isinstance(entry, Batch) else ():
                        self._take(table, row)
        whole = [key for table in self.tables.values() for key in table]
        self.looks += 1
        self.missing += len(self._known) > len(set(whole))
        self.twice += len(whole) > len(set(whole))

    def _take(self, table: dict[str, int], row: dict[str, Any]) -> None:
        key = row["venue"]
        if row[OP] == "remove":
            del table[key]
            return
        if row["n"] < table.get(key, 0):
            self.back.append(f"{key}: {row['n']} after {table[key]}")
        table[key] = row["n"]
        self._known.add(key)

    def end(self) -> dict[str, int]:
        """Read to the end; return the rows. Raises AssertionError for one in two partitions."""
        self._is_ended.set()
        self._thread.join()
        found: dict[str, int] = {}
        for table in self.tables.values():
            assert not found.keys() & table.keys()
            found |= table
        return found


def test_two_partitions_become_four_and_eight_and_four_while_processes_die(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, *(code_of('n=rp.sum("n")', partitions=count) for count in COUNTS))
    workers = ["--workers", "2"]

    with ExitStack() as closing:
        end_feed = closing.enter_context(fed(place))
        up = ["cluster", "up", *place.given(1), *workers, "--free-ports", "--partitions", "2"]
        former = Running(place, tmp_path / "log1", *up)
        closing.callback(former.end)
        until(lambda: place.has_committed(place.outputs))
        reader = Follower(tmp_path, "last")
        closing.callback(reader.end)
        for generation in (2, 3):
            until(lambda at=generation: is_deployable(place, at))  # type: ignore[misc]
            begin = ["deploy", *place.given(generation), *workers]
            begin += ["--partitions", "4"] if generation == 3 else []  # of the first stage
            later = Running(place, tmp_path / f"log{generation}", *begin)
            closing.callback(later.end)
            shown = previews(place.store, generation, place.outputs)
            until(lambda at=shown: place.has_committed(at))  # type: ignore[misc]
            later.kill("worker-1")  # while it warms up
            former.kill("worker-2")
            assert "serves: all outputs" in place.deploy("--approve", generation)
            later.kill("coordinator-1")
            later.kill("worker-2")
            if generation == 2:
                former.end()
                former = later
        assert "generation 2 serves" in place.deploy("--rollback", 3)
        former.kill("worker-1")
        end_feed()
        until(place.is_at_end)
        place.check(1)
        found = reader.end()
    with capsys.disabled():
        sys.stdout.write(
            f"\nof {reader.looks} looks, a row was missing in {reader.missing}, and twice in "
            f"{reader.twice}\n"
        )
    assert len(found) == 7
    assert Topic.open(LiveDisk(f"{tmp_path}"), "last").before == (2, 4)
    assert Topic.open(LiveDisk(f"{tmp_path}"), "shown").before == (2,)
    assert not reader.back
    assert reader.tables.keys() == set(range(8))
    assert not any(reader.tables[number] for number in range(4, 8))
