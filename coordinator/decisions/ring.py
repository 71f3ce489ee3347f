"""A consistent hash ring: each partition prefers the members in its own order.

Karger et al., Consistent Hashing and Random Trees (STOC 1997), with several points per member
(virtual nodes). Points are BLAKE2b digests, the same in every process and on every machine.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VIRTUAL_NODES = 128  # per member

POINT_BYTES = 8


def point_of(name: str) -> int:
    """Return the position of a name on the ring, from 0 to 2^64 - 1."""
    return int.from_bytes(blake2b(name.encode(), digest_size=POINT_BYTES).digest(), "big")


@lru_cache(maxsize=1 << 14)
def partition_point(partition: int) -> int:
    """Return the position of a partition."""
    return point_of(f"partition-{partition}")


class Ring:
    """Members on a ring.

    Invariant: the order in which members are given does not matter.
    """

    def __init__(self, members: Iterable[str], *, virtual_nodes: int = VIRTUAL_NODES) -> None:
        self.members = tuple(sorted(set(members)))
        points = sorted(
            (point_of(f"{member}-vnode-{number}"), member)
            for member in self.members
            for number in range(virtual_nodes)
        )
        self._points = [point for point, _ in points]
        self._owners = [member for _, member in points]

    def walk(self, partition: int) -> Iterator[str]:
        """Yield every member once, clockwise from the partition's position."""
        start = bisect_left(self._points, partition_point(partition))
        met = set()
        for step in range(len(self._owners)):
            member = self._owners[(start + step) % len(self._owners)]
            if member not in met:
                met.add(member)
                yield member
                if len(met) == len(self.members):
                    return


@lru_cache(maxsize=64)
def ring_of(members: tuple[str, ...], virtual_nodes: int) -> Ring:
    """Return the ring of these members; recent ones are cached."""
    return Ring(members, virtual_nodes=virtual_nodes)
