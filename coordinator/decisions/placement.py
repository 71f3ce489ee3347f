"""Placement: the owner of each partition, from the owners before and the present members.

Every coordinator computes the same from the same version of the assignment, so none has to lead.

Guarantees, from any version before:

- every partition has an owner among the members, as soon as there is one;
- pinned partitions are where they are pinned, if that member is there;
- members own the same number of partitions, or differ by one, as far as pins allow;
- no placement with these guarantees moves fewer partitions.

The ring chooses the targets of partitions that must move, so that a member which left and came back
gets most of its partitions again, with the state on its disk.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from coordinator.decisions.ring import VIRTUAL_NODES, Ring, partition_point, point_of, ring_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

Owners: TypeAlias = "tuple[str | None, ...]"  # by partition; None without a member

NO_PINS: Mapping[int, str] = MappingProxyType({})


def place(
    before: Sequence[str | None],
    members: Collection[str],
    *,
    pinned: Mapping[int, str] = NO_PINS,
    virtual_nodes: int = VIRTUAL_NODES,
) -> Owners:
    """Return the owner of each partition after ``before``, given the present ``members``.

    before: by partition; None, and former members, own nothing. A moving partition counts for its
    target. pinned: members by partition.
    """
    ring = ring_of(tuple(sorted(set(members))), virtual_nodes)
    if not ring.members:
        return (None,) * len(before)
    owners = [owner if owner in ring.members else None for owner in before]
    fixed = {p: member for p, member in pinned.items() if member in ring.members}
    held: dict[str, list[int]] = {member: [] for member in ring.members}
    stay = dict.fromkeys(ring.members, 0)
    for partition, owner in enumerate(owners):
        if partition in fixed:
            owners[partition] = fixed[partition]
            stay[fixed[partition]] += 1
        elif owner is not None:
            held[owner].append(partition)
    quotas = _quotas(held, stay, len(before))
    room = {member: quotas[member] - stay[member] - len(held[member]) for member in ring.members}
    for member, partitions in held.items():
        for partition in _given_up(partitions, -room[member], ring, room):
            owners[partition] = None
    room = {member: max(places, 0) for member, places in room.items()}
    homeless = [partition for partition, owner in enumerate(owners) if owner is None]
    for partition in sorted(homeless, key=partition_point):
        owner = next(member for member in ring.walk(partition) if room[member])
        owners[partition] = owner
        room[owner] -= 1
    return tuple(owners)


def _quotas(held: dict[str, list[int]], stay: dict[str, int], partitions: int) -> dict[str, int]:
    """Return how many each member gets; a remainder goes to the members with most already.

    A member with more pins than the others' share gets those and no more.
    """
    quotas = {}
    members = sorted(held, key=lambda member: (-stay[member], member))
    while stay[members[0]] > partitions // len(members):
        quotas[members[0]] = stay[members[0]]
        partitions -= stay[members[0]]
        del members[0]
    least, more = divmod(partitions, len(members))
    count = {member: stay[member] + len(held[member]) for member in members}
    by_held = sorted(members, key=lambda member: (-count[member], point_of(member), member))
    return quotas | {member: least + (rank < more) for rank, member in enumerate(by_held)}


def _given_up(partitions: list[int], excess: int, ring: Ring, room: dict[str, int]) -> list[int]:
    """Return the ``excess`` partitions whose walk meets a member with room earliest."""

    def steps_to_room(partition: int) -> int:
        return next(step for step, member in enumerate(ring.walk(partition)) if room[member] > 0)

    if excess <= 0:
        return []
    return sorted(partitions, key=lambda p: (steps_to_room(p), partition_point(p)))[:excess]
