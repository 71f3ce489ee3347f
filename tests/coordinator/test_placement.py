"""Placement: everybody owns as much, and as little as possible moves."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.decisions.placement import Owners, place
from coordinator.decisions.ring import Ring, partition_point, point_of

NAMES = [f"worker-{number}" for number in range(7)]
members = st.sets(st.sampled_from(NAMES))
histories = st.lists(members, min_size=1, max_size=8)


def loads(owners: Owners, among: set[str]) -> list[int]:
    counted = Counter(owners)
    return [counted[member] for member in sorted(among)]


def least_moves(before: Owners, among: set[str]) -> int:
    """Try which members get one partition more than the others; nothing else is free."""
    if not among:
        return 0
    held = sorted(loads(before, among), reverse=True)
    least, more = divmod(len(before), len(among))
    homeless = len(before) - sum(held)
    return homeless + min(
        sum(max(0, has - quota) for has, quota in zip(held, quotas, strict=True))
        for quotas in set(permutations([least + (rank < more) for rank in range(len(among))]))
    )


@given(histories, st.integers(1, 40))
def test_members_own_as_much_and_least_moves(history: list[set[str]], partitions: int) -> None:
    owners: Owners = (None,) * partitions
    for among in history:
        after = place(owners, among)
        moved = sum(now != was for was, now in zip(owners, after, strict=True))
        if not among:
            assert set(after) == {None}
        else:
            assert set(after) <= among
            assert max(loads(after, among)) - min(loads(after, among)) <= 1
            assert moved == least_moves(owners, among)
        assert place(after, among) == after
        owners = after


@given(st.permutations(NAMES), st.integers(0, 127))
def test_placement_is_a_function_of_who_is_there(names: list[str], virtual_nodes: int) -> None:
    one = place((None,) * 20, names, virtual_nodes=virtual_nodes + 1)
    assert one == place((None,) * 20, NAMES, virtual_nodes=virtual_nodes + 1)


def test_member_that_comes_back_finds_most_of_its_partitions() -> None:
    for count, share in ((4, 0.85), (11, 0.7)):
        workers = [f"worker-{number}" for number in range(count)]
        before = place((None,) * 128, workers)
        found = total = 0
        for gone in workers:
            after = place(place(before, set(workers) - {gone}), workers)
            own = [partition for partition, owner in enumerate(before) if owner == gone]
            found += sum(after[partition] == gone for partition in own)
            total += len(own)
        assert found / total > share, (count, found / total)


@given(members, st.dictionaries(st.integers(0, 19), st.sampled_from(NAMES)), members)
def test_pins_hold_and_the_rest_is_as_even_as_they_allow(
    among: set[str], pinned: dict[int, str], later: set[str]
) -> None:
    before = place((None,) * 20, among)
    after = place(before, later, pinned=pinned)
    if not later:
        return
    fixed = {p: member for p, member in pinned.items() if member in later}
    assert all(after[p] == member for p, member in fixed.items())
    stay = Counter(fixed.values())
    # Whoever has more than another, has it by pins.
    counted = {member: after.count(member) for member in later}
    least = min(counted.values())
    for member, count in counted.items():
        assert count <= least + 1 or count == stay[member]
    assert place(after, later, pinned=pinned) == after


def test_a_pin_moves_no_more_than_it_must() -> None:
    before = place((None,) * 12, NAMES[:3])
    partition = next(p for p, owner in enumerate(before) if owner != NAMES[0])
    after = place(before, NAMES[:3], pinned={partition: NAMES[0]})
    assert sum(now != was for was, now in zip(before, after, strict=True)) == 2


def test_walk_meets_everybody_once() -> None:
    ring = Ring(NAMES)
    for partition in range(50):
        assert sorted(ring.walk(partition)) == NAMES
    assert list(Ring([]).walk(0)) == []


def test_walk_without_one_member_is_the_same_walk() -> None:
    for partition in range(50):
        whole = [member for member in Ring(NAMES).walk(partition) if member != NAMES[3]]
        assert list(Ring(set(NAMES) - {NAMES[3]}).walk(partition)) == whole


@pytest.mark.parametrize(
    ("name", "point"),
    [("partition-0", 0x2128BAB1DC4896B5), ("worker-0-vnode-0", 0x4B8D0FF42528532)],
)
def test_points_are_pinned(name: str, point: int) -> None:
    """Another digest would move most partitions of every cluster that is updated."""
    assert point_of(name) == point


def test_preferences_are_pinned() -> None:
    assert partition_point(0) == point_of("partition-0")
    assert "".join(next(Ring(NAMES[:3]).walk(p))[-1] for p in range(32)) == (
        "12211101011201212011200102101101"
    )
    assert (
        "".join(owner[-1] for owner in place((None,) * 32, NAMES[:3]) if owner)
        == "12211101012201202021200122001100"
    )
