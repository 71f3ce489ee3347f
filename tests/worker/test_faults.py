"""Named faults of clusters: a failure at one exact moment, and its forbidden consequence."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

import ripple as rp
from coordinator.decisions import commands as cmd
from coordinator.decisions.compatibility import misfit
from ripple.control.assignment import Candidate, Stage, empty, worker_of
from ripple.core.events import Committed, Restored
from ripple.testing.cluster.trouble import Trouble
from ripple.testing.sim import paths as sim_paths
from ripple.testing.sim import remote_store as sim_remote_store
from tests.engine.machine.stage_plans import trades
from tests.worker import trials
from tests.worker.seen import Seen, run_story, told
from worker.engine.identity import code_of


@told(trials.windows, workers=3, alongside=True)
async def test_pause_60s_then_resume_self_fences(seen: Seen) -> None:
    partition = 0
    old, (_, before) = seen.owner(partition), seen.restored(partition)[-1]
    seen.cluster.host(old).pause()
    await asyncio.sleep(60)
    assert seen.owner(partition) != old
    woken_at = seen.cluster.loop.time()
    seen.cluster.host(old).resume()
    await asyncio.sleep(15)
    late = [
        event
        for at, process, number, epoch, event in seen.said
        if at > woken_at and number == partition and epoch == before
        and worker_of(process) == old and isinstance(event, Committed)
    ]  # fmt: skip
    assert not late, "what it commits after its pause is another's"


@told(trials.totals, partitions=2, alongside=True, limits=None)
async def test_partition_moves_with_deltas_in_flight(seen: Seen) -> None:
    """Both sides of an edge move while changes are on their way along it."""
    first, last = 0, len(seen.shares) - 1
    seen.cluster.network.latency_ms_max = 200.0
    for partition in (first, last, first):
        other = next(w for w in seen.scene.workers if w != seen.owner(partition))
        seen.scene.command(cmd.Move(partition, other, "by hand"))
        await seen.until(
            lambda p=partition, w=other: seen.owner(p) == w and not seen.shares[p].former,  # type: ignore[misc]
            "it does not move",
        )
    assert len(seen.restored(first)) > 2
    assert len(seen.restored(last)) > 1


@told(trials.windows, partitions=6, alongside=True)
async def test_join_handoff_without_dual_owner(seen: Seen) -> None:
    """One that joins follows first; the owner goes on until it has it, and not after."""
    scene = seen.scene
    scene.add_worker("w3")
    scene.workers["w3"].on_event = scene.watch.on_event
    scene.start("w3")
    await seen.until(
        lambda: (
            sum(seen.owner(p) == "w3" for p in range(6)) == 2
            and not any(share.next or share.former for share in seen.shares)
        ),
        "it gets nothing",
    )
    moved = [p for p in range(6) if seen.owner(p) == "w3"]
    for partition in moved:
        taken_at, epoch = seen.restored(partition)[-1]
        commits = [
            (at, of)
            for at, _, number, of, event in seen.said
            if number == partition and isinstance(event, Committed)
        ]
        assert all(of == epoch for at, of in commits if at > taken_at)
    history = scene.watch.chain.history.values()
    assert all(any(version.shares[p].next == "w3/0" for version in history) for p in moved), (
        "they follow before they own"
    )


@told(trials.chain, partitions=2, workers=3, alongside=True)
async def test_chain_of_three_no_domino(seen: Seen) -> None:
    """Who stands in the middle dies; only what it had begins anew."""
    middle = 2  # the first partition of the second stage
    dead = seen.owner(middle)
    its = {p for p in range(len(seen.shares)) if seen.owner(p) == dead}
    at = seen.cluster.loop.time()
    seen.cluster.host(dead).kill()
    await seen.until(lambda: seen.owner(middle) != dead, "nobody has it")
    await seen.owned()
    await asyncio.sleep(5)
    again = {p for when, _, p, _, e in seen.said if when > at and isinstance(e, Restored)}
    assert again == its


@told(trials.totals, partitions=2, alongside=True, rarely=True)
async def test_aggregator_jumps_forward_never_back(seen: Seen) -> None:
    """A total that is restored from before what its senders have shows nothing older again."""
    last = len(seen.shares) - 1
    one = seen.scene.watch.partitions[last]
    await seen.until(lambda: sum(one.committed.values()) > 20, "it gets nothing")
    shown = dict(one.committed)
    child = seen.scene.workers[seen.owner(last)].children[-1]
    child.kill()
    count = len(seen.restored(last))
    await seen.until(lambda: len(seen.restored(last)) > count, "nobody goes on")
    assert all(one.committed[name] >= at for name, at in shown.items())


@told(trials.totals, partitions=2, alongside=True)
async def test_half_open_peer_detected(seen: Seen) -> None:
    """Connections on which nothing arrives any more, and nobody is told, are given up."""
    await seen.until(lambda: any(map(_exchanged, seen.scene.workers.values())), "no exchange")
    before = [stream for name in seen.scene.workers for stream in _streams(seen, name)]
    for stream in before:
        stream._track.dead = True
    await asyncio.sleep(40)
    assert all(stream.is_over for stream in before)


def _exchanged(worker: Any) -> bool:
    return any(process.port.exchange._sessions for process in worker.processes)


def _streams(seen: Seen, name: str) -> list[Any]:
    """Return the open connections of a worker with others."""
    others = set(seen.scene.workers) - {name}
    ours = seen.cluster.network.machines[name]._streams
    return [one for one in ours if one._track.target in others and not one.is_over]


def test_s3_outage_30min_bounded_memory() -> None:
    """Outputs go on, checkpoints are skipped and not queued; a crash within costs a replay."""

    async def story(seen: Seen) -> None:
        scene, host = seen.scene, seen.cluster.host("w1")
        seen.cluster.network.cut("w1", "store")
        seen.cluster.host("c1").kill()
        await asyncio.sleep(600)
        tasks = len([task for task in host.world.loop._tasks if not task.done()])
        objects = len(seen.cluster.store.image())
        await asyncio.sleep(1200)
        left = len([task for task in host.world.loop._tasks if not task.done()])
        assert left <= tasks + 2, f"{tasks} tasks have become {left}"
        assert len(seen.cluster.store.image()) == objects
        assert not scene.watch.lagging, "what it owns goes on without the store"
        host.kill()

    # A dead letter has to be in the store before what follows it is committed.
    calm = trials.shown("windows", trials.first(rp.Tumbling(10)), trades(Random(0), 40))
    run_story(story, calm, workers=1, partitions=4, alongside=True)


def test_rolling_upgrade_field_reorder_refused() -> None:
    """Two fields of one type in another order are another record."""

    @rp.record(version=1)
    class Tick:
        symbol: str
        bid: float
        ask: float

    @rp.record(version=1)
    class Swapped:
        symbol: str
        ask: float
        bid: float

    def candidate(name: str, record: type) -> Candidate:
        plan = (
            rp.Pipeline("p")
            .source("ticks", record)
            .partition("by-symbol", key="symbol")
            .fold("best", bid=rp.max("bid"), ask=rp.min("ask"))
            .sink("shown")
        ).plan()
        return Candidate(id=name, nonce=name, code=code_of(plan), inputs=(("ticks", 2),))

    ours = candidate("w1", Tick)
    assert ours.code is not None
    now = replace(empty((Stage("main", 2),)), version=1)
    assert misfit(replace(ours, id="w2", nonce="2"), ours.code, now) is None
    refused = misfit(candidate("w2", Swapped), ours.code, now)
    assert refused is not None
    assert "its schema of ticks is " in refused


@pytest.mark.parametrize("planned", [True, False])
@told(trials.windows, workers=3, coordinators=2, alongside=True)
async def test_a_partition_pauses_no_longer_than_promised(
    seen: Seen, planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J6: half a second where it moves by plan, and detection and four seconds after a crash."""
    monkeypatch.setattr(sim_remote_store, "DELAY_MS_MAX", 10)  # a disk, not S3
    monkeypatch.setattr(sim_paths, "RESEND_NS", 0)  # no packet is lost
    partition, old = 0, seen.owner(0)
    count, other = len(seen.restored(0)), next(w for w in seen.scene.workers if w != old)
    if planned:
        seen.scene.command(cmd.Move(partition, other, "by hand"))
        await seen.until(lambda: seen.owner(0) == other, "it does not move")
    else:
        seen.cluster.host(old).pause()  # whose connections stay
    began = seen.cluster.loop.time()
    await seen.until(lambda: len(seen.restored(0)) > count, "nobody goes on")
    pause = seen.cluster.loop.time() - began
    assert pause < (0.5 if planned else 12.0)


def test_trouble_is_named_by_what_it_does() -> None:
    assert all(does.__doc__ for does in Trouble.kinds(Trouble.__new__(Trouble)))
