"""Metadata of Barrage's messages, as flatbuffers: requests are parsed, updates are built.

Each is a table of ``Barrage.fbs`` (https://github.com/deephaven/barrage), here by field numbers,
in a wrapper that names its type.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import flatbuffers
from flatbuffers import number_types as number
from flatbuffers.table import Table

from ripple.client.flight.barrage.rowset import NO_SHIFT, RowSet
from ripple.client.flight.errors import FlightError, Why

if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = 0x6E687064
REQUEST_BYTES_MAX = 1 << 20
COLUMNS_MAX = 1 << 16
_SUBSCRIPTION, _UPDATE, _SNAPSHOT, _PUBLICATION = 5, 6, 7, 8
_FIRST_FIELD = 4  # of a vtable: first come its own size and the table's


class _Wrapper(IntEnum):
    MAGIC, KIND, PAYLOAD = range(3)


class _Request(IntEnum):
    TICKET, COLUMNS, VIEWPORT, OPTIONS, REVERSE = range(5)


class _Conversion(IntEnum):
    """The conversion of values of types that clients do not know."""

    STRINGIFY, JAVA_SERIALIZATION, THROW_ERROR = range(1, 4)


_CONVERSION = 0  # in the options of both


class _SubscriptionOptions(IntEnum):
    NULLS, INTERVAL_MS, BATCH_ROWS, MESSAGE_BYTES, AS_LIST = range(1, 6)


class _SnapshotOptions(IntEnum):
    NULLS, BATCH_ROWS, MESSAGE_BYTES = range(1, 4)


class _Update(IntEnum):
    FIRST_SEQ, LAST_SEQ, IS_SNAPSHOT, VIEWPORT, REVERSE, COLUMNS = range(6)
    ADDED, REMOVED, SHIFT, INCLUDED, MODIFIED, SIZE = range(6, 12)


class Options(NamedTuple):
    """A client's options.

    sentinels: nulls of numbers are Deephaven's, a value of each type. as_list: each column as one
    list, for clients whose batches have columns of one length. batch_rows, message_bytes,
    interval_ms: 0 leaves the choice to the server. as_text: convert values of unknown types, which
    are an error otherwise.
    """

    sentinels: bool = False
    as_list: bool = False
    batch_rows: int = 0
    message_bytes: int = 0
    interval_ms: int = 0
    as_text: bool = True


class Asked(NamedTuple):
    """A request for a table. columns: by number, None for all. viewport: positions, None for all.

    once: a snapshot without updates. reverse: positions count from the last row.
    """

    ticket: bytes
    once: bool = False
    columns: frozenset[int] | None = None
    viewport: RowSet | None = None
    reverse: bool = False
    options: Options = Options()


class UpdateMetadata(NamedTuple):
    """The metadata of an update's first message.

    modified: a set for each column; None in a snapshot without updates.
    """

    seqs: tuple[int, int]
    is_snapshot: bool
    added: RowSet
    removed: RowSet
    modified: Sequence[RowSet] | None
    rows: int
    columns: frozenset[int] | None = None
    viewport: RowSet | None = None
    reverse: bool = False


def request_in(data: bytes) -> Asked:
    """Parse a request. Raises FlightError for any invalid bytes."""
    if len(data) > REQUEST_BYTES_MAX:
        raise _wrong(f"it has {len(data)} bytes, not at most {REQUEST_BYTES_MAX}")
    try:
        wrapper = _Read.root(data)
        if wrapper.scalar(_Wrapper.MAGIC, number.Uint32Flags) != MAGIC:
            raise _wrong("its magic number is wrong")
        kind = wrapper.scalar(_Wrapper.KIND, number.Int8Flags)
        if kind == _PUBLICATION:
            raise FlightError(Why.NOT_OFFERED, "publishing is not supported: use DoPut")
        if kind not in (_SUBSCRIPTION, _SNAPSHOT):
            raise _wrong(f"its type is {kind}")
        return _asked(_Read.root(wrapper.bytes(_Wrapper.PAYLOAD) or b""), once=kind == _SNAPSHOT)
    except (struct.error, IndexError, ValueError, TypeError, OverflowError) as error:
        raise _wrong(str(error)) from error


def _asked(request: _Read, *, once: bool) -> Asked:
    columns, viewport = request.bytes(_Request.COLUMNS), request.bytes(_Request.VIEWPORT)
    options = request.table(_Request.OPTIONS)
    return Asked(
        request.bytes(_Request.TICKET) or b"",
        once,
        None if columns is None else _numbers(columns),
        None if viewport is None else RowSet.decode(viewport),
        bool(request.scalar(_Request.REVERSE, number.BoolFlags)),
        Options() if options is None else _options(options, once=once),
    )


def _options(table: _Read, *, once: bool) -> Options:
    conversion = table.scalar(_CONVERSION, number.Int8Flags) or _Conversion.STRINGIFY
    if conversion not in (_Conversion.STRINGIFY, _Conversion.THROW_ERROR):
        raise FlightError(
            Why.NOT_OFFERED,
            f"the column_conversion_mode {conversion} is not offered: Stringify and ThrowError are",
        )
    return _form(table, once=once)._replace(as_text=conversion == _Conversion.STRINGIFY)


def _form(table: _Read, *, once: bool) -> Options:
    if once:
        return Options(
            bool(table.scalar(_SnapshotOptions.NULLS, number.BoolFlags)),
            batch_rows=table.scalar(_SnapshotOptions.BATCH_ROWS, number.Int32Flags),
            message_bytes=table.scalar(_SnapshotOptions.MESSAGE_BYTES, number.Int32Flags),
        )
    return Options(
        bool(table.scalar(_SubscriptionOptions.NULLS, number.BoolFlags)),
        bool(table.scalar(_SubscriptionOptions.AS_LIST, number.BoolFlags)),
        table.scalar(_SubscriptionOptions.BATCH_ROWS, number.Int32Flags),
        table.scalar(_SubscriptionOptions.MESSAGE_BYTES, number.Int32Flags),
        table.scalar(_SubscriptionOptions.INTERVAL_MS, number.Int32Flags),
    )


def update_metadata(metadata: UpdateMetadata) -> bytes:
    """Return the metadata of an update's first message."""
    builder = flatbuffers.Builder(1024)
    modified = None
    if metadata.modified is not None:
        nodes = []
        for rows in metadata.modified:
            encoded = builder.CreateByteVector(rows.encode())
            builder.StartObject(1)
            builder.PrependUOffsetTRelativeSlot(0, encoded, 0)
            nodes.append(builder.EndObject())
        builder.StartVector(4, len(nodes), 4)
        for node in reversed(nodes):
            builder.PrependUOffsetTRelative(node)
        modified = builder.EndVector()
    vectors: dict[int, Any] = {
        # Clients in C++ dereference these without a check.
        _Update.ADDED: builder.CreateByteVector(metadata.added.encode()),
        _Update.REMOVED: builder.CreateByteVector(metadata.removed.encode()),
        _Update.SHIFT: builder.CreateByteVector(NO_SHIFT),
    }
    if metadata.viewport is not None:
        vectors[_Update.VIEWPORT] = builder.CreateByteVector(metadata.viewport.encode())
    if metadata.columns is not None:
        vectors[_Update.COLUMNS] = builder.CreateByteVector(_bits(metadata.columns))
    if modified is not None:
        vectors[_Update.MODIFIED] = modified
    builder.StartObject(len(_Update))
    builder.PrependInt64Slot(_Update.FIRST_SEQ, metadata.seqs[0], 0)
    builder.PrependInt64Slot(_Update.LAST_SEQ, metadata.seqs[1], 0)
    builder.PrependInt64Slot(_Update.SIZE, metadata.rows, 0)
    for field, vector in vectors.items():
        builder.PrependUOffsetTRelativeSlot(field, vector, 0)
    builder.PrependBoolSlot(_Update.IS_SNAPSHOT, metadata.is_snapshot, False)
    builder.PrependBoolSlot(_Update.REVERSE, metadata.reverse, False)
    builder.Finish(builder.EndObject())
    return wrapped(_UPDATE, bytes(builder.Output()))


