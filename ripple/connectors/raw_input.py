"""Bytes from a file or standard input, decompressed by suffix, a buffer at a time."""

from __future__ import annotations

import os
import select
import stat
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.standard import descriptor_of
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from ripple.connectors.files.remote.ranged import RangedFile

STANDARD_INPUT = "-"


class RawInput(Protocol):
    """A stream of bytes that is read into the caller's buffer."""

    @property
    def fraction_read(self) -> float | None:
        """How much of the input was read, 0.0 to 1.0; None where its length is not known."""
        ...

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

    It may be the address of a remote file. Raises InputError with one line: missing, a directory,
    not readable.
    """
    name = os.fspath(path)
    if is_remote(name):
        from ripple.connectors.files.remote.ranged import RangedFile  # noqa: PLC0415 - few are

        return _decompressed(_RemoteInput(RangedFile(name)))
    if name == STANDARD_INPUT:
        return _PlainInput(os.dup(0), "standard input")
    standard = descriptor_of(name)
    try:
        if standard is not None:
            return _PlainInput(os.dup(standard), name)
        file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        several = f": a pattern is files:{name}" if set(name) & set("*?[") else ""
        raise InputError(f"cannot read {name}: {error.strerror}{several}") from error
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.close(file)
        raise InputError(f"cannot read {name}: it is a directory")
    if name.endswith(".gz"):
        return _GzipInput(_PlainInput(file, name))
    if name.endswith(".zst"):
        os.close(file)
        return _ZstdInput(name, pa.OSFile(name))
    return _PlainInput(file, name)


def _decompressed(raw: _RemoteInput) -> RawInput:
    if raw.name.endswith(".gz"):
        return _GzipInput(raw)
    return _ZstdInput(raw.name, pa.PythonFile(raw.file, "r")) if raw.name.endswith(".zst") else raw


class _RemoteInput:
    """A file of a server, requested block by block; each wait has a limit."""

    def __init__(self, file: RangedFile) -> None:
        self.name, self.file = file.name, file
        self.is_interrupted = False

    @property
    def fraction_read(self) -> float | None:
        return _fraction(self.file.tell(), self.file.version.size_bytes)

    def read_into(self, buffer: memoryview) -> int:
        return 0 if self.is_interrupted else self.file.readinto(buffer)

    def is_ready(self, timeout_ms: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    def interrupt(self) -> None:
        self.is_interrupted = True

    def close(self) -> None:
        self.file.close()


class _PlainInput:
    """A file descriptor, which it owns."""

    def __init__(self, file: int, name: str) -> None:
        self.name = name
        self._file = file
        self._woken, self._waker = os.pipe()
        self._poll = select.poll()
        self._poll.register(file, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self.is_interrupted = False
        self._read_bytes = 0
        status = os.fstat(file)
        self._length_bytes = status.st_size if stat.S_ISREG(status.st_mode) else 0

    @property
    def fraction_read(self) -> float | None:
        return _fraction(self._read_bytes, self._length_bytes)

    def read_into(self, buffer: memoryview) -> int:
        self.is_ready(-1)
        if self.is_interrupted:
            return 0
        try:
            count = os.readv(self._file, [buffer])
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error.strerror}") from error
        self._read_bytes += count
        return count

    def is_ready(self, timeout_ms: int) -> bool:
        return bool(self._poll.poll(timeout_ms))

    def interrupt(self) -> None:
        self.is_interrupted = True
        with suppress(BrokenPipeError):  # it was closed just now, by the thread that reads it
            os.write(self._waker, b"!")

    def close(self) -> None:
        for file in (self._file, self._woken):
            os.close(file)

    def __del__(self) -> None:
        # Not before, so that an interrupting thread meets no other file of that number.
        os.close(self._waker)


COMPRESSED_BYTES = 1 << 16


class _GzipInput:
    """One or more gzip members, decompressed as far as the buffer reaches."""

    def __init__(self, raw: _PlainInput | _RemoteInput) -> None:
        self._raw = raw
        self._compressed = bytearray(COMPRESSED_BYTES)
        self._pending = b""
        self._member: zlib._Decompress | None = None
        self._is_begun = False  # nothing compressed is some bytes: none are a file cut short

    @property
    def fraction_read(self) -> float | None:
        return self._raw.fraction_read

    def read_into(self, buffer: memoryview) -> int:
        while True:
            if not self._pending and not self._read_more():
                return 0
            if self._member is None:
                # Zeros after a member are padding (tapes, block devices); gzip skips them too.
                self._pending = self._pending.lstrip(b"\0")
                if not self._pending:
                    continue
                self._member = zlib.decompressobj(wbits=31)
                self._is_begun = True
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

    def _read_more(self) -> bool:
        """Read compressed bytes; tell whether there are any."""
        count = self._raw.read_into(memoryview(self._compressed))
        self._pending = bytes(self._compressed[:count])
        if count or self._raw.is_interrupted or (self._is_begun and self._member is None):
            return bool(count)
        raise InputError(f"{self._raw.name} is cut short: its gzip data has no end")

    def is_ready(self, timeout_ms: int) -> bool:
        return bool(self._pending) or self._raw.is_ready(timeout_ms)

    def interrupt(self) -> None:
        self._raw.interrupt()

    def close(self) -> None:
        self._raw.close()


ZSTD_READ_BYTES = 1 << 14


class _ZstdInput:
    """A Zstandard file. Of a damaged one, the last 16 KiB before the damage may be missing."""

    def __init__(self, name: str, file: pa.NativeFile) -> None:
        self._name = name
        self._length_bytes = file.size()
        self._read_bytes = 0
        self._file = file
        self._stream = pa.CompressedInputStream(self._file, "zstd")

    @property
    def fraction_read(self) -> float | None:
        return _fraction(self._read_bytes, self._length_bytes)

    def read_into(self, buffer: memoryview) -> int:
        try:
            count = int(self._stream.readinto(buffer[:ZSTD_READ_BYTES]))
            self._read_bytes = self._file.tell()
        except OSError as error:
            raise InputError(f"{self._name} is not sound Zstandard data: {error}") from error
        if not self._read_bytes:
            raise InputError(f"{self._name} is cut short: its Zstandard data has no beginning")
        return count

    def is_ready(self, timeout_ms: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    def interrupt(self) -> None:
        """Do nothing: reading a file does not block for long."""

    def close(self) -> None:
        self._stream.close()


def _fraction(read_bytes: int, length_bytes: int) -> float | None:
    # A file may grow while it is read.
    return min(read_bytes / length_bytes, 1.0) if length_bytes else None
