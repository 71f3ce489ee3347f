"""Spark collects the whole heap of a Python process after each task; ours exempts what stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest

from ripple.spark import packets
from ripple.spark.packets import Packet
from ripple.spark.settled_heap import settle_heap
from ripple.spark.work import Working, pickled


@dataclass(frozen=True, slots=True)
class _Job:
    def run(self) -> Iterator[Packet]:
        yield Packet(packets.REPORT, about={})


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    settle_heap.cache_clear()
    yield
    gc.unfreeze()


def test_the_first_task_of_a_process_exempts_what_is_there() -> None:
    before = gc.get_freeze_count()
    numbers = pa.record_batch({"id": [0]})
    assert len(list(Working((pickled([_Job()]),))([numbers]))) == 1
    exempt = gc.get_freeze_count()
    assert exempt > before + 10_000  # the modules of this process
    list(Working((pickled([_Job()]),))([numbers]))
    assert gc.get_freeze_count() <= exempt  # what later tasks leave is collected
