"""Simulated connections: two ends, which may come to believe different things."""

from __future__ import annotations

import asyncio
import errno
import zlib
from typing import TYPE_CHECKING

from ripple.testing.sim.paths import Track

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.chance import Chance
    from ripple.testing.sim.effects import Effects
    from ripple.testing.sim.faults import Fault
    from ripple.testing.sim.paths import Paths

BUFFER_BYTES_MAX = 1 << 18
STALL_SECONDS_MAX = 30
CUT_SECONDS_MAX = 60


class SimStream:
    """One end of a connection, owned by one incarnation of a process.

    Invariant: ``_out_bytes`` counts bytes written and, as far as this end knows, not yet read.
    A connection is broken for an end when the other end's machine says so or when nothing of it
    was heard in spite of trying; an end that only reads may wait for ever.
    """

    def __init__(self, name: str, peer: str, paths: Paths, effects: Effects, track: Track) -> None:
        self.peer = peer
        self.name = name
        self.other: SimStream | None = None
        self.is_secured = False
        self.binding = ""
        self.settled: Callable[[], None] = lambda: None  # of the listener
        self._paths = paths
        self._effects = effects
        self._track = track
        self._chance: Chance = paths.chance
        self._received = bytearray()
        self._owed_bytes = 0  # read, and the other end does not know it
        self._out_bytes = 0
        self._written = 0
        self._arrived = 0
        self._lost_from: int | None = None  # first byte not handed over at the process's death
        self._has_ended = False  # the peer will write no more
        self._finished = False
        self._closed = False
        self._error: ConnectionError | None = None
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()

    # What the port promises.

    async def read(self, length_max: int) -> bytes:
        while not (self._received or self._has_ended or self._closed or self._error):
            self._readable.clear()
            await self._readable.wait()
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        if not self._received:
            return b""
        length = min(length_max, len(self._received))
        if self._chance.below(4) == 0:  # boundaries mean nothing
            length = 1 + self._chance.below(length)
        data = bytes(self._received[:length])
        del self._received[:length]
        self._owe(length)
        return data

    async def write(self, data: bytes | memoryview) -> None:
        self._check_writable()
        data = bytes(data)
        subject = f"{self.name} {len(data)} {zlib.crc32(data):08x}"

        def tear(chance: Chance) -> None:
            self._send(data[: chance.below(len(data) + 1)])

        self._effects.run("net_write", subject, lambda: self._send(data), self._fail, tear)
        while self._out_bytes > BUFFER_BYTES_MAX and not (self._error or self._closed):
            self._writable.clear()
            await self._writable.wait()
        self._check_writable()

    def settle(self) -> None:
        self.settled()

    def finish(self) -> None:
        if self.is_secured:
            self.close()
        elif not (self._finished or self._closed or self._error or self._effects.crash):
            self._finished = True
            self._paths.carry(self._track, self._the_other().end, self._give_up)

    def close(self) -> None:
        if self._effects.crash is None:
            self._shut()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of this end."""
        return self._closed or self._error is not None

    # The machine, also after the end of the process.

    def refuse(self) -> None:
        """Answer a connection without a listener."""
        if self.is_secured and self._chance.flip():
            self._shut()
        self._closed = True
        self._refuse()

    def abandon(self, *, vanishes: bool) -> None:
        """End a connection after the death of its process, or the loss of its machine.

        Bytes that the process had not yet handed to its machine are lost, and the end that follows
        looks like any other.
        """
        if not self._finished:
            under_way = self._written - self._arrived
            self._lost_from = self._arrived + self._chance.below(under_way + 1)
        if vanishes:
            self._closed = True
        else:
            self._shut()

    def receive(self, data: bytes) -> None:
        """Take arrived bytes; the machine of a dead process refuses them."""
        if self.is_over:
            self._refuse()
            return
        self._received += data
        self._readable.set()
        self._confirm()

    def end(self) -> None:
        """Take note that the peer writes no more."""
        self._has_ended = True
        self._readable.set()
        self._confirm()

    def credit(self, length: int) -> None:
        """Take note of how much the peer has read."""
        self._out_bytes -= length
        self._writable.set()

    def fail(self, error: ConnectionError) -> None:
        """Break this end."""
        if self._error is None and not self._closed:
            self._error = error
            self._received.clear()
        self._readable.set()
        self._writable.set()

    # Sending.

    def _send(self, data: bytes) -> None:
        other = self._the_other()
        self._out_bytes += len(data)
        self._written += len(data)

        def arrive() -> None:
            start, self._arrived = self._arrived, self._arrived + len(data)
            kept = data if self._lost_from is None else data[: max(0, self._lost_from - start)]
            if kept:
                other.receive(kept)

        self._paths.carry(self._track, arrive, self._give_up)

    def _shut(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._error is None:
            if self._received:  # unread: the peer learns that it wrote in vain
                self._refuse()
            elif not self._finished:
                self._paths.carry(self._track, self._the_other().end, self._give_up)
        self._readable.set()
        self._writable.set()

    def _refuse(self) -> None:
        self._paths.carry(self._track, lambda: self._the_other().fail(_reset(self.name)))

    def _owe(self, length: int) -> None:
        self._owed_bytes += length
        if 2 * self._owed_bytes >= BUFFER_BYTES_MAX and not self._closed:
            owed, self._owed_bytes = self._owed_bytes, 0
            self._paths.carry(self._track, lambda: self._the_other().credit(owed))

    def _confirm(self) -> None:
        """Where the peer cannot hear that its bytes have come, it gives up in the end."""
        if self._paths.is_blocked(self._track):
            self._paths.carry(self._track, lambda: None, self._the_other()._give_up)

    def _give_up(self) -> None:
        self._paths.drop(self._track)  # or later bytes would arrive without it
        self.fail(ConnectionAbortedError(errno.ETIMEDOUT, f"{self.name}: no answer (simulated)"))

    def _check_writable(self) -> None:
        if self._error is not None:
            raise type(self._error)(*self._error.args)
        if self._closed or self._finished:
            raise ConnectionResetError(f"the connection to {self.peer} is closed")

    def _the_other(self) -> SimStream:
        assert self.other is not None
        return self.other

    # Faults.

    def _fail(self, fault: Fault, chance: Chance) -> None:
        if fault.kind == "net_reset":
            self._the_other().fail(_reset(self.name))
            self.fail(_reset(self.name))
            self._check_writable()
        elif fault.kind == "net_vanish":
            self._track.dead = self._the_other()._track.dead = True
        elif fault.kind == "net_stall":
            self._paths.carry(self._track, lambda: None)
            self._paths.stall(self._track, 1 + chance.below(STALL_SECONDS_MAX))
        else:
            cut(self._paths, self._track, chance)


def cut(paths: Paths, track: Track, chance: Chance) -> None:
    """Let the way of a track, the way back, or both be cut for a while."""
    which, seconds = chance.below(3), 1 + chance.below(CUT_SECONDS_MAX)
    if which != 0:
        paths.cut_for(track.source, track.target, seconds)
    if which != 1:
        paths.cut_for(track.target, track.source, seconds)


def _reset(name: str) -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, f"{name}: reset by peer (simulated)")
