"""What peers say to each other. Types 0-5 are the original's, to the byte; from 16 on, ours.

Capabilities. A peer that knows only types 0-5 must be able to talk to us, so what else we can
do travels inside the Handshake, in bytes that it understands: one more entry of
``output_schemas``, under the reserved name ``ripple.capabilities``, whose schema has one optional
opaque field for each capability. To such a peer it is one more output, which it does not read.
Each side sends a Handshake; a capability may be used once both have named it
(``Handshake.capabilities``, ``Handshake.outputs``). Without ``changes`` only types 0-5 are
spoken, one key per Delta; what proves who speaks is one more, under ``credential:``, which others
take for one that they do not know; ``edges``, which needs ``changes``, brings the types from 24 on
(:mod:`ripple.wire.edge_messages`), ``traces`` the type 29; without ``lz4`` or ``zstd`` nothing is
compressed that way.

What the original leaves open. Its documents give no field list for CheckpointRequest,
CheckpointAck and SchemaNegotiation; theirs are chosen here from what the text says they do.

Snapshots. SnapshotRequest asks for an output from scratch; the answer is SnapshotBegin, any
number of Changes with ``from_cut=None`` (rows to set, no base), SnapshotEnd. Changes that follow
start at the snapshot's cut: ``from_cut`` equals the ``to_cut`` before it, or there is a gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from ripple.encoding.compression import Compression
from ripple.schema.types import Field, Opaque, Schema
from ripple.wire import traceparent as _traceparent
from ripple.wire.codec import (
    BOOL,
    BYTES,
    FLOAT,
    INT,
    INT64,
    STRING,
    Buffer,
    Codec,
    enumeration,
    option,
    pair,
    record,
    tuple_of,
)
from ripple.wire.envelope import VERSION, Frame
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.records import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CAPABILITIES_NAME = "ripple.capabilities"
CAPABILITIES = frozenset({"changes", "edges", "lz4", "traces", "zstd"})
_CREDENTIAL = "credential:"

# Per input, the next offset to read; sorted by input, each input once.
Cut: TypeAlias = tuple[tuple[str, int], ...]

_CUT: Codec[Cut] = tuple_of(pair(STRING, INT64))


def cut_of(offsets: Mapping[str, int]) -> Cut:
    """Return the cut in its one wire order."""
    return tuple(sorted(offsets.items()))


def check_cut(cut: Cut) -> None:
    """Raise :class:`LocalProtocolError` unless this is a cut in its one wire order."""
    inputs = [name for name, _ in cut]
    if inputs != sorted(set(inputs)) or any(offset < 0 for _, offset in cut):
        raise LocalProtocolError(f"not a cut (sorted inputs, offsets from 0): {cut!r:.120}")


def check_place(partition: int, epoch: int = 0) -> None:
    """Raise :class:`LocalProtocolError` for a negative number."""
    if partition < 0 or epoch < 0:
        raise LocalProtocolError(f"partition {partition}, epoch {epoch}: neither is negative")


class Message:
    """A message: ``type`` is its number in the envelope."""

    __slots__ = ()

    type: ClassVar[int]
    codec: ClassVar[Codec[Any]]

    def to_bytes(self) -> bytes:
        """Return the payload; raises :class:`LocalProtocolError` naming the field at fault."""
        return self.codec.dumps(self)

    @classmethod
    def from_bytes(cls, payload: Buffer) -> Self:
        """Read a whole payload; raises :class:`RemoteProtocolError`."""
        message: Self = cls.codec.loads(payload)
        return message


# --- The original's ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Handshake(Message):
    """The first message of each side: who it is and what it sends."""

    type: ClassVar[int] = 0

    source_worker_id: str
    output_schemas: tuple[tuple[str, Schema], ...] = ()
    protocol_version: int = VERSION

    def __post_init__(self) -> None:
        names = [name for name, _ in self.output_schemas]
        if len(set(names)) != len(names):
            raise LocalProtocolError(f"an output is declared twice: {names!r:.200}")

    @classmethod
    def announce(
        cls,
        source_worker_id: str,
        outputs: Mapping[str, Schema],
        capabilities: Iterable[str] = (),
        credential: str = "",
    ) -> Self:
        """Return our Handshake, the capabilities hidden where the original cannot stumble."""
        entries = tuple(outputs.items())
        names = sorted(capabilities)
        names += [_CREDENTIAL + credential] if credential else []
        fields = tuple(Field(name, Opaque(), optional=True) for name in names)
        if fields:
            entries += ((CAPABILITIES_NAME, Schema(CAPABILITIES_NAME, fields)),)
        return cls(source_worker_id, entries)

    @property
    def outputs(self) -> dict[str, Schema]:
        """The real outputs, by name."""
        return {name: s for name, s in self.output_schemas if name != CAPABILITIES_NAME}

    @property
    def capabilities(self) -> frozenset[str]:
        """What the sender can do beyond the original; unknown names are for later versions."""
        return frozenset(name for name in self._hidden if not name.startswith(_CREDENTIAL))

    @property
    def credential(self) -> str:
        """What proves who the sender is, "" for nothing."""
        found = [name for name in self._hidden if name.startswith(_CREDENTIAL)]
        return found[0].removeprefix(_CREDENTIAL) if len(found) == 1 else ""

    @property
    def _hidden(self) -> tuple[str, ...]:
        hidden = dict(self.output_schemas).get(CAPABILITIES_NAME)
        return tuple(one.name for one in hidden.fields) if hidden else ()


@dataclass(frozen=True, slots=True)
class Delta(Message):
    """One key's change; ``key`` and ``delta_bytes`` are bin_prot in themselves."""

    type: ClassVar[int] = 1

    source_output: str
    key: bytes
    delta_bytes: bytes
    sequence_no: int
    watermark_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CheckpointRequest(Message):
    """The coordinator asks a worker for a checkpoint."""

    type: ClassVar[int] = 2

    checkpoint_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class CheckpointAck(Message):
    """The worker has made the checkpoint, or says why not."""

    type: ClassVar[int] = 3

    checkpoint_id: str
    worker_id: str
    epoch: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat(Message):
    """The worker is alive; ``load`` goes from 0 to 1."""

    type: ClassVar[int] = 4

    worker_id: str
    timestamp_ns: int
    load: float


