"""Runs a conversation written as text and returns what happened, line by line.

A line that begins with ``>`` is a command; the lines below it are what it must lead to, and
``#`` starts a comment. ``RIPPLE_REWRITE=1 pytest tests/wire/test_transcripts.py`` writes the
outcomes anew; read the difference before you keep it.

    > link A offers vwap:1 reads quote:2 can changes   an end with Ripple's Link
    > peer P                                           an end that says what it is told
    > A handshake | begin | rows | end | changes | delta | ping | close | request | negotiate ...
    > A -> B          carry what A has said (also: flip BIT, first BYTES, eof)
    > deliver         carry both ways until nobody has more to say
    > hold B, back B  B stops giving credit back, gives it all back
    > A publish ...   a source at A changes; its outbox sends what credit allows
    > wait 5s         time passes at both ends
    > table B vwap/0
"""

from __future__ import annotations

from typing import Any

import link_kit as kit
from transcript_words import (
    cut_of,
    expanded,
    message_of,
    schemas_of,
    short,
    show_cut,
    show_event,
    show_message,
    stream_of,
)

from ripple.wire import messages as m
from ripple.wire.envelope import Decoder
from ripple.wire.errors import LocalProtocolError
from ripple.wire.link import Link
from ripple.wire.link_limits import LinkLimits
from ripple.wire.link_states import Party
from ripple.wire.position import Positions

_SECOND_NS = 1_000_000_000


