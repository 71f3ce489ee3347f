"""Random branches over stages: spread over partitions they equal one process, and the reference."""

from __future__ import annotations

from random import Random

import pytest

import ripple as rp
from ripple.engine.machine.follower import Follower
from ripple.model.window import watermark
from ripple.testing import check_pipeline
from tests.engine.machine.random_trees import random_tree
from tests.engine.machine.stage_plans import Trade, trades
from tests.engine.machine.staged import Spread, whole_run
from tests.engine.machine.staged_sources import Lanes, LanesReader, SpreadSources
from tests.engine.machine.staged_sources import whole_run as whole_run_of
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


def of_three(random: Random) -> Lanes:
    """Return events of three sources, of which one ends before the others."""
    return {
        "trades": trades(random, 50),
        "more": trades(random, 30),
        "quotes": [
            {"at": one["t"], "symbol": one["symbol"], "bid": one["price"]}
            for one in trades(random, 20)
        ],
    }


@pytest.mark.parametrize("seed", range(4 * EXAMPLES))
def test_several_sources_over_stages_equal_one_process(seed: int) -> None:
    random = Random(f"sources/{seed}")
    plan, counts = random_tree(random, sources=3), random.choice([[4, 6, 2], [3, 1, 2], [8, 4, 4]])
    partitions = random.choice([n for n in range(1, 5) if all(count % n == 0 for count in counts)])
    spread = SpreadSources(plan, of_three(random), counts, partitions, random)
    for _ in range(300):
        spread.step()
    spread.finish()
    assert spread.digests() == whole_run_of(plan, spread.lanes).digests


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_one_process_of_several_sources_equals_the_reference(seed: int) -> None:
    random = Random(f"sources/{seed}")
    plan = random_tree(random, sources=3)
    mixed = [(name, event) for name, events in of_three(random).items() for event in events]
    check_pipeline(plan, sorted(mixed, key=lambda _: random.random()))


def test_a_silent_source_keeps_no_group_of_another_one_from_its_end() -> None:
    start = rp.Pipeline("p")
    bars = start.source("trades", Trade, time="t", key="symbol").partition("a", key="symbol")
    bars = bars.window("w", rp.Tumbling(10), lateness=0).fold("bars", n=rp.count())
    silent = start.source("quotes", Trade, time="t", key="symbol").partition("b", key="symbol")
    kept = silent.fold("kept", n=rp.count())
    times = bars.partition("c", key="window_start_ns", partitions=1).fold("times", n=rp.sum("n"))
    over = kept.partition("d", key=()).fold("over", n=rp.sum("n"))
    plan = times.sink("out").also(over.sink("other")).plan()
    reader = LanesReader(plan, 0, {"trades": trades(Random(0), 50), "quotes": []}, Random(0))
    reader.read(50)
    reader.engine.stabilize()
    of_trades, of_quotes = (reader.engine.sending(stage).table_for(0) for stage in (1, 2))
    assert of_trades.watermark_ns == reader.engine.watermarks_ns["trades"] > 50
    assert of_quotes.watermark_ns == watermark.NONE
    follower = Follower(plan, 1, ["0"])
    follower.follow("0", 1, of_trades)
    assert follower.stabilize().outputs["out"].num_rows == of_trades.watermark_ns // 10
    assert follower.table("out").num_rows == 0  # each was final, and is gone
