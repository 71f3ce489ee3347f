"""Byte for byte what the original library wrote; the values are named in its README."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from ripple.engine.changes.rows import FieldRemove, FieldSet, MapRemove, MapSet, Patch, Remove, Set
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.codec import FLOAT, INT, INT64, STRING, Codec, option
from ripple.exchange.wire.messages import Delta, Handshake, Heartbeat
from ripple.exchange.wire.records import CHECKPOINT, SCHEMA, Checkpoint, NodeSnapshot, delta_of
from ripple.model.schema.types import (
    Bool,
    Case,
    Field,
    Float,
    Int,
    Int64,
    List,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)

LINES = [
    line.split("\t")
    for line in (Path(__file__).parents[2] / "data/bin_prot.tsv").read_text().splitlines()
]
BINARY = [(label, bytes.fromhex(text)) for label, text in LINES if not label.startswith("sexp ")]

TRADE_SCHEMA = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
)
SCHEMA_VALUE = Schema(
    "trade",
    (
        *TRADE_SCHEMA.fields[:4],
        Field("venue", String(), optional=True, doc="MIC"),
        Field("tags", List(Option(String())), optional=True),
        Field("leg", Record((Field("x", Bool()),)), optional=True),
        Field("kind", Variant((Case("A", (Int(), Ref("vwap"))), Case("B"))), optional=True),
        Field("raw", Opaque(), optional=True),
    ),
    doc="Trade event from exchange",
)
TRADE = codec_for(TRADE_SCHEMA)
TRADE_VALUE = {
    "symbol": "AAPL",
    "price": 150.25,
    "size": 200,
    "timestamp_ns": 1709000001000000000,
    "venue": "XNAS",
}
LETTERS = {"0": "", "4": "AAPL", "127": "x" * 127, "128": "y" * 128, "300": "z" * 300}
KEY = STRING.dumps("AAPL")

NAMED: dict[str, tuple[Codec[Any], Any]] = {
    "option none": (option(INT64), None),
    "option some": (option(INT64), 5),
    "trade": (TRADE, TRADE_VALUE),
    "schema": (SCHEMA, SCHEMA_VALUE),
    "delta set trade": (delta_of(TRADE), Set(TRADE_VALUE)),
    "delta patch": (
        delta_of(TRADE),
        Patch(
            (
                FieldSet("price", "150.30"),
                FieldRemove("venue"),
                MapSet("k", ["a", []]),
                MapRemove("k2"),
            )
        ),
    ),
    "delta remove": (delta_of(TRADE), Remove()),
    "handshake": (Handshake.codec, Handshake("w0", (("vwap", SCHEMA_VALUE),), 1)),
    "delta_msg none": (
        Delta.codec,
        Delta("vwap", KEY, delta_of(TRADE).dumps(Remove()), 42, None),
    ),
    "delta_msg some": (Delta.codec, Delta("vwap", KEY, b"q" * 200, 100000, 1709000000000000000)),
    "heartbeat": (Heartbeat.codec, Heartbeat("w0", 1709000000000000000, 0.25)),
    "checkpoint": (
        CHECKPOINT,
        Checkpoint(
            "ckpt-w1-42",
            "w1",
            "p0",
            1709000000000000000,
            42,
            (NodeSnapshot(0, 0, b"abc"), NodeSnapshot(300, 2, b"")),
            (("trades", 1000000),),
            4001,
        ),
    ),
}


def _meaning(label: str) -> tuple[Codec[Any], Any]:
    kind, _, rest = label.partition(" ")
    if kind == "int":
        return INT, int(rest)
    if kind == "int64":
        return INT64, int(rest)
    if kind == "float":
        return FLOAT, float.fromhex(rest)
    if kind == "string":
        return STRING, LETTERS[rest]
    return NAMED[label]


@pytest.mark.parametrize(("label", "data"), BINARY, ids=[label for label, _ in BINARY])
def test_each_vector_is_read_and_written_exactly(label: str, data: bytes) -> None:
    codec, value = _meaning(label)
    read = codec.loads(data)
    if label == "float nan":
        assert math.isnan(read)
        assert math.isnan(codec.loads(codec.dumps(value)))
    else:
        assert read == value
        assert codec.dumps(value) == data
    assert codec.dumps(read) == data
    assert codec.read(b"\xff" + data + b"\xff", 1) == (read, 1 + len(data)) or math.isnan(read)


def test_every_vector_is_covered() -> None:
    assert len(BINARY) == len(LINES) - 2 == 53
    assert {label for label, _ in BINARY} >= set(NAMED)
