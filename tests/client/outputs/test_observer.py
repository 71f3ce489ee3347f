"""Somebody outside: whatever happens to machines, what he sees is the truth at some cut."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.client.outputs import Change, Endpoints, Observer, OutputSubscription
from ripple.client.outputs.discovery import AccessDeniedError, Endpoint
from ripple.client.outputs.observer import REFUSED_S
from ripple.core.errors import InputError
from ripple.core.row_ops import OP
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.wire.edge_messages import Release
from ripple.testing import SimCluster, SimWorld
from tests.engine.machine.stage_plans import PLANS, trades
from tests.examples import EXAMPLES, THINNED
from tests.exchange.hosts import Hosts, Pipeline, endpoints_of
from tests.exchange.trouble import RARELY, TIGHT, Trouble, finish
from tests.patience import PATIENCE_S
from tests.world.clusters import simulate, simulated

SECONDS_MAX = 600


@dataclass
class Eye:
    """Follows all outputs of a pipeline, and judges each table that it sees."""

    hosts: Hosts
    limits: ExchangeLimits | None = None
    pause_s: float = 0
    uncommitted: bool = False
    judged: int = 0
    tables: dict[str, list[str]] = field(default_factory=dict)
    cuts: dict[tuple[str, int], Any] = field(default_factory=dict)
    epochs: dict[tuple[str, int], int] = field(default_factory=dict)
    ahead: int = 0  # changes that were seen before they were committed

    async def main(self, world: SimWorld) -> None:
        async def find() -> Endpoints:
            return endpoints_of(self.hosts)

        async with Observer(world, find, insecure=True, limits=self.limits) as observer:
            names = [output.name for output in self.hosts.pipeline.plan.outputs]
            seen = {
                name: await observer.follow(name, SECONDS_MAX, uncommitted=self.uncommitted)
                for name in names
            }
            while not self.hosts.is_over:
                for name, output in seen.items():
                    for change in await output.changes(0.5):
                        self.judge(name, output, change)
                    shown = output.shown().table
                    self.tables[name] = sorted(map(repr, shown.to_pylist()))
                await world.clock.sleep(self.pause_s)

    def judge(self, name: str, output: OutputSubscription, change: Change) -> None:
        pipeline = self.hosts.pipeline
        stage = next(
            s for s, outputs in pipeline.outputs.items() for o in outputs if o.name == name
        )
        part = output._parts[change.partition]
        if part.position != change.position:
            return  # newer ones were taken in with it
        at, epoch = (name, change.partition), change.position.epoch
        before = self.cuts.get(at, {})
        now = dict(change.position.cut)
        assert epoch >= self.epochs.get(at, 0)
        if not self.uncommitted or epoch == self.epochs.get(at):
            assert all(now[key] >= offset for key, offset in before.items()), (before, now)
        self.cuts[at], self.epochs[at] = now, epoch
        committed = self.hosts.reached.get((stage, change.partition), {})
        self.ahead += any(offset > committed.get(key, 0) for key, offset in now.items())
        fresh = pipeline.fresh((stage, change.partition), now).table(name)
        found = sorted(map(repr, part.table.rows().to_pylist()))
        assert found == sorted(map(repr, fresh.to_pylist())), (name, change)
        keys = [tuple(row[key] for key in part.layout.keys) for row in change.rows.to_pylist()]
        assert len(set(keys)) == len(keys)
        assert OP in change.rows.schema.names
        self.judged += 1

    def check_all(self) -> None:
        """Compare the tables with those of partitions that have read everything."""
        pipeline = self.hosts.pipeline
        for stage, outputs in pipeline.outputs.items():
            for output in outputs:
                whole: list[str] = []
                for number in range(pipeline.counts[stage]):
                    fresh = pipeline.fresh((stage, number), self.hosts.reached[stage, number])
                    whole += map(repr, fresh.table(output.name).to_pylist())
                assert self.tables[output.name] == sorted(whole), output.name


@pytest.mark.parametrize(
    ("name", "uncommitted"),
    [
        ("by-value", False),
        ("windows-by-venue", False),
        ("three", True),
        ("windows-by-venue", True),
    ][: 3 if EXAMPLES == 1 else 4],
)
@simulated
async def test_observed_rows_are_right_at_a_cut_that_never_falls(
    cluster: SimCluster, name: str, uncommitted: bool
) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS[name], trades(Random(name), 40), 2), 2)
    hosts.start()
    eye = Eye(hosts, uncommitted=uncommitted)
    cluster.host("eye").start(eye.main)
    for _ in range(6):
        await asyncio.sleep(0.5)
        hosts.pipeline.write(0, 3)
        hosts.pipeline.write(1, 2)
    await _see_it_out(hosts, eye)
    assert eye.judged > 3 * len(eye.tables)
    assert (eye.ahead > 3) == uncommitted, eye.ahead
    assert uncommitted or not eye.ahead


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize(
    ("uncommitted", "name"),
    [
        (False, "windows-by-venue"),
        (True, "by-value"),
        (False, "by-value"),
        (True, "windows-by-venue"),
    ][: 2 if EXAMPLES == 1 else 4],
)
def test_machines_that_die_are_a_stall_and_then_the_truth(
    uncommitted: bool, name: str, seed: int
) -> None:
    async def scenario(cluster: SimCluster, _: int) -> None:
        random = Random(f"{name}/{seed}/eye")
        pipeline = Pipeline(PLANS[name], trades(random, 80), random.choice([1, 2, 3]))
        hosts = Hosts(cluster, pipeline, random.choice([1, 2, 3]), settings=RARELY)
        cluster.disturb()
        hosts.start()
        limits, pause_s = random.choice([None, TIGHT]), random.choice([0, 3])
        eye = Eye(hosts, limits=limits, pause_s=pause_s, uncommitted=uncommitted)
        cluster.host("eye").start(eye.main)
        trouble = Trouble(cluster, hosts, random)
        await trouble.go_on(30 // THINNED)
        trouble.heal()
        await _see_it_out(hosts, eye)

    simulate(scenario, seed)


async def _see_it_out(hosts: Hosts, eye: Eye) -> None:
    """Write all, and wait until what is seen is all there is."""
    hosts.pipeline.write_all()
    for _ in range(SECONDS_MAX):
        if hosts.is_done and all(
            eye.cuts.get((output.name, number)) == hosts.reached[stage, number]
            for stage, outputs in hosts.pipeline.outputs.items()
            for output in outputs
            for number in range(hosts.pipeline.counts[stage])
        ):
            break
        await asyncio.sleep(1)
    await asyncio.sleep(10)
    eye.check_all()
    await finish(hosts)


@simulated
async def test_idle_subscriber_delays_no_other(cluster: SimCluster) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS["by-value"], trades(Random(3), 80), 2), 2)
    hosts.start()
    cluster.host("blind").start(_blind(hosts))
    await asyncio.sleep(5)
    eye = Eye(hosts)
    cluster.host("eye").start(eye.main)
    await _see_it_out(hosts, eye)
    assert not hosts.failures


@simulated
async def test_late_subscriber_sees_the_same_rows(cluster: SimCluster) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS["by-value"], trades(Random(3), 40), 2), 2)
    hosts.start()
    eyes = [Eye(hosts), Eye(hosts)]
    cluster.host("eye0").start(eyes[0].main)
    hosts.pipeline.write_all()
    await asyncio.sleep(30)
    assert hosts.is_done
    cluster.host("eye1").start(eyes[1].main)
    await asyncio.sleep(10)
    for eye in eyes:
        eye.check_all()
    hosts.is_over = True


def _blind(hosts: Hosts) -> Any:
    async def main(world: SimWorld) -> None:
        async def find() -> Endpoints:
            return endpoints_of(hosts)

        async with Observer(world, find, insecure=True, limits=TIGHT) as observer:
            with pytest.raises(InputError, match="no output 'nothing': they are"):
                await observer.follow("nothing")
            for output in hosts.pipeline.plan.outputs:
                await observer.follow(output.name)
            while not hosts.is_over:
                await world.clock.sleep(1)

    return main


@simulated
async def test_observers_cannot_subscribe_to_edges_between_stages(cluster: SimCluster) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS["by-value"], trades(Random(3), 80), 1), 1)
    hosts.start()
    said: list[str] = []

    async def main(world: SimWorld) -> None:
        async def find() -> Endpoints:
            return endpoints_of(hosts)

        async with Observer(world, find, insecure=True, say=said.append) as observer:
            await observer.known()
            for session in observer._sessions.values():
                session.send(Release("p/1", 0, 0, 10**9))
            await world.clock.sleep(2)
        hosts.is_over = True

    cluster.host("eye").start(main)
    while not hosts.is_over:
        await asyncio.sleep(1)
    assert any("may not follow 'p/1'" in line for line in said), said


@simulated
async def test_processes_that_show_nothing_are_not_waited_for_longer_than_asked(
    cluster: SimCluster,
) -> None:
    done = asyncio.Event()

    async def main(world: SimWorld) -> None:
        async def find() -> Endpoints:
            return Endpoints(((Endpoint("w/0", "w:1", 1),),))

        observer = Observer(world, find, insecure=True)
        observer.places = await find()
        with pytest.raises(ConnectionError, match="none of w/0 at w:1 answers"):
            await observer.known(timeout_s=3)
        observer.opened(SimpleNamespace(edges={}), "w/0")  # type: ignore[arg-type]
        with pytest.raises(ConnectionError, match=r"none of w/0 at w:1 offers one$"):
            await observer.known(timeout_s=3)
        done.set()

    cluster.host("eye").start(main)
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()


@simulated
async def test_refused_observer_reports_it_and_resumes_once_admitted(cluster: SimCluster) -> None:
    answers: list[Exception | None] = [None]
    done = asyncio.Event()

    async def find() -> Endpoints:
        if answers[-1] is not None:
            raise answers[-1]
        return Endpoints()

    async def look(world: SimWorld) -> None:
        said: list[str] = []
        async with Observer(world, find, insecure=True, say=said.append) as observer:
            answers.append(ConnectionError("nobody answers"))
            await world.clock.sleep(3 * REFUSED_S)
            assert not observer.refusal, "who was there may be there still"
            answers.append(AccessDeniedError("they do not know who asks"))
            await world.clock.sleep(3)
            assert not observer.refusal
            await world.clock.sleep(REFUSED_S)
            assert observer.refusal == "they do not know who asks"
            assert said == ["they do not know who asks"]
            answers.append(None)
            await world.clock.sleep(3)
            assert not observer.refusal
        done.set()

    cluster.host("eye").start(look)
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()
