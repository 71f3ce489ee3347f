"""The contract of networks; each form of the network runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ripple.world import Listener, Network, Stream
from tests.run_by import run_by

Main = Callable[[Network], Awaitable[Any]]
MIB = 1 << 20

in_its_world = run_by(lambda contract, main: contract.run(main), "network")


class NetworkContract:
    """Subclasses say how ``main`` runs in a world with an empty network."""

    def run(self, main: Main) -> None:
        raise NotImplementedError

    @in_its_world
    async def test_stream_carries_bytes_both_ways(self, network: Network) -> None:
        listener = await network.listen("127.0.0.1:0", echo)
        stream = await network.connect(listener.address)
        assert stream.peer == listener.address
        sent = bytes(range(256)) * 400
        await stream.write(sent)
        stream.finish()
        assert await read_all(stream) == sent
        assert await stream.read(10) == b""
        stream.close()
        stream.close()
        with pytest.raises(ConnectionError):
            await stream.write(b"more")
        listener.close()

    @in_its_world
    async def test_read_waits_for_the_first_byte_and_returns_no_more_than_asked(
        self, network: Network
    ) -> None:
        async with pair(network) as (one, other):
            reading = asyncio.ensure_future(one.read(3))
            await asyncio.sleep(0.01)
            assert not reading.done()
            await other.write(b"abcdef")
            read = await reading
            assert 1 <= len(read) <= 3
            other.finish()
            assert read + await read_all(one) == b"abcdef"

    @in_its_world
    async def test_cancelled_read_loses_nothing(self, network: Network) -> None:
        async with pair(network) as (one, other):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(one.read(100), 0.01)
            await other.write(b"abc")
            other.finish()
            assert await read_all(one) == b"abc"

    @in_its_world
    async def test_write_waits_for_a_peer_that_does_not_read(self, network: Network) -> None:
        async with pair(network) as (one, other):
            written = 0

            async def write() -> None:
                nonlocal written
                for _ in range(64):
                    await one.write(bytes(MIB))
                    written += 1
                one.finish()

            writing = asyncio.ensure_future(write())
            await asyncio.sleep(0.5)
            assert written < 64
            assert len(await read_all(other)) == 64 * MIB
            await writing
            assert written == 64

    @in_its_world
    async def test_closed_listener_accepts_no_more_and_keeps_its_connections(
        self, network: Network
    ) -> None:
        listener = await network.listen("127.0.0.1:0", echo)
        stream = await network.connect(listener.address)
        await stream.write(b"before")
        assert await stream.read(1)
        listener.close()
        listener.close()
        await asyncio.sleep(0.01)
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await network.connect(listener.address)
        await stream.write(b"after")
        stream.finish()
        assert (await read_all(stream)).endswith(b"after")
        stream.close()

    @in_its_world
    async def test_address_without_listener_refuses(self, network: Network) -> None:
        listener = await network.listen("127.0.0.1:0", echo)
        listener.close()
        await asyncio.sleep(0.01)
        with pytest.raises(ConnectionRefusedError):
            await network.connect(listener.address)

    @in_its_world
    async def test_address_that_is_taken_is_refused(self, network: Network) -> None:
        listener = await network.listen("127.0.0.1:0", echo)
        with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
            await network.listen(listener.address, echo)
        listener.close()

    @in_its_world
    async def test_end_of_serve_closes_the_connection(self, network: Network) -> None:
        async def greet(stream: Stream) -> None:
            await stream.write(b"hello")

        listener = await network.listen("127.0.0.1:0", greet)
        stream = await network.connect(listener.address)
        assert await read_all(stream) == b"hello"
        stream.close()
        listener.close()

    @in_its_world
    async def test_connection_error_of_serve_ends_one_connection_only(
        self, network: Network
    ) -> None:
        async def serve(stream: Stream) -> None:
            if await stream.read(1) == b"x":
                raise ConnectionResetError
            await stream.write(b"well")

        listener = await network.listen("127.0.0.1:0", serve)
        well, broken = [await network.connect(listener.address) for _ in range(2)]
        await broken.write(b"x")
        assert await read_all(broken) == b""
        await well.write(b"y")
        assert await read_all(well) == b"well"
        for each in (well, broken):
            each.close()
        listener.close()

    @in_its_world
    async def test_writing_to_a_peer_that_has_closed_fails_in_the_end(
        self, network: Network
    ) -> None:
        async with pair(network) as (one, other):
            other.close()
            assert await one.read(1) == b""
            with pytest.raises(ConnectionError):
                await write_on(one)

    @in_its_world
    async def test_close_beside_a_write_that_waits_ends_it(self, network: Network) -> None:
        async with pair(network) as (one, other):
            writing = asyncio.ensure_future(one.write(bytes(64 * MIB)))
            await asyncio.sleep(0.05)
            assert not writing.done()
            other.close()
            one.close()
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(writing, 10)

    @pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:x"])
    @in_its_world
    async def test_address_without_host_or_port_is_refused(
        self, network: Network, address: str
    ) -> None:
        with pytest.raises(ValueError, match="host:port"):
            await network.connect(address)
        with pytest.raises(ValueError, match="host:port"):
            await network.listen(address, echo)


async def echo(stream: Stream) -> None:
    while data := await stream.read(1000):
        await stream.write(data)


async def read_all(stream: Stream) -> bytes:
    received = []
    while data := await stream.read(1 << 16):
        received.append(data)
    return b"".join(received)


async def write_on(stream: Stream) -> None:
    for _ in range(100):
        await stream.write(b"in vain")
        await asyncio.sleep(0.01)


class pair:  # noqa: N801 - used as a function
    """Two ends of one connection, closed at the end."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._over = asyncio.Event()
        self._accepted: asyncio.Queue[Stream] = asyncio.Queue()

    async def __aenter__(self) -> tuple[Stream, Stream]:
        self._listener: Listener = await self._network.listen("127.0.0.1:0", self._serve)
        self._one = await self._network.connect(self._listener.address)
        return self._one, await self._accepted.get()

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        self._one.close()
        self._listener.close()
        await asyncio.sleep(0.01)

    async def _serve(self, stream: Stream) -> None:
        self._accepted.put_nowait(stream)
        await self._over.wait()
