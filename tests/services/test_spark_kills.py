"""Processes of a standalone cluster are killed and frozen by chance, and results are the same.

$RIPPLE_SPARK_SEEDS: other seeds, each of a replay, a backfill or a streaming query. The one of a
plain run kills a Python process of a replay, so it waits for no timeout of a frozen process.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.services.spark_kills import main

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("quick_jvms")]


def test_killed_and_frozen_processes_change_no_bit(tmp_path: Path) -> None:
    seeds = [int(word) for word in os.environ.get("RIPPLE_SPARK_SEEDS", "3").split()]
    assert main(tmp_path, seeds) == 0
