"""Partitions that follow each other over connections show what one process shows."""

from __future__ import annotations

from random import Random

import pytest

from ripple.exchange.limits import ExchangeLimits
from ripple.model.pipeline.stages import EdgeKind
from tests.engine.machine.stage_plans import KINDS, PLANS, trades
from tests.engine.machine.staged import Spread
from tests.examples import EXAMPLES, THINNED
from tests.exchange.processes import Cluster

STATE = [name for name in PLANS if EdgeKind.EVENT not in KINDS.get(name, [])]
TIGHT = ExchangeLimits(credit_rows=2, window_bytes=2000, bundle_rows=2, bundle_bytes=500)


# Usual limits are drawn below, too.
LIMITS = [(name, TIGHT) for name in STATE]
LIMITS += [(name, ExchangeLimits()) for name in STATE[:: 4 if EXAMPLES == 1 else 1]]


@pytest.mark.parametrize(("name", "limits"), LIMITS)
def test_subscribed_rows_equal_those_of_one_process(name: str, limits: ExchangeLimits) -> None:
    random = Random(name)
    events = trades(random, 100)
    quiet = Spread(PLANS[name], events, 4, Random(0))
    quiet.finish()
    cluster = Cluster(PLANS[name], events, 4, random, limits=limits)
    cluster.finish()
    assert cluster.digests() == quiet.digests()


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize("name", STATE)
def test_breaks_moves_and_restarts_change_nothing(name: str, seed: int) -> None:
    random = Random(f"{name}/{seed}")
    events, partitions = trades(random, 60), random.choice([1, 2, 4])
    quiet = Spread(PLANS[name], events, partitions, Random(0))
    quiet.finish()
    limits = random.choice([ExchangeLimits(), TIGHT])
    processes = random.choice([1, 2, 3])
    cluster = Cluster(PLANS[name], events, partitions, random, processes=processes, limits=limits)
    for _ in range(250 // THINNED):
        cluster.step()
    cluster.finish()
    assert cluster.digests() == quiet.digests()
