"""Need of open files, and the warning about it."""

from __future__ import annotations

from dataclasses import replace

from ripple.control.assignment import Share, Stage, empty
from tests.worker.processes import PLAN
from worker.engine.files import Watcher, needed


def test_each_partition_has_a_file_for_what_it_reads_and_two_for_what_it_writes() -> None:
    now = empty([Stage("main", 4)])
    shares = (Share("a/0", 1), Share("b/0", 1), Share("b/0", 1, next="a/0"), Share(None, 0))
    now = replace(now, shares=shares)
    assert needed(PLAN, now, "a/0", inputs=8) == 2 * (2 + 2)
    assert needed(PLAN, now, "b/0", inputs=4) == 2 * (1 + 2)
    divided = replace(
        empty([Stage("repartition", 2), Stage("main", 3)]), shares=(Share("a/0", 1),) * 5
    )
    assert needed(PLAN, divided, "a/0", inputs=4) == 2 * (2 + 2 * 3) + 3 * (4 + 2)


def test_growing_need_of_files_is_warned_of_once_with_both_numbers() -> None:
    said: list[str] = []
    watcher = Watcher(lambda: (20, 1024), said.append)
    for need in (900, 1300, 1300, 1200, 2000):
        watcher.given(need)
    assert [line[:66] for line in said] == [
        "its partitions need about 1400 open files, and this process may ha",
        "its partitions need about 2100 open files, and this process may ha",
    ]
    assert "1024" in said[0]
    Watcher(lambda: None, said.append).given(10**6)
    assert len(said) == 2
