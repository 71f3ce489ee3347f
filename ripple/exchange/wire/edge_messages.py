"""Messages between partitions of neighbouring stages: types 24-29, capability ``edges``.

A stream is (edge, sender, target): an edge by its name in the handshake, two partition numbers. The
receiver begins it, with a turn that is higher than that of any Follow of the stream before;
messages of an earlier turn are ignored. How they are used: ``docs/exchange.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

from ripple.core.tracing import CONTEXTS_MAX
from ripple.exchange.wire import traceparent as _traceparent
from ripple.exchange.wire.codec import (
    BOOL,
    INT,
    INT64,
    STRING,
    Buffer,
    option,
    pair,
    record,
    tuple_of,
)
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.messages import MESSAGES, Cut, Message, check_cut, check_place

if TYPE_CHECKING:
    from ripple.exchange.wire.codec import Codec

SECTIONS_MAX = 1 << 14
STREAMS_MAX = 1 << 14

_CUT: Codec[Cut] = tuple_of(pair(STRING, INT64))


@dataclass(frozen=True, slots=True)
class Section:
    """Rows of one stream in a bundle: changes from ``since`` to ``cut``, or the table there.

    since: None for a table. rows: their number in the bundle, after those of the previous section.
    start: how many rows of the same changes came in earlier sections; more: others follow in the
    next one, and all are applied as one.
    """

    sender: int
    target: int
    turn: int
    epoch: int
    since: Cut | None
    cut: Cut
    watermark_ns: int
    rows: int
    start: int = 0
    more: bool = False

    def __post_init__(self) -> None:
        check_place(self.sender, self.epoch)
        check_place(self.target, self.turn)
        check_cut(self.cut)
        if self.since is not None:
            check_cut(self.since)
        if self.rows < 0 or self.start < 0:
            raise LocalProtocolError(f"a section of {self.rows} rows from {self.start}")


@dataclass(frozen=True, slots=True)
class Bundle(Message):
    """Rows of many streams of one edge; ``body`` is an Arrow IPC stream of one record batch."""

    type: ClassVar[int] = 24

    edge: str
    sections: tuple[Section, ...]
    body: Buffer = field(repr=False)

    def to_bytes(self) -> bytes:
        """Return the header as bin_prot, then the Arrow bytes up to the end."""
        return b"".join((self.codec.dumps(_Header(self.edge, self.sections)), self.body))

    @classmethod
    def from_bytes(cls, payload: Buffer) -> Self:
        """Read the header; the body stays a view of ``payload``, not yet decoded."""
        header, at = cls.codec.read(payload)
        if len(header.sections) > SECTIONS_MAX:
            raise RemoteProtocolError(
                f"a bundle of {len(header.sections)} sections; SECTIONS_MAX is {SECTIONS_MAX}"
            )
        return cls(header.edge, header.sections, memoryview(payload)[at:])


@dataclass(frozen=True, slots=True)
class _Header:
    edge: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Follow(Message):
    """The receiver begins a stream, or restarts it.

    epoch, cut: of its state, None if it has none; it accepts nothing older. rows: its credit.
    released_ns: a watermark up to which final rows are durable, None if none are.
    """

    type: ClassVar[int] = 25

    edge: str
    sender: int
    target: int
    turn: int
    epoch: int | None
    cut: Cut | None
    rows: int
    released_ns: int | None = None

    def __post_init__(self) -> None:
        check_place(self.sender, self.epoch or 0)
        check_place(self.target, self.turn)
        if self.cut is not None:
            check_cut(self.cut)
        if self.rows <= 0:
            raise LocalProtocolError(f"a credit of {self.rows} rows")


@dataclass(frozen=True, slots=True)
class Unfollow(Message):
    """The receiver ends a stream."""

    type: ClassVar[int] = 26

    edge: str
    sender: int
    target: int

    def __post_init__(self) -> None:
        check_place(self.sender)
        check_place(self.target)


@dataclass(frozen=True, slots=True)
class GrantedRows:
    """Credit for more rows of a stream."""

    edge: str
    sender: int
    target: int
    turn: int
    rows: int

    def __post_init__(self) -> None:
        check_place(self.sender, self.turn)
        check_place(self.target, self.rows)


@dataclass(frozen=True, slots=True)
class Grant(Message):
    """Rows were applied: credit for more bytes of bundles, and rows of streams."""

    type: ClassVar[int] = 27

    window_bytes: int
    streams: tuple[GrantedRows, ...] = ()

    def __post_init__(self) -> None:
        if self.window_bytes < 0 or len(self.streams) > STREAMS_MAX:
            raise LocalProtocolError(
                f"a grant of {self.window_bytes} bytes to {len(self.streams)} streams"
            )


@dataclass(frozen=True, slots=True)
class Release(Message):
    """Final rows of a stream up to ``watermark_ns`` are durable at the receiver."""

    type: ClassVar[int] = 28

    edge: str
    sender: int
    target: int
    watermark_ns: int

    def __post_init__(self) -> None:
        check_place(self.sender)
        check_place(self.target)


@dataclass(frozen=True, slots=True)
class Trace(Message):
    """The trace contexts of a stream's next section; capability ``traces``.

    contexts: each the text of a W3C ``traceparent``.
    """

    type: ClassVar[int] = 29

    edge: str
    sender: int
    target: int
    turn: int
    contexts: tuple[str, ...]

    def __post_init__(self) -> None:
        check_place(self.sender, self.turn)
        check_place(self.target)
        if not 0 < len(self.contexts) <= CONTEXTS_MAX:
            raise LocalProtocolError(f"{len(self.contexts)} traces, not 1 to {CONTEXTS_MAX}")
        for one in self.contexts:
            _traceparent.parse(one)


EdgeMessage: TypeAlias = Bundle | Follow | Unfollow | Grant | Release | Trace

_SECTION = record(
    Section,
    {
        "sender": INT,
        "target": INT,
        "turn": INT64,
        "epoch": INT64,
        "since": option(_CUT),
        "cut": _CUT,
        "watermark_ns": INT64,
        "rows": INT,
        "start": INT64,
        "more": BOOL,
    },
)
Bundle.codec = record(_Header, {"edge": STRING, "sections": tuple_of(_SECTION)})
Follow.codec = record(
    Follow,
    {
        "edge": STRING,
        "sender": INT,
        "target": INT,
        "turn": INT64,
        "epoch": option(INT64),
        "cut": option(_CUT),
        "rows": INT,
        "released_ns": option(INT64),
    },
)
Unfollow.codec = record(Unfollow, {"edge": STRING, "sender": INT, "target": INT})
_GRANTED = record(
    GrantedRows, {"edge": STRING, "sender": INT, "target": INT, "turn": INT64, "rows": INT}
)
Grant.codec = record(Grant, {"window_bytes": INT64, "streams": tuple_of(_GRANTED)})
Release.codec = record(
    Release, {"edge": STRING, "sender": INT, "target": INT, "watermark_ns": INT64}
)

Trace.codec = record(
    Trace,
    {
        "edge": STRING,
        "sender": INT,
        "target": INT,
        "turn": INT64,
        "contexts": tuple_of(STRING),
    },
)

EDGE_MESSAGES: dict[int, type[Message]] = {
    cls.type: cls for cls in (Bundle, Follow, Unfollow, Grant, Release, Trace)
}
MESSAGES.update(EDGE_MESSAGES)
