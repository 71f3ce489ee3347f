"""Kafka, VWAP by symbol and minute, Kafka: whole processes beside three libraries of Python.

Each library runs what its documentation shows (``bench/kafka_peers``), Ripple ``ripple run`` with
checkpoints in a folder, on the same broker in turns. Ripple and Quix Streams write in transactions
of 50 ms, which the reader waits for; Bytewax and Pathway write without.

- *Records per CPU second*: of a topic that is there, by the processor time of all processes of a
  library; what a start costs is taken off by a run over a few records.
- *Latency*: from when the record that ends a minute was given to the broker to when the minute's
  row is read, while trades come at half the library's rate.
- *Caught up*: from ``kill -9`` under that load, with a start at once, to a row that is not late.

Rows of all of them are compared, so that nobody is fast by being wrong.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.kafka_peers import HERE, python
from bench.row import Row, at_least, at_most
from bench.timing import QUICK
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.settings import Security
from ripple.world.broker import Records, TopicPartition

RECORDS = 2_000_000 if QUICK else 8_000_000
RECORDS_OF_PEERS = 40_000 if QUICK else 200_000
FEW = 10_000
SYMBOLS, MINUTE_NS, BASE_NS = 100, 60_000_000_000, 1_700_000_040_000_000_000
STEP_NS = 6_000_000  # 10,000 records a minute
LOAD_S = 8.0 if QUICK else 30.0
SETTLE_S = 3.0 if QUICK else 8.0
RATE_MAX = 20_000 if QUICK else 200_000  # what can be written beside it on the same machine
STEPS_A_SECOND = 50
WITHIN_S, CAUGHT_UP_S = 300.0, 90.0
PEERS = {"quix": "quix.py", "bytewax": "bytewax_flow.py", "pathway": "pathway_flow.py"}
NAMES = {"ripple": "Ripple", "quix": "Quix Streams", "bytewax": "Bytewax", "pathway": "Pathway"}
PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp

pipeline = (
    rp.Pipeline("NAME")
    .source("trades", Trade, out_of_order="0s")
    .partition("by-symbol", key="symbol")
    .window("1min", rp.Tumbling("60s"))
    .fold("minutes", vwap=rp.vwap("price", "size"))
    .sink("out")
)
"""
ROOT = Path(__file__).parents[1]


def measure() -> list[Row]:
    from tests.services.kafka import Broker  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as broker:
        return asyncio.run(_measure(broker.bootstrap, Path(folder)))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@dataclass
class Found:
    """What was measured of one library. rate: records a CPU second. late_ms: of all rows read."""

    rate: float = 0.0
    late_ms: list[float] = field(default_factory=list)
    load: float = 0.0
    caught_up_s: float = 0.0


async def _measure(bootstrap: str, folder: Path) -> list[Row]:
    python()
    counts = {"ripple": RECORDS} | dict.fromkeys(PEERS, RECORDS_OF_PEERS)
    for count in {FEW, *counts.values()}:
        await _fill(bootstrap, f"trades-{count}", count)
    found: dict[str, Found] = {}
    for library, count in counts.items():
        try:
            one = found[library] = Found()
            one.rate = await _rate(library, bootstrap, folder, count)
            _say(f"{NAMES[library]}: {one.rate:,.0f} records/CPU s")
            await _load(library, bootstrap, folder, one)
            p50, p99 = np.percentile(one.late_ms, [50, 99])
            _say(
                f"{NAMES[library]}: p50 {p50:.0f} ms, p99 {p99:.0f} ms of {len(one.late_ms)} rows "
                f"at {one.load:,.0f}/s; caught up {one.caught_up_s:.1f} s after a kill"
            )
        except (AssertionError, TimeoutError) as error:
            _say(f"{NAMES[library]}: {error or 'it takes too long'}")
    return list(_rows(found))


def _rows(found: dict[str, Found]) -> Iterator[Row]:
    own = found.pop("ripple")
    best = max(one.rate for one in found.values())
    own_p50, own_p99 = np.percentile(own.late_ms or [np.nan], [50, 99])
    for library, one in found.items():
        name = NAMES[library]
        if one.rate:
            aim = at_least(5.0, of_ratio=True) if one.rate == best else None
            yield Row(
                "whole pipeline", own.rate / 1e6, "M records/CPU s", name, one.rate / 1e6, aim
            )
        if one.late_ms:
            p50, p99 = np.percentile(one.late_ms, [50, 99])
            at = f"{own.load:,.0f}/s, {one.load:,.0f}/s"
            yield Row(f"latency p50 at half load ({at})", own_p50, "ms", name, p50)
            yield Row(f"latency p99 at half load ({at})", own_p99, "ms", name, p99, at_most(100.0))
        if one.caught_up_s:
            yield Row("killed to caught up", own.caught_up_s, "s", name, one.caught_up_s)