@dataclass(frozen=True, slots=True)
class SchemaNegotiation(Message):
    """The answer to a Handshake: whether the receiver can read every output that it wants."""

    type: ClassVar[int] = 5

    ok: bool
    errors: tuple[str, ...] = ()


Handshake.codec = record(
    Handshake,
    {
        "source_worker_id": STRING,
        "output_schemas": tuple_of(pair(STRING, SCHEMA)),
        "protocol_version": INT,
    },
)
Delta.codec = record(
    Delta,
    {
        "source_output": STRING,
        "key": BYTES,
        "delta_bytes": BYTES,
        "sequence_no": INT,
        "watermark_ns": option(INT64),
    },
)
CheckpointRequest.codec = record(CheckpointRequest, {"checkpoint_id": STRING, "epoch": INT})
CheckpointAck.codec = record(
    CheckpointAck,
    {"checkpoint_id": STRING, "worker_id": STRING, "epoch": INT, "error": option(STRING)},
)
Heartbeat.codec = record(Heartbeat, {"worker_id": STRING, "timestamp_ns": INT64, "load": FLOAT})
SchemaNegotiation.codec = record(SchemaNegotiation, {"ok": BOOL, "errors": tuple_of(STRING)})


# --- Ours ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Changes(Message):
    """All deltas of one output of one partition between two cuts, as columns.

    ``from_cut`` is where the receiver must stand; None in a snapshot, which has no base. ``body``
    is an Arrow IPC stream of one record batch (:mod:`ripple.encoding.arrow`). Applying it twice is
    applying it once.
    """

    type: ClassVar[int] = 16

    output: str
    partition: int
    epoch: int
    from_cut: Cut | None
    to_cut: Cut
    watermark_ns: int | None
    body: Buffer = field(repr=False)
    traceparent: str | None = None

    def __post_init__(self) -> None:
        check_place(self.partition, self.epoch)
        check_cut(self.to_cut)
        if self.from_cut is not None:
            check_cut(self.from_cut)
        if self.traceparent is not None:
            _traceparent.parse(self.traceparent)

    def to_bytes(self) -> bytes:
        """Return the header as bin_prot, then the Arrow bytes up to the end."""
        return b"".join((self.codec.dumps(_Header.of(self)), self.body))

    @classmethod
    def from_bytes(cls, payload: Buffer) -> Self:
        """Read the header; the body stays a view of ``payload``, not yet decoded."""
        header, at = cls.codec.read(payload)
        try:
            return cls(
                header.output,
                header.partition,
                header.epoch,
                header.from_cut,
                header.to_cut,
                header.watermark_ns,
                memoryview(payload)[at:],
                header.traceparent,
            )
        except LocalProtocolError as error:
            raise RemoteProtocolError(f"Changes: {error}") from None


@dataclass(frozen=True, slots=True)
class _Header:
    """What stands before the Arrow bytes of a Changes."""

    output: str
    partition: int
    epoch: int
    from_cut: Cut | None
    to_cut: Cut
    watermark_ns: int | None
    traceparent: str | None

    @classmethod
    def of(cls, changes: Changes) -> Self:
        return cls(
            changes.output,
            changes.partition,
            changes.epoch,
            changes.from_cut,
            changes.to_cut,
            changes.watermark_ns,
            changes.traceparent,
        )


