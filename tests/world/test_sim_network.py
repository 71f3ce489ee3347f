"""Faults of the simulated network, seen from both ends."""

from __future__ import annotations

import asyncio

import pytest

from ripple.testing import SimCluster, SimWorld
from ripple.world import StoreError
from tests.world.clusters import Ends, echo, idle, on, serving, simulate, simulated


def test_messages_take_time_and_time_alone() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        cluster.network.latency_ms_max = 1000
        started = cluster.loop.time()
        await ends.in_a(ends.at_a.write(b"abc"))
        assert cluster.loop.time() - started < 0.01
        assert await ends.in_b(ends.at_b.read(3))
        assert 0.01 < cluster.loop.time() - started < 1.3

    for seed in range(5):
        simulate(scenario, seed)


def test_order_holds_within_a_connection_and_not_between_two() -> None:
    overtaken = 0

    async def scenario(cluster: SimCluster, seed: int) -> None:
        heard: list[bytes] = []

        async def serve(stream: object) -> None:
            data = b""
            while more := await stream.read(100):
                data += more
                heard.append(more)
            assert data == b"0123456789" * 5

        cluster.host("b").start(serving("b:9000", serve))

        async def main(world: SimWorld) -> None:
            streams = [await world.network.connect("b:9000") for _ in range(2)]
            for digit in b"0123456789" * 5:
                for stream in streams:
                    await stream.write(bytes([digit]))
                await world.clock.sleep(0.001)
            for stream in streams:
                stream.close()
            await world.clock.sleep(60)

        cluster.host("a").start(main)
        await cluster.host("a").ended()
        nonlocal overtaken
        # In step, each digit would come twice before the next one.
        overtaken += b"".join(heard) != bytes(d for d in b"0123456789" * 5 for _ in "ab")

    for seed in range(5):
        simulate(scenario, seed)
    assert overtaken


def test_messages_held_back_by_a_cut_arrive_after_it() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        cluster.network.cut("a", "b")
        await ends.in_a(ends.at_a.write(b"abc"))
        with pytest.raises(TimeoutError):
            await ends.in_b(ends.at_b.read(3), 60)
        cluster.network.heal("b", "a")
        assert await ends.in_b(ends.at_b.read(1), 65) == b"a"

    simulate(scenario, 1)


@simulated
async def test_one_way_cut_leaves_the_other_way_and_breaks_the_unheard_side(
    cluster: SimCluster,
) -> None:
    ends = Ends(cluster)
    await ends.connect()
    cluster.network.cut_one_way("a", "b")
    await ends.in_b(ends.at_b.write(b"to a"))
    assert await ends.in_a(ends.at_a.read(1), 5) == b"t"
    # a cannot say that it has heard: b sends again until it gives up.
    with pytest.raises(ConnectionError, match="no answer"):
        await ends.in_b(ends.at_b.read(1), 1000)
    # a has nothing to say and never learns of it.
    while len(await ends.in_a(ends.at_a.read(9))) == 0:
        pass
    with pytest.raises(TimeoutError):
        await ends.in_a(ends.at_a.read(9), 3600)


@simulated
async def test_long_cut_breaks_the_writer_and_not_the_reader(cluster: SimCluster) -> None:
    ends = Ends(cluster)
    await ends.connect()
    cluster.network.cut("a", "b")
    await ends.in_a(ends.at_a.write(b"abc"))
    reading = asyncio.ensure_future(ends.in_b(ends.at_b.read(3), 7200))
    with pytest.raises(ConnectionError, match="no answer"):
        await ends.in_a(ends.at_a.read(3), 1000)
    with pytest.raises(ConnectionError):
        await ends.in_a(ends.at_a.write(b"more"))
    cluster.network.heal()
    with pytest.raises(TimeoutError):
        await reading


@simulated
async def test_after_a_writer_gave_up_only_an_error_arrives_on_its_connection(
    cluster: SimCluster,
) -> None:
    ends = Ends(cluster)
    await ends.connect()
    cluster.network.cut("a", "b")
    await ends.in_a(ends.at_a.write(b"first"))
    await asyncio.sleep(600)
    await ends.in_a(ends.at_a.write(b"second"))
    with pytest.raises(ConnectionError, match="no answer"):
        await ends.in_a(ends.at_a.read(1), 400)
    cluster.network.heal()
    with pytest.raises(TimeoutError):
        await ends.in_b(ends.at_b.read(10), 3600)
    await ends.in_b(ends.at_b.write(b"there?"))
    with pytest.raises(ConnectionResetError):
        await ends.in_b(ends.at_b.read(10), 10)


