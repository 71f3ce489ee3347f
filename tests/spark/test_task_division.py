"""Jobs share tasks so that all cores are busy, and no task is too large."""

from __future__ import annotations

from random import Random

import pytest

from ripple.spark.task_division import JOB_ROWS, ROWS, hashed_tasks, most_cores, tasks_of


def test_small_jobs_share_as_many_tasks_as_there_are_cores() -> None:
    assert tasks_of([1000] * 64, 2) == (tuple(range(0, 64, 2)), tuple(range(1, 64, 2)))
    assert tasks_of([1000] * 3, 8) == ((0,), (1,), (2,))
    assert tasks_of([], 2) == ()


def test_tasks_have_about_a_number_of_rows_at_most_however_few_the_cores() -> None:
    assert len(tasks_of([ROWS // 2] * 64, 2)) == 32
    assert len(tasks_of([5 * ROWS, 1000, 1000], 1)) == 3


@pytest.mark.parametrize("seed", range(5))
def test_every_job_is_in_one_task_and_tasks_are_alike_in_size(seed: int) -> None:
    random = Random(seed)
    sizes = [int(ROWS * random.random() ** 4) for _ in range(random.randrange(1, 200))]
    cores = random.randrange(1, 9)
    found = tasks_of(sizes, cores)
    assert sorted(number for task in found for number in task) == [*range(len(sizes))]
    assert all(task == tuple(sorted(task)) for task in found)
    loads = [sum(sizes[number] + JOB_ROWS for number in task) for task in found]
    assert max(loads) - min(loads) <= max(sizes) + JOB_ROWS


def test_without_sizes_or_cores_each_job_is_a_task() -> None:
    assert tasks_of([1, None, 1], 2) == ((0,), (1,), (2,))
    assert tasks_of([1, 1], None) == ((0,), (1,))


def test_a_hash_divides_partitions_among_some_tasks_for_each_core() -> None:
    assert hashed_tasks(64, 1000, 2) == 6
    assert hashed_tasks(4, 1000, 2) == 4
    assert hashed_tasks(64, 20 * ROWS, 2) == 20
    assert hashed_tasks(64, None, 2) == hashed_tasks(64, 1000, None) == 64


def test_executors_that_spark_may_add_count() -> None:
    settings = {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"}
    assert most_cores(2, settings.get) == 2  # without a limit the maximum is unknown
    settings["spark.dynamicAllocation.maxExecutors"] = "2147483647"
    assert most_cores(2, settings.get) == 2
    settings["spark.dynamicAllocation.maxExecutors"] = "10"
    assert most_cores(2, settings.get) == 40
    assert most_cores(50, settings.get) == 50
    settings["spark.dynamicAllocation.enabled"] = "false"
    assert most_cores(2, settings.get) == 2
