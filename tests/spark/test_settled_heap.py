"""Spark collects the whole heap of a Python process after each task; ours exempts modules."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ripple.spark.settled_heap import settle_heap


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    settle_heap.cache_clear()
    yield
    if not frozen:
        gc.unfreeze()


def test_the_first_task_of_a_process_exempts_what_is_there() -> None:
    settle_heap()
    exempt = gc.get_freeze_count()
    assert exempt > 10_000  # the modules of this process
    later = [[number] for number in range(1_000)]
    settle_heap()
    assert gc.get_freeze_count() <= exempt, len(later)  # it exempts nothing of later tasks
