"""Who owns which partition, as it follows from who owned them and who is there.

Every coordinator computes the same from the same version of the assignment, so none has to lead.

Promises, whatever came before:

- every partition has an owner among the members, as soon as there is one;
- members own the same number of partitions, or differ by one;
- no placement that keeps the promise above moves fewer partitions.

The ring says where those go that must move, so that a member which left and came back finds most
of its partitions, and what it has of them on its disk, again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from coordinator.ring import VIRTUAL_NODES, Ring, partition_point, point_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

Owners: TypeAlias = "tuple[str | None, ...]"  # by partition; None where nobody is there to own it


def place(
    before: Sequence[str | None],
    members: Collection[str],
    *,
    virtual_nodes: int = VIRTUAL_NODES,
) -> Owners:
    """Return the owner of each partition after ``before``, when these ``members`` are there.

    before: by partition; None, and who is no member any more, own nothing. A partition that is on
    its way counts for where it goes.
    """
    ring = Ring(members, virtual_nodes=virtual_nodes)
    if not ring.members:
        return (None,) * len(before)
    owners = [owner if owner in ring.members else None for owner in before]
    held: dict[str, list[int]] = {member: [] for member in ring.members}
    for partition, owner in enumerate(owners):
        if owner is not None:
            held[owner].append(partition)
    quotas = _quotas(held, len(before))
    room = {member: quotas[member] - len(held[member]) for member in ring.members}
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


def _quotas(held: dict[str, list[int]], partitions: int) -> dict[str, int]:
    """Return how many each member gets; one more goes to those who hold most: they move nothing."""
    least, more = divmod(partitions, len(held))
    by_held = sorted(held, key=lambda member: (-len(held[member]), point_of(member), member))
    return {member: least + (rank < more) for rank, member in enumerate(by_held)}


def _given_up(partitions: list[int], excess: int, ring: Ring, room: dict[str, int]) -> list[int]:
    """Return the ``excess`` partitions whose walk meets a member with room earliest."""

    def steps_to_room(partition: int) -> int:
        return next(step for step, member in enumerate(ring.walk(partition)) if room[member] > 0)

    if excess <= 0:
        return []
    return sorted(partitions, key=lambda p: (steps_to_room(p), partition_point(p)))[:excess]
