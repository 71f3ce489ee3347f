"""A peer that knows the seed's tables and nothing of Ripple: types 0 to 5 over a plain socket.

``python tests/exchange/plain_peer.py HOST:PORT CREDENTIAL [OUTPUT ...]`` prints what it is told.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from typing import Any

MAGIC, VERSION = b"RIPP", 1
HANDSHAKE, DELTA, CHECKPOINT_REQUEST, CHECKPOINT_ACK, HEARTBEAT, NEGOTIATION = range(6)
HEADER = struct.Struct("<4sBBBqq32si")  # magic to payload length, little-endian
TYPES = ("String", "Int", "Int64", "Float", "Bool", "Sexp_opaque")


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)  # 0x1EDC6F41, bits reversed
        table.append(crc)
    return table


TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Refused(Exception):  # noqa: N818 - it is an answer
    """A SchemaNegotiation with ok=false: its errors."""


# --- bin_prot ---


def nat(value: int) -> bytes:
    if value < 0x80:
        return bytes([value])
    return (
        b"\xfe" + struct.pack("<H", value)
        if value < 1 << 16
        else b"\xfd" + struct.pack("<I", value)
    )


def text(value: str) -> bytes:
    data = value.encode()
    return nat(len(data)) + data


def integer(value: int) -> bytes:
    if 0 <= value < 0x80:
        return bytes([value])
    for code, kind, bits in ((b"\xff", "<b", 7), (b"\xfe", "<h", 15), (b"\xfd", "<i", 31)):
        if -(1 << bits) <= value < (1 << bits if bits > 7 else 0):
            return code + struct.pack(kind, value)
    return b"\xfc" + struct.pack("<q", value)


class Reader:
    """Reads bin_prot from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.data), "it ends too early"
        self.at += count
        return self.data[self.at - count : self.at]

    def nat(self) -> int:
        code = self.take(1)[0]
        width = {0xFE: 2, 0xFD: 4, 0xFC: 8}.get(code)
        return code if width is None else int.from_bytes(self.take(width), "little")

    def integer(self) -> int:
        code = self.take(1)[0]
        width = {0xFF: 1, 0xFE: 2, 0xFD: 4, 0xFC: 8}.get(code)
        return code if width is None else int.from_bytes(self.take(width), "little", signed=True)

    def bytes(self) -> bytes:
        return self.take(self.nat())

    def text(self) -> str:
        return self.bytes().decode()

    def flag(self) -> bool:
        return {0: False, 1: True}[self.take(1)[0]]

    def float(self) -> float:
        return float(struct.unpack("<d", self.take(8))[0])

    def schema(self) -> dict[str, Any]:
        """``{ name; version; fields; doc }``, each field ``{ name; type; optional; doc }``."""
        name, version = self.text(), self.integer()
        fields = self._fields()
        assert not self.flag() or self.text()
        return {"name": name, "version": version, "fields": fields}

    def _fields(self) -> list[tuple[str, Any, bool]]:
        return [self._field() for _ in range(self.nat())]

    def _field(self) -> tuple[str, Any, bool]:
        name, kind = self.text(), self._kind()
        optional = self.flag()
        if self.flag():
            self.text()
        return name, kind, optional

    def _kind(self) -> Any:
        """``field_type``: the name of a scalar, or what a type is made of."""
        tag = self.take(1)[0]
        if tag < len(TYPES):
            return TYPES[tag]
        if tag in (6, 7):
            return ("Option" if tag == 6 else "List"), self._kind()
        if tag == 8:
            return "Record", self._fields()
        if tag == 9:
            return "Variant", [
                (self.text(), [self._kind() for _ in range(self.nat())]) for _ in range(self.nat())
            ]
        if tag == 10:
            return "Ref", self.text()
        if tag in (13, 16):
            return "Decimal", self.integer(), self.integer()
        return {11: "Date", 12: "Date_time", 14: "Uuid", 15: "Bytes"}[tag]

    def value(self, kind: Any) -> Any:
        match kind:
            case "Option", of:
                return self.value(of) if self.flag() else None
            case "List", of:
                return [self.value(of) for _ in range(self.nat())]
            case "Record", fields:
                return self.record(fields)
            case "Variant", cases:
                name, args = cases[self.take(1)[0]]
                return (name, *map(self.value, args))
        read = {
            "String": self.text,
            "Int": self.integer,
            "Int64": self.integer,
            "Float": self.float,
            "Bool": self.flag,
        }
        return read[kind]()

    def record(self, fields: list[tuple[str, Any, bool]]) -> dict[str, Any]:
        return {
            name: self.value(kind) for name, kind, optional in fields if not optional or self.flag()
        }


def _kind_of(kind: Any) -> bytes:
    if isinstance(kind, str):
        return bytes([TYPES.index(kind)])
    return bytes([{"Option": 6, "List": 7}[kind[0]]]) + _kind_of(kind[1])


def schema_of(name: str, fields: list[tuple[str, Any, bool]], version: int = 1) -> bytes:
    made = text(name) + integer(version) + nat(len(fields))
    for field, kind, optional in fields:
        made += text(field) + _kind_of(kind) + bytes([optional, 0])
    return made + b"\0"


