"""A coordinator of several pipelines: dispatch of calls by pipeline, over real gRPC."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.pipelines import coordinate_all
from coordinator.service.messages import pipelines_from_bytes, status_from_bytes
from coordinator.settings import load
from ripple.control.assignment import Assignment, AssignmentChain, Candidate, Report
from ripple.control.assignment.founding import found
from ripple.control.assignment.pipeline_chain import PipelineChain
from ripple.control.assignment.pipelines import Hosted, place_of
from ripple.control.probes import page_of
from ripple.control.rpc import methods
from ripple.core.setting import SettingsError
from ripple.core.settings import Arguments
from ripple.storage.store import CountedStore, DiskStore
from ripple.world import LiveDisk, LiveRandom, World, live_world
from ripple.world.control import NO_PIPELINES, RefusedError, Service
from ripple.world.live_control import LiveControl
from tests.control.assignment.examples import candidate
from tests.patience import PATIENCE_S, comes
from tests.world.control_contract import offered
from worker.supervisor.membership import Membership

LISTENS = re.compile(r"listens at (\S+), /health and /ready at (\S+), /metrics at (\S+)")
QUICK = {"version_interval_ms": "100", "jitter_ms": "50", "join_collect_ms": "50"}
PORTS = dict.fromkeys(("port", "health_port", "metrics_port"), "0")
ONE = Hosted("one", 1, "one.py", "log:in", ("log:out/one",), 4)
TWO = Hosted("two", 2, "two.py", "log:in", ("log:out/two",), 4)


def store_at(place: str | Path) -> DiskStore:
    return DiskStore(LiveDisk(place), LiveRandom())


class Running:
    """A coordinator of several pipelines in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = PipelineChain(store_at(folder), "test")
        self.said: list[str] = []
        self.ending = asyncio.Event()
        settings = load(Arguments({"store": str(folder), **PORTS, **QUICK}), {}, {})
        world = live_world(".", store=store_at(folder), control=LiveControl())
        self.task = asyncio.ensure_future(
            coordinate_all(world, settings, self.said.append, self.ending, self.opens)
        )

    @asynccontextmanager
    async def opens(self, pipeline: str) -> AsyncIterator[tuple[World, CountedStore]]:
        store = CountedStore(store_at(place_of(str(self.folder), pipeline)))
        yield live_world(".", store=store, control=LiveControl(pipeline=pipeline)), store

    async def addresses(self) -> tuple[str, str, str]:
        await comes(lambda: any(LISTENS.search(line) for line in self.said) or self.task.done())
        (where,) = filter(None, map(LISTENS.search, self.said))
        return where[1], where[2], where[3]

    async def ask(self, pipeline: str, method: str = methods.STATUS) -> bytes:
        channel = LiveControl(pipeline=pipeline).channel((await self.addresses())[0])
        try:
            return await channel.call(method, b"", deadline_s=PATIENCE_S)
        finally:
            await channel.close()

    async def refuses(self, pipeline: str, text: str) -> None:
        """Wait until a call is refused so: the record is read once a second."""

        async def is_refused() -> bool:
            try:
                await self.ask(pipeline)
            except RefusedError as error:
                return text in str(error)
            return False

        async with asyncio.timeout(PATIENCE_S):
            while not await is_refused():
                await asyncio.sleep(0.05)

    async def change(self, change: object) -> None:
        await self.record.change(change)  # type: ignore[arg-type]


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Running]:
    one = Running(folder)
    try:
        yield one
    finally:
        one.ending.set()
        await one.task