def wrapped(kind: int, payload: bytes) -> bytes:
    """Return a message's metadata: a table in the wrapper that names its type."""
    builder = flatbuffers.Builder(len(payload) + 64)
    vector = builder.CreateByteVector(payload)
    builder.StartObject(len(_Wrapper))
    builder.PrependUOffsetTRelativeSlot(_Wrapper.PAYLOAD, vector, 0)
    builder.PrependUint32Slot(_Wrapper.MAGIC, MAGIC, 0)
    builder.PrependInt8Slot(_Wrapper.KIND, kind, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


class _Read:
    """A table of an untrusted flatbuffer: all offsets are checked."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._table = Table(data, self._checked(place, 4))

    @classmethod
    def root(cls, data: bytes) -> _Read:
        return cls(data, struct.unpack_from("<I", data)[0])

    def scalar(self, field: int, flags: Any) -> int:
        """Return a number; 0 if absent."""
        place = self._place(field)
        return 0 if place is None else int(self._table.Get(flags, self._checked(place, 1)))

    def bytes(self, field: int) -> bytes | None:
        """Return a vector of bytes; None if absent."""
        offset = self._table.Offset(_FIRST_FIELD + 2 * field)
        if not offset:
            return None
        place = self._checked(self._table.Vector(offset), 0)
        return self._data[place : self._checked(place + self._table.VectorLen(offset), 0)]

    def table(self, field: int) -> _Read | None:
        """Return a nested table; None if absent."""
        place = self._place(field)
        return None if place is None else _Read(self._data, self._table.Indirect(place))

    def _place(self, field: int) -> int | None:
        offset = self._table.Offset(_FIRST_FIELD + 2 * field)
        return self._table.Pos + offset if offset else None

    def _checked(self, place: int, size: int) -> int:
        if not 0 <= place <= len(self._data) - size:
            raise ValueError(f"it points at {place} of {len(self._data)} bytes")
        return place


def _numbers(bits: bytes) -> frozenset[int]:
    """Return the numbers of the bits that are set."""
    bits = bits.rstrip(b"\0")
    if 8 * len(bits) > COLUMNS_MAX:
        raise _wrong(f"it names columns beyond {COLUMNS_MAX}")
    return frozenset(n for n in range(8 * len(bits)) if bits[n >> 3] >> (n & 7) & 1)


def _bits(numbers: frozenset[int]) -> bytes:
    value = sum(1 << n for n in sorted(numbers))
    return value.to_bytes((value.bit_length() + 7) // 8, "little")


def _wrong(why: str) -> FlightError:
    return FlightError(Why.WRONG, f"this is not a request of Barrage: {why}")
