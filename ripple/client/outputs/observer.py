"""Subscribes to outputs of a running cluster, over one connection to each owning process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Self

from ripple.client.outputs.discovery import AccessDeniedError, Endpoints
from ripple.client.outputs.subscription import OutputSubscription
from ripple.core.errors import InputError
from ripple.exchange.connection import speak
from ripple.exchange.edges import events_name, shown_name
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.session import Session
from ripple.exchange.subscription import Subscription
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.world import addresses
from ripple.world.together import called_off

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.client.outputs.discovery import Endpoint
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Edge, Stream
    from ripple.exchange.peer_channel import PeerChannel
    from ripple.exchange.subscription import CreditReceipt
    from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow
    from ripple.world.ports import World
    from ripple.world.tls import Tls

CONNECT_S = 5.0
PAUSE_S = 0.2
LOOK_S = 1.0
FOUND_S = 10.0
REFUSED_S = 10  # a coordinator that starts refuses until it has read its store


class Observer:
    """A read-only external client of a cluster's outputs.

    When a worker dies, its partitions stand still until the next owner reaches their cut, and
    continue from there: a cut never goes back. An uncommitted subscription restarts instead with
    the next owner's table, at its cut.
    """

    def __init__(
        self,
        world: World,
        find: Callable[[], Awaitable[Endpoints]],
        *,
        tls: Tls | None = None,
        insecure: bool = False,
        limits: ExchangeLimits | None = None,
        is_composed: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Connect to nothing yet. find: returns the endpoints of partitions; see ``found_by``.

        insecure: allow plaintext connections beyond this machine. is_composed: whether publishers
        merge the changes between two calls, each row once; overrides the credit of ``limits``.
        say: a listener for connections and failures.
        """
        assert world.network is not None
        self.places = Endpoints()
        self.name = f"observer-{world.random.bytes(6).hex()}"
        self._network, self._clock = world.network, world.clock
        self._find = find
        self._tls, self._insecure = tls, insecure
        self._limits = limits or ExchangeLimits()
        if is_composed:
            self._limits = replace(self._limits, credit_rows=1)
        self._say = say
        self._turn = 0
        self._edges: dict[str, Edge] = {}  # by name on the wire, as the processes offer them
        self._sessions: dict[str, Session] = {}
        self._followings: dict[str, tuple[Edge, Subscription]] = {}
        self._ways: dict[str, asyncio.Task[None]] = {}
        self._looking = asyncio.Event()
        self._learned = asyncio.Event()
        self._stopping = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._refused: tuple[int, str] | None = None  # since when, and why

    async def __aenter__(self) -> Self:
        """Find the endpoints. Raises ConnectionError if no coordinator answers."""
        self.places = await self._find()
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        self._stopping.set()
        assert self._running is not None
        tasks = [self._running, *self._ways.values()]
        self._running.cancel()
        if self._ways:
            await asyncio.wait(self._ways.values(), timeout=LOOK_S)
        await called_off(*tasks)

    # --- subscriptions ---

    @property
    def outputs(self) -> dict[str, Edge]:
        """The outputs that processes have offered so far, by name."""
        shown = (edge for edge in self._edges.values() if not edge.is_uncommitted)
        return dict(sorted((edge.output, edge) for edge in shown if edge.output is not None))

    async def known(self, timeout_s: float = FOUND_S) -> dict[str, Edge]:
        """Return the outputs, once a process has offered them.

        Raises ConnectionError if none has after ``timeout_s``.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._edges:  # connected processes may offer none
                    self._learned.clear()
                    await self._learned.wait()
        if not self._edges:
            asked = ", ".join(f"{name} at {at}" for name, at in self.places.processes.items())
            does = "offers one" if self._sessions else "answers"
            raise ConnectionError(
                f"no outputs available: none of {asked} {does}"
                if asked
                else "no outputs available: no process owns a partition"
            )
        return self.outputs

    async def follow(
        self, output: str, timeout_s: float = FOUND_S, *, uncommitted: bool = False
    ) -> OutputSubscription:
        """Subscribe to an output. Raises InputError for an unknown output.

        uncommitted: receive changes as they are computed, before a sink has committed them. When a
        partition changes its owner, uncommitted changes are taken back: the rows are the new
        owner's, and the cut may be earlier.
        """
        edges = await self.known(timeout_s)
        if output not in edges:
            meant = get_close_matches(output, edges, n=1)
            known = f"they are {', '.join(edges) or 'none'}"
            hint = f"did you mean {meant[0]}?" if meant else known
            raise InputError(f"no output {output!r}: {hint}")
        if edges[output].is_events and uncommitted:
            raise InputError(
                f"output {output!r} has events, which are shown once they are committed: follow "
                "it without uncommitted"
            )
        name = self._name_of(output, uncommitted=uncommitted)
        if name not in self._edges:
            raise InputError(f"output {output!r} has no uncommitted changes: workers are older")
        if name in self._followings:
            raise InputError(f"output {output!r} has a subscription already")
        edge, arrived = self._edges[name], asyncio.Event()
        owners = self._owners(edge)
        following = Subscription(
            edge,
            0,
            len(owners),
            limits=self._limits,
            turns=self._next_turn,
            wake=arrived.set,
            refresh=self._refresh,
        )
        self._followings[name] = edge, following

        def place_of(number: int) -> str:
            place = self._owners(edge)[number]
            return "" if place is None else place.process

        following.start()
        return OutputSubscription(output, following, len(owners), arrived, place_of)

    def leave(self, output: str, *, uncommitted: bool = False) -> None:
        """End a subscription."""
        found = self._followings.pop(self._name_of(output, uncommitted=uncommitted), None)
        if found is not None:
            found[1].end()

    def _name_of(self, output: str, *, uncommitted: bool) -> str:
        """Return an output's name on the wire."""
        name = events_name(output)
        return name if name in self._edges else shown_name(output, uncommitted=uncommitted)

    @property
    def refusal(self) -> str:
        """Why coordinators refuse access, "" if they do not: check the token."""
        since_ns, why = self._refused or (self._clock.monotonic_ns(), "")
        is_lasting = self._clock.monotonic_ns() - since_ns >= REFUSED_S * 1_000_000_000
        return why if is_lasting else ""

    @property
    def connected(self) -> frozenset[str]:
        """The connected processes."""
        return frozenset(self._sessions)

    # --- connections ---

    async def _run(self) -> None:
        while True:
            self._looking.clear()
            for process in self.places.processes:
                channel = self._ways.get(process)
                if channel is None or channel.done():
                    self._ways[process] = asyncio.create_task(self._keep(process))
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._looking.wait()
            await self._find_again()
            self._refresh()

    async def _find_again(self) -> None:
        try:
            self.places = await self._find()
        except AccessDeniedError as error:
            since_ns, _ = self._refused or (self._clock.monotonic_ns(), "")
            if self._refused is None:
                self._say(str(error))
            self._refused = since_ns, str(error)
        except ConnectionError:
            pass  # the last endpoints may still be valid
        else:
            self._refused = None

    async def _keep(self, process: str) -> None:
        """Connect, again and again, as long as the process owns a partition."""
        while (address := self.places.processes.get(process)) and not self._stopping.is_set():
            why = await self._connect(process, address)
            if not self._stopping.is_set():
                self._say(f"{process} at {address}: {why}")
            self._looking.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_S):
                    await self._stopping.wait()

    async def _connect(self, process: str, address: str) -> str:
        """Run a connection until it ends; return the reason."""
        try:
            addresses.check_secured(address, self._tls, insecure=self._insecure)
            async with asyncio.timeout(CONNECT_S):
                stream = await self._network.connect(address, tls=self._tls)
        except TimeoutError:
            return f"no answer within {CONNECT_S:g} s"
        except (OSError, ValueError) as error:
            return str(error)
        dirty = asyncio.Event()
        session = Session(
            self.name,
            {},
            self,
            limits=self._limits,
            now_ns=self._clock.monotonic_ns(),
            dirty=dirty.set,
            expects=process,
            observes=True,
            credential=self.places.credential,
        )
        try:
            return await speak(
                stream,
                session,
                self._clock,
                dirty=dirty,
                stopping=self._stopping,
                opened=lambda: self._say(f"connected to {process} at {address}"),
            )
        finally:
            stream.close()

    def _refresh(self) -> None:
        """Route each stream to the current owner of its partition."""
        for edge, following in self._followings.values():
            for number, place in enumerate(self._owners(edge)):
                channel = None if place is None else self._sessions.get(place.process)
                following.route(number, channel, 0 if place is None else place.epoch)

    def _owners(self, edge: Edge) -> tuple[Endpoint | None, ...]:
        stages = self.places.stages
        return stages[edge.stage] if edge.stage < len(stages) else ()

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn

    # --- callbacks of a session ---

    def opened(self, session: Session, peer: str) -> None:
        """Add a connection."""
        self._sessions[peer] = session
        self._edges |= session.edges
        self._learned.set()
        self._refresh()

    def closed(self, session: Session) -> None:
        """Remove a connection."""
        if self._sessions.get(session.peer) is session:
            del self._sessions[session.peer]
        for _, following in self._followings.values():
            following.lost(session)

    def room(self) -> None:
        """Do nothing: only messages are sent."""

    def received(self, channel: PeerChannel, message: Follow | Unfollow | Release) -> None:
        """Refuse: an observer publishes nothing."""
        del channel, message
        raise RemoteProtocolError("an observer publishes no outputs")

    def granted(self, channel: PeerChannel, stream: Stream, turn: int, rows: int) -> None:
        """Do nothing."""

    def arrived(
        self, channel: PeerChannel, stream: Stream, turn: int, epoch: int, changes: EdgeChanges, *,
        start: int,
        more: bool, receipt: CreditReceipt | None,
    ) -> None:  # fmt: skip
        """Handle a message of a partition."""
        for edge, following in self._followings.values():
            if edge.name == stream.edge and stream.sender < len(self._owners(edge)):
                following.arrived(
                    channel, stream.sender, turn, epoch, changes, start=start, more=more,
                    receipt=receipt,
                )  # fmt: skip
                return
        if receipt is not None:
            receipt.done()
