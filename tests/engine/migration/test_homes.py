"""State moves between one engine with all stages and partitions for each, and back."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.apart import apart
from ripple.engine.migration.homes import HomeError, check_plan
from ripple.engine.migration.together import together
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.stages import EdgeKind
from tests.engine.machine.stage_plans import KINDS, PLANS, trades
from tests.engine.machine.staged import Spread, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

MOVING = [
    name
    for name in PLANS
    if EdgeKind.EVENT not in KINDS.get(name, []) and name not in ("outliving", "three-windows")
]


def by_symbol(partitions: int) -> Any:
    """Return which partition has rows, by their symbols."""

    def numbers(table: pa.Table) -> Any:
        batches = table.select(["symbol"]).combine_chunks().to_batches()
        if not batches:
            return np.empty(0, np.int64)
        return partition_numbers(batches[0], ["symbol"], partitions).astype(np.int64)

    return numbers if partitions > 1 else None


def put(spread: Spread, stages: Any) -> None:
    """Let the partitions of all stages resume from a state."""
    for nodes, made in zip(spread.nodes, stages, strict=True):
        for node, partition in zip(nodes, made, strict=True):
            node.epoch += 1
            kind = Follower if partition.stage else Engine
            node.engine = kind.restore(spread.plan, partition.snapshot())
    spread.on_way.clear()


def read(engine: Engine, spread: Spread, count: int) -> None:
    """Let an engine of all stages read some records of each input."""
    for name, share in enumerate(spread.shares):
        at = engine.cut[str(name)]
        if part := share[at : at + count]:
            engine.apply(str(name), part, at + len(part))
    engine.stabilize()


def go(engines: Sequence[Engine], spread: Spread, count: int) -> None:
    """Let engines of all stages read the same."""
    for engine in engines:
        read(engine, spread, count)


def drain(spread: Spread) -> None:
    """Let later stages take everything that their senders have."""
    for stage in range(1, len(spread.nodes)):
        for number, node in enumerate(spread.nodes[stage]):
            for way in spread.ways_to(stage, number):
                spread._finish(way, node.engine)
            spread.settle(stage, number)


def begun(name: str, partitions: int) -> tuple[Spread, Engine, Engine, Any]:
    """Return partitions with nothing, two engines of all, and how the former are divided."""
    plan, random = PLANS[name], Random(f"{name}/homes")
    spread = Spread(plan, trades(random, 150), partitions, random)
    spread.skipped = spread.skips = spread.restarted = 0.0
    names = [str(number) for number in range(partitions)]
    whole, moving = (Engine(plan, inputs=names) for _ in range(2))
    return spread, whole, moving, ([[one] for one in names], by_symbol(partitions))


def end(engine: Engine, spread: Spread) -> None:
    """Read the rest, and end every window."""
    read(engine, spread, 150)
    engine.close()
    engine.stabilize()


@pytest.mark.parametrize(
    ("name", "partitions"),
    [(name, n) for name in MOVING for n in (1, 3) if n == 1 or not PLANS[name].has_windows],
)
def test_state_moves_there_and_back_at_many_cuts(name: str, partitions: int) -> None:
    plan = PLANS[name]
    spread, whole, moving, divided = begun(name, partitions)
    for turn in range(4):
        go((whole, moving), spread, 6)
        there = apart(plan, moving.snapshot(), *divided)
        assert not any(rows.num_rows for rows in there.lacking.values())
        put(spread, there.stages)
        assert spread.digests() == whole.digests
        for number, reader in enumerate(spread.nodes[0]):
            reader.read(5)
            spread.settle(0, number)
        if turn % 2:  # else later stages are behind
            drain(spread)
        states = [[node.engine.snapshot() for node in nodes] for nodes in spread.nodes]
        ((back,),) = together(plan, states).stages
        assert isinstance(back, Engine)
        moving = back
        read(whole, spread, 5)
        assert (moving.cut, moving.digests) == (whole.cut, whole.digests)
        assert moving.counters == whole.counters
        for output in whole.digests:
            assert sorted_rows(moving.table(output)) == sorted_rows(whole.table(output))
    for one in (whole, moving):
        end(one, spread)
    assert moving.digests == whole.digests


@pytest.mark.parametrize("name", [name for name in MOVING if PLANS[name].has_windows])
def test_windows_are_closed_by_each_partition_where_they_were_by_the_slowest(name: str) -> None:
    """What some show earlier is given to be written, and in the end all is the same."""
    spread, whole, moving, divided = begun(name, 3)
    go((whole, moving), spread, 25)
    there = apart(PLANS[name], moving.snapshot(), *divided)
    assert any(rows.num_rows for rows in there.lacking.values())
    put(spread, there.stages)
    spread.finish()
    end(whole, spread)
    assert spread.digests() == whole.digests
    states = [[node.engine.snapshot() for node in nodes] for nodes in spread.nodes]
    ((back,),) = together(PLANS[name], states).stages
    assert back.digests == whole.digests


@pytest.mark.parametrize(("name", "partitions"), [("outliving", 3), ("three-windows", 1)])
def test_parts_of_windows_that_are_over_stay_with_one_partition(name: str, partitions: int) -> None:
    _, _, moving, divided = begun(name, partitions)
    with pytest.raises(HomeError, match="that are over, and nothing tells which partition"):
        apart(PLANS[name], moving.snapshot(), *divided)


def test_rows_that_one_engine_would_not_show_yet_stay_in_the_cluster() -> None:
    spread, _, moving, divided = begun("windows", 3)
    read(moving, spread, 25)
    put(spread, apart(PLANS["windows"], moving.snapshot(), *divided).stages)
    states = [[node.engine.snapshot() for node in nodes] for nodes in spread.nodes]
    with pytest.raises(HomeError, match="until its inputs are equally far in event time"):
        together(PLANS["windows"], states)


def test_state_of_logs_of_other_code_and_of_a_stage_ahead_is_refused() -> None:
    with pytest.raises(HomeError, match="fold 'x' of 'p' takes its rows from a log"):
        check_plan(PLANS["events"], 1)
    spread, _, moving, divided = begun("one-total", 1)
    with pytest.raises(HomeError, match="is that of other code: move it with the code that wrote"):
        apart(PLANS["by-venue"], moving.snapshot(), *divided)
    begins = [[node.engine.snapshot() for node in nodes] for nodes in spread.nodes]
    spread.nodes[0][0].read(9)
    spread.settle(0, 0)
    drain(spread)
    ahead = [node.engine.snapshot() for node in spread.nodes[1]]
    with pytest.raises(HomeError, match="partition 0 of stage 1 is ahead of partition 0 of stage"):
        together(PLANS["one-total"], [begins[0], ahead])


def test_rows_that_no_partition_gets_are_found_by_their_digest() -> None:
    spread, _, moving, (inputs, _) = begun("one-total", 3)
    read(moving, spread, 9)
    with pytest.raises(HomeError, match="do not have the digest of the whole"):
        apart(PLANS["one-total"], moving.snapshot(), inputs, lambda rows: np.full(len(rows), 7))
