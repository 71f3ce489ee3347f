"""B-02: the wire. One trade and a thousand through each encoding; CRC; columnar changes.

What a trade costs depends on the class that holds it: filling slots takes half the time of
filling an instance's ``__dict__``, for whoever does it. So each encoding stands beside one that
makes the same kind of object: a class of ``@record`` beside MessagePack into that very class, a
slotted dataclass beside a ``msgspec.Struct``. A change counts once it is in the table.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import crc32c as bare_crc
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bench.row import Row, at_least, at_most, beside
from bench.timing import in_turns
from ripple.core.codec import arrow
from ripple.core.codec.crc import crc32c
from ripple.core.row_ops import OP, OP_SET
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import Layout
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.codec import list_of
from ripple.exchange.wire.edge_messages import Bundle, Section
from ripple.exchange.wire.envelope import Decoder, encode
from ripple.exchange.wire.messages import cut_of, from_frame, to_frame
from ripple.model.records import Timestamp, record, schema_of

BATCH = 1000
VALUES = ("AAPL", 150.25, 200, 1709000001000000000, "XNAS")


@record
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: Timestamp
    venue: str


@dataclass(frozen=True, slots=True)
class SlottedTrade:
    symbol: str
    price: float
    size: int
    timestamp_ns: int
    venue: str


class PackedTrade(msgspec.Struct):
    symbol: str
    price: float
    size: int
    timestamp_ns: int
    venue: str


SCHEMA = schema_of(Trade)
NAMED = dict(zip((field.name for field in SCHEMA.fields), VALUES, strict=True))


def measure() -> list[Row]:
    return [
        *_trades(),
        *(row for size in (4096, 65536, 1 << 20) for row in _checksums(size)),
        *(row for count in (1000, 16_384) for row in _changes(count)),
    ]


def _trades() -> Iterator[Row]:
    for batch in (1, BATCH):
        label = "one by one" if batch == 1 else f"in batches of {batch:,}"
        took = in_turns(_round_trips(batch))
        ns = {name: seconds / batch * 1e9 for name, seconds in took.items()}
        no_slower = at_most(1.0, of_ratio=True)
        slotted = ns.pop("slotted dataclass")
        struct_ns = {STRUCT: ns.pop(STRUCT)}
        yield from beside(
            f"trade round trip, {label}, @record", ns.pop("@record"), "ns", ns, no_slower
        )
        yield from beside(
            f"trade round trip, {label}, slotted", slotted, "ns", struct_ns, no_slower
        )


STRUCT = "msgspec MessagePack, Struct"


def _round_trips(batch: int) -> dict[str, Callable[[], object]]:
    """Return what to time; the first comparison of each is the one that the aim is about."""
    trade, slotted, packed = Trade(*VALUES), SlottedTrade(*VALUES), PackedTrade(*VALUES)
    return {
        "@record": _bin_prot(Trade, trade, batch),
        "msgspec MessagePack, the same class": _message_pack(Trade, trade, batch),
        "protobuf": _protobuf(batch),
        "struct": lambda: [_of_struct(data) for data in [_to_struct(t) for t in [trade] * batch]],
        "bin_prot, dicts": _bin_prot(dict, NAMED, batch),
        "slotted dataclass": _bin_prot(SlottedTrade, slotted, batch),
        STRUCT: _message_pack(PackedTrade, packed, batch),
    }


def _bin_prot(cls: type[Any], value: object, batch: int) -> Callable[[], object]:
    one = codec_for(SCHEMA, cls)
    codec, whole = (one, value) if batch == 1 else (list_of(one), [value] * batch)
    return lambda: codec.loads(codec.dumps(whole))


def _message_pack(cls: Any, value: object, batch: int) -> Callable[[], object]:
    pack = msgspec.msgpack.Encoder().encode
    unpack = msgspec.msgpack.Decoder(cls if batch == 1 else list[cls]).decode
    whole = value if batch == 1 else [value] * batch
    return lambda: unpack(pack(whole))


def _protobuf(batch: int) -> Callable[[], object]:
    proto = _protobuf_classes()
    one, many = proto["Trade"], proto["Trades"]
    message = one(**NAMED)
    if batch == 1:
        return lambda: _fields(one.FromString(message.SerializeToString()))
    whole = many(trades=[message] * batch)
    return lambda: [_fields(t) for t in many.FromString(whole.SerializeToString()).trades]


def _fields(message: Any) -> tuple[Any, ...]:
    # protobuf makes Python objects of fields only when they are asked for; the others have them.
    return message.symbol, message.price, message.size, message.timestamp_ns, message.venue


_FIXED = struct.Struct("<8sdqq4s")


def _to_struct(trade: Trade) -> bytes:
    return _FIXED.pack(
        trade.symbol.encode(), trade.price, trade.size, trade.timestamp_ns, trade.venue.encode()
    )


def _of_struct(data: bytes) -> Trade:
    symbol, price, size, timestamp_ns, venue = _FIXED.unpack(data)
    return Trade(symbol.rstrip(b"\0").decode(), price, size, timestamp_ns, venue.decode())


def _protobuf_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="trade.proto", package="b02", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    trade = file.message_type.add(name="Trade")
    types = (kind.TYPE_STRING, kind.TYPE_DOUBLE, kind.TYPE_INT64, kind.TYPE_INT64, kind.TYPE_STRING)
    for number, (name, type_) in enumerate(zip(NAMED, types, strict=True), 1):
        trade.field.add(name=name, number=number, type=type_, label=kind.LABEL_OPTIONAL)
    file.message_type.add(name="Trades").field.add(
        name="trades",
        number=1,
        type=kind.TYPE_MESSAGE,
        type_name=".b02.Trade",
        label=kind.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"b02.{name}"))
        for name in ("Trade", "Trades")
    }


def _checksums(size: int) -> Iterator[Row]:
    frame = to_frame(Bundle("vwap/1", (), np.random.default_rng(3).bytes(size)))
    data = encode(frame)
    bare = "CRC-32C of the same bytes (crc32c package)"
    calls: dict[str, Callable[[], object]] = {
        bare: lambda: bare_crc.crc32c(data),
        "CRC-32C": lambda: crc32c(data),
        "envelope, encode": lambda: encode(frame),
        "envelope, decode": lambda: _decoded(data),
    }
    rates = {name: len(data) / seconds / 1e9 for name, seconds in in_turns(calls).items()}
    of_bare = rates.pop(bare)
    aims = {"CRC-32C": at_least(0.95, of_ratio=True)}
    for name, rate in rates.items():
        yield Row(f"{name}, {size:,} bytes", rate, "GB/s", bare, of_bare, aims.get(name))


def _decoded(data: bytes) -> Any:
    decoder = Decoder()
    decoder.receive(data)
    return next(decoder)


def _changes(count: int) -> Iterator[Row]:
    table = ColumnTable(LAYOUT)
    # In turn, so that each delta changes its row.
    batches = cycle((_batch(count, seed=1), _batch(count, seed=2)))
    sent = cycle((_sent(next(batches)), _sent(next(batches))))
    listed = next(batches).to_pylist()
    pack, unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
    plain: dict[str, Any] = {}
    calls: dict[str, Callable[[], object]] = {
        "encode": lambda: _sent(next(batches)),
        "decode": lambda: _received(next(sent)),
        "encode + decode": lambda: _received(_sent(next(batches))),
        "encode + decode + apply": lambda: table.apply(_received(_sent(next(batches)))),
        "dicts": lambda: unpack(pack(listed)),
        "dicts, applied": lambda: plain.update(
            {row["symbol"]: row for row in unpack(pack(listed))}
        ),
    }
    rates = {name: count / seconds / 1e6 for name, seconds in in_turns(calls).items()}
    for name, versus, aim in (
        ("encode", "", None),
        ("decode", "", None),
        ("encode + decode", "dicts", at_least(10)),
        ("encode + decode + apply", "dicts, applied", None),
    ):
        beside_ = f"MessagePack of {versus} (msgspec)" if versus else ""
        yield Row(
            f"Changes of {count:,} deltas, {name}",
            rates[name],
            "M/s",
            beside_,
            rates.get(versus),
            aim,
        )


LAYOUT = Layout(
    pa.schema(
        [
            pa.field("symbol", pa.string(), nullable=False),
            pa.field("vwap", pa.float64(), nullable=False),
            pa.field("total_volume", pa.int64(), nullable=False),
            pa.field("trade_count", pa.int64(), nullable=False),
        ]
    ),
    ("symbol",),
)


def _batch(count: int, seed: int) -> pa.RecordBatch:
    """Return ``count`` deltas: a whole new row for each key."""
    draw = np.random.default_rng(seed)
    return LAYOUT.conform(
        pa.record_batch(
            {
                "symbol": [f"SYM{n:05d}" for n in range(count)],
                OP: pa.array(np.full(count, OP_SET, np.int8)),
                "vwap": draw.random(count),
                "total_volume": draw.integers(0, 10**6, count),
                "trade_count": draw.integers(0, 10**4, count),
            }
        )
    )


def _sent(batch: pa.RecordBatch) -> bytes:
    cuts = cut_of({"trades/0": 17}), cut_of({"trades/0": 1017})
    section = Section(0, 0, 1, 1, *cuts, 1709000000000000000, batch.num_rows)
    return encode(to_frame(Bundle("vwap/1", (section,), arrow.dumps(batch))))


def _received(data: bytes) -> pa.RecordBatch:
    message = from_frame(_decoded(data))
    assert isinstance(message, Bundle)
    return LAYOUT.conform(arrow.loads(message.body))