@simulated
async def test_reading_during_a_long_cut_makes_room_for_the_writer_after_it(
    cluster: SimCluster,
) -> None:
    ends = Ends(cluster)
    await ends.connect()
    writing = asyncio.ensure_future(ends.in_a(ends.at_a.write(bytes(1 << 20)), 7200))
    await asyncio.sleep(5)
    cluster.network.cut_one_way("b", "a")
    total = 0
    while total < 1 << 20:
        total += len(await ends.in_b(ends.at_b.read(1 << 20)))
    await asyncio.sleep(3000)
    assert not writing.done()
    cluster.network.heal()
    await writing


@simulated
async def test_connecting_across_a_cut_gives_up_in_the_end_unless_it_heals(
    cluster: SimCluster,
) -> None:
    cluster.host("b").start(serving("b:9000", echo))
    a = cluster.host("a")
    world = a.start(idle)
    await asyncio.sleep(1)
    for cut in (("a", "b"), ("b", "a")):
        cluster.network.cut_one_way(*cut)
        started = cluster.loop.time()
        with pytest.raises(TimeoutError, match="no answer"):
            await on(a, world.network.connect("b:9000"), 1000)
        assert 126 < cluster.loop.time() - started < 260
        cluster.network.heal()
    cluster.network.cut("a", "b")
    connecting = asyncio.ensure_future(on(a, world.network.connect("b:9000")))
    await asyncio.sleep(20)
    cluster.network.heal()
    await connecting


@simulated
async def test_split_separates_groups_and_no_machine_from_itself(cluster: SimCluster) -> None:
    hosts = [cluster.host(name) for name in ("a", "b", "c")]
    for host in hosts:
        host.start(serving(f"{host.name}:1", echo))
    await asyncio.sleep(1)
    cluster.network.split(["a", "b"], ["c"])
    a, b, c = (host.world.network for host in hosts)
    await on(hosts[0], a.connect("b:1"))
    await on(hosts[2], c.connect("c:1"))
    for host, name in ((hosts[0], "c"), (hosts[2], "a"), (hosts[1], "c")):
        with pytest.raises(TimeoutError):
            await on(host, host.world.network.connect(f"{name}:1"), 20)
    assert b is hosts[1].world.network


@simulated
async def test_loopback_of_another_machine_is_unreachable(cluster: SimCluster) -> None:
    a, b = cluster.host("a"), cluster.host("b")
    b.start(serving("127.0.0.1:1", echo))
    a.start(idle)
    await asyncio.sleep(1)
    await on(b, b.world.network.connect("localhost:1"))
    with pytest.raises(ConnectionRefusedError):
        await on(a, a.world.network.connect("b:1"))
    with pytest.raises(OSError, match="no machine"):
        await on(a, a.world.network.connect("z:1"))
    with pytest.raises(OSError, match="no address of this machine"):
        await on(a, a.world.network.listen("b:2", echo))


@simulated
async def test_writer_waits_for_a_paused_peer_whose_machine_still_takes_connections(
    cluster: SimCluster,
) -> None:
    ends = Ends(cluster)
    await ends.connect()
    ends.b.pause()
    second = await ends.in_a(ends.a.world.network.connect("b:9000"), 5)
    with pytest.raises(TimeoutError):
        await ends.in_a(ends.at_a.write(bytes(1 << 20)), 600)
    with pytest.raises(TimeoutError):
        await ends.in_a(second.read(1), 600)
    ends.b.resume()
    total = 0
    while total < 1 << 20:
        total += len(await ends.in_b(ends.at_b.read(1 << 16)))
    await ends.in_a(ends.at_a.write(b"more"), 5)


def test_killed_peer_looks_like_one_that_has_finished_and_may_have_lost_what_it_wrote() -> None:
    heard: set[int] = set()

    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        cluster.network.latency_ms_max = 100
        await ends.in_a(ends.at_a.write(b"x" * 1000))
        ends.a.kill()
        length = 0
        while data := await ends.in_b(ends.at_b.read(4000), 10):
            length += len(data)
        heard.add(length)

    for seed in range(30):
        simulate(scenario, seed)
    assert len(heard) > 5
    assert max(heard) <= 1000


@simulated
async def test_killed_peer_that_had_not_read_resets_the_connection(cluster: SimCluster) -> None:
    ends = Ends(cluster)
    await ends.connect()
    await ends.in_a(ends.at_a.write(b"unread"))
    await asyncio.sleep(1)
    ends.b.kill()
    with pytest.raises(ConnectionResetError):
        await ends.in_a(ends.at_a.read(1), 10)
    with pytest.raises(ConnectionRefusedError):
        await ends.in_a(ends.a.world.network.connect("b:9000"), 10)


