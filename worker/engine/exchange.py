"""The exchange port of a process: one connection with each process that it exchanges data with."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.core.credentials import Credentials, Side
from ripple.core.errors import RippleError
from ripple.core.events import EventListener, PeerConnected, PeerLost, no_listener
from ripple.exchange.connection import speak
from ripple.exchange.exchange import Exchange
from ripple.world import addresses
from ripple.world.pauses import Pauses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.exchange.exchange import Route
    from ripple.exchange.limits import ExchangeLimits
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Clock, Listener, Network, Stream, World
    from ripple.world.tls import Tls

CONNECT_S = 5.0
PAUSE_S = 0.1
PAUSE_MAX_S = 1.0  # most absent peers are restarting, which takes a second or two
STEADY_S = 1.0
START_S = 3.0  # a process that starts listens once it has loaded everything
REPORT_AGAIN_S = 30.0
WHY_LENGTH_MAX = 300  # between log entries about unknown peers
FREE_S = 5.0  # a port may be in use by a process that ends for so long
LOOK_S = 1.0  # period at which routes are checked if no change was notified


class ExchangePort:
    """Connects the partitions of a process with those of others.

    Of two processes, the one with the lesser name connects, as long as one of its partitions has an
    edge with one of the other's. Partitions are added to ``exchange``; ``refresh`` notifies that
    partitions have moved.
    """

    def __init__(
        self,
        world: World,
        process: str,
        plan: Plan,
        routes: Callable[[int, int], Route | None],
        senders: Callable[[int], int],
        *,
        address: str,
        key: Callable[[], Awaitable[bytes]],
        tls: Tls | None = None,
        insecure: bool = False,
        limits: ExchangeLimits | None = None,
        emit: EventListener = no_listener,
    ) -> None:
        """Speak for ``process`` and listen at ``address``; routes, senders: as of Exchange.

        key: returns the cluster's key, by which its processes authenticate; raises RippleError
        while it is unknown. insecure: whether plain bytes may leave the machine. Raises ValueError
        for an invalid address, or a remote one without TLS.
        """
        addresses.check_secured(address, tls, insecure=insecure)
        assert world.network is not None
        self._network = world.network
        self._clock, self._random = world.clock, world.random
        self._tls, self._insecure = tls, insecure
        self._emit = emit
        self._key = key
        self._credentials: Credentials | None = None
        self._wanted = asyncio.Event()
        self._stopping = asyncio.Event()
        self._listen_at = address
        self._listener: Listener | None = None
        self._served: dict[asyncio.Task[Any], None] = {}
        self._strangers, self._report_again_ns = 0, 0
        self._ways: dict[str, asyncio.Task[None]] = {}
        self.exchange = Exchange(
            process, plan, routes, senders, limits=limits, changed=self._wanted.set
        )

    @property
    def address(self) -> str:
        """The address that it listens at, with the actual port in place of 0."""
        assert self._listener is not None, "it does not listen yet"
        return self._listener.address

    async def open(self) -> None:
        """Listen. Raises OSError."""
        self._listener = await self._network.listen(self._listen_at, self._accept, tls=self._tls)

    def refresh(self) -> None:
        """Check again where all partitions are."""
        self.exchange.refresh()
        self._wanted.set()

    async def run(self) -> None:
        """Connect with the partitions' peers, for ever; on cancellation, say goodbye to all."""
        try:
            while True:
                self._wanted.clear()
                self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._wanted.wait()
        finally:
            await self._close()

    def _look(self) -> None:
        peers = self.exchange.peers()
        for peer, way in list(self._ways.items()):
            if peer not in peers or way.done():
                way.cancel()
                del self._ways[peer]
            if way.done() and not way.cancelled() and (error := way.exception()) is not None:
                self._emit(PeerLost(peer, f"{type(error).__name__}: {error}"))
        for peer in peers:
            if peer > self.exchange.process and peer not in self._ways:
                self._ways[peer] = asyncio.create_task(self._keep(peer))

    async def _keep(self, peer: str) -> None:
        """Keep a connection with a process open, with back-off."""
        pauses = Pauses(self._clock.monotonic_ns, PAUSE_S, PAUSE_MAX_S, steady_s=STEADY_S)
        start_ns = self._clock.monotonic_ns() + int(START_S * 1e9)
        while True:
            pauses.begin()
            why = await self._connect(peer, pauses.works)
            now_ns = self._clock.monotonic_ns()
            if why is None:
                start_ns = now_ns + int(START_S * 1e9)
            elif now_ns >= start_ns:
                start_ns = now_ns + int(REPORT_AGAIN_S * 1e9)
                self._emit(PeerLost(peer, why))
            # jitter, so that peers do not all return at once
            share = 0.5 + self._random.below(1024) / 2048
            await self._clock.sleep(pauses.next_s() * share)

    async def _connect(self, peer: str, works: Callable[[], None]) -> str | None:
        """Connect, and run the session to its end; return why there was no connection."""
        address = self.exchange.peers().get(peer)
        if address is None or self.exchange.is_connected(peer):
            return None
        try:
            addresses.check_secured(address, self._tls, insecure=self._insecure)
            async with asyncio.timeout(CONNECT_S):
                stream = await self._network.connect(address, tls=self._tls)
        except TimeoutError:
            return f"{address} does not answer within {CONNECT_S:g} s"
        except (OSError, ValueError) as error:
            return str(error)
        works()
        try:
            await self._speak(stream, peer)
        finally:
            stream.close()
        return None

    async def _accept(self, stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._served[task] = None
        try:
            await self._speak(stream, "")
        finally:
            del self._served[task]

    async def _speak(self, stream: Stream, peer: str) -> None:
        """Carry bytes between a stream and a session until one of them ends; return why.

        peer: the expected process, "" for any.
        """
        try:
            credentials = await self._known()
        except (RippleError, TimeoutError) as error:
            self._emit(PeerLost(peer or stream.peer, f"peers cannot be authenticated: {error}"))
            return
        dirty = asyncio.Event()
        side, binding = Side.CONNECTS if peer else Side.ACCEPTS, stream.binding
        session = self.exchange.session(
            self._clock.monotonic_ns(),
            dirty.set,
            peer,
            credential=credentials.of_process(self.exchange.process, side, binding),
            admits=lambda who, shown: credentials.proven(
                shown, who, side.other, binding, self._now_s()
            ),
            now_s=self._now_s,
        )
        why = await speak(
            stream,
            session,
            self._clock,
            dirty=dirty,
            stopping=self._stopping,
            opened=lambda: self._opened(stream, session.peer),
        )
        if peer or session.peer:
            self._emit(PeerLost(peer or session.peer, why))
        else:
            self._tell_of_stranger(stream.peer, why)

    def _tell_of_stranger(self, address: str, why: str) -> None:
        """Log a rejected peer, at most once every REPORT_AGAIN_S: it may be any program."""
        self._strangers += 1
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._report_again_ns:
            others = f" ({self._strangers - 1} others before)" if self._strangers > 1 else ""
            self._emit(PeerLost(address, f"{why[:WHY_LENGTH_MAX]}{others}"))
            self._strangers, self._report_again_ns = 0, now_ns + int(REPORT_AGAIN_S * 1e9)

    def _opened(self, stream: Stream, peer: str) -> None:
        stream.settle()
        self._emit(PeerConnected(peer))

    async def _known(self) -> Credentials:
        """Return the authenticator of peers. Raises RippleError."""
        if self._credentials is None:
            async with asyncio.timeout(CONNECT_S):
                self._credentials = Credentials(await self._key())
        return self._credentials

    def _now_s(self) -> int:
        return self._clock.now_ns() // 1_000_000_000

    async def _close(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._stopping.set()
        for way in self._ways.values():
            way.cancel()
        tasks = [*self._ways.values(), *self._served]
        if tasks:
            await asyncio.wait(tasks)


async def become_free(network: Network, clock: Clock, address: str) -> None:
    """Wait until an address is free. Raises OSError if it stays in use for too long.

    Processes of a worker that was killed end a moment later.
    """
    until_ns = clock.monotonic_ns() + int(FREE_S * 1e9)
    while True:
        try:
            listener = await network.listen(address, _nobody)
        except OSError:
            if clock.monotonic_ns() >= until_ns:
                raise
            await clock.sleep(PAUSE_S)
        else:
            listener.close()
            return


async def _nobody(_: Stream) -> None:
    pass
