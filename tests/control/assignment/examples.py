"""Versions of an assignment to write tests with."""

from __future__ import annotations

from dataclasses import replace

from ripple.control.assignment import Assignment, Candidate, Code, Member, Pin, Share, Stage, empty

CODE = Code("vwap", "plan-1", "topology-1", 1, (("trades", "5f"), ("vwap", "a0")))


def candidate(worker: str, nonce: str = "", processes: int = 1, code: Code = CODE) -> Candidate:
    return Candidate(
        id=worker,
        nonce=nonce or f"{worker}-nonce",
        addresses=(("deltas", f"{worker}:9101"),),
        processes=processes,
        code=code,
        inputs=(("trades", 8),),
    )


def member(worker: str, incarnation: int, processes: int = 1) -> Member:
    asked = candidate(worker, f"{worker}-{incarnation}", processes)
    return Member(
        id=worker,
        incarnation=incarnation,
        nonce=asked.nonce,
        addresses=asked.addresses,
        starts=(0,) * processes,
        code=CODE,
    )


def example() -> Assignment:
    """Four partitions of two stages: one owned, one warming, one switching, one nobody's."""
    return replace(
        empty([Stage("trades", 3), Stage("portfolio", 1)]),
        version=7,
        cause="w2 joins",
        members=(member("w1", 3), member("w2", 7, processes=2)),
        shares=(
            Share("w1/0", 3, standby="w2/0"),
            Share("w1/0", 5, next="w2/0"),
            Share("w2/1", 7, former="w1/0"),
            Share(None, 0),
        ),
        pins=(Pin(0, "w1", "its cache"),),
        frozen="maintenance",
        inputs=(("trades", 12),),
    )
