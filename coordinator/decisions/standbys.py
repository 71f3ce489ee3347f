"""Hot standbys of partitions.

Guarantees, from any version before:

- a standby is another process than the owner, of another worker wherever there is one;
- no single change would make the numbers of partitions that processes stand by for more equal;
- a standby that may stay stays, but for such a change;
- its result, given to it again, comes back unchanged.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from coordinator.decisions.ring import VIRTUAL_NODES, ring_of
from ripple.control.assignment import Share, worker_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def standbys(
    shares: Sequence[Share], members: Collection[str], *, virtual_nodes: int = VIRTUAL_NODES
) -> tuple[str | None, ...]:
    """Return the standby of each partition, None if no process can be one. members: processes."""
    ring = ring_of(tuple(sorted(set(members))), virtual_nodes)
    able = [_able(share.owner, ring.members) for share in shares]
    found = [
        share.standby if share.standby in some else None
        for share, some in zip(shares, able, strict=True)
    ]
    count = Counter(one for one in found if one is not None)
    is_changed = True
    while is_changed:  # each change fills a gap, or makes two numbers more equal
        is_changed = False
        for partition, some in enumerate(able):
            now = found[partition]
            least = min((count[one] for one in some), default=0)
            if not some or (now is not None and count[now] <= least + 1):
                continue
            walk = ring.walk(partition)
            chosen = next(one for one in walk if one in some and count[one] == least)
            count[chosen] += 1
            if now is not None:
                count[now] -= 1
            found[partition], is_changed = chosen, True
    return tuple(found)


def _able(owner: str | None, members: Collection[str]) -> frozenset[str]:
    """Return the processes that may be standbys for an owner's partitions."""
    if owner is None:
        return frozenset()
    others = frozenset(one for one in members if worker_of(one) != worker_of(owner))
    return others or frozenset(members) - {owner}