class Transcript:
    """Two ends, the bytes between them, and one clock."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ends: dict[str, Link | kit.Script] = {}
        self.replicas: dict[str, kit.Replica] = {}
        self.positions: dict[str, Positions] = {}
        self.sources: dict[str, kit.Source] = {}
        self.boxes: dict[str, Any] = {}
        self.held: dict[str, list[Any]] = {}
        self.taps: dict[str, Decoder] = {}
        self.states: dict[str, str] = {}
        self.counted: dict[str, dict[str, int]] = {}
        self.out: list[str] = []

    def run(self, text: str) -> str:
        lines = []
        for line in text.splitlines():
            if not line.startswith(">"):
                if not line or line.startswith("#"):
                    lines.append(line)
                continue
            self.out = []
            self.command(line[1:].split())
            lines += [line, *self.out]
        return "\n".join(lines) + "\n"

    def command(self, words: list[str]) -> None:
        first, *rest = words
        if first in COMMANDS:
            COMMANDS[first](self, *rest)
        elif rest[0] == "->":
            self.carry(first, rest[1], rest[2:])
        else:
            self.say(first, rest[0], rest[1:])

    def link(self, name: str, *words: str) -> None:
        options = dict(zip(words[::2], words[1::2], strict=True))
        limits = LinkLimits(**(kit.SMALL if options.get("limits") == "small" else {}))
        self.positions.setdefault(name, Positions())
        self.replicas.setdefault(name, kit.Replica())
        self.ends[name] = kit.link(
            name,
            schemas_of(options.get("offers", "")),
            schemas_of(options.get("reads", "")),
            capabilities=frozenset(options.get("can", "changes").split(",")) - {"nothing"},
            positions=self.positions[name],
            limits=limits,
            now_ns=self.now_ns,
        )
        self.taps[name] = Decoder()
        self.sources[name] = kit.Source()
        options = {"rows_pending_max": int(options["pending"])} if "pending" in options else {}
        self.boxes[name] = self.sources[name].outbox(self.ends[name], **options)
        self.states[name] = self.state(name)
        self.counted[name] = {}

    def peer(self, name: str) -> None:
        self.ends[name] = kit.Script()
        self.taps[name] = Decoder(agreed=())

    def wait(self, span: str) -> None:
        self.now_ns += int(float(span.removesuffix("s")) * _SECOND_NS)
        for name, end in self.ends.items():
            if isinstance(end, Link):
                self.report(name, end.tick(self.now_ns))

    def hold(self, name: str) -> None:
        self.held[name] = []

    def back(self, name: str) -> None:
        for stream, length_bytes in self.held.pop(name):
            self.ends[name].grant_credit(stream, length_bytes)

    def table(self, name: str, stream: str) -> None:
        table = self.replicas[name].tables.get(stream_of(stream), {})
        position = self.positions[name][stream_of(stream)]
        rows = " ".join(f"{key}={short(value)}" for key, value in table.items()) or "empty"
        self.out.append(f"  {rows} (epoch {position.epoch}, {show_cut(position.cut)})")

    def publish(self, name: str, words: list[str]) -> None:
        rows = kit.changes_of(",".join(words[2:]).encode())
        box, stream = self.boxes[name], stream_of(words[0])
        self.sources[name].change(stream, cut_of(words[1]), rows, box)
        box.pump()
        if waiting := box.pending_rows(stream):
            self.out.append(f"  {name}: {waiting} rows wait")

    def say(self, name: str, verb: str, words: list[str]) -> None:
        end = self.ends[name]
        words = [expanded(word) for word in words]
        if isinstance(end, kit.Script):
            end.says(message_of(name, verb, words))
            return
        try:
            if verb in SAYING:
                SAYING[verb](self, name, words)
            else:
                getattr(end, SENDING[verb])(message_of(name, verb, words))
        except LocalProtocolError as error:
            self.out.append(f"  LocalProtocolError: {error}")

    def deliver(self) -> None:
        (a, b) = self.ends
        while True:
            before = len(self.out)
            self.carry(a, b, [])
            self.carry(b, a, [])
            if len(self.out) == before:
                return

    def carry(self, source: str, target: str, damage: list[str]) -> None:
        data = bytearray(self.ends[source].data_to_send())
        match damage:
            case ["flip", bit]:
                data[int(bit) // 8] ^= 1 << int(bit) % 8
                self.out.append(f"  {source} -> {target}  bit {bit} flipped")
            case ["first", count]:
                del data[int(count) :]
                self.out.append(f"  {source} -> {target}  {len(data)} bytes")
            case _ if data:
                self.taps[source].receive(bytes(data))
                for frame in self.taps[source]:
                    said = show_message(m.from_frame(frame))
                    self.out.append(f"  {source} -> {target}  {said}")
        end = self.ends[target]
        if isinstance(end, kit.Script):
            end.hears(bytes(data))
            return
        if data:
            self.report(target, end.receive(bytes(data), self.now_ns))
        if damage[-1:] == ["eof"]:
            self.report(target, end.receive_eof(self.now_ns))

    def report(self, name: str, events: list[Any]) -> None:
        end = self.ends[name]
        assert isinstance(end, Link)
        self.replicas[name].follow(end, events, give_back=name not in self.held)
        self.boxes[name].follow(events)
        self.boxes[name].pump()
        for event in events:
            self.out.append(f"  {name}: {show_event(event)}")
            if name in self.held and hasattr(event, "credit_bytes"):
                self.held[name].append((event.stream, event.credit_bytes))
        end.check_invariants()
        counted = end.counters.as_dict()
        more = [f"{n} {c}" for n, c in counted.items() if c > self.counted[name].get(n, 0)]
        if more:
            self.out.append(f"  {name}: counted {', '.join(more)}")
        self.counted[name] = counted
        state = self.state(name)
        if state != self.states[name]:
            self.out.append(f"  {name}: {state}")
            self.states[name] = state

    def state(self, name: str) -> str:
        end = self.ends[name]
        assert isinstance(end, Link)
        halves, parties = end.states.halves, end.states.parties
        return (
            f"[produces {halves[Party.LOCAL].name}, consumes {halves[Party.REMOTE].name}, "
            f"we {parties[Party.LOCAL].name}, peer {parties[Party.REMOTE].name}]"
        )


COMMANDS: dict[str, Any] = {
    "link": Transcript.link,
    "peer": Transcript.peer,
    "deliver": Transcript.deliver,
    "wait": Transcript.wait,
    "hold": Transcript.hold,
    "back": Transcript.back,
    "table": Transcript.table,
}

SAYING: dict[str, Any] = {
    "handshake": lambda t, name, _: t.ends[name].handshake(),
    "close": lambda t, name, words: t.ends[name].close(*(m.Reason[word] for word in words)),
    "ping": lambda t, name, _: t.ends[name].ping(),
    "request": lambda t, name, words: t.ends[name].request_snapshot(stream_of(words[0])),
    "delta": lambda t, name, w: t.ends[name].send_delta(w[0], w[1].encode(), w[2].encode()),
    "publish": lambda t, name, words: t.publish(name, words),
}

SENDING = {
    "begin": "send_snapshot_begin",
    "rows": "send_snapshot_rows",
    "end": "send_snapshot_end",
    "changes": "send_changes",
}
