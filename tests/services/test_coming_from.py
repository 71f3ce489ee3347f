"""The other libraries' programs of ``docs/coming-from``, with the rows of Ripple's.

Bytewax runs; $RIPPLE_PEERS=all: the others too, of which some are large (``make test-peers``).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.coming_from import BARS, Bar, code, write_trades
from tests.deploy.tools import of_python
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services

CSP_BARS = """
for name, rows in found.items():
    for at, value in rows:
        print(name.replace(" ", ","), at - MINUTE, value, sep=",")
"""
large = pytest.mark.skipif(
    os.environ.get("RIPPLE_PEERS") != "all", reason="large: make test-peers installs it"
)


def test_bytewax_has_the_same_bars(tmp_path: Path) -> None:
    write_trades("bytewax", tmp_path)
    lines = output("bytewax==0.21.1", "bytewax", tmp_path, "-m", "bytewax.run", "bars")
    assert bars(lines) == BARS


@large
def test_csp_has_the_same_bars(tmp_path: Path) -> None:
    write_trades("csp", tmp_path)
    found: dict[tuple[str, str], dict[str, str]] = {}
    for line in output("csp==0.19.1", "csp", tmp_path, "bars.py", more=CSP_BARS):
        symbol, what, at, value = line.split(",")
        found.setdefault((symbol, at), {})[what] = value
    rows = (
        Bar.of(symbol, datetime.fromisoformat(at), one["vwap"], float(one["volume"]))
        for (symbol, at), one in found.items()
    )
    assert sorted(rows) == BARS


@large
def test_flink_has_the_same_bars(tmp_path: Path) -> None:
    write_trades("flink", tmp_path)
    _, _, lines = (tmp_path / "trades.csv").read_text().partition("\n")
    (tmp_path / "trades-without-heading.csv").write_text(lines)
    assert bars(output("apache-flink==2.3.0", "flink", tmp_path, "bars.py")) == BARS


@large
def test_quix_has_the_same_bars(tmp_path: Path) -> None:
    trades = write_trades("quix", tmp_path)
    (tmp_path / "bars.py").write_text(code("quix", "quix"))
    packages = packages_of("quixstreams==3.28.1")
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        asyncio.run(send(broker.bootstrap, trades))
        environment = {**os.environ, "PYTHONPATH": str(packages), "BROKERS": broker.bootstrap}
        process = subprocess.Popen([sys.executable, "bars.py"], env=environment, cwd=tmp_path)
        try:
            rows = asyncio.run(received(broker.bootstrap, len(trades)))
        finally:
            process.terminate()
            process.wait()
    newest = {
        (symbol, row["start"]): Bar.of(
            symbol, datetime.fromtimestamp(row["start"] / 1000, UTC), row["vwap"], row["volume"]
        )
        for symbol, row in rows
    }
    assert sorted(newest.values()) == BARS


def packages_of(requirement: str) -> Path:
    try:
        return of_python(requirement)
    except MissingError as error:
        skip(error)


def output(requirement: str, page: str, folder: Path, *command: str, more: str = "") -> list[str]:
    """Run the program of a page, as ``bars.py``; return the lines of bars that it prints."""
    (folder / "bars.py").write_text(code(page, page) + more)
    environment = {**os.environ, "PYTHONPATH": str(packages_of(requirement))}
    ended = subprocess.run(
        [sys.executable, *command],
        env=environment, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [line for line in ended.stdout.splitlines() if re.match("(AAPL|MSFT),", line)]


def bars(lines: Iterable[str]) -> list[Bar]:
    rows = (line.split(",") for line in lines)
    return sorted(
        Bar.of(symbol, datetime.fromisoformat(at), vwap, volume)
        for symbol, at, vwap, volume in rows
    )


async def send(bootstrap: str, trades: list[dict[str, Any]]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic("trades", 1, 1), NewTopic("bars", 1, 1)])
    await admin.close()
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for trade in trades:
            key, value = trade["symbol"].encode(), json.dumps(trade).encode()
            await producer.send_and_wait("trades", value, key=key)


async def received(bootstrap: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    consumer = AIOKafkaConsumer(
        "bars",
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer:
        found = [await asyncio.wait_for(consumer.getone(), PATIENCE_S) for _ in range(count)]
    return [(message.key.decode(), json.loads(message.value)) for message in found]
