"""A network in memory, on which connections are slow, break, and go silent."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from typing import TYPE_CHECKING

from ripple.testing.sim.paths import Paths, Track
from ripple.testing.sim.stream import SimStream, cut
from ripple.testing.sim.tls import Identity, SimTls, load
from ripple.world import addresses
from ripple.world.errors import TlsError
from ripple.world.seats import Bounds, Seats

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.disk import SimDisk
    from ripple.testing.sim.effects import Effects, Trace
    from ripple.testing.sim.faults import Fault
    from ripple.testing.sim.loop import SimLoop
    from ripple.world.ports import Stream
    from ripple.world.tls import Tls

CONNECT_SECONDS_MAX = 127.0  # how long Linux tries
PORT_FIRST = 49152
LOOPBACK = ("localhost", "127.0.0.1", "::1")
ANY = ("0.0.0.0", "::")  # noqa: S104 - nothing is bound


class SimNetwork(Paths):
    """The network of a simulated world; a scenario cuts and heals it.

    Machines are found by name. :meth:`of` gives a process's view, which is the port.
    """

    def __init__(self, loop: SimLoop, chance: Chance, trace: Trace) -> None:
        super().__init__(loop, chance, trace)
        self.machines: dict[str, SimPort] = {}

    def of(
        self,
        machine: str,
        *,
        effects: Effects,
        loop: SimLoop,
        disk: SimDisk,
        failed: Callable[[Exception], None],
    ) -> SimPort:
        """Return the network as a new process on a machine sees it.

        ``failed`` is called with errors of tasks that serve connections.
        """
        self.machines[machine] = SimPort(
            self, machine, effects=effects, loop=loop, disk=disk, failed=failed
        )
        return self.machines[machine]


class SimPort:
    """The network as one incarnation of a process sees it."""

    def __init__(
        self,
        paths: SimNetwork,
        machine: str,
        *,
        effects: Effects,
        loop: SimLoop,
        disk: SimDisk,
        failed: Callable[[Exception], None],
    ) -> None:
        self.machine = machine
        self.effects = effects
        self._paths = paths
        self._loop = loop
        self._disk = disk
        self.failed = failed
        self._listeners: dict[int, SimListener] = {}
        self._streams: list[SimStream] = []
        self._port_next = PORT_FIRST

    # What the port promises.

    async def listen(
        self,
        address: str,
        serve: Callable[[Stream], Awaitable[None]],
        *,
        tls: Tls | None = None,
        bounds: Bounds | None = None,
    ) -> SimListener:
        host, port = addresses.parts(address)
        if host not in (self.machine, *LOOPBACK, *ANY):
            raise OSError(errno.EADDRNOTAVAIL, "is no address of this machine", address)
        if port in self._listeners:
            raise OSError(errno.EADDRINUSE, "is in use", address)
        secured = None if tls is None else SimTls(self._disk, tls)
        listener = SimListener(self._listeners, host, port or self._free_port(), serve, secured)
        listener.seats = Seats(bounds or Bounds())
        self._listeners[listener.port] = listener
        return listener

    async def connect(self, address: str, *, tls: Tls | None = None) -> SimStream:
        host, port = addresses.parts(address)
        target = self.machine if host in LOOPBACK else host
        if target not in self._paths.machines:
            raise OSError(errno.EHOSTUNREACH, "is no machine of this world", address)
        shown = None if tls is None else load(self._disk, tls)
        track, back = Track(self.machine, target), Track(target, self.machine)

        def fail(fault: Fault, chance: Chance) -> None:
            if fault.kind == "net_refused":
                raise _refused(address)
            cut(self._paths, track, chance)

        self.effects.run("net_connect", address, lambda: None, fail)
        answered: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()

        def settle(answer: OSError | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        def give_up() -> None:
            settle(TimeoutError(errno.ETIMEDOUT, "no answer (simulated)", address))

        def arrive() -> None:
            listener = self._paths.machines[target].listener(port, self.machine)
            if listener is None:
                answer: OSError | None = _refused(address)
            else:
                name = host if tls is None or not tls.peer else tls.peer
                answer = listener.misfit(address, shown, name)
            self._paths.carry(back, lambda: settle(answer), give_up, CONNECT_SECONDS_MAX)

        self._paths.carry(track, arrive, give_up, CONNECT_SECONDS_MAX)
        refusal = await answered
        if refusal is not None:
            raise refusal
        return self._open(address, track, back, shown)

    # What the other side asks.

    def listener(self, port: int, source: str) -> SimListener | None:
        """Return the listener for connections of another machine on a port."""
        listener = self._listeners.get(port)
        if listener is None or (listener.host in LOOPBACK and source != self.machine):
            return None
        return listener

    def accept(self, stream: SimStream, port: int, source: str, shown: Identity | None) -> None:
        """Let a connection be served, or refuse it where no listener accepts it."""
        listener = self.listener(port, source)
        if listener is None or self.effects.crash is not None or not listener.accepts(shown):
            stream.refuse()
            return
        seat = listener.seats.take(source)
        if seat is None:
            stream.refuse()
            return
        seat.end, stream.settled = stream.close, partial(listener.seats.settle, seat)
        self._add(stream)
        serving = self._loop.create_task(self._serve(stream, listener.serve))
        serving.add_done_callback(lambda _: listener.seats.leave(seat))

    def die(self, *, vanishes: bool) -> None:
        """End all connections, as the machine of a dead process does, or as it vanishes."""
        self._listeners.clear()
        for stream in self._streams:
            stream.abandon(vanishes=vanishes)

    def _open(self, address: str, track: Track, back: Track, shown: Identity | None) -> SimStream:
        """Return this end of a new connection; the other end learns of it before any byte."""
        target = self._paths.machines[track.target]
        host, port = addresses.parts(address)
        here = addresses.joined(host if host in LOOPBACK else self.machine, self._free_port())
        near = SimStream(f"{here}>{address}", address, self._paths, self.effects, track)
        far = SimStream(f"{address}>{here}", here, self._paths, target.effects, back)
        near.other, far.other = far, near
        near.is_secured = far.is_secured = shown is not None
        if shown is not None:  # as if each listener had a certificate of its own
            near.binding = far.binding = address
        self._add(near)
        self._paths.carry(track, lambda: target.accept(far, port, self.machine, shown))
        return near

    async def _serve(self, stream: SimStream, serve: Callable[[Stream], Awaitable[None]]) -> None:
        try:
            await serve(stream)
        except ConnectionError:
            pass  # as the port says: it ends this connection only
        except Exception as error:  # any error of a service is one of the run
            self.failed(error)
        finally:
            stream.close()

    def _add(self, stream: SimStream) -> None:
        self._streams = [each for each in self._streams if not each.is_over]
        self._streams.append(stream)

    def _free_port(self) -> int:
        self._port_next += 1
        return self._port_next - 1


class SimListener:
    """An address that accepts connections."""

    def __init__(
        self,
        listeners: dict[int, SimListener],
        host: str,
        port: int,
        serve: Callable[[Stream], Awaitable[None]],
        secured: SimTls | None,
    ) -> None:
        self.host = host
        self.port = port
        self.address = addresses.joined(host, port)
        self.serve = serve
        self.seats = Seats(Bounds())
        self._secured = secured
        self._listeners = listeners

    def misfit(self, address: str, shown: Identity | None, name: str) -> TlsError | None:
        """Return why a client, as ``shown`` and to ``name``, gives up when it is answered.

        That it is refused itself it learns only later.
        """
        if shown is None:
            return None
        if self._secured is None:
            return TlsError(address, "it does not speak TLS 1.3 with us (simulated)")
        reason = shown.misfit(self._secured.identity(), name)
        return TlsError(address, f"its certificate does not fit: {reason}") if reason else None

    def accepts(self, shown: Identity | None) -> bool:
        """Return whether a client with this identity is served."""
        if self._secured is None:
            return shown is None
        return shown is not None and not self._secured.identity().misfit(shown)

    def close(self) -> None:
        if self._listeners.get(self.port) is self:
            del self._listeners[self.port]


def _refused(address: str) -> ConnectionRefusedError:
    return ConnectionRefusedError(errno.ECONNREFUSED, "refused (simulated)", address)
