"""The version that follows: members, crashes, and every step of a planned move."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.decisions.commands import Drain, Freeze, Move, PinTo, Undrain, Unfreeze, Unpin
from coordinator.decisions.limits import Limits
from coordinator.decisions.planning import Facts, next_version
from ripple.control.assignment import Assignment, Candidate, Phase, Share, Stage, empty, worker_of
from ripple.control.assignment.rules import check_follows
from tests.control.assignment.examples import CODE
from tests.coordinator.cluster import A, B, two


def candidate(worker: str, **changes: Any) -> Candidate:
    return Candidate(**{"id": worker, "nonce": f"{worker} nonce", "code": CODE} | changes)


def follow(before: Assignment, limits: Limits, **facts: Any) -> Assignment:
    after = next_version(before, before.version, Facts(**facts), limits)
    assert after is not None, "nothing has changed"
    check_follows(before, after)
    return after


def nothing(before: Assignment, limits: Limits, **facts: Any) -> bool:
    return next_version(before, before.version, Facts(**facts), limits) is None


def cluster(workers: int, limits: Limits, processes: int = 1) -> Assignment:
    joining = tuple(candidate(f"w{n}", processes=processes) for n in range(workers))
    return follow(empty([Stage("main", limits.partitions)]), limits, joining=joining)


def moving(now: Assignment) -> dict[int, str]:
    return {p: share.next for p, share in enumerate(now.shares) if share.next is not None}


def spread(now: Assignment) -> int:
    count = Counter(share.target for share in now.shares)
    held = [count[process] for process in now.processes]
    return max(held) - min(held)


def finish(now: Assignment, limits: Limits, **facts: Any) -> list[Assignment]:
    """Let every follower catch up and every owner be live, until nothing is to be done."""
    versions = [now]
    for _ in range(200):
        now = versions[-1]
        warm = frozenset(moving(now).items())
        live = frozenset((p, share.since) for p, share in enumerate(now.shares))
        after = next_version(now, now.version, Facts(warm=warm, live=live, **facts), limits)
        if after is None:
            return versions
        check_follows(now, after)
        versions.append(after)
    raise AssertionError("it never ends")


def test_first_members_are_given_everything_at_once() -> None:
    now = cluster(3, Limits())
    assert now.version == 1
    assert {share.phase for share in now.shares} == {Phase.OWNED}
    assert {share.since for share in now.shares} == {1}
    assert spread(now) <= 1
    assert now.cause == "w0, w1, w2 join; 128 partitions assigned to members"


def test_a_join_moves_the_least_in_bounded_steps() -> None:
    limits = Limits()
    before = cluster(3, limits)
    versions = finish(follow(before, limits, joining=(candidate("w3"),)), limits)
    now = versions[-1]
    moved = [p for p, share in enumerate(now.shares) if share.owner != before.shares[p].owner]
    assert len(moved) == 32
    assert {now.shares[p].owner for p in moved} == {"w3/0"}
    for partition in set(range(128)) - set(moved):
        assert now.shares[partition] == before.shares[partition]
    assert spread(now) <= 1
    for version in versions:
        under_way = [s for s in version.shares if s.phase is not Phase.OWNED]
        assert len(under_way) <= 2, "one target has two at most"


def test_moves_under_way_are_bounded_in_all() -> None:
    limits = Limits()
    before = cluster(3, limits)
    joining = tuple(candidate(f"x{n}") for n in range(12))
    versions = finish(follow(before, limits, joining=joining), limits)
    most = max(sum(s.phase is not Phase.OWNED for s in v.shares) for v in versions)
    assert most == limits.moves_of(128) == 12
    assert spread(versions[-1]) <= 1


def test_leaving_worker_moves_more_partitions_at_once() -> None:
    limits = Limits()
    before = cluster(3, limits)
    drained = follow(before, limits, commands=(Drain("w1", "a rolling restart"),))
    own = [partition for partition, share in enumerate(before.shares) if share.owner == "w1/0"]
    assert set(moving(drained)) < set(own)
    assert set(Counter(moving(drained).values()).values()) == {limits.moves_away_per_target}
    # Its moves count among those under way: nobody who joins adds to them.
    joined = follow(drained, limits, joining=(candidate("w3"),))
    assert set(moving(joined)) <= set(own)
    versions = finish(drained, limits)
    assert "w1/0" not in {share.owner for share in versions[-1].shares}
    assert len(versions) <= 2 * -(-len(own) // (2 * limits.moves_away_per_target)) + 2


def test_freed_on_completion_the_next_move_begins_in_the_same_version() -> None:
    limits = Limits()
    now = follow(cluster(3, limits), limits, joining=(candidate("w3"),))
    assert len(moving(now)) == 2
    switching = follow(now, limits, warm=frozenset(moving(now).items()))
    assert [s.phase for s in switching.shares].count(Phase.SWITCHING) == 2
    assert nothing(switching, limits)
    live = frozenset((p, share.since) for p, share in enumerate(switching.shares))
    after = follow(switching, limits, live=live)
    assert len(moving(after)) == 2
    assert after.cause == "2 moves complete; 2 moves begun"


def test_a_crash_gives_its_partitions_to_others_at_once() -> None:
    limits = Limits()
    before = cluster(4, limits)
    after = follow(before, limits, gone={"w1": "silent for 8 s"})
    for was, now in zip(before.shares, after.shares, strict=True):
        if was.owner == "w1/0":
            assert now == Share(now.owner, 2)
        else:
            assert now == was
    assert spread(after) <= 1
    assert after.cause.startswith("w1 is gone: silent for 8 s; 32 partitions assigned")


def test_a_process_that_was_started_again_keeps_its_partitions_under_higher_epochs() -> None:
    limits = Limits()
    before = cluster(2, limits, processes=2)
    after = follow(before, limits, starts={"w1": (0, 1)})
    for was, now in zip(before.shares, after.shares, strict=True):
        assert now == (Share("w1/1", 2) if was.owner == "w1/1" else was)


def test_a_worker_that_comes_again_at_once_keeps_its_partitions_under_higher_epochs() -> None:
    limits = Limits()
    before = cluster(3, limits)
    again = candidate("w1", nonce="another")
    after = follow(before, limits, gone={"w1": "its stream has ended"}, joining=(again,))
    for was, now in zip(before.shares, after.shares, strict=True):
        assert now == (Share("w1/0", 2) if was.owner == "w1/0" else was)
    assert after.by_id["w1"].incarnation == 2


def test_first_worker_after_an_empty_cluster_gets_everything() -> None:
    limits = Limits(partitions=8)
    now = follow(cluster(1, limits), limits, gone={"w0": "silent"})
    assert {share.owner for share in now.shares} == {None}
    assert nothing(now, limits)
    now = follow(now, limits, joining=(candidate("w5"),))
    assert set(now.shares) == {Share("w5/0", 3)}


def test_many_who_join_are_not_all_named() -> None:
    cause = cluster(9, Limits()).cause
    assert cause.startswith("w0, w1, w2, w3, w4 and 4 more join; 128 partitions")


def test_the_first_to_join_say_what_stages_there_are_and_those_stay() -> None:
    limits = Limits(partitions=4)
    stages = (("trades", 0), ("portfolio", 2))
    code = replace(CODE, stages=stages)
    joining = Facts(joining=(candidate("w1", code=code),))
    now = next_version(empty([Stage("main", 4)]), 0, joining, limits)
    assert now is not None
    check_follows(empty(now.stages), now)
    assert now.stages == (Stage("trades", 4), Stage("portfolio", 2))
    assert [share.owner for share in now.shares] == ["w1/0"] * 6
    assert now.place_of(5) == ("portfolio", 1)
    now = follow(now, limits, gone={"w1": "x"})
    other = replace(CODE, stages=(("trades", 0), ("portfolio", 3)))
    assert nothing(now, limits, joining=(candidate("w2", code=other),))
    assert follow(now, limits, joining=(candidate("w3", code=code),)).owned_by("w3")


def test_workers_of_another_code_join_only_once_nobody_is_left() -> None:
    limits = Limits(partitions=8)
    other = candidate("a", code=replace(CODE, plan_hash="plan-2"))
    now = cluster(1, limits)
    assert nothing(now, limits, joining=(other,))
    now = follow(now, limits, gone={"w0": "silent"}, joining=(other, candidate("b")))
    assert [one.id for one in now.members] == ["a"]


def test_unreadable_versions_are_followed_by_one_that_gives_everything_anew() -> None:
    limits = Limits(partitions=8)
    before = cluster(2, limits)
    for newest, is_readable in ((3, True), (1, False)):
        after = next_version(before, newest, Facts(), limits, is_readable=is_readable)
        assert after is not None
        assert after.version == newest + 1
        assert {share.since for share in after.shares} == {newest + 1}
        assert {one.incarnation for one in after.members} == {newest + 1}
        assert [s.owner for s in after.shares] == [s.owner for s in before.shares]


def test_frozen_changes_by_command_only() -> None:
    limits = Limits(partitions=8)
    frozen = follow(cluster(2, limits), limits, commands=(Freeze("a night"),))
    assert frozen.frozen == "a night"
    assert nothing(frozen, limits, gone={"w1": "silent"}, joining=(candidate("w2"),))
    pinned = follow(frozen, limits, commands=(PinTo(0, "w1", "its cache"),), gone={"w0": "silent"})
    assert pinned.shares == frozen.shares
    now = follow(pinned, limits, commands=(Unfreeze("morning"),), gone={"w0": "silent"})
    assert {share.owner for share in now.shares} == {"w1/0"}
    assert now.cause.startswith("no longer frozen: morning; w0 is gone")


@pytest.mark.parametrize("newest", [0, 1])
def test_only_a_worker_makes_the_first_version_that_can_be_read(newest: int) -> None:
    """It says what the stages are, for ever."""
    limits = Limits(partitions=4)
    facts = Facts(commands=(Freeze("a night"),))
    before = empty([Stage("unknown", 4)])
    assert next_version(before, newest, facts, limits, is_readable=False) is None
    joining = (candidate("w1"),)
    after = next_version(before, newest, replace(facts, joining=joining), limits)
    assert after is not None
    assert [stage.name for stage in after.stages] == ["main"]


# One move, step by step, and what may fail in each.

LIMITS = Limits(partitions=2)


WARMING = Share(A, 4, next=B)
SWITCHING = Share(B, 7, former=A)

STEPS: dict[str, tuple[Share, dict[str, Any], Share | None]] = {
    "an unbalanced partition begins to move": (Share(A, 4), {}, WARMING),
    "a follower that is not near changes nothing": (WARMING, {}, None),
    "a warm follower takes over": (
        WARMING,
        {"warm": frozenset({(0, B)})},
        Share(B, 8, former=A),
    ),
    "a warm follower of something else does not": (WARMING, {"warm": frozenset({(1, B)})}, None),
    "an owner that is live owns": (SWITCHING, {"live": frozenset({(0, 7)})}, Share(B, 7)),
    "one that was live before does not": (SWITCHING, {"live": frozenset({(0, 6)})}, None),
    "while warming the follower dies: the owner was never paused": (
        WARMING,
        {"gone": {"b": "silent"}},
        Share(A, 4),
    ),
    "while warming the owner dies: the follower gets it": (
        WARMING,
        {"gone": {"a": "silent"}},
        Share(B, 8),
    ),
    "while warming the owner's process dies: the follower gets it": (
        WARMING,
        {"starts": {"a": (1,)}},
        Share(B, 8),
    ),
    "while warming digests differ: the owner stays": (
        WARMING,
        {"failed": {(0, B): "digest"}, "blocked": frozenset({(0, B)})},
        Share(A, 4),
    ),
    "while switching the owner dies: the former one has it back": (
        SWITCHING,
        {"gone": {"b": "silent"}},
        Share(A, 8),
    ),
    "while switching the owner's process dies: the former one has it back": (
        SWITCHING,
        {"starts": {"b": (1,)}, "blocked": frozenset({(0, B), (1, B)})},
        Share(A, 8),
    ),
    "while switching the former one dies: the owner goes on": (
        SWITCHING,
        {"gone": {"a": "silent"}},
        Share(B, 7),
    ),
    "while switching the owner cannot: the former one has it back": (
        SWITCHING,
        {"failed": {(0, B): "cannot claim"}, "blocked": frozenset({(0, B), (1, B)})},
        Share(A, 8),
    ),
    "while switching the owner is drained: first it is live, then the next move begins": (
        SWITCHING,
        {"commands": (Drain("b", "a restart"),)},
        SWITCHING,
    ),
    "while warming the follower is drained: the owner stays": (
        WARMING,
        {"commands": (Drain("b", "a restart"),)},
        Share(A, 4),
    ),
    "while warming both die: nobody": (WARMING, {"gone": {"a": "", "b": ""}}, Share(None, 0)),
    "while switching both die: nobody": (SWITCHING, {"gone": {"a": "", "b": ""}}, Share(None, 0)),
    "while warming both die, another is there": (
        WARMING,
        {"gone": {"a": "", "b": ""}, "joining": (candidate("c"),)},
        Share("c/0", 8),
    ),
    "a failed move is not tried again at once": (
        Share(A, 4),
        {"blocked": frozenset({(0, B), (1, B)})},
        None,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_step_of_a_move(name: str) -> None:
    share, facts, expected = STEPS[name]
    before = two(share)
    if name == "an unbalanced partition begins to move":
        after = follow(before, LIMITS, **facts)
        assert sorted(s.next or "" for s in after.shares) == ["", B]
    elif expected is None:
        assert nothing(before, LIMITS, **facts)
    else:
        assert follow(before, LIMITS, **facts).shares[0] == expected


def test_every_failing_step_of_a_move_leaves_one_owner() -> None:
    """In pairs, too: whatever is known together, the version that follows obeys the rules."""
    for share, one, _ in STEPS.values():
        for _, other, _ in STEPS.values():
            after = next_version(two(share), 7, Facts(**one | other), LIMITS)
            if after is not None:
                check_follows(two(share), after)


# Commands.


def test_a_drained_worker_gives_everything_away_and_gets_nothing() -> None:
    limits = Limits(partitions=16)
    before = cluster(3, limits)
    versions = finish(follow(before, limits, commands=(Drain("w1", "rolling restart"),)), limits)
    now = versions[-1]
    assert now.owned_by("w1") == ()
    assert all(v.shares[p].owner is not None for v in versions for p in range(16))
    moved = sum(s.owner != was.owner for s, was in zip(now.shares, before.shares, strict=True))
    assert moved == len(before.owned_by("w1"))
    back = finish(follow(now, limits, commands=(Undrain("w1", "done"),)), limits)[-1]
    assert spread(back) <= 1


def test_where_everybody_is_drained_everybody_keeps_what_it_has() -> None:
    limits = Limits(partitions=4)
    before = cluster(2, limits)
    commands = (Drain("w0", "down"), Drain("w1", "down"))
    assert follow(before, limits, commands=commands).shares == before.shares


def test_a_pin_moves_and_holds_its_partition_until_it_is_taken_back() -> None:
    limits = Limits(partitions=12)
    before = cluster(3, limits)
    partition = next(p for p, s in enumerate(before.shares) if s.owner != "w2/0")
    now = finish(follow(before, limits, commands=(PinTo(partition, "w2", "why"),)), limits)[-1]
    assert now.shares[partition].owner == "w2/0"
    assert spread(now) <= 1
    for worker in ("w0", "w1"):
        assert finish(follow(now, limits, gone={worker: "x"}), limits)[-1].shares[
            partition
        ].owner == ("w2/0")
    without = finish(follow(now, limits, gone={"w2": "x"}), limits)[-1]
    assert without.shares[partition].owner in ("w0/0", "w1/0")
    assert follow(now, limits, commands=(Unpin(partition, "why"),)).pins == ()


def test_a_move_brings_another_back_where_balance_asks_for_it() -> None:
    limits = Limits(partitions=12)
    before = cluster(3, limits)
    partition = next(p for p, s in enumerate(before.shares) if s.owner == "w0/0")
    now = finish(follow(before, limits, commands=(Move(partition, "w2", "why"),)), limits)[-1]
    changed = [p for p in range(12) if now.shares[p].owner != before.shares[p].owner]
    assert now.shares[partition].owner == "w2/0"
    assert len(changed) == 2
    assert spread(now) == 0


def test_a_move_alone_is_enough_where_balance_allows_it() -> None:
    limits = Limits(partitions=4)
    before = cluster(3, limits)
    held = Counter(worker_of(share.owner or "") for share in before.shares)
    (rich, _), (_, _), (poor, _) = held.most_common()
    partition = before.owned_by(rich)[0]
    now = finish(follow(before, limits, commands=(Move(partition, poor, "why"),)), limits)[-1]
    assert [p for p in range(4) if now.shares[p].owner != before.shares[p].owner] == [partition]


def test_a_standby_is_given_what_its_owner_had_and_another_one_stands_by() -> None:
    limits = Limits(partitions=9, standbys=1)
    now = cluster(3, limits)
    assert nothing(now, limits)
    stood = {p: share.standby for p, share in enumerate(now.shares)}
    after = follow(now, limits, gone={"w1": "silent"})
    for partition, share in enumerate(now.shares):
        if worker_of(share.owner or "") == "w1":
            assert after.shares[partition].owner == stood[partition]
    assert {worker_of(share.standby or "") for share in after.shares} == {"w0", "w2"}


def test_a_process_that_begins_anew_finds_its_partitions_at_those_who_stood_by() -> None:
    limits = Limits(partitions=4, standbys=1)
    now = cluster(2, limits)
    after = follow(now, limits, starts={"w0": (1,)})
    assert {share.owner for share in after.shares} == {"w1/0"}
    assert {share.standby for share in after.shares} == {"w0/0"}


def test_move_to_a_standby_chooses_another_standby() -> None:
    limits = Limits(partitions=1, standbys=1)
    now = cluster(2, limits)
    owner, standby = now.shares[0].owner, now.shares[0].standby
    target = worker_of(standby or "")
    now = follow(now, limits, commands=(Move(0, target, "why"),))
    assert (now.shares[0].next, now.shares[0].standby) == (standby, standby)
    now = follow(now, limits, warm=frozenset({(0, standby or "")}))
    assert now.shares[0] == Share(standby, now.version, former=owner, standby=owner)


# Over random histories.

NAMES = [f"w{number}" for number in range(5)]
HISTORIES = st.lists(
    st.tuples(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.booleans()),
    max_size=12,
)


@given(HISTORIES, st.integers(1, 24), st.integers(1, 2), st.integers(0, 1))
def test_whatever_comes_and_goes_versions_obey_the_rules_and_come_to_rest(
    history: list[tuple[set[str], set[str], bool]], partitions: int, processes: int, standbys: int
) -> None:
    limits = Limits(partitions=partitions, standbys=standbys)
    now = empty([Stage("main", partitions)])
    nonces = 0
    for comes, goes, is_finished in history:
        joining = []
        for worker in sorted(comes):
            nonces += 1
            joining.append(candidate(worker, nonce=f"{nonces}", processes=processes))
        facts = {"gone": dict.fromkeys(goes, "x"), "joining": tuple(joining)}
        after = next_version(now, now.version, Facts(**facts), limits)  # type: ignore[arg-type]
        if after is None:
            continue
        check_follows(now, after)
        if after.members:
            assert None not in {share.owner for share in after.shares}
        now = finish(after, limits)[-1] if is_finished else after
        assert sum(s.phase is not Phase.OWNED for s in now.shares) <= limits.moves_of(partitions)
    now = finish(now, limits)[-1]
    if now.members:
        assert spread(now) <= 1
        assert {share.phase for share in now.shares} == {Phase.OWNED}
        is_stood_by = bool(standbys) and len(now.processes) > 1
        assert {share.standby is not None for share in now.shares} == {is_stood_by}


@given(st.integers(2, 40), st.integers(1, 5), st.integers(1, 3))
def test_a_change_of_members_moves_the_least(partitions: int, workers: int, more: int) -> None:
    limits = Limits(partitions=partitions)
    before = cluster(workers, limits)
    joining = tuple(candidate(f"x{number}") for number in range(more))
    now = finish(follow(before, limits, joining=joining), limits)[-1]
    moved = sum(s.owner != was.owner for s, was in zip(now.shares, before.shares, strict=True))
    least = sorted(Counter(s.owner for s in now.shares)[f"x{number}/0"] for number in range(more))
    assert moved == sum(least)
    assert spread(now) <= 1
    again = finish(follow(now, limits, gone={one.id: "x" for one in joining}), limits)[-1]
    back = sum(s.owner != was.owner for s, was in zip(again.shares, now.shares, strict=True))
    assert back == moved
