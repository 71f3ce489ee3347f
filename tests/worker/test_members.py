"""What chance does to coordinators and members."""

from __future__ import annotations

from ripple.testing import explore
from tests.worker.scenarios import members_come_and_go


def test_cluster_of_members_comes_to_rest_whatever_happens() -> None:
    report = explore(members_come_and_go, seeds=range(12))
    assert report.landed.total() > 50, report
