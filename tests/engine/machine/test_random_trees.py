"""Random branches over stages: spread over partitions they equal one process, and the reference."""

from __future__ import annotations

from random import Random

import pytest

from ripple.testing import check_pipeline
from tests.engine.machine.random_trees import random_tree
from tests.engine.machine.stage_plans import trades
from tests.engine.machine.staged import Spread, whole_run
from tests.examples import EXAMPLES


@pytest.mark.parametrize("seed", range(3 * EXAMPLES))
def test_losses_delays_and_restarts_change_nothing(seed: int) -> None:
    random = Random(f"tree/{seed}")
    plan, events = random_tree(random), trades(random, 60)
    spread = Spread(plan, events, random.choice([1, 2, 4]), random)
    for _ in range(200):
        spread.step()
    spread.finish()
    assert spread.digests() == whole_run(plan, spread.shares).digests


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_one_process_equals_the_reference(seed: int) -> None:
    random = Random(f"tree/{seed}")
    check_pipeline(random_tree(random), trades(random, 60))
