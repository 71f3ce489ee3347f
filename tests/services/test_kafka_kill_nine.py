"""Killed at any moment, also with its broker, a run leaves what it would have left undisturbed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.services.kafka import Broker
from tests.services.kafka_kill_nine import TOPICS, Run, kill_often, make_log
from tests.services.kafka_reader import check_cuts, read
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

KILLS = int(os.environ.get("RIPPLE_KAFKA_KILLS", "6"))


def test_reader_of_committed_records_sees_each_cut_once_and_in_order(tmp_path: Path) -> None:
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        make_log(tmp_path, 12_000 * KILLS)
        killed = Run(tmp_path, broker.bootstrap, "killed", "killed")
        said = kill_often(killed, broker, KILLS, max(1, KILLS // 8))
        assert any("restored" in one for one in said), said
        last = killed.finish()
        Run(tmp_path, broker.bootstrap, "calm", "calm").finish()

        async def look() -> None:
            for topic in TOPICS:
                killed_rows, calm_rows = [
                    [(one.key, one.value) for part in found.values() for one in part]
                    for found in [
                        await read(broker.bootstrap, f"{name}-{topic}")
                        for name in ("killed", "calm")
                    ]
                ]
                assert killed_rows == calm_rows, topic
                assert killed_rows
            cuts = [
                check_cuts(await read(broker.bootstrap, f"{name}.cuts"))[-1]
                for name in ("killed", "calm")
            ]
            one, other = (
                {name: (each["cut"], each["digest"]) for name, each in cut["outputs"].items()}
                for cut in cuts
            )
            assert one == other
            assert len(one) == len(TOPICS)

        asyncio.run(look())
        assert "Digest" in last
