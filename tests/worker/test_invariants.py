"""Violated invariants of simulated clusters are found, each by its name."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ripple.control.assignment import Assignment, Code, Member, Share, Stage
from ripple.exchange.limits import ExchangeLimits
from ripple.storage.checkpoint import Checkpoint, Part
from ripple.testing.cluster.invariants import Broken, OfChain, OfConnection, OfPartition
from tests.worker import trials

PARTITIONS = 4
LIMITS = ExchangeLimits(window_bytes=2000, bundle_bytes=500)
FRAME_BYTES = 20_000


def member(name: str, *, is_leaving: bool = False) -> Member:
    return Member(
        id=name,
        incarnation=1,
        nonce=name,
        addresses=(),
        starts=(0,),
        code=Code("p", "plan", "topology", 1),
        is_leaving=is_leaving,
    )


def version(number: int, *owners: str, cause: str = "by hand", **changed: Any) -> Assignment:
    """Return a version in which partitions are owned since the first, or about to move."""
    shares = [Share(f"{one[0]}/0", 1, next=f"{one[1]}/0" if one[1:] else None) for one in owners]
    made = Assignment(
        version=number,
        cause=cause,
        stages=(Stage("main", PARTITIONS),),
        shares=tuple(shares),
        members=(member("a"), member("b")),
    )
    return replace(made, **changed)


EVEN = version(1, "a", "a", "b", "b")
NEEDLESS = version(2, "ab", "a", "b", "b")


def test_move_that_nothing_asks_for_is_found() -> None:
    chain = OfChain()
    chain.read(EVEN)
    with pytest.raises(Broken, match=r"J1: version 2 moves .0: 'b/0'."):
        chain.read(NEEDLESS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (version(1, "a", "a", "a", "b"), version(2, "ab", "a", "a", "b")),
        (EVEN, replace(NEEDLESS, cause="partition 0 moves to b: by hand")),
        (EVEN, replace(NEEDLESS, members=(member("a", is_leaving=True), member("b")))),
        (version(1, "ab", "a", "a", "b"), version(2, "ab", "a", "a", "b", cause="nothing")),
    ],
    ids=["it is not spread", "by command", "somebody leaves", "it moves already"],
)
def test_move_that_something_asks_for_is_allowed(before: Assignment, after: Assignment) -> None:
    chain = OfChain()
    chain.read(before)
    chain.read(after)


def session(**changed: int) -> Any:
    return SimpleNamespace(**{"most_of_a_stream": 1, "room_bytes": 0, "granted_bytes": 0} | changed)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"most_of_a_stream": 2}, "I10"),
        ({"room_bytes": -FRAME_BYTES}, "J9"),
        ({"room_bytes": LIMITS.window_bytes + 1}, "J9"),
        ({"granted_bytes": -FRAME_BYTES}, "J9"),
    ],
)
def test_queue_beyond_its_limit_is_found(changed: dict[str, int], name: str) -> None:
    connection = OfConnection("a/0", LIMITS)
    connection.look(session())
    with pytest.raises(Broken, match=f"{name}: a/0"):
        connection.look(session(**changed))


def checkpoint(name: str, base: str | None = None) -> Checkpoint:
    part = Part("rows", f"{name}.rows", 0, 0, "")
    return Checkpoint(
        name=name,
        pipeline="p",
        topology_hash="",
        partition=0,
        epoch=1,
        written_ns=0,
        cut={},
        watermarks_ns={},
        counters={},
        digests={},
        parts=(part,),
        base=base,
    )


def partition() -> OfPartition:
    """Return what looks at a partition with a checkpoint, and another one that builds on it."""
    one = OfPartition(trials.windows.truth, 0, 0, 4)
    holding: Any = SimpleNamespace(epoch=1, checkpoints=(checkpoint("c1"), checkpoint("c2", "c1")))
    one.entry(1, holding)
    return one


def test_state_restored_from_a_damaged_checkpoint_is_found() -> None:
    one = partition()
    one.began(1, frozenset())
    one.restored(1, {}, "c2")
    for damaged in ("c1.rows", "c2.rows"):
        one.began(2, frozenset({damaged}))
        with pytest.raises(Broken, match="I14: partition 0 resumes from"):
            one.restored(2, {}, "c2")
        one.restored(2, {}, None)


def test_follower_that_strays_from_its_owner_is_found() -> None:
    with pytest.raises(Broken, match="J4: partition 0: digests differ"):
        partition().strayed("digests differ")