@asynccontextmanager
async def worker(at: Running, pipeline: str) -> AsyncIterator[list[Assignment]]:
    """A member of a pipeline's cluster without state, and the versions that it receives."""
    store = store_at(place_of(str(at.folder), pipeline))
    heard: list[Assignment] = []

    def asks(nonce: str) -> Candidate:
        return replace(candidate("w1", nonce), inputs=())

    membership = Membership(
        live_world(".", store=store, control=LiveControl(pipeline=pipeline)),
        AssignmentChain(store),
        [(await at.addresses())[0]],
        asks,
        Report,
        lambda version, _: heard.append(version),
        heartbeat_interval_ms=200,
    )
    task = asyncio.ensure_future(membership.run())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_each_pipeline_has_its_workers_and_ends_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as at:
        await at.refuses("", "has none yet: ripple pipeline add")
        await at.change(lambda there: there.added(ONE).added(replace(TWO, partitions=2)))
        await at.refuses("", "name one of one, two with --pipeline")
        async with worker(at, "one") as of_one, worker(at, "two") as of_two:
            await comes(lambda: bool(of_one) and of_one[-1].version > 0)
            await comes(lambda: bool(of_two) and of_two[-1].version > 0)
            assert len(of_one[-1].owned_by("w1")) == 4
            assert len(of_two[-1].owned_by("w1")) == 2
            status = status_from_bytes(await at.ask("two"))
            assert [(one.id, one.partitions) for one in status.members] == [("w1", 2)]
            listed = pipelines_from_bytes(await at.ask("", methods.PIPELINES))
            assert listed == await at.record.newest()

            _, probes, metrics = await at.addresses()
            page = (
                await page_of(live_world(".").network, metrics, "/metrics", PATIENCE_S)
            ).decode()
            assert 'ripple_coordinator_partitions{pipeline="one"} 4.0' in page
            assert 'ripple_coordinator_worker_partitions{pipeline="two",worker="w1"} 2.0' in page
            health = json.loads(
                await page_of(live_world(".").network, probes, "/health", PATIENCE_S)
            )
            assert health["pipelines"]["one"]["workers"] == 1

            await at.change(
                lambda there: there.changed("two", lambda one: replace(one, is_stopped=True))
            )
            await at.refuses("two", "pipeline two is stopped: ripple pipeline start two")
            await at.change(lambda there: there.removed("two"))
            await at.refuses("two", "the cluster has no pipeline two: it has one")
            assert status_from_bytes(await at.ask("one")).summary[:3] == (1, 1, 4)


async def test_one_that_fails_leaves_the_others_alone(tmp_path: Path) -> None:
    foreign = store_at(place_of(str(tmp_path), "two"))
    await found(foreign, "another", LiveRandom())
    async with running(tmp_path) as at:
        await at.change(lambda there: there.added(ONE).added(TWO))
        await comes(lambda: any("two: the store is that of cluster another" in x for x in at.said))
        async with worker(at, "one") as heard:
            await comes(lambda: bool(heard) and heard[-1].version > 0)
        assert not any(line.startswith("one: the store") for line in at.said)


async def test_an_unreadable_record_stops_nothing(tmp_path: Path) -> None:
    async with running(tmp_path) as at:
        await at.change(lambda there: there.added(ONE))
        async with worker(at, "one") as heard:
            await comes(lambda: bool(heard) and heard[-1].version > 0)
            (tmp_path / "cluster/pipelines/0000000000000002.json").write_bytes(b"torn")
            await comes(lambda: any("pipelines cannot be read" in line for line in at.said))
            assert status_from_bytes(await at.ask("one")).partitions == 4


async def test_a_store_of_one_pipeline_is_refused(tmp_path: Path) -> None:
    await found(store_at(tmp_path), "ripple", LiveRandom())
    with pytest.raises(SettingsError, match="has the cluster of one pipeline: give several"):
        await Running(tmp_path).task


async def test_a_coordinator_of_one_pipeline_refuses_calls_that_name_one() -> None:
    async def answer(request: bytes) -> bytes:
        return request

    async with offered(LiveControl(pipeline="one"), Service({"a": answer})) as channel:
        with pytest.raises(RefusedError, match=NO_PIPELINES):
            await channel.call("a", b"", deadline_s=PATIENCE_S)
