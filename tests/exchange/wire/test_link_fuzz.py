"""A bounded run of the fuzz target, its corpus, and proof that it finds what is planted."""

from __future__ import annotations

import os
import random
import re

import pytest

from ripple.exchange.wire.link import Link
from ripple.exchange.wire.link_events import Ended
from tests.exchange.wire.fuzz_link import (
    BrokenPromiseError,
    corpus,
    fuzz,
    play_round,
    play_within_memory,
    target,
)

SEED = int(os.environ.get("RIPPLE_FUZZ_SEED", "20261120"))


def test_spoiled_conversations_break_no_promise():
    assert fuzz(SEED, rounds=600, seconds_max=8.0) >= 100


# The last event of each, so that none can quietly turn into another story.
CORPUS_ENDS = {
    "conversation": "PeerLeft(reason=<Reason.MOVED",
    "length_of_two_gigabytes": "a payload of 2147483647 bytes",
    "not_the_protocol": "not the wire protocol",
    "old_peer": "Received(message=Heartbeat(",
    "pings_never_read": "PeerAccepted()",
    "schema_nested_a_thousand_deep": "nested deeper than 256 levels",
    "zstd_bomb": "a bomb",
}


@pytest.mark.parametrize("name", corpus())
def test_corpus_breaks_no_promise_and_ends_as_it_should(name):
    data = corpus()[name]
    link = target()
    assert CORPUS_ENDS[name] in repr(link.receive(data, 0)[-1])
    for seed in range(3):
        play_within_memory(data, random.Random(seed))


def test_every_truncation_of_the_corpus_is_an_orderly_wait_or_a_fault_of_the_peer():
    for data in corpus().values():
        for count in range(min(len(data), 500)):
            link = target()
            link.receive(data[:count], 0)
            link.check_invariants()
            events = link.receive_eof(0)
            assert link.ended
            assert not events or isinstance(events[-1], Ended)


def test_every_flipped_bit_of_a_conversation_ends_the_link():
    data = corpus()["conversation"]
    link = target()
    link.receive(data, 0)
    assert not link.ended, "as it stands it is a good one"
    for bit in range(8 * len(data)):
        spoiled = bytearray(data)
        spoiled[bit // 8] ^= 1 << bit % 8
        link = target()
        events = link.receive(bytes(spoiled), 0)
        if not link.ended:  # a longer length: the rest is waited for, in vain
            events = link.receive_eof(0)
        assert isinstance(events[-1], Ended)
        assert events[-1].error is not None, f"bit {bit} went unnoticed"


def _trust(link, message):
    raise KeyError(message.nonce)


def _believe(link, output, frame):
    link._inputs[output]


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (Link, "_on_pong", _trust),
        (Link, "_check_data", _believe),
    ],
)
def test_planted_fault_is_found_and_can_be_repeated(monkeypatch, owner, name, fault):
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises(BrokenPromiseError) as found:
        fuzz(SEED, rounds=3000, seconds_max=20.0)
    number = re.search(rf"--seed {SEED} --round (\d+)\n", str(found.value))
    with pytest.raises(BrokenPromiseError) as again:
        play_round(SEED, int(number[1]))
    assert str(again.value) == str(found.value)
