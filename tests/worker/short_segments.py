"""A simulated cluster whose logs of answers get segments after few answers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from ripple.task.asks import answer_log
from ripple.testing.cluster.trial import ClusterTrial

if TYPE_CHECKING:
    from ripple.testing.sim.cluster import SimCluster

SEGMENT_BYTES, OBJECTS_MAX = 4_000, 6


class ShortSegmentsTrial(ClusterTrial):
    """A trial in which owners tidy the log of answers again and again."""

    async def _run(self, cluster: SimCluster, seed: int) -> None:
        limits = {"SEGMENT_BYTES": SEGMENT_BYTES, "ANSWER_OBJECTS_MAX": OBJECTS_MAX}
        with patch.multiple(answer_log, **limits):
            await super()._run(cluster, seed)
