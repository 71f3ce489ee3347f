"""Invariants of every version of the assignment, and between one and the next.

Of each version v:

- an owner, the target or former owner of a move, and a standby are processes of members;
- no process stands by for a partition that it owns;
- an owned partition has 1 <= since <= v; one that is not owned moves nowhere;
- 1 <= incarnation <= v, and no two members have the same id or nonce.

Between v and w, which follows it:

- a member stays the incarnation that it was, or is a new one, with incarnation w;
- while a partition stays with the same run of the same process, its ``since`` stays, or is w;
  any other owner has it since w. So every other owner has a higher epoch;
- the number of partitions stays;
- where w > v + 1, versions between cannot be read. Members are new incarnations then, and
partitions are owned since w.
"""

from __future__ import annotations

from ripple.control.assignment.epoch import VERSION_MAX
from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.version import PARTITIONS_MAX, Assignment, Share


def problems_of(assignment: Assignment) -> list[str]:
    """Return the problems of a version by itself."""
    found = []
    version = assignment.version
    if not 0 <= version <= VERSION_MAX:
        found.append(f"version {version} is not from 0 to {VERSION_MAX}")
    count = len(assignment.shares)
    if count != sum(stage.partitions for stage in assignment.stages):
        found.append(f"{count} partitions are not as many as those of its stages")
    if not 1 <= count <= PARTITIONS_MAX:
        found.append(f"{count} partitions are not from 1 to {PARTITIONS_MAX}")
    ids = [member.id for member in assignment.members]
    nonces = {member.nonce for member in assignment.members}
    if ids != sorted(set(ids)) or len(nonces) != len(ids):
        found.append("its members are not sorted, or one is there twice")
    found += [
        f"{member.id} has incarnation {member.incarnation}, not from 1 to {version}"
        for member in assignment.members
        if not 1 <= member.incarnation <= version
    ]
    pinned = [pin.partition for pin in assignment.pins]
    if pinned != sorted(set(pinned)) or any(not 0 <= p < count for p in pinned):
        found.append("its pins are not sorted, or are of no partition")
    processes = set(assignment.processes)
    for partition, share in enumerate(assignment.shares):
        found += [f"partition {partition} {why}" for why in _wrong(share, version, processes)]
    return found


def _wrong(share: Share, version: int, processes: set[str]) -> list[str]:
    named = [one for one in (share.owner, share.next, share.former) if one is not None]
    found = [
        f"names {one}, which is no process of a member"
        for one in (*named, share.standby)
        if one is not None and one not in processes
    ]
    if share.standby is not None and share.standby == share.owner:
        found.append("has its owner as its standby")
    if share.owner is None:
        if named or share.since:
            found.append("has no owner, and moves or is owned since a version")
    elif not 1 <= share.since <= version:
        found.append(f"is owned since {share.since}, which is not from 1 to {version}")
    if len(named) == 3 or len(set(named)) != len(named):
        found.append("moves to where it is, or to and from somewhere")
    return found


def problems_between(before: Assignment, after: Assignment) -> list[str]:
    """Return why ``after`` may not follow ``before``."""
    found = []
    if after.version <= before.version:
        found.append(f"version {after.version} does not come after {before.version}")
    if len(after.shares) != len(before.shares):
        found.append(f"{len(before.shares)} partitions have become {len(after.shares)}")
    is_next = after.version == before.version + 1
    found += [
        f"{member.id} has come as incarnation {member.incarnation}"
        for member in after.members
        if member.incarnation != after.version
        and not (is_next and before.has(member.id, member.incarnation))
    ]
    for partition, (was, now) in enumerate(zip(before.shares, after.shares, strict=False)):
        if now.owner is None or now.since == after.version:
            continue
        is_same = was.owner == now.owner and before.start_of(now.owner) == after.start_of(now.owner)
        if not (is_next and is_same and was.since == now.since):
            found.append(f"partition {partition} is {now.owner}'s since {now.since}")
    return found


def check_version(assignment: Assignment) -> None:
    """Raise AssignmentError where a version breaks a rule."""
    _refuse(assignment, problems_of(assignment))


def check_follows(before: Assignment, after: Assignment) -> None:
    """Raise AssignmentError where a version, or its change to the one before, breaks a rule."""
    _refuse(after, problems_of(after) + problems_between(before, after))


def _refuse(assignment: Assignment, problems: list[str]) -> None:
    if problems:
        shown = "; ".join(problems[:3])
        raise AssignmentError(f"version {assignment.version} of the assignment: {shown}")
