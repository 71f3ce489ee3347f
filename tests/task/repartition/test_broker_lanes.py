"""Lanes at the simulated broker keep their contract."""

from __future__ import annotations

from ripple.task.repartition.broker_reading import _Lane
from ripple.task.repartition.carried import bodies_of, records_in
from ripple.task.repartition.rows import Mark, records_of
from ripple.testing import SimCluster, SimWorld, on_cluster, repeat
from ripple.world.broker import TopicPartition
from tests.task.repartition.lane_contract import TOPIC, LaneContract, Main, rows_of


class TestSimLanes(LaneContract):
    def run_lanes(self, main: Main) -> None:
        @on_cluster
        async def scenario(cluster: SimCluster, seed: int) -> None:
            async def live(world: SimWorld) -> None:
                assert world.broker is not None
                await main(world.broker)

            cluster.host("here").start(live)
            await cluster.host("here").ended()

        error = repeat(scenario, seed=0).error
        if error is not None:
            raise error


def test_a_cut_that_is_too_large_for_one_record_comes_in_several() -> None:
    rows = rows_of(*range(1000))
    records = records_of(TOPIC.schema, rows, Mark(None, {"in": 1}, 5))
    bodies = bodies_of(records, 4096)
    assert len(bodies) > 4
    assert max(map(len, bodies)) <= 4096
    lane = _Lane(TopicPartition(TOPIC.topic, 0), 0)
    for offset, body in enumerate(bodies):
        assert lane.take() is None
        lane.add([(offset, records_in(body, TOPIC.schema))], offset + 1)
    section = lane.take()
    assert section is not None
    assert section.rows.column("name").to_pylist() == rows.column("name").to_pylist()
    assert (section.mark, section.next_offset) == (Mark(None, {"in": 1}, 5), len(bodies))