@simulated
async def test_vanished_peer_is_unnoticed_by_mere_readers(cluster: SimCluster) -> None:
    ends = Ends(cluster)
    await ends.connect()
    ends.b.switch_off()
    with pytest.raises(TimeoutError):
        await ends.in_a(ends.at_a.read(1), 7200)
    with pytest.raises(TimeoutError, match="no answer"):
        await ends.in_a(ends.a.world.network.connect("b:9000"), 1000)
    # It is there again and knows nothing of the connection: it says so when asked.
    ends.b.restart()
    with pytest.raises(TimeoutError):
        await ends.in_a(ends.at_a.read(1), 7200)
    await ends.in_a(ends.at_a.write(b"there?"))
    with pytest.raises(ConnectionResetError):
        await ends.in_a(ends.at_a.read(1), 10)


WRITE = 2  # the second effect: connect, then write


@pytest.mark.parametrize("salt", range(4))
def test_planned_reset_breaks_both_ends(salt: int) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        with pytest.raises(ConnectionResetError):
            await ends.in_a(ends.at_a.write(b"abc"))
        with pytest.raises(ConnectionResetError):
            await ends.in_b(ends.at_b.read(3), 5)

    simulate(scenario, plan=f"0.{WRITE}:net_reset:{salt}")


def test_planned_vanishing_silences_a_connection_and_no_other() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        await ends.in_a(ends.at_a.write(b"abc"), 1)
        with pytest.raises(TimeoutError):
            await ends.in_b(ends.at_b.read(3), 60)
        with pytest.raises(ConnectionError, match="no answer"):
            await ends.in_a(ends.at_a.read(3), 1000)
        with pytest.raises(TimeoutError):
            await ends.in_b(ends.at_b.read(3), 3600)
        await ends.in_a(ends.a.world.network.connect("b:9000"), 5)

    simulate(scenario, plan=f"0.{WRITE}:net_vanish:0")


def test_planned_stall_delays_and_loses_nothing() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        await ends.in_a(ends.at_a.write(b"abc"))
        with pytest.raises(TimeoutError):
            await ends.in_b(ends.at_b.read(3), 0.9)
        assert await ends.in_b(ends.at_b.read(1), 31) == b"a"

    simulate(scenario, plan=f"0.{WRITE}:net_stall:0")


@pytest.mark.parametrize("salt", range(6))
def test_planned_cut_heals_by_itself(salt: int) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        ends = Ends(cluster)
        await ends.connect()
        await ends.in_a(ends.at_a.write(b"abc"))
        assert cluster.network.is_cut("a", "b") or cluster.network.is_cut("b", "a")
        assert await ends.in_b(ends.at_b.read(1), 121) == b"a"
        await asyncio.sleep(61)
        assert not cluster.network.is_cut("a", "b")
        assert not cluster.network.is_cut("b", "a")

    simulate(scenario, plan=f"0.{WRITE}:net_cut:{salt}")


def test_planned_refusal_of_a_connection() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        with pytest.raises(ConnectionRefusedError):
            await Ends(cluster).connect()

    simulate(scenario, plan="0.1:net_refused:0")


@simulated
async def test_store_out_of_reach_leaves_a_put_unknown_and_it_may_land_later(
    cluster: SimCluster,
) -> None:
    a = cluster.host("a")
    store = a.start(idle).store
    assert await on(a, store.put_if_absent("first", b"1"))
    cluster.network.cut_one_way("store", "a")
    with pytest.raises(StoreError) as caught:
        await on(a, store.put_if_absent("second", b"2"))
    assert caught.value.done is None
    assert cluster.store.image() == {"first": b"1", "second": b"2"}
    cluster.network.heal()
    cluster.network.cut_one_way("a", "store")
    with pytest.raises(StoreError) as caught:
        await on(a, store.put_if_absent("third", b"3"))
    assert caught.value.done is None
    with pytest.raises(StoreError) as caught:
        await on(a, store.get("first", length_max=1))
    assert caught.value.done is False
    assert "third" not in cluster.store.image()
    cluster.network.heal()
    await asyncio.sleep(120)
    assert cluster.store.image()["third"] == b"3"


def test_put_on_its_way_lands_after_the_death_of_its_sender() -> None:
    landed = 0

    async def scenario(cluster: SimCluster, seed: int) -> None:
        a = cluster.host("a")
        store = a.start(idle).store
        a.world.loop.create_task(store.put_if_absent("late", b"1"))
        await asyncio.sleep(0.001)
        a.kill()
        assert cluster.store.image() == {}
        await asyncio.sleep(10)
        nonlocal landed
        landed += cluster.store.image() == {"late": b"1"}

    for seed in range(10):
        simulate(scenario, seed)
    assert landed
