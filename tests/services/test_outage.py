"""The store, or the brokers, are away for a while: who waits says so, and needs no more memory.

``RIPPLE_OUTAGE_S`` makes it longer; checkpoints are due fifty times as often as by default.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.processes import ripple
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.missing import MissingError, skip
from tests.services.s3 import ObjectServer
from tests.services.test_s3_runs import QUICK, TRADES, Run

pytestmark = pytest.mark.services

OUTAGE_S = float(os.environ.get("RIPPLE_OUTAGE_S", "15"))
GROWTH_BYTES_MAX = 24 << 20


class Memory:
    """How much a process holds."""

    def __init__(self, run: Run) -> None:
        self._pages = Path(f"/proc/{run.process.pid}/statm")
        self.most = self.first = 0

    def look(self) -> None:
        held = int(self._pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.first, self.most = self.first or held, max(self.most, held)

    @property
    def growth(self) -> int:
        return self.most - self.first


def fed(run: Run, memory: Memory, done: Callable[[], bool]) -> int:
    """Append for as long as the outage is, and until ``done``; return how many batches."""
    ends, count = time.monotonic() + OUTAGE_S, 0
    while time.monotonic() < ends or not done():
        run.append()
        count += 1
        assert run.process.poll() is None, run.said
        memory.look()
        assert time.monotonic() < ends + PATIENCE_S, run.said
    return count


def test_an_outage_of_the_store_costs_replay_debt_that_is_told_and_no_memory(
    tmp_path: Path, s3_server: ObjectServer
) -> None:
    run = Run(tmp_path, *QUICK)
    for _ in range(3):  # what is needed at work is there then
        run.append()
    run.until(lambda: run.committed == 3 * TRADES)
    s3_server.kill()
    memory = Memory(run)
    told = r"none could be for (\d+\.\d) s, and (\d+) events would be replayed"

    def waited() -> list[tuple[float, int]]:
        return [(float(seconds), int(debt)) for seconds, debt in re.findall(told, run.said)]

    def is_told() -> bool:
        *some, (seconds, debt) = waited() or [(0.0, 0)]
        return len(some) > 1 and seconds > OUTAGE_S / 2 and debt > 2 * TRADES

    count = 3 + fed(run, memory, is_told)
    run.until(lambda: run.committed == count * TRADES)
    assert waited() == sorted(waited()), "it grows while nothing is stored"
    assert waited()[-1][1] <= count * TRADES
    assert memory.growth < GROWTH_BYTES_MAX, f"{memory.growth / 1e6:.0f} MB more"
    s3_server.start()
    shown = ("checkpoint", "show", "--dir", "s3://bucket/prefix")
    run.append()
    run.until(lambda: f"next offset {(count + 1) * TRADES}," in ripple(*shown).out)
    run.end()


def test_an_outage_of_the_brokers_holds_back_intake_and_is_told(tmp_path: Path) -> None:
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        place = f"kafka:{broker.bootstrap}"
        state = ("--checkpoint-dir", tmp_path / "state", *QUICK)
        run = Run(tmp_path, *state, sinks=(f"out={place}/out", f"total={place}/total"))
        for _ in range(3):
            run.append()
        shown = ("checkpoint", "show", "--dir", str(tmp_path / "state"))
        run.until(lambda: f"next offset {3 * TRADES}," in ripple(*shown).out)
        broker.kill()
        memory = Memory(run)
        told = r"(\d+ rows have|the output has) waited \d+\.\d s for a commit: 127"
        count = 3 + fed(run, memory, lambda: bool(re.search(told, run.said)))
        assert memory.growth < GROWTH_BYTES_MAX, f"{memory.growth / 1e6:.0f} MB more"
        broker.start()
        run.until(lambda: f"next offset {count * TRADES}," in ripple(*shown).out)
        run.end()
