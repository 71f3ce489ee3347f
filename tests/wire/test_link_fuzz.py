"""A bounded run of the fuzz target, its corpus, and proof that it finds what is planted."""

from __future__ import annotations

import os
import random

import pytest
from fuzz_link import CORPUS, BrokenPromiseError, corpus, fuzz, play_within_memory, target

from ripple.wire.link import Link
from ripple.wire.link_consumer import ConsumerHalf
from ripple.wire.link_events import Ended

SEED = int(os.environ.get("RIPPLE_FUZZ_SEED", "20261120"))


def test_spoiled_conversations_break_no_promise():
    assert fuzz(SEED, rounds=600, seconds_max=8.0) >= 100


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.hex")), ids=lambda path: path.stem)
def test_corpus_breaks_no_promise(path):
    for seed in range(3):
        play_within_memory(bytes.fromhex(path.read_text()), random.Random(seed))


def test_every_truncation_of_the_corpus_is_an_orderly_wait_or_a_fault_of_the_peer():
    for data in corpus():
        for count in range(min(len(data), 500)):
            link = target()
            link.receive(data[:count], 0)
            link.check_invariants()
            events = link.receive_eof(0)
            assert link.ended
            assert not events or isinstance(events[-1], Ended)


def test_every_flipped_bit_of_a_conversation_ends_the_link():
    data = bytes.fromhex((CORPUS / "conversation.hex").read_text())
    for bit in range(8 * len(data)):
        spoiled = bytearray(data)
        spoiled[bit // 8] ^= 1 << bit % 8
        link = target()
        events = link.receive(bytes(spoiled), 0)
        if not link.ended:  # a longer length: the rest is waited for, in vain
            events = link.receive_eof(0)
        assert isinstance(events[-1], Ended)
        assert events[-1].error is not None, f"bit {bit} went unnoticed"


def _forget_credit(half, stream, length_bytes):
    return half._known(stream, "Changes")


def _forget_snapshot(half, stream, reason):
    pass


def _trust(link, message):
    raise KeyError(message.nonce)


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (ConsumerHalf, "_paid", _forget_credit),
        (ConsumerHalf, "_drop", _forget_snapshot),
        (Link, "_on_pong", _trust),
    ],
)
def test_planted_fault_is_found_and_can_be_repeated(monkeypatch, owner, name, fault):
    monkeypatch.setattr(owner, name, fault)
    with pytest.raises(BrokenPromiseError, match=f"seed {SEED}, round") as found:
        fuzz(SEED, rounds=3000, seconds_max=20.0)
    data = bytes.fromhex(str(found.value).rpartition("input: ")[2])
    assert data
