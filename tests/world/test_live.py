"""The live world's clocks, chance and network."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ripple.testing import sim_world
from ripple.world import LiveNetwork, Stream, World, live_world


@pytest.fixture(params=["live", "simulated"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return live_world(tmp_path / "root") if request.param == "live" else sim_world()


def test_monotonic_clock_never_goes_back(world: World) -> None:
    times = [world.clock.monotonic_ns() for _ in range(1000)]
    assert times == sorted(times)
    assert world.clock.now_ns() > 1_600_000_000_000_000_000


def test_chance_stays_within_its_bounds(world: World) -> None:
    assert {world.random.below(3) for _ in range(200)} == {0, 1, 2}
    assert len(world.random.bytes(9)) == 9
    assert world.random.bytes(0) == b""
    assert world.random.bytes(16) != world.random.bytes(16)


def test_safeguards_are_on_until_switched_off(world: World) -> None:
    assert world.guards("digest_check")
    careless = world.without("digest_check").without("lock")
    assert not careless.guards("digest_check")
    assert not careless.guards("lock")
    assert careless.guards("fence")
    assert world.guards("digest_check")


def test_sleep_lets_time_pass(tmp_path: Path) -> None:
    clock = live_world(tmp_path).clock
    started = clock.monotonic_ns()
    asyncio.run(clock.sleep(0.01))
    assert clock.monotonic_ns() - started >= 9_000_000


async def echo(stream: Stream) -> None:
    while data := await stream.read(1000):
        await stream.write(data)


def test_stream_carries_bytes_both_ways() -> None:
    async def main() -> None:
        network = LiveNetwork()
        listener = await network.listen("127.0.0.1:0", echo)
        stream = await network.connect(listener.address)
        assert stream.peer == listener.address
        sent = bytes(range(256)) * 400
        await stream.write(sent)
        stream.finish()
        received = b""
        while data := await stream.read(4096):
            received += data
        assert received == sent
        stream.close()
        stream.close()
        with pytest.raises(ConnectionError):
            await stream.write(b"more")
        listener.close()

    asyncio.run(main())


def test_closed_listener_accepts_no_more() -> None:
    async def main() -> None:
        network = LiveNetwork()
        listener = await network.listen("127.0.0.1:0", echo)
        listener.close()
        await asyncio.sleep(0)
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await network.connect(listener.address)

    asyncio.run(main())


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:x"])
def test_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        asyncio.run(LiveNetwork().connect(address))
