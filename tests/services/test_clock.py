"""A clock on a cluster with hot standbys and its state in S3: its owners are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.test_clock import killed_owners
from tests.services.s3 import ObjectServer

pytestmark = pytest.mark.services


def test_a_standby_goes_on_with_the_next_tick_from_state_in_s3(
    tmp_path: Path, s3_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert s3_server.answers()
    monkeypatch.setenv("RIPPLE_STANDBYS", "1")
    killed_owners(tmp_path, "--store", "s3://bucket/prefix")
