"""Runs a conversation written as text and returns what happened, line by line.

A line that begins with ``>`` is a command; the lines below it are what it must lead to, and
``#`` starts a comment. ``RIPPLE_REWRITE=1 pytest tests/exchange/wire/test_transcripts.py`` writes
the outcomes anew; read the difference before you keep it.

    > link A offers vwap:1 reads quote:2 can changes,edges   an end with Ripple's Link
    > peer P                                           an end that says what it is told
    > A handshake | bundle | follow | delta | close ...
    > A -> B          carry what A has said (also: flip BIT, first BYTES, eof)
    > deliver         carry both ways until nobody has more to say
    > wait 5s         time passes at both ends
"""

from __future__ import annotations

from typing import Any

from ripple.exchange.wire import messages as m
from ripple.exchange.wire.envelope import Decoder
from ripple.exchange.wire.errors import LocalProtocolError
from ripple.exchange.wire.link import Link
from ripple.exchange.wire.link_limits import LinkLimits
from ripple.exchange.wire.link_states import Party
from tests.exchange.wire import link_kit as kit
from tests.exchange.wire.transcript_words import (
    expanded,
    message_of,
    schemas_of,
    show_event,
    show_message,
)

_SECOND_NS = 1_000_000_000


class Transcript:
    """Two ends, the bytes between them, and one clock."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.ends: dict[str, Link | kit.Script] = {}
        self.taps: dict[str, Decoder] = {}
        self.states: dict[str, str] = {}
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
        self.ends[name] = kit.link(
            name,
            schemas_of(options.get("offers", "")),
            schemas_of(options.get("reads", "")),
            capabilities=frozenset(options.get("can", "changes,edges").split(",")) - {"nothing"},
            limits=limits,
            now_ns=self.now_ns,
        )
        self.taps[name] = Decoder()
        self.states[name] = self.state(name)

    def peer(self, name: str) -> None:
        self.ends[name] = kit.Script()
        self.taps[name] = Decoder(agreed=())

    def wait(self, span: str) -> None:
        self.now_ns += int(float(span.removesuffix("s")) * _SECOND_NS)
        for name, end in self.ends.items():
            if isinstance(end, Link):
                self.report(name, end.tick(self.now_ns))

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
                end.carry(message_of(name, verb, words))
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
        for event in events:
            self.out.append(f"  {name}: {show_event(event)}")
        end.check_invariants()
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
}

SAYING: dict[str, Any] = {
    "handshake": lambda t, name, _: t.ends[name].handshake(),
    "close": lambda t, name, words: t.ends[name].close(*(m.Reason[word] for word in words)),
}
