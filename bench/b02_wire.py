"""B-02: the wire. One trade and a thousand through each encoding; CRC; columnar changes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import crc32c as bare_crc
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from bench.row import Row, at_least, at_most, beside
from bench.timing import in_turns
from ripple.schema.types import Field, Float, Int, Int64, Schema, String
from ripple.wire import arrow
from ripple.wire.bin_prot import codec_for, list_of
from ripple.wire.crc import crc32c
from ripple.wire.envelope import Decoder, encode
from ripple.wire.messages import Changes, cut_of, from_frame, to_frame

BATCH = 1000
SCHEMA = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
)
VALUES = ("AAPL", 150.25, 200, 1709000001000000000, "XNAS")
NAMED = dict(zip((field.name for field in SCHEMA.fields), VALUES, strict=True))


@dataclass(frozen=True, slots=True)
class Trade:
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


def measure() -> list[Row]:
    return [
        *_trades(),
        *(row for size in (4096, 65536, 1 << 20) for row in _checksums(size)),
        *map(_changes, (1000, 16_384)),
    ]


def _trades() -> Iterator[Row]:
    for batch in (1, BATCH):
        label = "one by one" if batch == 1 else f"in batches of {batch:,}"
        took = in_turns(_round_trips(batch))
        others = {name: seconds / batch * 1e9 for name, seconds in took.items()}
        ours = others.pop("bin_prot")
        aim = at_most(1.0, of_ratio=True)
        yield from beside(f"trade round trip, {label}", ours, "ns", others, aim)


def _round_trips(batch: int) -> dict[str, Callable[[], object]]:
    one = codec_for(SCHEMA, Trade)
    as_dict = codec_for(SCHEMA)
    pack, unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(PackedTrade).decode
    unpack_list = msgspec.msgpack.Decoder(list[PackedTrade]).decode
    trade, packed, proto = Trade(*VALUES), PackedTrade(*VALUES), _protobuf()
    message = proto["Trade"](**NAMED)
    if batch == 1:
        return {
            "bin_prot": lambda: one.loads(one.dumps(trade)),
            "msgspec MessagePack": lambda: unpack(pack(packed)),
            "protobuf": lambda: _fields(proto["Trade"].FromString(message.SerializeToString())),
            "struct": lambda: _of_struct(_to_struct(trade)),
            "bin_prot, dicts": lambda: as_dict.loads(as_dict.dumps(NAMED)),
        }
    many = list_of(one)
    dicts = list_of(as_dict)
    trades, packeds, named = [trade] * batch, [packed] * batch, [NAMED] * batch
    messages = proto["Trades"](trades=[message] * batch)
    return {
        "bin_prot": lambda: many.loads(many.dumps(trades)),
        "msgspec MessagePack": lambda: unpack_list(pack(packeds)),
        "protobuf": lambda: [
            _fields(t) for t in proto["Trades"].FromString(messages.SerializeToString()).trades
        ],
        "struct": lambda: [_of_struct(data) for data in [_to_struct(t) for t in trades]],
        "bin_prot, dicts": lambda: dicts.loads(dicts.dumps(named)),
    }


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


def _protobuf() -> dict[str, Any]:
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
    frame = to_frame(Changes("vwap", 0, 1, None, (), None, np.random.default_rng(3).bytes(size)))
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


def _changes(count: int) -> Row:
    batch = _batch(count)
    listed = batch.to_pylist()
    pack, unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: _received(_sent(batch), batch.schema),
        "msgspec": lambda: unpack(pack(listed)),
    }
    rates = {name: count / seconds / 1e6 for name, seconds in in_turns(calls).items()}
    name = f"Changes of {count:,} deltas, encode + decode"
    versus = "MessagePack of dicts (msgspec)"
    return Row(name, rates["ours"], "M/s", versus, rates["msgspec"], at_least(10))


def _batch(count: int) -> pa.RecordBatch:
    draw = np.random.default_rng(1)
    return pa.record_batch(
        {
            "key": [f"SYM{n:05d}" for n in range(count)],
            "operation": pa.array(np.zeros(count, np.int8)),
            "vwap": draw.random(count),
            "total_volume": draw.integers(0, 10**6, count),
            "trade_count": draw.integers(0, 10**4, count),
        }
    )


def _sent(batch: pa.RecordBatch) -> bytes:
    cuts = cut_of({"trades/0": 17}), cut_of({"trades/0": 1017})
    return encode(to_frame(Changes("vwap", 0, 1, *cuts, 1709000000000000000, arrow.dumps(batch))))


def _received(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    message = from_frame(_decoded(data))
    assert isinstance(message, Changes)
    return arrow.loads(message.body, schema)
