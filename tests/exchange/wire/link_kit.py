"""What the tests of links share: ends of a connection, and peers that say what they are told to.

The body of a bundle is text here, ``AAPL=3``: a link never looks into it.
"""

from __future__ import annotations

from typing import Any

from ripple.exchange.wire.edge_messages import Bundle, Section
from ripple.exchange.wire.envelope import Decoder, encode
from ripple.exchange.wire.link import Link
from ripple.exchange.wire.link_events import Event
from ripple.exchange.wire.link_limits import LinkLimits
from ripple.exchange.wire.messages import Message, from_frame, to_frame
from ripple.model.schema.fingerprint import fingerprint as schema_fingerprint
from ripple.model.schema.types import Field, Float, Schema, String

CAN = frozenset({"changes", "edges"})


def schema(version: int, name: str = "vwap") -> Schema:
    """Version 1 has a key and a value; each further one adds a required field."""
    more = tuple(Field(f"extra_{number}", Float()) for number in range(2, version + 1))
    return Schema(name, (Field("key", String()), Field("value", Float()), *more), version)


def link(
    name: str,
    outputs: dict[str, Schema] | None = None,
    inputs: dict[str, Schema] | None = None,
    **options: Any,
) -> Link:
    options.setdefault("now_ns", 0)
    options.setdefault("capabilities", CAN)
    return Link(
        name,
        outputs={} if outputs is None else outputs,
        inputs={} if inputs is None else inputs,
        **options,
    )


def small_limits(**limits: int) -> LinkLimits:
    """A frame of 600 bytes."""
    return LinkLimits(**(SMALL | limits))


SMALL = {"frame_bytes_max": 600, "reason_chars_max": 100}


def bundle(body: bytes = b"AAPL=1", edge: str = "vwap") -> Bundle:
    return Bundle(edge, (Section(0, 0, 1, 1, None, (), 0, 1),), body)


def fingerprint_of(message: Message) -> str:
    """Version 1 of its edge's schema, on what carries data."""
    if not isinstance(message, Bundle):
        return ""
    return schema_fingerprint(schema(1, message.edge or "nameless"))


class Script:
    """A peer that says whatever it is told to, right or wrong, and remembers what it heard."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._outgoing = b""
        self.sequence = 0

    def says(self, message: Message, *, fingerprint: str | None = None) -> bytes:
        self.sequence += 1
        if fingerprint is None:
            fingerprint = fingerprint_of(message)
        frame = to_frame(message, sequence=self.sequence, fingerprint=fingerprint)
        data = encode(frame)
        self._outgoing += data
        return data

    def data_to_send(self) -> bytes:
        data, self._outgoing = self._outgoing, b""
        return data

    def hears(self, data: bytes) -> list[Message]:
        self._decoder.receive(data)
        return [from_frame(frame) for frame in self._decoder]


def say_hello(a: Link, b: Link, now_ns: int = 0) -> tuple[list[Event], list[Event]]:
    """Let both sides greet, and return the events of each."""
    a.handshake()
    b.handshake()
    return exchange(a, b, now_ns)


def exchange(a: Link, b: Link, now_ns: int = 0) -> tuple[list[Event], list[Event]]:
    """Carry bytes both ways until nobody has more to say."""
    of_a: list[Event] = []
    of_b: list[Event] = []
    while True:
        to_b, to_a = a.data_to_send(), b.data_to_send()
        if not to_b and not to_a:
            return of_a, of_b
        of_b += b.receive(to_b, now_ns) if to_b else []
        of_a += a.receive(to_a, now_ns) if to_a else []
        a.check_invariants()
        b.check_invariants()
