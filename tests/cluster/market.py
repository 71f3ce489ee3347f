"""Trades and quotes for a pipeline of two sources, and the job over their logs."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from ripple.storage.log import Topic
from ripple.storage.log.body import columns_of
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.cluster.cluster import Job, ripple

PIPELINE = Path(__file__).with_name("pipeline_market.py")
OUTPUTS = ("out", "ever", "bought", "whole", "venued")
COUNTS = {"trades": 4, "quotes": 6}
START_NS = 1_709_000_000_000_000_000
MS = 1_000_000
BAD_EVERY, BAD = 97, 13  # records that are refused


def rows_of(source: str, step: int, count: int) -> list[dict[str, Any]]:
    """Return records of a source, 1 ms apart; some are late, and some are refused."""
    random, rows = Random(f"{source} {step}"), []
    for at in range(step * count, (step + 1) * count):
        row: dict[str, Any] = {
            "symbol": f"S{random.randrange(40)}",
            "timestamp_ns": START_NS + (at - random.choice([0, 0, 0, 40, 700])) * MS,
        }
        price, is_bad = random.randrange(100, 200) / 2, at % BAD_EVERY == BAD
        if source == "trades":
            size = 0 if is_bad else random.randrange(1, 9)
            row |= {"price": price, "size": size, "venue": f"V{random.randrange(3)}"}
        else:
            row |= {"bid": price, "ask": -1.0 if is_bad else price + 1}
        rows.append(row)
    return rows


def job_of(folder: Path, keys: dict[str, str] | None = None) -> Job:
    """Make the logs of both sources. keys: by which each is divided, "" by nothing."""
    divided = {name: (count, (keys or {}).get(name, "symbol")) for name, count in COUNTS.items()}
    named = logs_of(folder, PIPELINE, divided)
    return Job(PIPELINE, folder / "trades", folder / "made", OUTPUTS, 2, named=named)


def logs_of(folder: Path, pipeline: Path, divided: dict[str, tuple[int, str]]) -> tuple[str, ...]:
    """Make the logs of a pipeline's sources; return their places, as flags have them.

    divided: among how many partitions each is, by which field, "" by nothing.
    """
    for name, (count, key) in divided.items():
        given = ["--partitions", count, *(["--key", key] if key else [])]
        ripple("log", "create", "--schema", f"{pipeline}:{name}", folder / name, *given)
    return tuple(f"{name}=log:{folder / name}" for name in divided)


def append(folder: Path, source: str, step: int, count: int) -> None:
    """Append records to the log of a source."""
    topic = Topic.open(LiveDisk(str(folder)), source)
    rows = pa.Table.from_pylist(rows_of(source, step, count), columns_of(topic.schema))
    with TopicWriter(topic, LiveClock(), holder="market") as writer:
        for batch in rows.to_batches():
            writer.append(batch)
