"""The words of a transcript: messages read from them, messages and events shown in them."""

from __future__ import annotations

from typing import Any

from ripple.exchange.wire import messages as m
from ripple.exchange.wire.edge_messages import Bundle, Follow
from tests.exchange.wire import link_kit as kit


def expanded(word: str) -> str:
    """``AAPL=x*400`` stands for 400 letters."""
    key, _, times = word.rpartition("*")
    return key[:-1] + key[-1] * int(times) if times.isdigit() and "=" in key else word


def schemas_of(text: str) -> dict[str, Any]:
    pairs = (item.split(":") for item in text.split(",") if item)
    return {name: kit.schema(int(version), name) for name, version in pairs}


class Words:
    """``vwap number:1 AAPL=1``: an edge or an output, options, a body."""

    def __init__(self, name: str, words: list[str]) -> None:
        self.name = name
        self.options = dict(w.split(":", 1) for w in words if ":" in w and "=" not in w)
        self.plain = [word for word in words if ":" not in word or "=" in word]

    @property
    def body(self) -> bytes:
        return ",".join(self.plain[1:]).encode()

    @property
    def handshake(self) -> m.Handshake:
        can = [name for name in self.options.get("can", "").split(",") if name]
        offer = schemas_of(self.options.get("offers", "").replace("/", ":"))
        hello = m.Handshake.announce(self.name, offer, can)
        version = int(self.options.get("version", 1))
        return m.Handshake(self.name, hello.output_schemas, version)


MESSAGES: dict[str, Any] = {
    "handshake": lambda w: w.handshake,
    "accept": lambda w: m.SchemaNegotiation(True),
    "refuse": lambda w: m.SchemaNegotiation(False, (" ".join(w.plain),)),
    "delta": lambda w: m.Delta(
        w.plain[0], w.plain[1].encode(), w.plain[2].encode(), int(w.options["number"])
    ),
    "bundle": lambda w: kit.bundle(w.body, w.plain[0]),
    "follow": lambda w: Follow(w.plain[0], 0, 0, 1, None, None, int(w.options.get("rows", 10))),
    "ping": lambda w: m.Ping(int(w.plain[0])),
    "pong": lambda w: m.Pong(int(w.plain[0])),
    "heartbeat": lambda w: m.Heartbeat(w.name, 0, 0.5),
    "goodbye": lambda w: m.Goodbye(m.Reason[w.options.get("reason", "SHUTDOWN")]),
}


def message_of(name: str, verb: str, words: list[str]) -> m.Message:
    message: m.Message = MESSAGES[verb](Words(name, words))
    return message


def short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)})"


def _show_handshake(hello: m.Handshake) -> str:
    offers = ",".join(f"{name}:{of.version}" for name, of in hello.outputs.items()) or "-"
    can = ",".join(sorted(hello.capabilities)) or "nothing"
    return f"handshake offers {offers} can {can}"


def _show_delta(delta: m.Delta) -> str:
    key, value = bytes(delta.key).decode(), bytes(delta.delta_bytes).decode()
    return f"delta {delta.source_output} {key} {value} number {delta.sequence_no}"


SHOWN: dict[type, Any] = {
    m.Handshake: _show_handshake,
    m.SchemaNegotiation: lambda n: "accept" if n.ok else f"refuse: {'; '.join(n.errors)}",
    m.Delta: _show_delta,
    Bundle: lambda b: f"bundle {b.edge} {short(bytes(b.body).decode())}",
    Follow: lambda f: f"follow {f.edge} rows {f.rows}",
    m.Ping: lambda p: f"ping {p.nonce}",
    m.Pong: lambda p: f"pong {p.nonce}",
    m.Goodbye: lambda g: f"goodbye {g.reason.name} {short(g.detail, 90)}".rstrip(),
    m.Heartbeat: lambda h: "heartbeat",
}


def show_message(message: m.Message) -> str:
    shown: str = SHOWN[type(message)](message)
    return shown


def show_event(event: Any) -> str:
    parts = (_show_part(name, getattr(event, name)) for name in event.__slots__)
    return " ".join(filter(None, (type(event).__name__, *parts)))


PARTS: dict[str, Any] = {
    "outputs": lambda outputs: ",".join(name for name, _ in outputs) or "-",
    "errors": "; ".join,
    "error": lambda error: "orderly" if error is None else str(error),
    "capabilities": lambda _: "",
    "by_peer": lambda by_peer: "by the peer:" if by_peer else "by us:",
    "reason": lambda reason: reason.name if isinstance(reason, m.Reason) else reason,
}


def _show_part(name: str, value: Any) -> str:
    if name in PARTS:
        return str(PARTS[name](value))
    if isinstance(value, m.Message):
        return f"({show_message(value)})"
    return str(value) if isinstance(value, str) else f"{name} {value}"
