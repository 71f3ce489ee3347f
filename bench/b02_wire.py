"""B-02: the wire. One trade and a thousand through each encoding; CRC; columnar changes."""

from __future__ import annotations

import struct
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import crc32c as bare_crc
import msgspec
import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

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


def measure() -> list[dict[str, Any]]:
    """Return rows of name, value, unit, versus and ratio (above 1: better than the other)."""
    return [*_trades(), *_crc(), *_changes()]


def _seconds(work: Callable[[], object]) -> float:
    """The best of several repetitions of about 20 ms each."""
    timer = timeit.Timer(work)
    number, _ = timer.autorange(None)
    number = max(1, number // 10)
    return min(timer.repeat(repeat=9, number=number)) / number


def _row(
    name: str, value: float, unit: str, versus: str | None = None, ratio: float | None = None
) -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "versus": versus, "ratio": ratio}


def _trades() -> list[dict[str, Any]]:
    rows = []
    for batch in (1, BATCH):
        label = "one by one" if batch == 1 else f"in batches of {batch}"
        times = {name: _seconds(work) / batch * 1e9 for name, work in _round_trips(batch).items()}
        ours = times.pop("bin_prot")
        rows.append(_row(f"trade round trip, {label}, bin_prot", ours, "ns"))
        rows += [
            _row(f"trade round trip, {label}, {name}", other, "ns", "bin_prot", other / ours)
            for name, other in times.items()
        ]
    return rows


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
            "bin_prot (dicts)": lambda: as_dict.loads(as_dict.dumps(NAMED)),
            "msgspec MessagePack": lambda: unpack(pack(packed)),
            "protobuf": lambda: _fields(proto["Trade"].FromString(message.SerializeToString())),
            "struct": lambda: _of_struct(_to_struct(trade)),
        }
    many = list_of(one)
    dicts = list_of(as_dict)
    trades, packeds, named = [trade] * batch, [packed] * batch, [NAMED] * batch
    messages = proto["Trades"](trades=[message] * batch)
    return {
        "bin_prot": lambda: many.loads(many.dumps(trades)),
        "bin_prot (dicts)": lambda: dicts.loads(dicts.dumps(named)),
        "msgspec MessagePack": lambda: unpack_list(pack(packeds)),
        "protobuf": lambda: [
            _fields(t) for t in proto["Trades"].FromString(messages.SerializeToString()).trades
        ],
        "struct": lambda: [_of_struct(data) for data in [_to_struct(t) for t in trades]],
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


def _crc() -> list[dict[str, Any]]:
    rows = []
    for size in (4096, 65536, 1 << 20):
        data = np.random.default_rng(2).bytes(size)
        ours = size / _seconds(lambda data=data: crc32c(data)) / 1e9
        bare = size / _seconds(lambda data=data: bare_crc.crc32c(data)) / 1e9
        rows.append(_row(f"CRC-32C of {size} bytes", ours, "GB/s", "crc32c package", ours / bare))
    for size in (4096, 1 << 20):
        frame = to_frame(
            Changes("vwap", 0, 1, None, (), None, np.random.default_rng(3).bytes(size))
        )
        data = encode(frame)
        bare = _seconds(lambda data=data: bare_crc.crc32c(data))
        for name, work in (
            ("encode", lambda frame=frame: encode(frame)),
            ("decode", lambda data=data: _decoded(data)),
        ):
            took = _seconds(work)
            rows.append(
                _row(
                    f"envelope {name}, {size} bytes of payload",
                    size / took / 1e9,
                    "GB/s",
                    "bare CRC-32C of the same bytes",
                    bare / took,
                )
            )
    return rows


def _decoded(data: bytes) -> Any:
    decoder = Decoder()
    decoder.receive(data)
    return next(decoder)


def _changes() -> list[dict[str, Any]]:
    rows = []
    for count in (1000, 16_384):
        batch = _batch(count)
        sent = _sent(batch)
        encode_s = _seconds(lambda batch=batch: _sent(batch))
        decode_s = _seconds(lambda sent=sent, batch=batch: _received(sent, batch.schema))
        both = count / (encode_s + decode_s) / 1e6
        rows += [
            _row(f"Changes of {count} deltas, encode", count / encode_s / 1e6, "M deltas/s"),
            _row(f"Changes of {count} deltas, decode", count / decode_s / 1e6, "M deltas/s"),
            _row(
                f"Changes of {count} deltas, encode + decode",
                both,
                "M deltas/s",
                "the aim of 10",
                both / 10,
            ),
        ]
    return rows


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


if __name__ == "__main__":
    for row in measure():
        beside = f"  {row['ratio']:.2f} x {row['versus']}" if row["versus"] else ""
        print(f"{row['name']:<60}{row['value']:>12,.2f} {row['unit']}{beside}")
