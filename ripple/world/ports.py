"""The ports: all effects of Ripple on the outside, and nothing else.

Code that needs time, chance, a disk or a network is given them. The live forms are in this package;
their deterministic twins, with crashes and faults, are in ``ripple.testing``. The promises of a
port are said here once and tested on both forms by the same suite.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, TypeVar, TypeVarTuple

from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ripple.world.broker import Broker
    from ripple.world.control import Control
    from ripple.world.seats import Bounds
    from ripple.world.tls import Tls

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Clock(Protocol):
    """Time. Safety never depends on it."""

    def now_ns(self) -> int:
        """Return the wall clock, in nanoseconds since 1970 UTC.

        For logs, and for times that are recorded before they count: it may jump.
        """
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds since some moment of this process; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let others run for at least ``seconds``."""
        ...


class Random(Protocol):
    """Chance: for names that must be unique and for spreading load, never for results."""

    def below(self, n: int) -> int:
        """Return an integer in ``[0, n)``; ``n`` is positive."""
        ...

    def bytes(self, n: int) -> bytes:
        """Return ``n`` bytes."""
        ...


class File(Protocol):
    """An open file, read anywhere and written at its end. Closing it syncs nothing."""

    def append(self, data: bytes | memoryview) -> None:
        """Write all of ``data`` at the end.

        A crash before the next :meth:`sync` may keep any part of it. Raises
        :class:`~ripple.world.errors.DiskFullError` or another OSError; then part of ``data`` may be
        there, and the caller truncates to the size that it knows.
        """
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer only at the end, ``b""`` there."""
        ...

    def size(self) -> int:
        """Return the length in bytes."""
        ...

    def is_named(self) -> bool:
        """Return whether the name by which it was opened still leads to it."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes, at most its length; durable after the next sync."""
        ...

    def sync(self) -> None:
        """Make the contents durable.

        Raises :class:`~ripple.world.errors.SyncFailedError`. Unsynced bytes are then of unknown
        fate for ever, because the system may believe its pages clean: this file takes no more
        appends, and the caller writes a new one.
        """
        ...

    def close(self) -> None:
        """Release the file; closing twice is allowed."""
        ...


class Lock(Protocol):
    """A lock that is held. The operating system releases it when the process dies."""

    def release(self) -> None:
        """Let others have it; releasing twice is allowed."""
        ...


class Watch(Protocol):
    """Notes changes in some folders from the moment it is opened, for one waiter.

    A follower of files opens a watch, looks at them, and waits where there is nothing new: changes
    between looking and waiting have been noted.
    """

    async def changed(self) -> None:
        """Wait for a creation, append, truncation, renaming or removal by any process.

        It returns at once for any such change since its last return, or since the watch was opened.
        It may return for nothing. Nothing is lost where the wait is cancelled.
        """
        ...

    def wake(self) -> None:
        """Let ``changed`` return, or its next call if none waits; from the loop's thread."""
        ...

    def close(self) -> None:
        """Watch no more; ``changed`` must not be waiting. Closing twice is allowed."""
        ...


class Disk(Protocol):
    """A tree of files. Paths are "/"-separated and relative to the disk's root.

    A path that leaves the root is a ValueError. A file's contents are durable after ``File.sync``,
    its name after ``sync_folder`` of the folder that holds it; until then a crash may forget any
    of the creations, renames, links and removals in that folder.
    """

    def open(
        self, path: str, *, create: bool = False, exclusive: bool = False, like: str = ""
    ) -> File:
        """Open a file; ``create`` makes it if it is absent, ``exclusive`` makes it or fails.

        With ``exclusive``, the file gets the permissions of the file ``like``, if there is one.
        Raises FileNotFoundError (also for an absent folder) and FileExistsError.
        """
        ...

    def open_to_read(self, path: str) -> File:
        """Open a file that is there, without needing the right to write to it.

        ``append`` and ``truncate`` of such a file are an OSError; ``sync`` is not: a reader makes
        durable the bytes that it has read. Raises FileNotFoundError.
        """
        ...

    def read_bytes(self, path: str, *, length_max: int) -> bytes:
        """Return a whole file. Raises LimitError if it is longer."""
        ...

    def list(self, folder: str) -> list[str]:
        """Return the names in ``folder``, sorted; none when it is absent. ``""`` is the root."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder of that name."""
        ...

    def make_folder(self, folder: str) -> None:
        """Make ``folder`` and its parents, durably; one that exists stays as it is."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name, replacing ``target`` in one step."""
        ...

    def link_absent(self, source: str, target: str) -> bool:
        """Give a file a second name unless ``target`` exists; return whether it was given."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file's name. Raises FileNotFoundError."""
        ...

    def remove_folder(self, folder: str) -> None:
        """Remove an empty folder. Raises FileNotFoundError, and OSError if something is in it."""
        ...

    def sync_folder(self, folder: str) -> None:
        """Make the creations, renames, links and removals in ``folder`` durable."""
        ...

    def lock(self, path: str, holder: str) -> Lock:
        """Hold the lock of this name until it is released or the process dies.

        ``holder`` is a short line for people. Its holder may remove the file. Raises
        :class:`~ripple.world.errors.DiskLockedError`, which names the present holder, and
        :class:`~ripple.world.errors.NotALockError` for a file that no lock has made, or a link to
        one; it stays as it is.
        """
        ...

    def watch(self, folders: Sequence[str]) -> Watch:
        """Watch the files in these folders, not below them; they may be absent."""
        ...

    def free_bytes(self) -> int:
        """Return how many bytes can still be written."""
        ...


