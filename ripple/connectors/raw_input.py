"""Bytes from a file or standard input, decompressed by suffix, a buffer at a time."""

from __future__ import annotations

import os
import select
import stat
import zlib
from typing import Protocol

import pyarrow as pa

from ripple.errors import InputError

STANDARD_INPUT = "-"


class RawInput(Protocol):
    """A stream of bytes that is read into the caller's buffer."""

    def read_into(self, buffer: memoryview) -> int:
        """Fill at most ``buffer``; return the number of bytes, 0 at the end.

        Blocks until at least one byte is there. Raises InputError when the input is damaged.
        """
        ...

    def is_ready(self, timeout_ms: int) -> bool:
        """Wait until reading would not block, for at most ``timeout_ms``."""
        ...

    def close(self) -> None:
        """Release the file. Called by the thread that reads."""
        ...

    def interrupt(self) -> None:
        """Make a blocked read return 0. May be called from another thread."""
        ...


def open_input(path: str | os.PathLike[str]) -> RawInput:
    """Open ``path``; ``-`` is standard input, ``.gz``, ``.zst`` are decompressed.

    Raises InputError with one line saying what is wrong: missing, a directory, not readable.
    """
    name = os.fspath(path)
    if name == STANDARD_INPUT:
        return _PlainInput(os.dup(0), "standard input")
    try:
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from error
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise InputError(f"cannot read {name}: it is a directory")
    if name.endswith(".gz"):
        return _GzipInput(_PlainInput(file, name))
    if name.endswith(".zst"):
        os.close(file)
        return _ZstdInput(name)
    return _PlainInput(file, name)


class _PlainInput:
    """A file descriptor, which it owns."""

    def __init__(self, file: int, name: str) -> None:
        self.name = name
        self._file = file
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self._interrupted = False

    def read_into(self, buffer: memoryview) -> int:
        self.is_ready(-1)
        if self._interrupted:
            return 0
        try:
            return os.readv(self._file, [buffer])
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror}") from error

    def is_ready(self, timeout_ms: int) -> bool:
        return bool(self._poll.poll(timeout_ms))

    def interrupt(self) -> None:
        self._interrupted = True
        os.write(self._waker, b"!")

    def close(self) -> None:
        for file in (self._file, self._woken, self._waker):
            os.close(file)


COMPRESSED_BYTES = 1 << 16


class _GzipInput:
    """One or more gzip members, decompressed as far as the buffer reaches."""

    def __init__(self, raw: _PlainInput) -> None:
        self._raw = raw
        self._compressed = bytearray(COMPRESSED_BYTES)
        self._pending = b""
        self._member: zlib._Decompress | None = None

    def read_into(self, buffer: memoryview) -> int:
        while True:
            if not self._pending:
                count = self._raw.read_into(memoryview(self._compressed))
                if count == 0:
                    if self._member is None:
                        return 0
                    raise InputError(f"{self._raw.name} is cut short: its gzip data has no end")
                self._pending = bytes(self._compressed[:count])
            if self._member is None:
                # Zeros after a member are padding (tapes, block devices); gzip skips them too.
                self._pending = self._pending.lstrip(b"\0")
                if not self._pending:
                    continue
                self._member = zlib.decompressobj(wbits=31)
            try:
                data = self._member.decompress(self._pending, len(buffer))
            except zlib.error as error:
                raise InputError(f"{self._raw.name} is not sound gzip data: {error}") from error
            self._pending = self._member.unconsumed_tail
            if self._member.eof:
                self._pending = self._member.unused_data
                self._member = None
            if data:
                buffer[: len(data)] = data
                return len(data)

    def is_ready(self, timeout_ms: int) -> bool:
        return bool(self._pending) or self._raw.is_ready(timeout_ms)

    def interrupt(self) -> None:
        self._raw.interrupt()

    def close(self) -> None:
        self._raw.close()


ZSTD_READ_BYTES = 1 << 14


class _ZstdInput:
    """A Zstandard file. Of a damaged one, the last 16 KiB before the damage may be missing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stream = pa.CompressedInputStream(pa.OSFile(name), "zstd")

    def read_into(self, buffer: memoryview) -> int:
        try:
            return int(self._stream.readinto(buffer[:ZSTD_READ_BYTES]))
        except OSError as error:
            raise InputError(f"{self._name} is not sound Zstandard data: {error}") from error

    def is_ready(self, timeout_ms: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    def interrupt(self) -> None:
        """Do nothing: reading a file does not block for long."""

    def close(self) -> None:
        self._stream.close()