@dataclass(frozen=True, slots=True)
class SnapshotRequest(Message):
    """The receiver has no state of this output, or a gap in it, and asks for all of it.

    ``epoch`` is the highest that the receiver has seen: a sender below it is superseded.
    """

    type: ClassVar[int] = 17

    output: str
    partition: int
    epoch: int

    def __post_init__(self) -> None:
        check_place(self.partition, self.epoch)


@dataclass(frozen=True, slots=True)
class SnapshotBegin(Message):
    """The whole table at ``cut`` follows, in Changes without a base."""

    type: ClassVar[int] = 18

    output: str
    partition: int
    epoch: int
    cut: Cut
    watermark_ns: int | None = None
    traceparent: str | None = None

    def __post_init__(self) -> None:
        check_place(self.partition, self.epoch)
        check_cut(self.cut)
        if self.traceparent is not None:
            _traceparent.parse(self.traceparent)


@dataclass(frozen=True, slots=True)
class SnapshotEnd(Message):
    """The table is complete: ``rows`` rows, whose digest is ``digest`` (any bytes)."""

    type: ClassVar[int] = 19

    output: str
    partition: int
    epoch: int
    cut: Cut
    rows: int
    digest: bytes = b""

    def __post_init__(self) -> None:
        check_place(self.partition, self.epoch)
        check_cut(self.cut)
        if self.rows < 0:
            raise LocalProtocolError(f"a snapshot of {self.rows} rows")


@dataclass(frozen=True, slots=True)
class Credit(Message):
    """The receiver of this output can hold ``length_bytes`` more bytes of Changes payload."""

    type: ClassVar[int] = 20

    output: str
    partition: int
    length_bytes: int

    def __post_init__(self) -> None:
        check_place(self.partition)
        if self.length_bytes <= 0:
            raise LocalProtocolError(f"a credit of {self.length_bytes} bytes")


@dataclass(frozen=True, slots=True)
class Ping(Message):
    """Are you there? ``nonce`` comes back in the Pong."""

    type: ClassVar[int] = 21

    nonce: int


@dataclass(frozen=True, slots=True)
class Pong(Message):
    """Yes."""

    type: ClassVar[int] = 22

    nonce: int


class Reason(Enum):
    """Why a peer ends a connection; the order is on the wire, so new ones go last."""

    SHUTDOWN = "the process is stopping"
    MOVED = "the partition has another owner now"
    FENCED = "the peer's epoch is superseded"
    PROTOCOL = "the peer broke the protocol"
    INCOMPATIBLE = "the schemas do not fit"
    OVERLOAD = "a limit was reached"
    TIMEOUT = "the peer was silent for too long"


@dataclass(frozen=True, slots=True)
class Goodbye(Message):
    """The last message: why, and a text for people."""

    type: ClassVar[int] = 23

    reason: Reason
    detail: str = ""


Changes.codec = record(
    _Header,
    {
        "output": STRING,
        "partition": INT,
        "epoch": INT64,
        "from_cut": option(_CUT),
        "to_cut": _CUT,
        "watermark_ns": option(INT64),
        "traceparent": option(STRING),
    },
)
SnapshotRequest.codec = record(
    SnapshotRequest, {"output": STRING, "partition": INT, "epoch": INT64}
)
SnapshotBegin.codec = record(
    SnapshotBegin,
    {
        "output": STRING,
        "partition": INT,
        "epoch": INT64,
        "cut": _CUT,
        "watermark_ns": option(INT64),
        "traceparent": option(STRING),
    },
)
SnapshotEnd.codec = record(
    SnapshotEnd,
    {
        "output": STRING,
        "partition": INT,
        "epoch": INT64,
        "cut": _CUT,
        "rows": INT64,
        "digest": BYTES,
    },
)
Credit.codec = record(Credit, {"output": STRING, "partition": INT, "length_bytes": INT64})
Ping.codec = record(Ping, {"nonce": INT64})
Pong.codec = record(Pong, {"nonce": INT64})
Goodbye.codec = record(Goodbye, {"reason": enumeration(Reason), "detail": STRING})


# --- In and out of the envelope ------------------------------------------------------------------

MESSAGES: dict[int, type[Message]] = {
    cls.type: cls
    for cls in (
        Handshake,
        Delta,
        CheckpointRequest,
        CheckpointAck,
        Heartbeat,
        SchemaNegotiation,
        Changes,
        SnapshotRequest,
        SnapshotBegin,
        SnapshotEnd,
        Credit,
        Ping,
        Pong,
        Goodbye,
    )
}


def to_frame(
    message: Message,
    *,
    sequence: int = 0,
    timestamp_ns: int = 0,
    fingerprint: str = "",
    compression: Compression = Compression.NONE,
) -> Frame:
    """Put a message into a frame."""
    return Frame(message.type, message.to_bytes(), sequence, timestamp_ns, fingerprint, compression)


def from_frame(frame: Frame) -> Message:
    """Read the message of a decoded frame; raises :class:`RemoteProtocolError`."""
    return MESSAGES[frame.type].from_bytes(frame.payload)
