"""Hosted partitions follow the assignment; outputs do not depend on its changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import pytest

from ripple.connectors.contract import Commit
from ripple.control.assignment import Assignment, Level, Share
from ripple.core.errors import OutputError
from ripple.core.events import Committed, Restored
from ripple.testing import SimCluster, explore, on_cluster, repeat
from ripple.testing.sim.disk import CAPACITY_BYTES
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from tests.examples import EXAMPLES, THINNED
from tests.run_by import run_by
from tests.worker.processes import (
    PARTITIONS,
    SOURCE,
    given,
    new_disk,
    on_disk,
    rows_of,
    runtime_of,
    table_of,
)
from worker.backpressure import Intake, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.core.events import Event
    from ripple.testing import SimDisk, SimWorld
    from worker.engine.runtime import Runtime

LIMIT_S = 100.0 * EXAMPLES
RECORDS = sum(end - 1 for end in SOURCE.end.values())  # the last entry of each input is a marker


class Cluster:
    """Processes a/0, b/0 and c/0 on machines of the same name, and one who assigns."""

    def __init__(self, cluster: SimCluster, *, whole: bool = True) -> None:
        self.cluster = cluster
        self.disk = new_disk(whole=whole)
        self.disks: list[SimDisk] = []  # as each process sees it
        self.runtimes: dict[str, Runtime] = {}
        self.events: list[tuple[str, Event]] = []
        self.newest: Assignment | None = None

    def start(self, name: str, start: int = 0) -> None:
        async def main(world: SimWorld) -> None:
            own = on_disk(world, self.disk)
            self.disks.append(own.disk)
            runtime = runtime_of(own, f"{name}/0", lambda event: self.events.append((name, event)))
            self.runtimes[name] = runtime
            seen = 0
            while True:  # as whoever reads the chain
                if self.newest is not None and self.newest.version > seen:
                    seen = self.newest.version
                    runtime.assign(self.newest, (1, start))
                await world.clock.sleep(0.05)

        self.cluster.host(name).start(main)

    def assign(self, *shares: Any, starts: int = 0) -> None:
        version = 1 if self.newest is None else self.newest.version + 1
        filled = [share if isinstance(share, Share) else Share(*share) for share in shares]
        self.newest = given(version, *filled, starts=starts)

    @property
    def version(self) -> int:
        return 1 if self.newest is None else self.newest.version + 1

    async def until(self, is_so: Callable[[], bool], why: str, every_s: float = 0.02) -> None:
        loop, began = self.cluster.loop, self.cluster.loop.time()
        while not is_so():
            assert loop.time() - began < LIMIT_S, f"it took too long: {why}"
            await asyncio.sleep(every_s)

    async def all_written(self) -> None:
        def is_all() -> bool:
            try:
                found = [rows_of(self.disk, part) for part in range(PARTITIONS)]
            except Exception:
                return False
            return repr(found) == repr(expected())  # so that a NaN is a NaN

        await self.until(is_all, "not everything was written", every_s=0.5)

    async def live(self, name: str, partition: int, since: int) -> None:
        def is_live() -> bool:
            runtime = self.runtimes.get(name)
            return runtime is not None and (partition, since) in runtime.report.live

        await self.until(is_live, f"{name} has not got {partition} since {since}")


def alone() -> list[list[Any]]:
    """Run both partitions in one process, which nothing happens to."""
    found: list[list[Any]] = []

    @on_cluster
    async def story(cluster: SimCluster, seed: int) -> None:
        one = Cluster(cluster)
        one.start("a")
        one.assign(("a/0", 1), ("a/0", 1))
        await one.live("a", 0, 1)
        await one.live("a", 1, 1)

        def is_at_end() -> bool:
            standings = one.runtimes["a"].standings
            return sum(each.events for each in standings.values()) == RECORDS

        await one.until(is_at_end, "it does not end")
        await one.runtimes["a"].stop()
        found.extend(rows_of(one.disk, part) for part in range(PARTITIONS))

    done = repeat(story, seed=0)
    if done.error is not None:
        raise done.error
    return found


@cache
def expected() -> list[list[Any]]:
    found = alone()
    assert all(len(rows) > 10 for rows in found)
    return found


def tell_story(
    run_story: Callable[[Cluster], Awaitable[None]],
    seeds: range = range(2 * EXAMPLES // THINNED),
    without: tuple[str, ...] = (),
) -> None:
    """Let a story happen without faults of its own; outputs must be those of one process."""
    expected()

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        one = Cluster(cluster)
        await run_story(one)
        await one.all_written()

    for seed in seeds:
        done = repeat(scenario, seed=seed, without=without)
        if done.error is not None:
            raise done.error


told = run_by(tell_story, "one")


@told
async def test_partitions_come_and_go_while_others_work(one: Cluster) -> None:
    one.start("a")
    one.start("b")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    one.assign(("a/0", 1, "b/0"), ("a/0", 1))
    follower = one.runtimes["b"]
    await one.until(lambda: bool(follower.report.followers), "b does not follow")
    assert (0, 1) in one.runtimes["a"].report.live, "its owner is not disturbed"
    one.assign(("b/0", 3, None, "a/0"), ("a/0", 1))
    await one.live("b", 0, 3)
    await one.until(lambda: (0, 1) not in one.runtimes["a"].report.live, "a does not end")
    one.assign(("b/0", 3), ("a/0", 1))
    await one.until(lambda: 0 not in one.runtimes["a"].standings, "a keeps it")
    assert not one.runtimes["b"].report.followers
    assert (1, 1) in one.runtimes["a"].report.live


@told
async def test_follower_takes_over_what_it_has_followed_without_restoring(one: Cluster) -> None:
    one.start("a")
    one.start("b")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    one.assign(("a/0", 1, "b/0"), ("a/0", 1, "b/0"))
    follower = one.runtimes["b"]
    await one.until(
        lambda: [each.behind for each in follower.report.followers] == [0, 0], "b is behind"
    )
    one.assign(("b/0", 3, None, "a/0"), ("b/0", 3, None, "a/0"))
    await one.live("b", 0, 3)
    await one.live("b", 1, 3)
    restored = [event for name, event in one.events if name == "b" and is_restored(event)]
    assert [event.checkpoint for event in restored] == [None, None]
    assert all(any(event.start.values()) for event in restored), "it began anew"


def test_partitions_move_warm_while_their_input_grows() -> None:
    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        one = Cluster(cluster, whole=False)

        async def produce(world: SimWorld) -> None:
            await SOURCE.produce(on_disk(world, one.disk))

        one.start("a")
        one.start("b")
        one.assign(("a/0", 1), ("b/0", 1))
        await one.live("a", 0, 1)
        cluster.host("producer").start(produce)
        owner, follower = "a", "b"
        for _ in range(4):
            await asyncio.sleep(0.4)
            since = one.runtimes[owner].report.live
            (at,) = [version for partition, version in since if partition == 0]
            one.assign((f"{owner}/0", at, f"{follower}/0"), ("b/0", 1))
            runtime = one.runtimes[follower]
            await one.until(partial(is_near, runtime), "it does not get near")
            for _ in range(20):
                await asyncio.sleep(0.02)
                assert not runtime.report.failed, runtime.report.failed
            owner, follower = follower, owner
            one.assign((f"{owner}/0", one.version, None, f"{follower}/0"), ("b/0", 1))
            await one.live(owner, 0, one.version - 1)
        await cluster.host("producer").ended()
        await one.until(
            lambda: [table_of(rows_of(one.disk, part)) for part in range(2)] == wanted,
            "not everything was written",
            every_s=0.5,
        )
        restored = [event for _, event in one.events if isinstance(event, Restored)]
        assert len(restored) == 6
        assert not any(event.checkpoint for event in restored), "somebody has restored"

    wanted = [table_of(rows) for rows in expected()]
    for seed in range(2 * EXAMPLES // THINNED):
        done = repeat(scenario, seed=seed)
        if done.error is not None:
            raise done.error


def is_near(runtime: Runtime) -> bool:
    return [each.behind for each in runtime.report.followers] == [0]


def is_restored(event: Any) -> bool:
    return isinstance(event, Restored)


def test_follower_that_computes_something_else_says_so_and_its_owner_goes_on() -> None:
    async def story(one: Cluster) -> None:
        one.start("a")
        one.start("b")
        one.assign(("a/0", 1), ("a/0", 1))
        await one.live("a", 0, 1)
        runtime = one.runtimes["b"]
        ends = runtime._context.ends
        reached = ends.reached

        def look(part: Any) -> Any:
            asked = reached(part)

            async def wrong() -> dict[str, Any]:
                return {
                    name: commit and Commit(commit.cut, "0" * 16)
                    for name, commit in (await asked()).items()
                }

            return wrong

        ends.reached = look
        one.assign(("a/0", 1, "b/0"), ("a/0", 1))
        await one.until(lambda: bool(runtime.report.failed), "nobody has noticed")
        (failure,) = runtime.report.failed
        assert "its hot standby computes" in failure.reason
        assert not runtime.report.followers
        assert (0, 1) in one.runtimes["a"].report.live

    tell_story(story, range(EXAMPLES))
    # Else it is given the partition, and only then finds out, when nobody else has it any more.
    with pytest.raises(AssertionError, match="nobody has noticed"):
        tell_story(story, range(1), without=("warm_digest",))


@told
async def test_partition_that_an_owner_lost_ends_and_is_taken_up_elsewhere(one: Cluster) -> None:
    one.start("a")
    one.start("b")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 1, 1)
    one.assign(("b/0", 2), ("a/0", 2))  # also given anew where it is
    await one.live("b", 0, 2)
    await one.live("a", 1, 2)
    one.assign(("a/0", 3), ("b/0", 3))
    await one.live("a", 0, 3)
    await one.live("b", 1, 3)


@told
async def test_partitions_take_in_nothing_while_a_queue_is_full_and_commit_what_they_have(
    one: Cluster,
) -> None:
    one.start("a")
    await one.until(lambda: "a" in one.runtimes, "it does not start")
    runtime, held = one.runtimes["a"], {"outboxes": 100}
    intake = Intake(one.cluster.host("a").world.clock, limits=Limits(outboxes=100))
    intake.watch(lambda: held)
    runtime._context = replace(runtime._context, intake=intake)

    def applied() -> int:
        return sum(health.events for health in runtime.standings.values())

    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    await one.live("a", 1, 1)
    await asyncio.sleep(5)
    assert applied() == 0
    assert intake.pressure.level is Level.PAUSE
    held["outboxes"] = 10
    await one.until(lambda: applied() > 8, "it does not go on")
    held["outboxes"] = 100
    await asyncio.sleep(0.2)
    before = applied()
    await asyncio.sleep(5)
    assert applied() == before
    commits = [event for _, event in one.events if isinstance(event, Committed)]
    ends = [end for cut in last_cuts(commits) for end in cut.items()]
    assert sum(min(end, SOURCE.end[name] - 1) for name, end in ends) == before
    held["outboxes"] = 0


def last_cuts(commits: list[Any]) -> list[dict[str, int]]:
    """Return the newest cut of each partition."""
    return list({tuple(sorted(one.cut)): dict(one.cut) for one in commits}.values())


@told
async def test_owner_that_wakes_up_beside_its_successor_changes_nothing(one: Cluster) -> None:
    one.start("a")
    one.start("b")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    one.cluster.host("a").pause()
    one.assign(("b/0", 2), ("b/0", 2))
    await one.live("b", 0, 2)
    one.cluster.host("a").resume()
    await one.live("b", 1, 2)
    await one.until(lambda: not one.runtimes["a"].standings, "a does not hear of it")


@told
async def test_two_owners_who_hear_of_different_versions_write_once(one: Cluster) -> None:
    """One is cut off from the chain for good, and works on what it had."""
    one.start("a")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    deaf = one.runtimes["a"]
    deaf.version = 1 << 40  # it takes in no newer one
    one.start("b")
    one.assign(("b/0", 2), ("b/0", 2))
    await one.live("b", 0, 2)
    await one.live("b", 1, 2)
    await one.all_written()
    failures = [why.reason for why in deaf.report.failed]
    assert all("epoch" in why for why in failures), failures


@told
async def test_process_that_was_killed_gets_its_partitions_as_another_start(one: Cluster) -> None:
    one.start("a")
    one.assign(("a/0", 1), ("a/0", 1))
    await one.live("a", 0, 1)
    one.cluster.host("a").kill()
    one.start("a", start=1)
    await asyncio.sleep(1)
    assert not one.runtimes["a"].standings, "the assignment speaks of the start before"
    one.assign(("a/0", 2), ("a/0", 2), starts=1)
    await one.live("a", 0, 2)


def test_partition_that_fails_is_tried_again_and_leaves_its_neighbours_alone() -> None:
    async def story(one: Cluster) -> None:
        one.start("a")
        await one.until(lambda: "a" in one.runtimes, "it does not start")
        runtime = one.runtimes["a"]
        broken = [3]
        ends = runtime._context.ends
        outputs = ends.outputs

        def open_outputs(part: Any, epoch: int, **how: Any) -> Any:
            if part.number == 1 and broken[0]:
                broken[0] -= 1
                raise OutputError("the place is not there yet")
            return outputs(part, epoch, **how)

        ends.outputs = open_outputs
        one.assign(("a/0", 1), ("a/0", 1))
        await one.live("a", 0, 1)
        (failure,) = runtime.report.failed
        assert (failure.partition, failure.process) == (1, "a/0")
        assert "the place is not there yet" in failure.reason
        await one.live("a", 1, 1)
        assert not runtime.report.failed
        assert [health.epoch for health in runtime.standings.values()] == [1024, 1024 + 3]

    tell_story(story, range(EXAMPLES))


def test_assignment_that_does_not_fit_the_inputs_gives_nothing_and_says_why() -> None:
    async def story(one: Cluster) -> None:
        one.start("a")
        one.assign(("a/0", 1), ("a/0", 1), ("a/0", 1))
        await one.until(lambda: bool(one.runtimes.get("a")), "it does not start")
        runtime = one.runtimes["a"]
        await one.until(lambda: len(runtime.report.failed) == 3, "nothing is said")
        assert "has 4 partitions, and the pipeline has 3" in runtime.report.failed[0].reason
        assert "1, 2, 4 would fit" in runtime.report.failed[0].reason

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        await story(Cluster(cluster))

    done = repeat(scenario, seed=0)
    assert done.error is None, done.error


def disturb(one: Cluster, chance: Any, owners: list[str], since: list[int]) -> None:
    """Let a partition move, by plan or not, or a machine stop or go on."""
    cluster, partition = one.cluster, chance.below(2)
    other = chance.pick([name for name in ("a/0", "b/0", "c/0") if name != owners[partition]])
    shares: list[Any] = [(owner, at) for owner, at in zip(owners, since, strict=True)]
    match chance.below(5):
        case 0:
            shares[partition] = (owners[partition], since[partition], other)
        case 1 | 2:
            former = owners[partition] if chance.below(2) else None
            owners[partition], since[partition] = other, one.version
            shares[partition] = (other, one.version, None, former)
        case 3:
            cluster.host(chance.pick(["a", "b", "c"])).pause()
        case 4:
            for host in cluster.hosts.values():
                host.resume()
    one.assign(*shares)


@on_cluster
async def anything(cluster: SimCluster, seed: int) -> None:
    """Three processes; versions by chance, kills and pauses by chance, faults of the disk."""
    one, chance = Cluster(cluster), cluster.host("c")._chance
    starts = {"a": 0, "b": 0, "c": 0}
    for name in starts:
        one.start(name)
    owners = ["a/0", "b/0"]
    since = [1, 1]
    one.assign(("a/0", 1), ("b/0", 1))
    for _ in range(12):
        await asyncio.sleep(chance.below(300) / 1000)
        disturb(one, chance, owners, since)
    for name in starts:
        cluster.host(name).resume()
        if not cluster.host(name).is_running:
            one.start(name)
    cluster.heal()
    for disk in one.disks:
        disk.capacity_bytes = CAPACITY_BYTES
    one.assign(*[("b/0", one.version)] * 2)
    for part in range(PARTITIONS):
        await one.live("b", part, one.version - 1)
    await one.all_written()


def test_outputs_do_not_tell_what_happened_to_their_owners() -> None:
    expected()
    report = explore(anything, seeds=range(10 * EXAMPLES // THINNED))
    assert len(report.landed) > 3, report


def test_replay_that_is_not_muted_is_found_out() -> None:
    expected()
    faults: Any = anything.faults  # type: ignore[attr-defined]  # of a scenario on a cluster
    runs = (
        run(anything, seed, Drawn(seed, faults), without=("muted_replay",))
        for seed in (2, *range(30))  # the seed that found it out when this was written
    )
    assert any(done.error is not None for done in runs)
