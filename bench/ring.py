"""How many partitions move when a member comes or goes, and how even the load is then.

Simulated: nothing is timed, so that every run on every machine prints the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean

from bench.row import Row, at_most
from bench.timing import QUICK
from coordinator.decisions.placement import Owners, place
from coordinator.decisions.ring import Ring

PARTITIONS = 128
CLUSTERS = 20 if QUICK else 100

Place = Callable[[Owners, Sequence[str]], Owners]


def measure() -> list[Row]:
    rows = []
    for before, after in ((3, 4), (4, 3), (10, 11), (31, 32)):
        ours, plain = (_change(before, after, how) for how in (place, _plain))
        least = PARTITIONS // after if after > before else -(-PARTITIONS // before)
        step = f"{before} -> {after} members"
        means = fmean(ours[0]), fmean(plain[0])
        rows += [
            Row(f"{step}: moved, mean", means[0], "partitions", "plain ring", means[1]),
            Row(f"{step}: moved, most", max(ours[0]), "partitions", "least", least, at_most(least)),
            Row(f"{step}: largest / mean load", max(ours[1]), "x", "plain ring", max(plain[1])),
        ]
    return rows


def _change(before: int, after: int, how: Place) -> tuple[list[int], list[float]]:
    moved, loads = [], []
    for cluster in range(CLUSTERS):
        names = [f"cluster-{cluster}-worker-{number}" for number in range(max(before, after))]
        was = how((None,) * PARTITIONS, names[:before])
        now = how(was, names[:after])
        moved.append(sum(one != other for one, other in zip(was, now, strict=True)))
        loads.append(max(Counter(now).values()) * after / PARTITIONS)
    return moved, loads


def _plain(before: Owners, members: Sequence[str]) -> Owners:
    """Give each partition to the first member of its walk: what a consistent hash ring does."""
    ring = Ring(members)
    return tuple(next(ring.walk(partition)) for partition in range(len(before)))
