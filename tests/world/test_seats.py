"""Crowds of silent connections keep no client out."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from ripple.control import event_loop
from ripple.world.live_listening import LiveListening
from ripple.world.live_network import LiveNetwork
from ripple.world.ports import Stream
from ripple.world.seats import Bounds, Seat, Seats
from tests.patience import PATIENCE_S
from tests.world.certificates import LiveCertificates

Run = Callable[[Coroutine[Any, Any, Any]], Any]
BOUNDS = Bounds(most=4, of_address=3, silent=3)


def seated(seats: Seats, address: str, ended: list[str], name: str = "") -> Seat:
    seat = seats.take(address)
    assert seat is not None
    seat.end = lambda: ended.append(name or address)
    return seat


def test_the_oldest_silent_one_of_the_address_that_has_most_goes_first() -> None:
    seats, ended = Seats(BOUNDS), list[str]()
    seated(seats, "honest", ended)
    for name in "ab":
        seated(seats, "many", ended, name)
    seated(seats, "another", ended)
    assert ended == ["a"]
    assert len(seats) == 3


def test_settled_connection_stays_and_an_idle_one_may_be_evicted() -> None:
    seats, ended = Seats(BOUNDS), list[str]()
    first = seated(seats, "x", ended, "first")
    seats.settle(first)
    for name in "abc":
        seat = seated(seats, "y", ended, name)
        seats.settle(seat)
    assert seats.take("z") is None, "all are known"
    assert not ended
    seats.idle(first)
    seated(seats, "z", ended)
    assert ended == ["first"]


def test_an_address_has_its_own_bound() -> None:
    seats, ended = Seats(BOUNDS), list[str]()
    for _ in range(3):
        seats.settle(seated(seats, "x", ended))
    assert seats.take("x") is None
    assert seats.take("y") is not None


def test_ended_connection_leaves_room() -> None:
    seats = Seats(BOUNDS)
    taken = [seats.take("x") for _ in range(3)]
    for seat in taken:
        assert seat is not None
        seats.settle(seat)
        seat.is_over = lambda: True
    assert seats.take("x") is not None
    assert len(seats) == 1


@pytest.fixture
def crowd() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for one in sockets:
        one.close()


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])  # as processes do
@pytest.mark.parametrize("secured", [False, True])
def test_crowd_of_silent_connections_is_bounded(
    secured: bool, run: Run, tmp_path: Path, crowd: list[socket.socket]
) -> None:
    async def echo(stream: Stream) -> None:
        if data := await stream.read(10):
            stream.settle()
            await stream.write(data)
            await stream.read(1)

    async def main() -> None:
        certificates = LiveCertificates(tmp_path)
        tls = certificates.issue("worker") if secured else None
        network = LiveNetwork()
        listener = await network.listen("127.0.0.1:0", echo, tls=tls, bounds=Bounds(8, 6, 4))
        host, _, port = listener.address.rpartition(":")
        at = host, int(port)
        crowd.extend(socket.create_connection(at) for _ in range(20))
        known = await network.connect(listener.address, tls=tls)
        await known.write(b"hello")
        assert await known.read(10) == b"hello"
        crowd.extend(socket.create_connection(at) for _ in range(20))
        for one in crowd:
            one.setblocking(False)
        another = await network.connect(listener.address, tls=tls)
        await another.write(b"again")
        assert await another.read(10) == b"again"
        assert len(listener.seats) <= 6
        while sum(not _has_ended(one) for one in crowd) > 4:  # the others' connections are over
            await asyncio.sleep(0.01)
        await known.write(b"x")  # who is known was not ended by the crowd
        assert await known.read(1) == b""
        listener.close()
        for one in (known, another, *crowd):
            one.close()
        while len(listener.seats):
            await asyncio.sleep(0.01)

    run(asyncio.wait_for(main(), PATIENCE_S))


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])
def test_many_connections_at_once_are_bounded(run: Run, crowd: list[socket.socket]) -> None:
    async def read(stream: Stream) -> None:
        await stream.read(1)

    async def main() -> None:
        listener = await LiveNetwork().listen("127.0.0.1:0", read, bounds=Bounds(8, 6, 4))
        host, _, port = listener.address.rpartition(":")
        at = host, int(port)
        crowd.extend(socket.create_connection(at) for _ in range(20))  # before any is accepted
        for one in crowd:
            one.setblocking(False)
        there = len(crowd)
        while there > len(listener.seats) or not there:
            await asyncio.sleep(0.01)
            there = sum(not _has_ended(one) for one in crowd)
        listener.close()

    run(asyncio.wait_for(main(), PATIENCE_S))


def _has_ended(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_an_address_of_another_machine_is_refused_with_any_port() -> None:
    listening = LiveListening(lambda _: asyncio.Protocol())
    with pytest.raises(OSError, match=r"192\.0\.2\.1|assign requested"):
        await listening.open("192.0.2.1:0")