# --- the protocol ---


def connected(address: str, tls: ssl.SSLContext | None = None) -> socket.socket:
    host, _, port = address.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=30)
    return plain if tls is None else tls.wrap_socket(plain, server_hostname=host)


class PlainPeer:
    """Connects, follows what is offered, and keeps a table of each output."""

    def __init__(self, connected: Any) -> None:
        self.socket = connected  # or whatever has its ``sendall`` and ``recv``
        self.process = ""
        self.schemas: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, dict[bytes, dict[str, Any]]] = {}
        self.last: dict[str, int] = {}
        self.heartbeats: list[tuple[str, int, float]] = []
        self.acks: list[tuple[str, str, int, str | None]] = []
        self.log: list[tuple[str, str, Any]] = []  # output, what, key or value
        self._sequence = 0
        self._buffer = b""

    def say(self, kind: int, payload: bytes) -> None:
        self._sequence += 1
        head = HEADER.pack(MAGIC, VERSION, kind, 0, self._sequence, 0, b"", len(payload))
        data = head + payload
        self.socket.sendall(data + struct.pack("<I", crc32c(data)))

    def hear(self) -> tuple[int, Reader]:
        """Return the next message. Raises ConnectionError at the end."""
        head = self._take(HEADER.size)
        magic, version, kind, flags, _, _, _, length = HEADER.unpack(head)
        assert (magic, version, flags) == (MAGIC, VERSION, 0)
        payload = self._take(length)
        assert struct.unpack("<I", self._take(4))[0] == crc32c(head + payload)
        return kind, Reader(payload)

    def _take(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("it has ended")
            self._buffer += data
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def greet(self, name: str, credential: str, wanted: dict[str, bytes] | None = None) -> None:
        """Shake hands. Raises Refused."""
        outputs = dict(wanted or {})
        if credential:
            field = (f"credential:{credential}", "Sexp_opaque", True)
            outputs["ripple.capabilities"] = schema_of("ripple.capabilities", [field])
        payload = text(name) + nat(len(outputs))
        payload += b"".join(text(output) + schema for output, schema in outputs.items())
        self.say(HANDSHAKE, payload + integer(VERSION))
        kind, said = self.hear()
        if kind == NEGOTIATION:
            self._negotiated(said)
        assert kind == HANDSHAKE
        self.process = said.text()
        for _ in range(said.nat()):
            output = said.text()
            self.schemas[output] = said.schema()
        assert said.integer() == VERSION
        kind, said = self.hear()
        assert kind == NEGOTIATION
        self._negotiated(said)
        self.say(NEGOTIATION, b"\1\0")

    def _negotiated(self, said: Reader) -> None:
        ok, errors = said.flag(), [said.text() for _ in range(said.nat())]
        if not ok:
            raise Refused(*errors)

    def take(self) -> int:
        """Hear one message, and do what it says; return its type. Raises Refused when let go."""
        kind, said = self.hear()
        if kind == DELTA:
            self._apply(said)
        elif kind == HEARTBEAT:
            self.heartbeats.append((said.text(), said.integer(), said.float()))
        elif kind == CHECKPOINT_ACK:
            found = said.text(), said.text(), said.integer()
            self.acks.append((*found, said.text() if said.flag() else None))
        elif kind == NEGOTIATION:
            self._negotiated(said)
        assert said.at == len(said.data)
        return kind

    def take_all(self) -> None:
        """Take messages until all that has come is taken."""
        self.take()
        while self._buffer:
            self.take()

    def _apply(self, said: Reader) -> None:
        output, key, delta = said.text(), said.bytes(), Reader(said.bytes())
        number = said.integer()
        assert not said.flag() or said.integer()
        assert number == self.last.get(output, 0) + 1, "in sequence, and without a hole"
        self.last[output] = number
        table, what = self.tables.setdefault(output, {}), delta.take(1)[0]
        if what == 0:  # Set of the whole record
            table[key] = delta.record(self.schemas[output]["fields"])
            self.log.append((output, "Set", table[key]))
        else:
            assert what == 2, "a Patch was not agreed on"
            table.pop(key, None)
            self.log.append((output, "Remove", key))
        assert delta.at == len(delta.data)

    def ask_for_a_checkpoint(self, name: str, epoch: int) -> None:
        self.say(CHECKPOINT_REQUEST, text(name) + integer(epoch))


def _print(*what: object) -> None:
    sys.stdout.write(" ".join(map(str, what)) + "\n")
    sys.stdout.flush()


def main() -> None:
    address, credential, *wanted = sys.argv[1:]
    peer = PlainPeer(connected(address))
    peer.greet("plain", credential)
    _print(peer.process, peer.schemas)
    while True:
        kind = peer.take()
        if kind == DELTA and (not wanted or peer.log[-1][0] in wanted):
            _print(*peer.log[-1])
        elif kind == HEARTBEAT:
            _print("heartbeat", *peer.heartbeats[-1])


if __name__ == "__main__":
    main()
