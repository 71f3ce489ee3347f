"""Views in a store: the newest of each other replica, once, and none of replicas that are gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from coordinator.decisions.views import Observation, View
from coordinator.service.archive import GONE_AFTER_S, Archive
from ripple.control.assignment import Stage
from ripple.control.assignment.chain import VERSIONS_KEPT
from ripple.control.assignment.version import empty
from ripple.control.rpc.mapping import RpcError
from ripple.storage.store import CountedStore
from ripple.testing import SimWorld
from ripple.world.errors import StoreError
from tests.world.clusters import in_sim_world


def view(replica: str, number: int) -> View:
    return View(replica, number, ((("w1", 1), Observation(number, was_heard=True)),))


def archive(world: SimWorld, replica: str) -> Archive:
    return Archive(world.store, world.clock, replica)


@in_sim_world
async def test_newest_view_of_each_other_replica_is_read_once(world: SimWorld) -> None:
    one, two = archive(world, "c1"), archive(world, "c2")
    for number in (1, 2):
        await one.write_view(view("c1", number))
    await two.write_view(view("c2", 7))
    assert await world.store.list("views/") == [
        f"views/c1-{2:016d}.view",
        f"views/c2-{7:016d}.view",
    ]
    assert await one.read_views() == (view("c2", 7),)
    assert await one.read_views() == ()
    await two.write_view(view("c2", 8))
    assert await one.read_views() == (view("c2", 8),)
    assert await archive(world, "c3").read_views() == (view("c1", 2), view("c2", 8))


@in_sim_world
async def test_a_view_costs_a_put_and_a_delete_and_a_failed_delete_is_repeated(
    world: SimWorld,
) -> None:
    class Failing(CountedStore):
        fails = False

        async def delete(self, name: str) -> None:
            await super().delete(name)
            if self.fails:
                raise StoreError(f"delete {name}: refused", done=False)

    store = Failing(world.store)
    one = Archive(store, world.clock, "c1")
    for number in (1, 2, 3):
        await one.write_view(view("c1", number))
    assert store.requests == {"put": 3, "get": 0, "list": 0, "delete": 2}
    store.fails = True
    for _ in range(2):
        with pytest.raises(StoreError):
            await one.write_view(view("c1", 4))
    store.fails = False
    await one.write_view(view("c1", 4))
    await one.write_view(view("c1", 5))
    assert store.requests["list"] == 0
    assert await world.store.list("views/") == [f"views/c1-{5:016d}.view"]


@in_sim_world
async def test_view_of_who_is_gone_is_removed_but_not_of_who_goes_on(world: SimWorld) -> None:
    one, two = archive(world, "c1"), archive(world, "c2")
    await two.write_view(view("c2", 1))
    await archive(world, "c3").write_view(view("c3", 1))
    await one.read_views()
    await asyncio.sleep(GONE_AFTER_S / 2)
    await two.write_view(view("c2", 2))
    await one.read_views()
    await asyncio.sleep(GONE_AFTER_S / 2 + 1)
    await one.read_views()
    assert await world.store.list("views/") == [f"views/c2-{2:016d}.view"]
    await two.remove_views()
    assert await world.store.list("views/") == []


@in_sim_world
async def test_view_that_cannot_be_read_is_an_error_as_it_may_say_that_somebody_is_well(
    world: SimWorld,
) -> None:
    await world.store.put_if_absent(f"views/c9-{1:016d}.view", b"\xff")
    await world.store.put_if_absent("views/something.else", b"")
    one = archive(world, "c1")
    for _ in range(2):
        with pytest.raises(RpcError, match=r"ripple\.rpc\.View"):
            await one.read_views()
    await asyncio.sleep(GONE_AFTER_S + 1)
    assert await one.read_views() == (), "until it is old"
    assert await world.store.list("views/") == ["views/something.else"]


@in_sim_world
async def test_a_store_that_deletes_nothing_keeps_nobody_from_reading_and_proposing(
    world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(name: str) -> None:
        raise StoreError(f"delete {name}: refused", done=False)

    one, two = archive(world, "c1"), archive(world, "c2")
    await archive(world, "c0").write_view(view("c0", 1))
    await one.read_views()
    monkeypatch.setattr(world.store, "delete", refuse)
    await asyncio.sleep(GONE_AFTER_S + 1)
    await two.write_view(view("c2", 1))
    assert await one.read_views() == (view("c2", 1),)
    now = empty([Stage("main", 1)])
    for version in range(1, 2 * VERSIONS_KEPT + 3):
        assert await one.propose(replace(now, version=version, cause="a test"))
