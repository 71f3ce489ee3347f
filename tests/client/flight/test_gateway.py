"""``ripple-gateway`` beside a real cluster, asked by the clients that people have."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TypeVar

import adbc_driver_flightsql.dbapi as adbc
import polars as pl
import pyarrow as pa
import pyarrow.flight as fl
import pytest

from ripple.storage.log import Topic
from ripple.world import LiveDisk
from tests.client.flight.gateways import gateway
from tests.cluster.chaos import append, job_of
from tests.cluster.cluster import Cluster, Job, cluster, signalled
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

PARTITIONS = 4
KILLS = 3
T = TypeVar("T")


@asynccontextmanager
async def client_of(address: str) -> AsyncIterator[fl.FlightClient]:
    """Yield what closes itself."""
    with fl.connect(f"grpc://{address}") as client:
        yield client


def at_last(ask: Callable[[], T]) -> T:
    """Ask again while partitions are between two owners."""
    ends = time.monotonic() + PATIENCE_S
    while True:
        try:
            return ask()
        except (fl.FlightUnavailableError, adbc.OperationalError):
            if time.monotonic() > ends:
                raise


def got_at_last(client: fl.FlightClient, output: str) -> pa.Table:
    return at_last(lambda: got(client, output))


def got(client: fl.FlightClient, output: str) -> pa.Table:
    info = client.get_flight_info(fl.FlightDescriptor.for_path(output))
    return client.do_get(info.endpoints[0].ticket).read_all()


def in_sql(address: str, trades: int) -> None:
    with (
        adbc.connect(f"grpc://{address}", autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT sum(trades) AS trades FROM out")
        table = cursor.fetch_arrow_table()
    assert table.to_pylist() == [{"trades": trades}]
    assert set(json.loads(table.schema.metadata[b"ripple.cuts"])["out"]) == {
        str(number) for number in range(PARTITIONS)
    }


def records_in(table: pa.Table) -> int:
    """So many records of the source are in a table of the first stage."""
    cuts = json.loads(table.schema.metadata[b"ripple.cuts"])
    return sum(offset for cut in cuts.values() for offset in cut.values())


def rows_of(table: pa.Table) -> list[str]:
    return sorted(json.dumps(row) for row in table.to_pylist())


async def asked(
    client: fl.FlightClient, up: Cluster, job: Job, records: int, random: Random
) -> int:
    """Ask while workers are killed, until all records are there; return how many answers came."""
    reached = answers = kills = 0
    ends = time.monotonic() + 2 * PATIENCE_S
    while reached < records or kills < KILLS:
        assert time.monotonic() < ends, up.tail()
        if kills < KILLS and random.random() < 0.05:
            pid = up.pid(f"worker-{random.choice([1, 2])}")
            kills += bool(pid) and signalled(pid, signal.SIGKILL)
        try:
            table = await asyncio.to_thread(got, client, job.outputs[0])
        except fl.FlightUnavailableError:
            continue
        assert records_in(table) >= reached, "a cut went back"
        reached = records_in(table)
        symbols = table.column("symbol").to_pylist()
        assert len(symbols) == len(set(symbols))
        answers += 1
        await asyncio.sleep(0.05)
    return answers


async def test_clients_see_the_outputs_of_a_cluster_whose_workers_are_killed(
    tmp_path: Path,
) -> None:
    job = job_of("totals", tmp_path, PARTITIONS)
    append(job.source, PARTITIONS, step=0, batches=3)
    records = 3000 * PARTITIONS

    async with (
        cluster(job, tmp_path / "state", workers=2) as up,
        gateway(up.coordinators, tmp_path) as address,
        client_of(address) as client,
    ):
        assert await asked(client, up, job, records, Random(1)) > KILLS
        await up.caught_up(PATIENCE_S)
        for output, expected in zip(job.outputs, job.tables_made(), strict=True):
            table = await asyncio.to_thread(got_at_last, client, output)
            assert rows_of(table) == sorted(json.dumps(json.loads(row)) for row in expected.rows), (
                output
            )
        infos = await asyncio.to_thread(at_last, lambda: list(client.list_flights()))
        assert {one.descriptor.path[0].decode() for one in infos} == {*job.outputs}
        frame = pl.from_arrow(await asyncio.to_thread(got_at_last, client, "out"))
        assert isinstance(frame, pl.DataFrame)
        table = await asyncio.to_thread(got_at_last, client, "out")
        assert len(table.to_pandas()) == len(frame) > 0
        trades = sum(frame["trades"].to_list())
        await asyncio.to_thread(at_last, lambda: in_sql(address, trades))


async def test_rows_put_by_clients_are_read_by_the_cluster(tmp_path: Path) -> None:
    job = job_of("totals", tmp_path, PARTITIONS)
    rows = 5_000

    write = ("--write", f"trades=log:{job.source}")
    async with (
        cluster(job, tmp_path / "state", workers=1) as up,
        gateway(up.coordinators, tmp_path, *write) as address,
        client_of(address) as client,
    ):
        table = pa.table(
            {
                "symbol": [f"S{n % 10}" for n in range(rows)],
                "price": [100 + n / 100 for n in range(rows)],
                "size": [1 + n % 5 for n in range(rows)],
                "timestamp_ns": [1_709_000_000_000_000_000 + n for n in range(rows)],
                "venue": ["X"] * rows,
            }
        )
        path = fl.FlightDescriptor.for_path("trades")
        writer, answers = client.do_put(path, table.schema)
        writer.write_table(table, max_chunksize=1000)
        said = [json.loads(answers.read().to_pybytes()) for _ in range(rows // 1000)]
        writer.done_writing()
        writer.close()
        assert [one["rows"] for one in said] == [1000] * 5
        assert sum(said[-1]["reached"].values()) == rows
        await up.caught_up(PATIENCE_S)
        assert sum(got_at_last(client, "out").column("trades").to_pylist()) == rows
        writer, _ = client.do_put(path, table.drop(["venue"]).schema)
        with pytest.raises((fl.FlightError, pa.ArrowInvalid), match="lack"):
            _put(writer, table.drop(["venue"]))
    assert Topic.open(LiveDisk(job.source.parent), job.source.name).partitions == PARTITIONS


def _put(writer: fl.FlightStreamWriter, table: pa.Table) -> None:
    writer.write_table(table)
    writer.done_writing()
    writer.close()
