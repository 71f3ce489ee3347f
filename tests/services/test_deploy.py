"""``ripple deploy`` of real processes, with kills at each step, and the gaps of a reader."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from ripple.cli.cluster.deploying.standing import generations_in, previews
from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.services.deployment import Place, Running, code_of, fed, is_deployable, until

pytestmark = pytest.mark.services


class Reader:
    """Looks at the ends of all partitions of an output; ``gap_s``: the longest without news."""

    def __init__(self, folder: Path, output: str) -> None:
        topic = Topic.open(LiveDisk(f"{folder}"), output)
        self._readers = [PartitionReader(topic, one) for one in range(topic.partitions)]
        self._is_ended = threading.Event()
        self.gap_s = 0.0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        ends = [one.range()[1] for one in self._readers]
        came_s = [time.monotonic()] * len(ends)
        while not self._is_ended.wait(0.01):
            for at, one in enumerate(self._readers):
                end, now_s = one.range()[1], time.monotonic()
                if end != ends[at]:
                    self.gap_s = max(self.gap_s, now_s - came_s[at])
                    ends[at], came_s[at] = end, now_s

    def end(self) -> float:
        """End; return the longest time without news."""
        self._is_ended.set()
        self._thread.join()
        return self.gap_s


def test_new_code_of_two_stages_serves_goes_back_and_serves_while_processes_die(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(tmp_path, *(code_of(f'total=rp.{of}("total")') for of in ("sum", "max")))
    workers = ["--workers", "2"]
    with ExitStack() as closing:
        end_feed = closing.enter_context(fed(place))
        up = ["cluster", "up", *place.given(1), *workers, "--free-ports"]
        one = Running(place, tmp_path / "one.log", *up)
        closing.callback(one.end)
        until(lambda: place.has_committed(place.outputs))
        begin = ["deploy", *place.given(2), *workers]
        until(lambda: is_deployable(place))
        two = Running(place, tmp_path / "two.log", *begin)
        closing.callback(two.end)
        until(lambda: place.has_committed(previews(place.store, 2, place.outputs)))
        two.kill("worker-1")  # while it warms up
        reader = Reader(tmp_path, "last")
        said = place.deploy("--approve")
        assert "generation 2 serves" in said
        with capsys.disabled():
            sys.stdout.write(f"\n{reader.end():.2f} s without news at most; {said}")
        one.kill("worker-1")
        two.kill("coordinator-1")
        assert "generation 1 serves" in place.deploy("--rollback")
        two.kill("worker-2")
        one.kill("worker-2")
        assert "generation 2 serves" in place.deploy("--approve")
        end_feed()
        until(place.is_at_end)
        place.check(2)
        assert generations_in(place.store).serving.entry == 3
