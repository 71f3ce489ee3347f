"""Common to all our processes: standard streams, limits of open files, output, exit."""

from __future__ import annotations

import atexit
import os
import select
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import NoReturn

# The usual limit of systems, where the hard limit is infinite.
FILES_MAX = 1 << 20
# Of lines that were not read yet.
WAITING_BYTES_MAX = 1 << 20
FLUSH_S = 1.0
FLUSH_MAX_S = 60.0
_LOOK_S = 0.05
_PIECE_BYTES = 4096


def begin() -> None:
    """Hold the standard streams, and raise the limit of open files."""
    hold_standard_streams()
    raise_limits()


def hold_standard_streams() -> None:
    """Occupy descriptors 0 to 2 where the caller closed them.

    Otherwise the next file to be opened becomes standard input, output or error, of this process or
    of a child. Such a stream fails on use, as a closed one should.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 0 else os.O_RDONLY)
            os.set_inheritable(number, True)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process


def raise_limits() -> None:
    """Raise the limit of open files from that of a login to that of the system."""
    try:
        import resource  # noqa: PLC0415 - not of every system
    except ModuleNotFoundError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # some systems permit less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def files() -> tuple[int, int] | None:
    """Return the number of open files and their limit, None where the system does not tell."""
    try:
        import resource  # noqa: PLC0415 - not of every system

        return len(os.listdir("/proc/self/fd")), resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    except (ModuleNotFoundError, OSError):
        return None


class Lines:
    """Lines to a descriptor that may not be read: they are queued, and the writer never blocks.

    Invariant: at most ``bytes_max`` wait. Further lines are left out, which is noted once there is
    room again.
    """

    def __init__(self, descriptor: int, *, bytes_max: int = WAITING_BYTES_MAX) -> None:
        self._descriptor = descriptor
        self._bytes_max = bytes_max
        self._waiting: deque[bytes] = deque()
        self._bytes = 0  # of what waits, or is being written
        self._left_out = 0
        self._changed = threading.Condition()
        self._writer: threading.Thread | None = None

    def write(self, text: str) -> None:
        """Queue a text; a reader that is gone is no error."""
        data = text.encode(errors="backslashreplace")
        with self._changed:
            if self._bytes + len(data) > self._bytes_max:
                self._left_out += 1
                return
            if self._left_out:
                lost = f"(left out here, since nobody read: {self._left_out} lines)\n".encode()
                self._left_out = 0
                self._waiting.append(lost)
                self._bytes += len(lost)
            self._waiting.append(data)
            self._bytes += len(data)
            if self._writer is None:
                # A daemon thread: one that is stuck must not hold up the end of the process.
                self._writer = threading.Thread(target=self._write, name="lines", daemon=True)
                self._writer.start()
            self._changed.notify_all()

    def flush(self, within_s: float = FLUSH_S) -> bool:
        """Wait until all is written; return whether it is.

        It gives up after so long without a reader. A disk that is busy is waited for: each line
        to a file is written in the end, the last one of a process too.
        """
        until_s = time.monotonic() + within_s
        at_most_s = time.monotonic() + max(within_s, FLUSH_MAX_S)
        with self._changed:
            left = self._bytes
            while not self._changed.wait_for(lambda: not self._bytes, _LOOK_S):
                now_s = time.monotonic()
                if self._bytes != left or _takes(self._descriptor):
                    left, until_s = self._bytes, now_s + within_s
                if now_s > min(until_s, at_most_s):
                    return False
        return True

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            with suppress(OSError):
                _write_all(self._descriptor, data)
            with self._changed:
                self._bytes -= len(data)
                self._changed.notify_all()


def _takes(descriptor: int) -> bool:
    """Return whether a write would not wait for a reader."""
    try:
        return bool(select.select((), (descriptor,), (), 0)[1])
    except (OSError, ValueError):  # closed, or of a number that select does not take
        return False


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest[:_PIECE_BYTES]) :]
        except BlockingIOError:  # another process with the descriptor has made it non-blocking
            select.select((), (descriptor,), ())


standard_error = Lines(2)


def write(text: str) -> None:
    """Write to standard error, without waiting for its reader."""
    standard_error.write(text)


def leave(code: int) -> NoReturn:
    """End the process at once: threads of user code must not hold it up."""
    standard_error.flush()
    with suppress(Exception):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)
