"""The messages of the protocol. Types 0-5 are those of Ripple/OCaml, to the byte; later ones ours.

Capabilities. A peer with types 0-5 only must be able to connect, so our other capabilities travel
inside the Handshake in a form that it understands: one more entry of ``output_schemas``, under the
reserved name ``ripple.capabilities``. Its schema has one optional opaque field for each capability.
To such a peer it is one more output, which it does not read. Each side sends a Handshake; a
capability may be used once both have named it (``Handshake.capabilities``, ``Handshake.outputs``).
Without ``changes`` only types 0-5 are spoken, one key per Delta; with it, frames are numbered
without holes and Ping, Pong and Goodbye are spoken. The credential is one more, under
``credential:``, an unknown capability to other peers; ``edges``, which needs ``changes``, brings
the types from 24 on (:mod:`ripple.exchange.wire.edge_messages`), ``traces`` the type 29; without
``lz4`` or ``zstd`` nothing is compressed that way.

Ripple/OCaml's documents give no field list for CheckpointRequest, CheckpointAck and
SchemaNegotiation; theirs are chosen here from the described purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from ripple.core.codec.compression import Compression
from ripple.exchange.wire.codec import (
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
from ripple.exchange.wire.envelope import VERSION, Frame
from ripple.exchange.wire.errors import LocalProtocolError
from ripple.exchange.wire.records import SCHEMA
from ripple.model.schema.types import Field, Opaque, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CAPABILITIES_NAME = "ripple.capabilities"
CAPABILITIES = frozenset({"changes", "edges", "lz4", "traces", "zstd"})
_CREDENTIAL = "credential:"

# The next offset to read of each input; sorted by input, each input once.
Cut: TypeAlias = tuple[tuple[str, int], ...]


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


# --- Of Ripple/OCaml -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Handshake(Message):
    """The first message of each side: its name and its outputs."""

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
        """Return our Handshake, with the capabilities hidden as another output's schema."""
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
        """The sender's capabilities; unknown names are for later versions."""
        return frozenset(name for name in self._hidden if not name.startswith(_CREDENTIAL))

    @property
    def credential(self) -> str:
        """The sender's credential, "" for none."""
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
    """The worker has made the checkpoint, or reports why not."""

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
