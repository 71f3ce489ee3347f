"""Replays on Spark of what runs have recorded: ticks, markers and answers, up to their cuts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.services.spark_session import MARKS, spark
from tests.spark import test_answers
from tests.spark.test_clock import SECOND, placed, ran

pytestmark = MARKS
__all__ = ["spark"]


def test_ticks_and_markers_of_a_run_are_replayed_to_its_digests(spark: Any, tmp_path: Path) -> None:
    from ripple.spark.replaying import Replay

    file, source = placed(tmp_path, "idle", time.time_ns() - 5 * SECOND)
    report, state = ran(file, source, tmp_path), str(tmp_path / "state")
    one = Replay(spark, file, source, cut=state, markers=state, closes=False)
    found = one.report()
    assert found.digest == report.digest
    assert found.cut == {name: report.cut[name] for name in ("trades/0", "trades/1", "ticks")}


def test_answers_of_a_run_are_replayed_to_its_digests(spark: Any, tmp_path: Path) -> None:
    from ripple.spark.replaying import Replay

    file, place = test_answers.placed(tmp_path)
    report, state = test_answers.ran(file, place, tmp_path, 120), str(tmp_path / "state")
    unable = file.replace(":pipeline", ":unable")  # a call would end the task
    found = Replay(spark, unable, place, cut=state, answers=state, closes=False).report()
    assert found.digest == report.digest
    assert found.cut == report.cut
    assert found.together_why == "recorded answers are to the records of all inputs"
