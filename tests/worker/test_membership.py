"""Members and coordinators as they are, on simulated machines that die, pause and are cut off."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from coordinator.decisions.commands import Command, Freeze, Move, PinTo, Unfreeze
from coordinator.decisions.limits import Limits
from coordinator.service.messages import command_to_bytes, done_from_bytes, status_from_bytes
from ripple.client.outputs.first_answer import first_answer
from ripple.control.assignment import worker_of
from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import methods
from ripple.core import events
from ripple.storage.store.memory import MemoryStore
from ripple.testing import SimCluster
from ripple.world import StoreError
from ripple.world.control import RefusedError, UnreachableError
from tests.control.assignment.examples import CODE
from tests.worker.members import (
    Seen,
    address_of,
    coordinator_of,
    problem_of,
    start,
    worker_of_cluster,
)
from tests.world.clusters import idle, on, simulate, simulated

ONE = ("c1",)


async def rest(cluster: SimCluster, seen: Seen, seconds: int = 60, **of: Any) -> None:
    """Wait until nothing is left to be done."""
    for _ in range(seconds):
        await asyncio.sleep(1)
        if problem_of(seen, **of) is None:
            return
    raise AssertionError(problem_of(seen, **of))


def events_of(seen: Seen, worker: str, kind: type) -> list[Any]:
    return [one for one in seen.members[worker].events if isinstance(one, kind)]


def version(seen: Seen) -> int:
    assert seen.newest is not None
    return seen.newest.version


async def ask(cluster: SimCluster, method: str, request: bytes, coordinator: str = "c1") -> bytes:
    host = cluster.host("people")
    if not host.is_running:
        host.start(idle)
    channel = host.world.control.channel(address_of(coordinator))
    return bytes(await on(host, channel.call(method, request, deadline_s=40)))


async def command(cluster: SimCluster, given: Command, coordinator: str = "c1") -> int:
    request = command_to_bytes(given)
    return done_from_bytes(await ask(cluster, methods.COMMAND, request, coordinator))


@simulated
async def test_workers_join_together_and_share_all_partitions(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen, 8)
    assert version(seen) <= 2, "they are collected"
    assert all(len(events_of(seen, name, events.Joined)) == 1 for name in seen.members)


@simulated
async def test_coordinator_is_not_lost_between_two_heartbeats(cluster: SimCluster) -> None:
    seen = Seen()
    slow = Limits(suspected_after_ms=15_000, dead_after_ms=30_000, mass_silence_ms=60_000)
    cluster.host("c1").start(coordinator_of(seen, "c1", limits=slow))
    worker = worker_of_cluster(seen, "w1", ONE, heartbeat_interval_ms=9_000)
    cluster.host("w1").start(worker)
    await asyncio.sleep(60)
    assert events_of(seen, "w1", events.Joined)
    assert not events_of(seen, "w1", events.CoordinatorLost)


@simulated
async def test_killed_worker_is_evicted_and_comes_back_as_another_incarnation(
    cluster: SimCluster,
) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = seen.members["w2"].incarnation
    cluster.host("w2").kill()
    await asyncio.sleep(6)  # the end of its stream is enough
    await rest(cluster, seen, 4, workers=("w1", "w3"))
    cluster.host("w2").restart()
    await rest(cluster, seen)
    after = seen.members["w2"].incarnation
    assert after is not None
    assert before is not None
    assert after > before


@simulated
async def test_worker_that_comes_back_at_once_replaces_itself(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    cluster.host("w2").restart()
    await asyncio.sleep(1)
    await rest(cluster, seen, 20)


def evicted_in_its_sleep(removed: frozenset[str] = frozenset()) -> None:
    """A worker is stopped until it is evicted: it says nothing more as who it was."""

    async def scenario(cluster: SimCluster, seed: int) -> None:
        cluster.removed = removed
        seen = start(cluster)
        await rest(cluster, seen)
        member = seen.members["w2"]
        was = ("w2", member.incarnation)
        cluster.host("w2").pause()
        await asyncio.sleep(20)
        assert seen.shells["c1"].state.now is not None
        assert not seen.shells["c1"].state.now.has(*was)  # type: ignore[arg-type]
        del seen.events[:]
        cluster.network.cut("w2", "store")
        cluster.host("w2").resume()
        await asyncio.sleep(5)
        cluster.network.heal()
        await rest(cluster, seen)
        beats = [event for _, event in seen.events if isinstance(event, msg.Heartbeat)]
        assert all(beat.who != was for beat in beats), "it speaks as who it was"
        assert [type(one) for one in member.events].count(events.Evicted) == 1
        versions = [incarnation for _, incarnation in member.versions]
        assert None in versions[versions.index(was[1]) :], "it has heard of it"

    simulate(scenario)


def test_worker_that_slept_reads_the_chain_before_it_says_anything() -> None:
    evicted_in_its_sleep()


def test_worker_that_does_not_read_after_its_sleep_is_found_out() -> None:
    with pytest.raises(AssertionError, match="it speaks as who it was"):
        evicted_in_its_sleep(frozenset({"late_reads"}))


@simulated
async def test_worker_that_slept_is_heard_while_its_store_hangs(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    was = ("w2", seen.members["w2"].incarnation)
    cluster.host("w2").pause()
    await asyncio.sleep(5.5)
    cluster.network.cut("w2", "store")
    cluster.host("w2").resume()
    await asyncio.sleep(30)
    assert seen.members["w2"].incarnation == was[1]
    newest = seen.shells["c1"].state.now
    assert newest is not None
    assert newest.has(*was)  # type: ignore[arg-type]


@simulated
async def test_of_several_coordinators_a_frozen_one_costs_less_than_a_second(
    cluster: SimCluster,
) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    cluster.host("c1").pause()
    people = cluster.host("people")
    people.start(idle)
    assert people.world.control is not None
    began_s = asyncio.get_running_loop().time()
    asking = first_answer(
        people.world.control,
        [address_of(one) for one in ("c1", "c2")],
        methods.STATUS,
        b"",
        deadline_s=5,
    )
    address, data = await on(people, asking)
    assert address == address_of("c2")
    assert len(status_from_bytes(data).members) == 3
    assert asyncio.get_running_loop().time() - began_s < 1


@simulated
async def test_where_no_coordinator_answers_each_is_named(cluster: SimCluster) -> None:
    people = cluster.host("people")
    people.start(idle)
    assert people.world.control is not None
    where = ["c1:1", "c2:1"]
    asking = first_answer(people.world.control, where, methods.STATUS, b"", deadline_s=5)
    with pytest.raises(ConnectionError, match=r"c1:1.*c2:1"):
        await on(people, asking)


@simulated
async def test_without_coordinators_nothing_changes(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = version(seen)
    for name in ("c1", "c2"):
        cluster.host(name).kill()
    await asyncio.sleep(300)
    assert all(member.incarnation is not None for member in seen.members.values())
    for name in ("c1", "c2"):
        cluster.host(name).restart()
    await rest(cluster, seen)
    await asyncio.sleep(30)
    assert version(seen) == before, "nobody was evicted"


@simulated
async def test_worker_that_one_coordinator_hears_stays(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = version(seen)
    cluster.network.cut("w1", "c1")
    cluster.network.cut("w2", "c2")
    await asyncio.sleep(60)
    assert version(seen) == before


@simulated
async def test_coordinators_that_do_not_hear_each_other_read_their_views_in_the_store(
    cluster: SimCluster,
) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = version(seen)
    cluster.network.cut("c1", "c2")
    cluster.network.cut("w1", "c1")
    cluster.network.cut("w2", "c2")
    await asyncio.sleep(60)
    assert version(seen) == before
    cluster.host("w3").kill()
    await asyncio.sleep(30)
    assert version(seen) > before
    names = await on(cluster.host("c1"), cluster.host("c1").world.store.list("views/"))
    assert len(names) in (2, 3), f"old views go: {names}"


@simulated
async def test_views_that_could_not_be_read_are_no_problem_once_they_can(
    cluster: SimCluster,
) -> None:
    """Nobody wants them in a cluster that is well; what is told must not stay for that."""
    seen = start(cluster)
    await asyncio.sleep(0.05)
    shell, loop = seen.shells["c1"], asyncio.get_running_loop()
    read, until_s = shell._archive.read_views, loop.time() + 20

    async def slow_down() -> Any:
        if loop.time() < until_s:
            raise StoreError("views cannot be read: 503 SlowDown", done=False)
        return await read()

    shell._archive.read_views = slow_down  # type: ignore[method-assign]
    await asyncio.sleep(15)
    assert shell.status is not None
    assert shell.status.problems == ("views: views cannot be read: 503 SlowDown",)
    await asyncio.sleep(30)
    await rest(cluster, seen)
    assert shell.status.problems == ()


@simulated
async def test_worker_without_coordinators_reads_in_the_chain_that_it_is_evicted(
    cluster: SimCluster,
) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    for name in ("c1", "c2"):
        cluster.network.cut("w2", name)
    await asyncio.sleep(25)
    member = seen.members["w2"]
    assert member.incarnation is None
    assert member.now == seen.shells["c1"].state.now
    cluster.network.heal()
    await rest(cluster, seen)


@simulated
async def test_new_version_is_heard_although_no_coordinator_can_tell_of_it(
    cluster: SimCluster,
) -> None:
    seen = start(cluster, workers=2)
    await rest(cluster, seen, workers=("w1", "w2"))
    # What coordinators say no longer arrives; what the worker says does.
    for name in ("c1", "c2"):
        cluster.network.cut_one_way(name, "w1")
    cluster.host("w3").start(worker_of_cluster(seen, "w3"))
    for _ in range(40):
        await asyncio.sleep(1)
        if seen.members["w1"].now is not None and seen.members["w1"].now.by_id.get("w3"):
            return
    raise AssertionError("w1 has not heard of w3")


@simulated
async def test_worker_drains_and_leaves(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    host, member = cluster.host("w1"), seen.members["w1"]
    await on(host, member.membership.drain("it is to stop"), 20)
    for _ in range(30):
        await asyncio.sleep(1)
        assert seen.newest is not None
        if not seen.newest.owned_by("w1"):
            break
    assert not seen.newest.owned_by("w1"), "its partitions have moved away"
    began = cluster.loop.time()
    await on(host, member.membership.leave(), 20)
    assert cluster.loop.time() - began < 4
    await asyncio.sleep(60)
    assert seen.newest is not None
    assert set(seen.newest.by_id) == {"w2", "w3"}, "it asks to join no more"
    assert member.incarnation is None


@simulated
async def test_a_worker_that_no_coordinator_answers_is_abandoned(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    waiting = cluster.loop.create_task(
        on(cluster.host("w2"), seen.members["w2"].membership.abandoned())
    )
    cluster.host("c1").kill()
    await asyncio.sleep(30)
    assert not waiting.done(), "one is enough"
    cluster.host("c2").restart()
    await asyncio.sleep(30)
    assert not waiting.done(), "it was started again"
    cluster.host("c2").kill()
    async with asyncio.timeout(12):
        await waiting


@simulated
async def test_leaving_ends_although_nobody_answers(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    for name in ("c1", "c2"):
        cluster.host(name).kill()
    began = cluster.loop.time()
    await on(cluster.host("w1"), seen.members["w1"].membership.leave(), 20)
    assert cluster.loop.time() - began < 6


@simulated
async def test_misfit_is_refused_and_told_what_differs(cluster: SimCluster) -> None:
    seen = start(cluster, workers=2)
    await rest(cluster, seen, workers=("w1", "w2"))
    other = replace(CODE, plan_hash="plan-2")
    cluster.host("w3").start(worker_of_cluster(seen, "w3", code=other))
    await asyncio.sleep(60)
    refused = events_of(seen, "w3", events.JoinRefused)
    assert "plan hash is plan-2, the cluster's is plan-1" in refused[0].reason
    assert 5 < len(refused) < 30, "it asks again, not every second"
    assert any("plan hash is plan-2" in line for line in seen.said)


@simulated
async def test_a_worker_with_another_store_says_so_and_asks_to_join_no_more(
    cluster: SimCluster,
) -> None:
    """What it is given it would never hear of; so it is given something once at most."""
    seen = start(cluster, workers=2)
    await rest(cluster, seen, workers=("w1", "w2"))
    apart = MemoryStore()
    cluster.host("w3").start(worker_of_cluster(seen, "w3", store=apart))
    await asyncio.sleep(120)
    unread = events_of(seen, "w3", events.AssignmentUnread)
    assert "is it the coordinators' store?" in unread[0].reason
    assert "the newest in this worker's store is none" in unread[0].reason
    joins = [v for v in seen.history.values() if "w3 joins" in v.cause]
    assert len(joins) <= 1
    await rest(cluster, seen, workers=("w1", "w2"))


@simulated
async def test_flapping_worker_waits_before_it_joins_again(cluster: SimCluster) -> None:
    seen = start(cluster, ONE)
    await rest(cluster, seen)
    for _ in range(3):
        cluster.host("w2").kill()
        await asyncio.sleep(8)
        cluster.host("w2").restart()
        await rest(cluster, seen)
    (postponed,) = events_of(seen, "w2", events.JoinPostponed)
    assert 10_000 < postponed.wait_ms <= 20_000


@simulated
async def test_checkpoints_are_triggered_by_one_coordinator_at_a_time(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = {name: member.checkpoints for name, member in seen.members.items()}
    await asyncio.sleep(100)
    for name, member in seen.members.items():
        assert 9 <= member.checkpoints - before[name] <= 11


@simulated
async def test_process_that_exited_is_known_at_once(cluster: SimCluster) -> None:
    seen = start(cluster)
    await rest(cluster, seen)
    before = {share.since for share in seen.newest.shares if share.owner == "w1/0"}  # type: ignore[union-attr]
    await on(cluster.host("w1"), asyncio.sleep(0))
    seen.members["w1"].membership.exited(0, 0)
    await asyncio.sleep(2)
    assert seen.newest is not None
    assert seen.newest.by_id["w1"].starts == (1,)
    after = {share.since for share in seen.newest.shares if share.owner == "w1/0"}
    assert not before & after, "what it owned is owned anew"


@simulated
async def test_commands_are_answered_once_a_version_says_so(cluster: SimCluster) -> None:
    seen = start(cluster)
    with pytest.raises((RefusedError, UnreachableError)):
        await command(cluster, Freeze("too early"))
    await rest(cluster, seen)
    done = await command(cluster, Freeze("maintenance"))
    await asyncio.sleep(2)
    assert seen.newest is not None
    assert done == seen.newest.version
    assert seen.newest.frozen == "maintenance"
    with pytest.raises(RefusedError, match="frozen"):
        await command(cluster, Move(0, "w1", "why not"), "c2")
    await command(cluster, Unfreeze("done"), "c2")
    with pytest.raises(RefusedError, match="there is no worker w9"):
        await command(cluster, PinTo(0, "w9", "its cache"))
    to = next(name for name in ("w1", "w2", "w3") if seen.newest.shares[0].owner != f"{name}/0")
    await command(cluster, PinTo(0, to, "its cache"))
    await asyncio.sleep(15)
    share = seen.newest.shares[0]
    assert share.owner is not None
    assert worker_of(share.owner) == to
    status = status_from_bytes(await ask(cluster, methods.STATUS, b""))
    assert status.pins == ((0, to, "its cache"),)
    assert status.summary == (3, 3, 6, version(seen))
    assert len(status.replicas) == 1


@pytest.mark.parametrize("method", [methods.COMMAND, methods.CONVERSE])
@simulated
async def test_bytes_that_are_no_message_are_refused(cluster: SimCluster, method: str) -> None:
    seen = start(cluster, ONE, workers=0)
    await asyncio.sleep(5)
    host = cluster.host("people")
    host.start(idle)

    async def converse() -> None:
        channel = host.world.control.channel(address_of("c1"))
        conversation = await channel.open(method, deadline_s=5)
        await conversation.send(b"\xff\xff")
        while await conversation.receive() is not None:
            pass

    asking = ask(cluster, method, b"\xff\xff") if method == methods.COMMAND else converse()
    with pytest.raises(RefusedError, match=r"ripple\.rpc"):
        await on(host, asking)
    assert seen.shells["c1"].status is not None


@simulated
async def test_coordinator_that_is_its_own_peer_is_alone_and_writes_its_view(
    cluster: SimCluster,
) -> None:
    seen = Seen()
    cluster.host("c1").start(coordinator_of(seen, "c1", ("c1",), Limits(partitions=6)))
    await asyncio.sleep(10)
    assert [line for line in seen.said if address_of("c1") in line] == []
    assert await on(cluster.host("c1"), cluster.host("c1").world.store.list("views/"))


@pytest.mark.parametrize("mark", ["other 1f", ""])
@simulated
async def test_worker_of_another_store_is_refused_by_name_and_shown_to_people(
    cluster: SimCluster, mark: str
) -> None:
    seen = start(cluster, ONE, workers=0)
    await asyncio.sleep(5)
    seen.shells["c1"].state.store = "ripple 2e"
    cluster.host("w1").start(worker_of_cluster(seen, "w1", ONE, store=MemoryStore(), mark=mark))
    cluster.host("w2").start(worker_of_cluster(seen, "w2", ONE, mark="ripple 2e"))
    for _ in range(60):
        await asyncio.sleep(1)
        status = seen.shells["c1"].status
        if status is not None and status.waiting and status.summary[1]:
            break
    ((worker, why),) = status.waiting
    assert worker == "w1"
    assert f"its store is that of {mark or 'no cluster yet'}, the coordinators'" in why
    assert [(one.worker, one.alert.name) for one in status.alerts] == [("w1", "SchemaMismatch")]
    now = seen.shells["c1"].state.now
    assert now is not None
    assert [one.id for one in now.members] == ["w2"]
