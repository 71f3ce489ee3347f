"""Processes that exchange over real sockets of this machine, and how often one is tried."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ripple.core.cut import is_within
from ripple.core.events import Event, PeerConnected, PeerLost
from ripple.engine.machine.follower import Follower
from ripple.exchange.exchange import Route
from ripple.exchange.limits import ExchangeLimits
from ripple.testing import sim_world
from ripple.world import LiveNetwork
from ripple.world.live import live_world
from tests.engine.machine.stage_plans import PLANS, trades
from tests.engine.machine.staged import Spread
from tests.exchange.hosts import key
from tests.exchange.processes import Partition
from tests.patience import PATIENCE_S
from tests.world.certificates import LiveCertificates
from worker.engine import exchange
from worker.engine.exchange import ExchangePort

NAME = "windows-by-venue"


class Live:
    """Partitions of a pipeline in processes that are tasks here."""

    def __init__(
        self,
        folder: Path,
        count: int = 2,
        *,
        secured: bool = False,
        name: str = NAME,
        events: int = 60,
        limits: ExchangeLimits | None = None,
    ) -> None:
        plan = PLANS[name]
        self.spread = Spread(plan, trades(Random(name), events), 2, Random(0))
        self.told: list[Event] = []
        self.places: dict[str, str] = {}
        tls = LiveCertificates(folder).issue("worker") if secured else None
        self.parts = [
            [Partition(stage, number, node) for number, node in enumerate(nodes)]
            for stage, nodes in enumerate(self.spread.nodes)
        ]
        self.ports = [
            ExchangePort(
                live_world(folder), f"p{n}", plan, self.where, lambda stage: len(self.parts[stage]),
                address="localhost:0", key=key, tls=tls, emit=self.told.append, limits=limits,
            )
            for n in range(count)
        ]  # fmt: skip
        for at, part in enumerate(self.all):
            part.process = self.ports[at % count]  # type: ignore[assignment]

    @property
    def all(self) -> list[Partition]:
        return [part for parts in self.parts for part in parts]

    def where(self, stage: int, number: int) -> Route | None:
        return self.route(stage, number)

    def route(self, stage: int, number: int) -> Route | None:
        name = self.parts[stage][number].process.exchange.process
        return Route(name, self.places.get(name, "localhost:1"))

    async def start(self) -> list[asyncio.Task[None]]:
        for port in self.ports:
            await port.open()
            self.places[port.exchange.process] = port.address
        for part in self.all:
            part.start(part.process)
        tasks = [asyncio.create_task(port.run()) for port in self.ports]
        for port in self.ports:
            port.refresh()
        return tasks

    async def work(self) -> None:
        """Read all there is, and let everybody follow."""
        for reader in self.parts[0]:
            reader.node.read(len(reader.node.events))
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for part in self.all:
                    if part.stage:
                        part.take()
                    part.settle()
                if all(self.has_all(part) for part in self.parts[1]):
                    return
                await asyncio.sleep(0.005)

    def has_all(self, part: Partition) -> bool:
        cuts = {
            f"{sender.number}/{name}": offset
            for sender in self.parts[0]
            for name, offset in sender.engine.cut.items()
        }
        return is_within(cuts, part.engine.cut)


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "tls"])
async def test_partitions_follow_each_other_over_sockets(tmp_path: Path, secured: bool) -> None:
    live = Live(tmp_path, 3, secured=secured)
    tasks = await live.start()
    await live.work()

    def connected() -> list[str]:
        return [one.process for one in live.told if isinstance(one, PeerConnected)]

    def is_all_there() -> bool:
        if len(connected()) > 2 * 3:  # a machine stood still; what was under way is lost
            return True
        traffic = [port.exchange.traffic for port in live.ports]
        sent = sum((one.sent_bytes for one in traffic), Counter())
        received = sum((one.received_bytes for one in traffic), Counter())
        return sent == received and min(sent.values()) > 0

    await ended(tasks, is_all_there)
    assert set(connected()) == {"p0", "p1", "p2"}
    assert len(connected()) >= 2 * 3
    assert not [one for one in live.told if isinstance(one, PeerLost) and "error" in one.reason]


async def test_a_really_slow_receiver_gets_each_row_less_often_and_takes_no_memory(
    tmp_path: Path,
) -> None:
    """It looks once in two hundred commits; who sends holds no more than a window for it."""

    limits = ExchangeLimits(credit_rows=8, window_bytes=2000, bundle_rows=8, bundle_bytes=500)
    live = Live(tmp_path, name="by-venue", events=800, limits=limits)
    tasks = await live.start()
    arrived = 0
    for part in live.parts[1]:
        applied = part.following.applied  # type: ignore[union-attr]

        def note(arrival: Any, applied: Any = applied) -> None:
            nonlocal arrived
            arrived += arrival.changes.rows.num_rows
            applied(arrival)

        part.following.applied = note  # type: ignore[method-assign, union-attr]
    held = commits = 0
    while any(len(part.node.events) > part.node.next for part in live.parts[0]):
        for part in live.parts[0]:
            part.node.read(1)
            part.settle()
            commits += 1
        await asyncio.sleep(0)
        held = max(held, *(port.exchange.waiting_bytes for port in live.ports))
        if commits % 400 == 0:
            await asyncio.sleep(0.01)
            for part in live.parts[1]:
                part.take()
                part.settle()
    assert held <= limits.window_bytes + limits.bundle_bytes
    await live.work()
    assert arrived < commits / 5, f"{arrived} rows for {commits} commits"
    for part in live.parts[1]:
        fresh = Follower(live.spread.plan, 1, ["0", "1"], part.number)
        for sender in live.parts[0]:
            fresh.follow(str(sender.number), 1, sender.engine.table_for(part.number))
        fresh.stabilize()
        assert fresh.digests == part.engine.digests
    await ended(tasks, lambda: True)


async def test_a_process_that_does_not_listen_yet_is_told_of_once_it_has_had_time_to_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "START_S", 0.5)

    live = Live(tmp_path)
    await live.ports[0].open()
    for part in live.all:
        part.start(part.process)
    began_s = asyncio.get_running_loop().time()
    task = asyncio.create_task(live.ports[0].run())
    await ended([task], lambda: bool(live.told))
    assert asyncio.get_running_loop().time() - began_s >= 0.5
    assert isinstance(live.told[0], PeerLost)
    assert "Errno 111" in live.told[0].reason


class Lasting:
    """A connection with a process that says nothing, and that ends after so long."""

    peer = "localhost:1"

    binding = ""

    def __init__(self, lasts_s: float) -> None:
        self._lasts_s = lasts_s

    async def read(self, _: int) -> bytes:
        await asyncio.sleep(self._lasts_s)
        return b""

    async def write(self, data: bytes | memoryview) -> None:
        pass

    def close(self) -> None:
        pass


def test_pauses_before_a_process_is_tried_grow_until_it_was_connected_for_a_while() -> None:
    refused, silent, short_s, good_s = 0.0, exchange.CONNECT_S, 0.5, exchange.STEADY_S + 0.1
    lasts_s = [refused, silent, short_s, good_s, good_s, refused, short_s, silent]
    world, began_s = sim_world(), list[float]()

    class Playing:
        async def connect(self, address: str, *, tls: object = None) -> Lasting:
            began_s.append(world.loop.time())
            lasting_s = lasts_s[len(began_s) - 1]
            if lasting_s == refused:
                raise ConnectionRefusedError(address)
            if lasting_s == silent:
                await asyncio.Event().wait()
            return Lasting(lasting_s)

    async def main() -> None:
        port = ExchangePort(
            replace(world, network=Playing()), "p0", PLANS[NAME],
            lambda stage, _: Route(f"p{stage}", "localhost:1"), lambda _: 1,
            address="localhost:0", key=key,
        )  # fmt: skip
        port.exchange.send(0, 0, 1, lambda: None)
        await ended([asyncio.create_task(port.run())], lambda: len(began_s) == len(lasts_s))

    world.loop.run_until_complete(main())
    tries = zip(pairwise(began_s), lasts_s, strict=False)
    found = [after - began - lasted for (began, after), lasted in tries]
    for pause_s, whole_s in zip(found, [0.1, 0.2, 0.4, 0.1, 0.1, 0.2, 0.4], strict=True):
        assert whole_s / 2 - 1e-3 < pause_s < whole_s + 1e-3, found  # of which it takes a share


class Stranger(Lasting):
    """A connection over which comes what is none of ours."""

    async def read(self, length_max: int) -> bytes:
        return b"GET /".ljust(100)[:length_max]


def test_strangers_are_told_of_once_in_a_while_with_their_number() -> None:
    world, told = sim_world(), list[Event]()

    async def main() -> None:
        port = ExchangePort(
            replace(world, network=LiveNetwork()), "p0", PLANS[NAME], lambda *_: None, lambda _: 1,
            address="localhost:0", key=key, emit=told.append,
        )  # fmt: skip
        for _ in range(5):
            await port._accept(Stranger(0))
        await asyncio.sleep(exchange.REPORT_AGAIN_S)
        await port._accept(Stranger(0))

    world.loop.run_until_complete(main())
    first, last = told
    assert isinstance(first, PeerLost)
    assert isinstance(last, PeerLost)
    assert last.reason == f"{first.reason} (4 others before)"


async def test_a_process_that_is_another_one_is_refused(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.ports[1].exchange.process = "somebody"
    live.route = lambda stage, number: Route(f"p{(stage + number) % 2}", live.places["p1"])  # type: ignore[method-assign]
    live.places["p1"] = live.places["somebody"] = ""
    tasks = await live.start()
    live.places["p1"] = live.ports[1].address
    await ended(tasks, lambda: PeerLost("p1", "it is somebody, not p1") in live.told)


async def test_a_process_with_another_plan_is_refused_and_told_why(tmp_path: Path) -> None:
    told: list[Event] = []
    places = {"p0": "localhost:1", "p1": "localhost:1"}
    ports = [
        ExchangePort(
            live_world(tmp_path), f"p{n}", PLANS[name],
            lambda stage, _: Route(f"p{stage}", places[f"p{stage}"]), lambda _: 1,
            address="localhost:0", key=key, emit=told.append,
        )
        for n, name in enumerate(("one-total", "by-venue"))
    ]  # fmt: skip
    for n, port in enumerate(ports):
        await port.open()
        places[f"p{n}"] = port.address
    ports[0].exchange.send(0, 0, 1, lambda: None)
    ports[1].exchange.follow(1, 0, lambda: None)
    tasks = [asyncio.create_task(port.run()) for port in ports]

    def both_know() -> bool:
        lost = [one for one in told if isinstance(one, PeerLost)]
        refused = {one.process for one in lost if "p/1 of topology" in one.reason}
        return "p1" in refused and len(refused) > 1

    await ended(tasks, both_know)
    assert not any(isinstance(one, PeerConnected) for one in told)


def test_plain_bytes_do_not_leave_the_machine_unasked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="without TLS"):
        ExchangePort(
            live_world(tmp_path), "p0", PLANS[NAME], lambda *_: None, lambda _: 1,
            address="0.0.0.0:0", key=key,
        )  # fmt: skip


async def ended(tasks: list[asyncio.Task[None]], holds: Callable[[], bool]) -> None:
    """Wait until it holds, then end the tasks."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
