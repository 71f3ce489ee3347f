"""A message of each type of the wire."""

from __future__ import annotations

from ripple.exchange.wire.codec import STRING
from ripple.exchange.wire.edge_messages import (
    Bundle,
    Follow,
    Grant,
    GrantedRows,
    Release,
    Section,
    Trace,
    Unfollow,
)
from ripple.exchange.wire.messages import (
    CheckpointAck,
    CheckpointRequest,
    Delta,
    Goodbye,
    Handshake,
    Heartbeat,
    Message,
    Ping,
    Pong,
    Reason,
    SchemaNegotiation,
    cut_of,
)
from ripple.model.schema.types import Field, Float, Schema, String

VWAP = Schema("vwap", (Field("symbol", String()), Field("vwap", Float())), version=2)
CUT = cut_of({"trades/1": 7, "quotes/1": 2**40})
SAMPLES: list[Message] = [
    Handshake("w0", (("vwap", VWAP),)),
    Delta("vwap", STRING.dumps("AAPL"), b"\2", 42, 1709000000000000000),
    CheckpointRequest("ckpt-w1-42", 42),
    CheckpointAck("ckpt-w1-42", "w1", 42),
    CheckpointAck("ckpt-w1-42", "w1", 42, "the disk is full"),
    Heartbeat("w0", 1709000000000000000, 0.25),
    SchemaNegotiation(True),
    SchemaNegotiation(False, ("missing field x",)),
    Ping(-1),
    Pong(2**62),
    Goodbye(Reason.MOVED, "to w7"),
    Bundle(
        "vwap/1",
        (
            Section(3, 0, 1, 5, CUT, cut_of({"trades/1": 9}), 17, 2),
            Section(4, 0, 2, 5, None, CUT, -(2**63), 1, 2**40, more=True),
        ),
        b"arrow",
    ),
    Follow("vwap/1", 3, 0, 2, 5, CUT, 65536, 17),
    Follow("vwap/1", 3, 0, 1, None, None, 65536),
    Unfollow("vwap/1", 3, 0),
    Grant(1 << 20, (GrantedRows("vwap/1", 3, 0, 2, 4096),)),
    Release("vwap/1", 3, 0, 17),
    Trace("vwap/1", 3, 0, 2, ("00-17380abc6f63f3cdaf093916e327df84-88b8fa2222fd7ba5-01",)),
]
