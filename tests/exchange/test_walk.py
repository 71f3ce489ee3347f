"""The data port: every type of message, as everybody there is."""

from __future__ import annotations

from typing import Any

import pytest

from ripple.core.credentials import READS_S, Credentials, Side
from ripple.exchange.edges import edges_of, shown_of
from ripple.exchange.limits import ExchangeLimits
from ripple.exchange.session import CAPABILITIES, Session
from ripple.exchange.singles import Singles, singles_of
from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow
from ripple.exchange.wire.envelope import Decoder, encode
from ripple.exchange.wire.messages import (
    MESSAGES,
    Goodbye,
    Handshake,
    Message,
    SchemaNegotiation,
    from_frame,
    to_frame,
)
from tests.engine.machine.stage_plans import PLANS
from tests.exchange.wire.samples import SAMPLES

PLAN = PLANS["by-venue"]
EDGES, SHOWN = edges_of(PLAN), shown_of(PLAN)
SINGLE = singles_of(PLAN, list(SHOWN.values()))
OURS, OTHERS = Credentials(bytes(32)), Credentials(b"o" * 32)
NOW_S = 1_700_000_000
PROCESS = OURS.of_process("w1/0", Side.CONNECTS, "")

# Who connects: the name that they say, what they show, whether they offer edges.
NOBODIES = {
    "nobody": ("w1/0", "", True),
    "nobody who reads": ("observer", "", False),
    "of another cluster": ("w1/0", OTHERS.of_process("w1/0", Side.CONNECTS, ""), True),
    "a process under another name": ("w2/0", PROCESS, True),
    "who accepts": ("w1/0", OURS.of_process("w1/0", Side.ACCEPTS, ""), True),
    "a reader of another cluster": ("observer", OTHERS.of_reader(NOW_S), False),
    "a reader of yesterday": ("observer", OURS.of_reader(NOW_S - 86400), False),
    "a reader who offers edges": ("w1/0", OURS.of_reader(NOW_S), True),
}
READERS = {
    "a reader": ("observer", OURS.of_reader(NOW_S), False),
    "a reader with a process's name": ("w1/0", OURS.of_reader(NOW_S), False),
}
FOLLOWED = {"edge": next(iter(EDGES)), "output": next(iter(SHOWN))}


class Hub:
    """What has got through."""

    def __init__(self) -> None:
        self.opens: list[str] = []
        self.said: list[Message] = []
        self.rows = 0

    def opened(self, _: Session, peer: str) -> None:
        self.opens.append(peer)

    def closed(self, _: Session) -> None: ...

    def room(self) -> None: ...

    def received(self, _: Any, message: Message) -> None:
        self.said.append(message)

    def granted(self, *_: Any) -> None: ...

    def arrived(self, *_: Any, **__: Any) -> None:
        self.rows += 1


class Caller:
    """Says to a session whatever it wants to."""

    def __init__(
        self,
        name: str,
        credential: str,
        offers: bool,
        capabilities: frozenset[str] = CAPABILITIES,
    ) -> None:
        self.hub = Hub()
        self.session = Session(
            "w9/0", EDGES, self.hub, limits=ExchangeLimits(), now_ns=0, dirty=lambda: None,
            shown=SHOWN, single=(SINGLE, Singles(9, 9)),
            credential=OURS.of_process("w9/0", Side.ACCEPTS, ""),
            admits=lambda who, shown: OURS.proven(shown, who, Side.CONNECTS, "", NOW_S),
            now_s=lambda: NOW_S,
        )  # fmt: skip
        self.session.greet()
        self._sequence = 0
        self._decoder = Decoder()
        self.heard: list[Message] = []
        offer = {name: edge.offer for name, edge in EDGES.items()} if offers else {}
        self.say(Handshake.announce(name, offer, capabilities, credential))
        self.say(SchemaNegotiation(ok=True))

    def say(self, message: Message) -> None:
        self._sequence += 1
        self.session.receive(encode(to_frame(message, sequence=self._sequence)), 0)
        self._decoder.receive(self.session.data_to_send())
        self.heard += [from_frame(frame) for frame in self._decoder]


def said_of_each_type() -> list[Message]:
    """Return a message of each type there is, and of those that name edges one for each kind."""
    found = {type(one): one for one in SAMPLES}
    assert {one.type for one in found} == set(MESSAGES)
    named = [
        make
        for name in FOLLOWED.values()
        for make in (
            Follow(name, 0, 0, 1, 0, None, 10, 0),
            Unfollow(name, 0, 0),
            Release(name, 0, 0, 1),
        )
    ]
    return [*found.values(), *named]


@pytest.mark.parametrize("who", NOBODIES)
def test_unknown_peer_learns_nothing_and_changes_nothing(who: str) -> None:
    for message in said_of_each_type():
        caller = Caller(*NOBODIES[who])
        caller.say(message)
        assert caller.session.ended, message
        assert not caller.hub.opens
        assert not caller.hub.said
        assert not caller.hub.rows
        assert not [one for one in caller.heard if isinstance(one, Handshake)], "it was told edges"
        refusals = [one for one in caller.heard if isinstance(one, SchemaNegotiation)]
        assert [one.ok for one in refusals] == [False]


@pytest.mark.parametrize("who", READERS)
def test_a_reader_follows_outputs_and_nothing_else(who: str) -> None:
    for message in said_of_each_type():
        caller = Caller(*READERS[who])
        assert caller.session.is_observed
        caller.say(message)
        assert not caller.hub.rows
        for said in caller.hub.said:
            assert said.edge in SHOWN, said  # type: ignore[attr-defined]


@pytest.mark.parametrize("capabilities", [frozenset(), frozenset({"changes"})])
@pytest.mark.parametrize("who", [*NOBODIES, *READERS, "a process"])
def test_a_peer_that_knows_types_0_to_5_alone_says_nothing_to_a_process(
    who: str, capabilities: frozenset[str]
) -> None:
    named = NOBODIES | READERS | {"a process": ("w1/0", PROCESS, False)}
    name, credential, _ = named[who]
    for message in said_of_each_type():
        caller = Caller(name, credential, who in NOBODIES and named[who][2], capabilities)
        caller.say(message)
        assert not caller.hub.said
        assert not caller.hub.rows
        assert (caller.hub.opens == []) == (who in NOBODIES)
        told = [one for one in caller.heard if isinstance(one, Handshake)]
        assert [set(one.outputs) for one in told] == [set(SINGLE)] * (who not in NOBODIES)
        assert not any(one.credential for one in told), "ours was shown to a stranger"


def test_a_process_may_follow_edges() -> None:
    caller = Caller("w1/0", PROCESS, True)
    assert caller.hub.opens == ["w1/0"]
    caller.say(Follow(FOLLOWED["edge"], 0, 0, 1, 0, None, 10, 0))
    assert len(caller.hub.said) == 1


def test_connection_of_a_reader_ends_with_its_credential() -> None:
    caller = Caller("observer", OURS.of_reader(NOW_S - READS_S + 5), offers=False)
    assert caller.session.next_deadline_ns == 5 * 10**9
    caller.session.tick(5 * 10**9 - 1)
    caller.say(Release(FOLLOWED["output"], 0, 0, 1))
    assert len(caller.hub.said) == 1
    caller.session.tick(5 * 10**9)
    caller.say(Release(FOLLOWED["output"], 0, 0, 1))
    assert len(caller.hub.said) == 1
    assert [one for one in caller.heard if isinstance(one, Goodbye)]
