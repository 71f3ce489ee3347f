"""Versions that may follow another: every other owner has its partition since later."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ripple.control.assignment import Assignment, AssignmentError, Share, Stage, empty
from ripple.control.assignment.rules import check_follows, check_version
from tests.control.assignment.examples import example, member

BEFORE = replace(
    empty([Stage("trades", 2)]),
    version=7,
    members=(member("w1", 3), member("w2", 7)),
    shares=(Share("w1/0", 3), Share("w2/0", 7)),
)


def after(**changes: Any) -> Assignment:
    return replace(BEFORE, version=8, **changes)


def restarted() -> Assignment:
    first, second = BEFORE.members
    return after(members=(replace(first, starts=(1,)), second))


ALLOWED = {
    "nothing changes": after(),
    "a move begins": after(shares=(Share("w1/0", 3, next="w2/0"), Share("w2/0", 7))),
    "an owner changes": after(shares=(Share("w2/0", 8), Share("w2/0", 7))),
    "an owner begins again": after(shares=(Share("w1/0", 8), Share("w2/0", 7))),
    "a process was started again": replace(
        restarted(), shares=(Share("w1/0", 8), Share("w2/0", 7))
    ),
    "a worker comes again": after(
        members=(member("w1", 3), member("w2", 8)), shares=(Share("w1/0", 3), Share("w2/0", 8))
    ),
    "everybody is gone": after(members=(), shares=(Share(None, 0), Share(None, 0))),
}

REFUSED = {
    "another owner, as old": after(shares=(Share("w2/0", 3), Share("w2/0", 7))),
    "since another version": after(shares=(Share("w1/0", 4), Share("w2/0", 7))),
    "a process started again owns as before": restarted(),
    "a new incarnation owns as before": after(members=(member("w1", 3), member("w2", 8))),
    "an incarnation that was not there": after(
        members=(member("w1", 3), member("w2", 6)), shares=(Share("w1/0", 3), Share("w1/0", 8))
    ),
    "a partition more": after(
        stages=(Stage("trades", 3),), shares=(*BEFORE.shares, Share("w1/0", 8))
    ),
    "the same version": replace(BEFORE),
    "after versions that nobody can read, as before": replace(BEFORE, version=9),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_may_follow(name: str) -> None:
    check_follows(BEFORE, ALLOWED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_may_not_follow(name: str) -> None:
    with pytest.raises(AssignmentError, match="of the assignment: "):
        check_follows(BEFORE, REFUSED[name])


def test_after_versions_that_nobody_can_read_everything_is_given_anew() -> None:
    anew = replace(
        BEFORE,
        version=9,
        members=tuple(replace(one, incarnation=9) for one in BEFORE.members),
        shares=tuple(replace(share, since=9) for share in BEFORE.shares),
    )
    check_follows(BEFORE, anew)
    with pytest.raises(AssignmentError, match="w1 has come as incarnation 3"):
        check_follows(BEFORE, replace(anew, members=BEFORE.members))


def test_example_is_whole_and_says_what_is_where() -> None:
    one = example()
    check_version(one)
    assert [share.phase.value for share in one.shares] == [
        "owned",
        "warming",
        "switching",
        "owned",
    ]
    assert [share.target for share in one.shares] == ["w1/0", "w2/0", "w2/1", None]
    assert one.owned_by("w1") == (0, 1)
    assert one.processes == ("w1/0", "w2/0", "w2/1")
    assert one.place_of(2) == ("trades", 2)
    assert one.place_of(3) == ("portfolio", 0)
    with pytest.raises(AssignmentError, match="no partition 4"):
        one.place_of(4)


@pytest.mark.parametrize("worker", ["", "a/b", "a b", "w" * 65, "w\n"])
def test_a_worker_may_not_be_called_so(worker: str) -> None:
    from ripple.control.assignment.member import check_id

    with pytest.raises(AssignmentError, match="is no worker's id"):
        check_id(worker)
