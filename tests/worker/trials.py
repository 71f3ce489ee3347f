"""Pipelines that are tried on simulated clusters, by name: one for each kind of edge."""

from __future__ import annotations

from random import Random

import ripple as rp
from ripple.testing.cluster_trial import ClusterTrial
from tests.engine.test_stages import PLANS, source, trades

windows = ClusterTrial(
    source(rp.Tumbling(10), 4).sink("shown", of="rows"), trades(Random("windows"), 120)
)
totals = ClusterTrial(PLANS["by-venue"], trades(Random("totals"), 120))
rows = ClusterTrial(PLANS["rows-by-value"], trades(Random("rows"), 100))
window_totals = ClusterTrial(PLANS["windows-by-venue"], trades(Random("windows"), 100))
chain = ClusterTrial(PLANS["three"], trades(Random("chain"), 100))