class Stream(Protocol):
    """A connection: bytes in order, until one side closes or the network gives up."""

    @property
    def peer(self) -> str:
        """The other side's address, for people."""
        ...

    @property
    def binding(self) -> str:
        """The digest of the listener's certificate, known to both ends, which no other can have.

        "" without TLS.
        """
        ...

    async def read(self, length_max: int) -> bytes:
        """Return 1 to ``length_max`` bytes; ``b""`` once the peer has finished.

        Raises ConnectionError when the connection broke.
        """
        ...

    async def write(self, data: bytes | memoryview) -> None:
        """Hand over ``data``; wait while too much is on its way. Raises ConnectionError.

        Its return says nothing about the peer's receipt. Cancelled while it waits, it has handed
        over all the same.
        """
        ...

    def settle(self) -> None:
        """Note that the other side has identified itself: it keeps its seat."""
        ...

    def finish(self) -> None:
        """Say that no more will be written; reading stays possible, except over TLS: it closes."""
        ...

    def close(self) -> None:
        """End both directions now; closing twice is allowed."""
        ...


class Listener(Protocol):
    """An address that accepts connections."""

    @property
    def address(self) -> str:
        """``host:port`` as bound: port 0 was replaced by the one that was given."""
        ...

    def close(self) -> None:
        """Accept no more; connections that exist stay."""
        ...


class Network(Protocol):
    """Byte streams between processes. Addresses are ``host:port``.

    A connection may end without an end: a peer that vanishes, or can no longer be reached, is
    noticed by writers, after a quarter of an hour, and by mere readers never. Bytes of a connection
    arrive in order and once, of two connections in any order.
    """

    async def listen(
        self,
        address: str,
        serve: Callable[[Stream], Awaitable[None]],
        *,
        tls: Tls | None = None,
        bounds: Bounds | None = None,
    ) -> Listener:
        """Run ``serve`` as a task for each connection, closed when it ends.

        ``bounds`` limits them; unsettled ones are evicted for others.

        A ConnectionError of ``serve`` ends its connection, without further notice. With ``tls``, a
        peer without a fitting certificate is not served; replaced files count from the next
        connection on. Raises OSError, of which :class:`~ripple.world.errors.TlsError` names a file
        that does not fit.
        """
        ...

    async def connect(self, address: str, *, tls: Tls | None = None) -> Stream:
        """Connect. The caller bounds the time.

        Raises OSError, of which TlsError names a file, or the peer, that does not fit. Where the
        peer refuses our certificate the new stream ends or breaks before its first byte: TLS 1.3
        lets clients write before that is known.
        """
        ...


class ObjectStore(Protocol):
    """Named, immutable objects shared by processes.

    Every method may raise :class:`~ripple.world.errors.StoreError`, with ``done`` for whether the
    effect took place: False, or None when that is unknown. An object that was put is there for
    every later get and list of any process.
    """

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it.

        After an unknown outcome a repeated put may answer False to its own success: read back and
        compare a nonce within ``data``.
        """
        ...

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none. Raises LimitError if it is longer."""
        ...

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        ...

    async def delete(self, name: str) -> None:
        """Forget an object; an absent one is no error."""
        ...


class Executor(Protocol):
    """Long work, done outside of the event loop."""

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return the result of ``work(*args)``, or raise its error.

        Concurrency has a limit; further calls queue. A cancellation, or several, takes effect only
        after work that was begun has ended. Two calls may overlap: code that two tasks can call
        orders them, by a lock that is held meanwhile.
        """
        ...


class Inline:
    """An executor that does everything at once, where nothing else waits for the loop."""

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call ``work`` here and now."""
        return work(*args)


INLINE = Inline()


Guards: TypeAlias = "Callable[[str], bool]"
"""Asks whether a safeguard is on; only a test of the tests switches one off."""


def all_guards(_safeguard: str) -> bool:
    """Say that every safeguard is on."""
    return True


@frozen(kw_only=True)
class World:
    """All ports of one process.

    ``removed`` names safeguards that a test has switched off, to see that their absence is found
    out; it is empty outside of tests.
    """

    clock: Clock
    random: Random
    disk: Disk
    network: Network | None = None
    control: Control | None = None
    broker: Broker | None = None
    store: ObjectStore | None = None
    executor: Executor = INLINE
    removed: frozenset[str] = field(default=frozenset())

    def without(self, *safeguards: str) -> Self:
        """Return this world with safeguards switched off: for tests of the tests."""
        return replace(self, removed=self.removed.union(safeguards))

    def guards(self, safeguard: str) -> bool:
        """Return whether a safeguard is on: ``if world.guards("digest_check") and ...``."""
        return safeguard not in self.removed