# --- the libraries ---


@contextmanager
def _running(library: str, bootstrap: str, source: str, sink: str, folder: Path) -> Iterator[int]:
    """Run a library; yield the number of its process group."""
    folder.mkdir(exist_ok=True)
    if library == "ripple":
        pipeline = folder / "pipeline.py"
        pipeline.write_text(PIPELINE.replace("NAME", sink))
        command = [
            *(sys.executable, "-c", "from ripple.cli.start import ripple; ripple()"),
            *("run", str(pipeline), "--source", f"kafka:{bootstrap}/{source}", "--follow"),
            *("--sink", f"kafka:{bootstrap}/{sink}", "--commit-interval", "50ms"),
            *("--checkpoint-dir", str(folder / "state"), "--batch", "10000"),
        ]
    else:
        command = [python(), str(HERE / PEERS[library]), bootstrap, source, sink, str(folder)]
    log = folder / "log"
    with log.open("ab") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield process.pid
        assert process.poll() is None, log.read_text()[-2000:]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _cpu_s(group: int) -> float:
    """Return the processor time of a process group, with that of children that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            values = stat.read_text().rpartition(")")[2].split()
            if int(values[2]) == group:
                ticks += sum(map(int, values[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


async def _rate(library: str, bootstrap: str, folder: Path, count: int) -> float:
    spent = {}
    for records in (FEW, count):
        sink = f"{library}-{records}"
        await make_topic(bootstrap, sink)
        at = folder / sink
        with _running(library, bootstrap, f"trades-{records}", sink, at) as group:
            rows = await _read(bootstrap, sink, SYMBOLS * _minutes(records))
            spent[records] = _cpu_s(group)
        _check(rows, records)
    return (count - FEW) / (spent[count] - spent[FEW])


async def _load(library: str, bootstrap: str, folder: Path, found: Found) -> None:
    """Measure latency under load, and a kill in the middle of it."""
    rate = found.load = float(min(RATE_MAX, found.rate / 2))
    source, sink = f"{library}-live", f"{library}-live-out"
    await make_topic(bootstrap, source)
    await make_topic(bootstrap, sink)
    given: list[float] = []
    # Two minutes of events a second, whatever the rate.
    step_ns = int(2 * MINUTE_NS / rate)
    at = folder / sink
    seen = await _watch(bootstrap, sink)
    writing = asyncio.create_task(write_at(bootstrap, source, rate, step_ns, given))
    try:
        with _running(library, bootstrap, source, sink, at):
            await asyncio.wait_for(seen.first.wait(), WITHIN_S)
            await asyncio.sleep(SETTLE_S)
            began = len(seen.rows)
            await asyncio.sleep(LOAD_S)
            found.late_ms = [late * 1000 for late in _late(seen.rows[began:], given, rate, step_ns)]
            assert found.late_ms, "nothing came under load"
        killed_s = time.monotonic()
        usual_s = float(np.percentile(found.late_ms, 99)) / 1000
        with _running(library, bootstrap, source, sink, at):
            while True:
                assert time.monotonic() - killed_s < CAUGHT_UP_S, "it does not catch up"
                began = len(seen.rows)
                await asyncio.sleep(0.1)
                late = _late(seen.rows[began:], given, rate, step_ns)
                if (
                    late
                    and min(late) <= max(0.25, 1.5 * usual_s)
                    and time.monotonic() > killed_s + 0.3
                ):
                    found.caught_up_s = time.monotonic() - killed_s
                    return
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await seen.close()


def _late(
    rows: list[tuple[float, dict[str, Any]]], given: list[float], rate: float, step_ns: int
) -> list[float]:
    """Return how late rows came: after the first record behind their minute was given."""
    at_once = rate / STEPS_A_SECOND
    late = []
    for read_s, row in rows:
        number = (row["window_start_ns"] + MINUTE_NS - BASE_NS) // step_ns
        turn = int(number / at_once)
        if turn < len(given):
            late.append(read_s - given[turn])
    return late


# --- trades ---


def trades(first: int, count: int, step_ns: int) -> Records:
    """Return trades as JSON of some 80 bytes, in the order of their time."""
    numbers = np.arange(first, first + count)
    symbols = pc.binary_join_element_wise("S", pa.array(numbers % SYMBOLS).cast(pa.string()), "")
    price = pa.array(100 + numbers % 997 / 10).cast(pa.string())
    parts = (
        *('{"symbol": "', symbols, '", "price": ', price, ', "size": '),
        *(pa.array(1 + numbers % 9).cast(pa.string()), ', "timestamp_ns": '),
        *(pa.array(BASE_NS + numbers * step_ns).cast(pa.string()), "}", ""),
    )
    values = pc.binary_join_element_wise(*parts)
    times = np.full(count, time.time_ns() // 1_000_000)  # retention goes by them
    return Records(symbols.cast(pa.binary()), values.cast(pa.binary()), times)


def _minutes(records: int) -> int:
    """Return how many whole minutes so many records have, the first beginning with them."""
    return records * STEP_NS // MINUTE_NS


def _vwap(records: int) -> dict[tuple[str, int], float]:
    numbers = np.arange(records)
    prices, sizes = 100 + numbers % 997 / 10, 1 + numbers % 9
    minute = numbers * STEP_NS // MINUTE_NS
    key = minute * SYMBOLS + numbers % SYMBOLS
    sums = np.bincount(key, prices * sizes) / np.maximum(1, np.bincount(key, sizes))
    return {
        (f"S{at % SYMBOLS}", BASE_NS + at // SYMBOLS * MINUTE_NS): float(one)
        for at, one in enumerate(sums[: _minutes(records) * SYMBOLS])
    }


def _check(rows: list[dict[str, Any]], records: int) -> None:
    expected = _vwap(records)
    found = {(row["symbol"], row["window_start_ns"]): row["vwap"] for row in rows}
    for key, vwap in expected.items():
        assert abs(found.get(key, 0.0) - vwap) < 1e-6, f"{key}: {found.get(key)}, and not {vwap}"


async def make_topic(bootstrap: str, topic: str) -> None:
    broker = KafkaBroker(bootstrap, Security())
    await broker.make(topic, 1)
    await broker.close()


async def _fill(bootstrap: str, topic: str, count: int) -> None:
    """Write so many trades, and one more of each symbol an hour later, which end all minutes."""
    broker = KafkaBroker(bootstrap, Security())
    await broker.make(topic, 1)
    producer, at_once = await broker.plain_producer(), 50_000
    for first in range(0, count, at_once):
        some = trades(first, min(at_once, count - first), STEP_NS)
        await producer.send(TopicPartition(topic, 0), some)
    await producer.send(TopicPartition(topic, 0), trades(count + 600_000, SYMBOLS, STEP_NS))
    await broker.close()


async def write_at(
    bootstrap: str, topic: str, rate: float, step_ns: int, given: list[float]
) -> None:
    """Write at a rate, for ever, and note when each part was given to the broker."""
    at_once = rate / STEPS_A_SECOND
    broker = KafkaBroker(bootstrap, Security())
    producer, began_s = await broker.plain_producer(), time.monotonic()
    for turn in itertools.count():
        first, end = int(turn * at_once), int((turn + 1) * at_once)
        await asyncio.sleep(max(0.0, began_s + turn / STEPS_A_SECOND - time.monotonic()))
        given.append(time.monotonic())
        if end > first:
            await producer.send(TopicPartition(topic, 0), trades(first, end - first, step_ns))


# --- rows ---


class _Seen:
    """Rows as a reader of committed records gets them, with when it did."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self.rows: list[tuple[float, dict[str, Any]]] = []
        self.first = asyncio.Event()
        self._broker = broker
        self._consumer = broker.consumer()
        self._consumer.assign({TopicPartition(topic, 0): 0})
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            for read in (await self._consumer.read(records_max=100_000, wait_s=1)).values():
                now_s = time.monotonic()
                for record in read.records:
                    self.rows.append((now_s, json.loads(record.value or b"{}")))
                    self.first.set()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.close()
        await self._broker.close()


async def _watch(bootstrap: str, topic: str) -> _Seen:
    broker = KafkaBroker(bootstrap, Security())
    await broker.connected()
    return _Seen(broker, topic)


async def _read(bootstrap: str, topic: str, count: int) -> list[dict[str, Any]]:
    """Return rows, as soon as there are so many."""
    seen, until_s = await _watch(bootstrap, topic), time.monotonic() + WITHIN_S
    try:
        while len(seen.rows) < count:
            assert time.monotonic() < until_s, f"{len(seen.rows)} of {count} rows came"
            await asyncio.sleep(0.02)
        return [row for _, row in seen.rows]
    finally:
        await seen.close()
