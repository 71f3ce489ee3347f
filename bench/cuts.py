"""Bytes of a cut of 32 x 8 x 8 partitions as a record holds it, by how far its paths are behind.

Simulated, of fixed draws: nothing is timed, so that every run on every machine prints the same. A
path is behind by up to LAG_MAX records. Where paths are behind by themselves, each has its own lag;
where they follow commits, a path has the lag of one of the newest commits of its partition. Beside
it the information of the lags alone in base 85, a lower bound for each form of one cut.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator

from bench.row import Row, at_most
from ripple.core.compact_cut import stored

SOURCE, FOLLOWED, FOLLOWING = 32, 8, 8
LAG_MAX = 150
CHARS_A_BYTE = 5 / 4
"""Of base 85."""
AIM = 1_000


def measure() -> list[Row]:
    rows = [_row("all paths agree", _alone(0.0), 0.0, aim=True)]
    for share in (0.1, 0.25, 0.5, 1.0):
        bits = math.log2(LAG_MAX) * share + _choice(share)
        paths = SOURCE * FOLLOWED * FOLLOWING
        rows.append(
            _row(f"{share:.0%} of the paths behind by themselves", _alone(share), bits * paths)
        )
    for commits in (1, 2, 3):
        lags = commits * SOURCE * FOLLOWED
        bits = lags * math.log2(LAG_MAX) + FOLLOWED * FOLLOWING * math.log2(commits)
        name = f"paths follow one of {commits} commits"
        rows.append(_row(name, _of_commits(commits), bits, aim=commits == 1))
    return rows


def _row(name: str, lags: Iterator[int], bits: float, *, aim: bool = False) -> Row:
    draw = random.Random(1)
    newest = [draw.randrange(10**6, 10**7) for _ in range(SOURCE)]
    cut = {
        f"{following}/{followed}/trades/{first}": newest[first] - next(lags)
        for following in range(FOLLOWING)
        for followed in range(FOLLOWED)
        for first in range(SOURCE)
    }
    size = len(json.dumps(stored(dict(sorted(cut.items())))))
    least = bits / 8 * CHARS_A_BYTE
    return Row(name, size, "B", "the lags alone", round(least), at_most(AIM) if aim else None)


def _alone(share: float) -> Iterator[int]:
    draw = random.Random(2)
    while True:
        yield draw.randrange(LAG_MAX) + 1 if draw.random() < share else 0


def _of_commits(commits: int) -> Iterator[int]:
    draw = random.Random(3)
    lags = [
        [[draw.randrange(LAG_MAX) for _ in range(SOURCE)] for _ in range(commits)]
        for _ in range(FOLLOWED)
    ]
    while True:
        for sender in lags:
            yield from draw.choice(sender)


def _choice(share: float) -> float:
    """Return the bits that tell whether one of so many is meant."""
    return -sum(part * math.log2(part) for part in (share, 1 - share) if part)
