"""Letters of a cluster whose store is in S3, retried by the command and by the dashboard."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from coordinator.dashboard.letter_retry import Retry, retry
from ripple.cli.main import main
from ripple.client.dashboard.contract import AskedError
from ripple.client.dashboard.stored import letters_of
from ripple.storage.log import Topic, TopicWriter
from ripple.storage.store.opening import open_store
from ripple.storage.store.s3_settings import S3Settings
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.log import DeadLetterLog
from ripple.world import LiveClock, LiveDisk, LiveRandom
from tests.cli.processes import ripple
from tests.services.s3 import ObjectServer
from tests.storage.log.trades import read_all
from tests.task.kept_letters import TRADES, leave_letters

pytestmark = pytest.mark.services

URL = "s3://bucket/prefix"


@pytest.fixture
async def letters(s3_server: ObjectServer) -> None:
    """Leave letters as two partitions of a cluster do."""
    async with open_store(URL, S3Settings.of_environment(os.environ)) as store:
        for partition in range(2):
            place = HintStore(store, "vwap", partition, random=LiveRandom())
            await place.open(1)
            leave_letters(
                DeadLetterLog(place.letters(), pipeline="vwap", version="f", clock=LiveClock())
            )
            await place.close()


def _asked(partition: int, offset: int | None, cause: str | None = None) -> Retry:
    return Retry("vwap", partition, "trades", offset, cause, "it was mended")


async def retried(folder: Path, asked: Retry) -> str:
    return str((await retry(asked, store=URL, source=f"log:{folder / 'trades'}"))["done"])


@pytest.mark.usefixtures("letters")
async def test_dead_letters_in_s3_are_retried_once_and_not_during_a_run(tmp_path: Path) -> None:
    assert main(["log", "create", "--schema", "trade", str(tmp_path / "trades")]) == 0

    topic = Topic.open(LiveDisk(tmp_path), "trades")
    with TopicWriter(topic, LiveClock(), holder="feed"), pytest.raises(AskedError, match="feed"):
        await retried(tmp_path, _asked(1, 12))
    assert await retried(tmp_path, _asked(1, 12)) == "vwap/1: 1 retried: it was mended"
    assert (
        await retried(tmp_path, _asked(1, 12))
        == "vwap/1: 0 retried, 1 were retried before: it was mended"
    )
    assert await retried(tmp_path, _asked(1, None, "too low")) == "vwap/1: 1 retried: it was mended"
    assert read_all(topic) == TRADES[1:]
    with pytest.raises(AskedError, match="there are vwap/0, vwap/1"):
        await retried(tmp_path, _asked(7, 12))
    ended = ripple("dead-letter", "list", "--checkpoint-dir", URL, "--format=json")
    assert [json.loads(line)["offset"] for line in ended.rows] == [10, 12, 13] * 2
    async with open_store(URL, S3Settings.of_environment(os.environ), is_read=True) as store:
        assert (await letters_of(store, {}, URL))["total"] == 6
