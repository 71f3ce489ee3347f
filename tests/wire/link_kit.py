"""What the tests of links share: plain tables that follow a link's events, and scripted peers.

The body of changes is text here, ``AAPL=3,-MSFT``: a link never looks into it.
"""

from __future__ import annotations

from typing import Any

from ripple.schema.fingerprint import fingerprint as schema_fingerprint
from ripple.schema.types import Field, Float, Schema, String
from ripple.wire.envelope import Decoder, encode
from ripple.wire.link import Link
from ripple.wire.link_events import (
    ChangesReceived,
    Ended,
    Event,
    SnapshotAdopted,
    SnapshotDropped,
    SnapshotRows,
    SnapshotStarted,
)
from ripple.wire.link_limits import LinkLimits
from ripple.wire.messages import (
    Changes,
    Cut,
    Message,
    SnapshotBegin,
    SnapshotEnd,
    cut_of,
    from_frame,
    to_frame,
)
from ripple.wire.outbox import Outbox
from ripple.wire.outbox import Table as OutboxTable
from ripple.wire.position import Stream

Table = dict[str, str]
VWAP = Stream("vwap", 0)


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
    return Link(
        name,
        outputs={} if outputs is None else outputs,
        inputs={} if inputs is None else inputs,
        **options,
    )


def small_limits(**limits: int) -> LinkLimits:
    """A frame of 600 bytes, a window of two."""
    return LinkLimits(**(SMALL | limits))


SMALL = {"frame_bytes_max": 600, "credit_window_bytes": 1200, "reason_chars_max": 100}


def body_of(table: dict[str, str | None]) -> bytes:
    return ",".join(
        f"-{key}" if value is None else f"{key}={value}" for key, value in table.items()
    ).encode()


def changes_of(body: bytes | memoryview) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for item in filter(None, bytes(body).decode().split(",")):
        key, _, value = item.partition("=")
        changes[key.removeprefix("-")] = None if item.startswith("-") else value
    return changes


def apply(table: Table, changes: dict[str, str | None]) -> None:
    for key, value in changes.items():
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value


class Replica:
    """The tables of a consumer, kept by nothing but its links' events.

    Invariant: what is filling belongs to a link that has not ended.
    """

    def __init__(self) -> None:
        self.tables: dict[Stream, Table] = {}
        self.filling: dict[tuple[int, Stream], Table] = {}

    def follow(self, source: Link, events: list[Event], *, give_back: bool = True) -> None:
        for event in events:
            key = (id(source), getattr(event, "stream", None))
            match event:
                case ChangesReceived(stream, changes, credit_bytes):
                    apply(self.tables[stream], changes_of(changes.body))
                    if give_back:
                        source.grant_credit(stream, credit_bytes)
                case SnapshotStarted():
                    assert key not in self.filling
                    self.filling[key] = {}
                case SnapshotRows(stream, changes, credit_bytes):
                    apply(self.filling[key], changes_of(changes.body))
                    if give_back:
                        source.grant_credit(stream, credit_bytes)
                case SnapshotAdopted(stream, end):
                    table = self.filling.pop(key)
                    assert len(table) == end.rows
                    self.tables[stream] = table
                case SnapshotDropped():
                    del self.filling[key]
                case Ended():
                    assert event is events[-1]
                    assert not any(owner == id(source) for owner, _ in self.filling)


class DictRows:
    """An outbox's batches as dicts: the slow, obvious twin of the columns."""

    count = staticmethod(len)
    body = staticmethod(body_of)

    @staticmethod
    def compose(older, newer):
        return {**older, **newer}

    @staticmethod
    def part(rows, start, count):
        return dict(list(rows.items())[start : start + count])

    @staticmethod
    def deltas(rows):
        return [(key.encode(), b"-" if v is None else v.encode()) for key, v in rows.items()]


class Source:
    """The tables of a producer, and the outboxes that publish their changes."""

    def __init__(self, epoch: int = 1) -> None:
        self.epoch = epoch
        self.tables: dict[Stream, Table] = {}
        self.cuts: dict[Stream, Cut] = {}

    def outbox(self, to: Link, **options: Any) -> Outbox[dict[str, str | None]]:
        return Outbox(to, self.table, lambda _: DictRows(), **options)

    def table(self, stream: Stream) -> OutboxTable[dict[str, str | None]]:
        rows = dict(self.tables.get(stream, {}))
        return OutboxTable(self.epoch, self.cuts.get(stream, ()), rows)

    def change(self, stream: Stream, to_cut: Cut, rows: dict[str, str | None], *boxes: Any) -> None:
        from_cut = self.cuts.get(stream, ())
        apply(self.tables.setdefault(stream, {}), rows)
        self.cuts[stream] = to_cut
        for box in boxes:
            box.publish(stream, self.epoch, from_cut, to_cut, dict(rows))


def fingerprint_of(message: Message) -> str:
    """Version 1 of its output's schema, on what carries data."""
    if not isinstance(message, Changes):
        return ""
    return schema_fingerprint(schema(1, message.output or "nameless"))


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


def begin(epoch: int, stream: Stream = VWAP, **cut: int) -> SnapshotBegin:
    return SnapshotBegin(*stream, epoch, cut_of(cut))


def rows(epoch: int, table: dict[str, str], stream: Stream = VWAP, **cut: int) -> Changes:
    return Changes(*stream, epoch, None, cut_of(cut), None, body_of(dict(table)))


def end(epoch: int, count: int, stream: Stream = VWAP, **cut: int) -> SnapshotEnd:
    return SnapshotEnd(*stream, epoch, cut_of(cut), count)


def changes(
    epoch: int,
    from_cut: dict[str, int],
    to_cut: dict[str, int],
    table: dict[str, str | None],
    stream: Stream = VWAP,
) -> Changes:
    return Changes(*stream, epoch, cut_of(from_cut), cut_of(to_cut), None, body_of(table))


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
