"""The words of a transcript: messages read from them, messages and events shown in them."""

from __future__ import annotations

from typing import Any

import link_kit as kit

from ripple.wire import messages as m
from ripple.wire.position import Stream


def expanded(word: str) -> str:
    """``AAPL=x*400`` stands for 400 letters."""
    key, _, times = word.rpartition("*")
    return key[:-1] + key[-1] * int(times) if times.isdigit() and "=" in key else word


def schemas_of(text: str) -> dict[str, Any]:
    pairs = (item.split(":") for item in text.split(",") if item)
    return {name: kit.schema(int(version), name) for name, version in pairs}


def stream_of(text: str) -> Stream:
    output, _, partition = text.partition("/")
    return Stream(output, int(partition))


def cut_of(text: str) -> m.Cut:
    """``q@5+t@10``: the next offset of each input."""
    return m.cut_of({n: int(o) for n, o in (i.split("@") for i in text.split("+") if i)})


class Words:
    """``vwap/0 epoch:1 t@10..t@20 AAPL=1 -MSFT``: a place, options, a cut or a range, a body."""

    def __init__(self, name: str, words: list[str]) -> None:
        self.name = name
        self.options = dict(w.split(":", 1) for w in words if ":" in w and "=" not in w)
        self.plain = [word for word in words if ":" not in word or "=" in word]
        self.epoch = int(self.options.get("epoch", 1))

    @property
    def place(self) -> Stream:
        return stream_of(self.plain[0])

    @property
    def cut(self) -> m.Cut:
        return cut_of(self.plain[1])

    @property
    def cuts(self) -> tuple[m.Cut, m.Cut]:
        start, _, stop = self.plain[1].partition("..")
        return cut_of(start), cut_of(stop)

    @property
    def body(self) -> bytes:
        return ",".join(self.plain[2:]).encode()

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
    "begin": lambda w: m.SnapshotBegin(*w.place, w.epoch, w.cut),
    "rows": lambda w: m.Changes(*w.place, w.epoch, None, w.cut, None, w.body),
    "end": lambda w: m.SnapshotEnd(*w.place, w.epoch, w.cut, int(w.options.get("rows", 0))),
    "changes": lambda w: m.Changes(*w.place, w.epoch, *w.cuts, None, w.body),
    "request": lambda w: m.SnapshotRequest(*w.place, w.epoch),
    "credit": lambda w: m.Credit(*w.place, int(w.plain[1])),
    "ping": lambda w: m.Ping(int(w.plain[0])),
    "pong": lambda w: m.Pong(int(w.plain[0])),
    "heartbeat": lambda w: m.Heartbeat(w.name, 0, 0.5),
    "goodbye": lambda w: m.Goodbye(m.Reason[w.options.get("reason", "SHUTDOWN")]),
}


def message_of(name: str, verb: str, words: list[str]) -> m.Message:
    message: m.Message = MESSAGES[verb](Words(name, words))
    return message


def show_cut(cut: m.Cut | None) -> str:
    if cut is None:
        return "-"
    return "+".join(f"{name}@{offset}" for name, offset in cut) or "nothing"


def short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text)})"


def _place(message: Any) -> str:
    return f"{message.output}/{message.partition}"


def _show_handshake(hello: m.Handshake) -> str:
    offers = ",".join(f"{name}:{of.version}" for name, of in hello.outputs.items()) or "-"
    can = ",".join(sorted(hello.capabilities)) or "nothing"
    return f"handshake offers {offers} can {can}"


def _show_changes(changes: m.Changes) -> str:
    body = short(bytes(changes.body).decode()) or "empty"
    if changes.from_cut is None:
        return f"rows {_place(changes)} {body}"
    span = f"{show_cut(changes.from_cut)}..{show_cut(changes.to_cut)}"
    return f"changes {_place(changes)} epoch {changes.epoch} {span} {body}"


def _show_delta(delta: m.Delta) -> str:
    key, value = bytes(delta.key).decode(), bytes(delta.delta_bytes).decode()
    return f"delta {delta.source_output} {key} {value} number {delta.sequence_no}"


SHOWN: dict[type, Any] = {
    m.Handshake: _show_handshake,
    m.SchemaNegotiation: lambda n: "accept" if n.ok else f"refuse: {'; '.join(n.errors)}",
    m.Changes: _show_changes,
    m.Delta: _show_delta,
    m.SnapshotBegin: lambda b: f"begin {_place(b)} epoch {b.epoch} {show_cut(b.cut)}",
    m.SnapshotEnd: lambda e: f"end {_place(e)} rows {e.rows}",
    m.SnapshotRequest: lambda r: f"request {_place(r)} epoch {r.epoch}",
    m.Credit: lambda c: f"credit {_place(c)} {c.length_bytes}",
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
    "ours": lambda ours: f"ours {ours if isinstance(ours, int) else show_cut(ours)}",
    "from_cut": lambda cut: f"from {show_cut(cut)}",
    "to_cut": lambda cut: f"to {show_cut(cut)}",
    "capabilities": lambda _: "",
    "by_peer": lambda by_peer: "by the peer:" if by_peer else "by us:",
    "reason": lambda reason: reason.name if isinstance(reason, m.Reason) else reason,
}


def _show_part(name: str, value: Any) -> str:
    if name in PARTS:
        return str(PARTS[name](value))
    if isinstance(value, m.Message):
        return f"({show_message(value)})"
    return str(value) if isinstance(value, str | Stream) else f"{name} {value}"
