"""A table that ticks, told to many: rows by processor time, beside Deephaven's own server.

``python -m bench.barrage SERVER`` is a server in a process of its own, of the same table: all its
rows get another value every tenth of a second. It prints where it listens. Ours is told what
changes, as a gateway is; theirs makes the changes itself, with a clock and one aggregation.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.row import Row
from bench.timing import QUICK

ROWS = 1000
TICK_S = 0.1
SECONDS = 2 if QUICK else 8
SUBSCRIBERS = (1, 100)
EACH = 50  # streams of a connection
VERSUS = "deephaven-server 42.7"


def measure() -> list[Row]:
    from tests.services import deephaven  # noqa: PLC0415 - the servers do without it

    environments = {"ripple": dict(os.environ), "deephaven": deephaven.server()}
    rows = []
    for count in SUBSCRIBERS:
        found = {}
        for server, environment in environments.items():
            with _server(server, environment) as (pid, address):
                told, cpu_s = asyncio.run(_told(pid, address, count))
                found[server] = told / cpu_s / 1e3
        name = f"{count} subscriber{'s' * (count > 1)}"
        unit = "k rows told/CPU s"
        rows.append(Row(name, found["ripple"], unit, VERSUS, found["deephaven"]))
    return rows


@contextmanager
def _server(name: str, environment: dict[str, str]) -> Iterator[tuple[int, str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.barrage", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=Path(__file__).parent.parent,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line.startswith("listens "):
                yield process.pid, line.split()[1]
                break
        else:
            raise RuntimeError(f"{name} does not listen")
    finally:
        process.kill()
        process.wait()


async def _told(pid: int, address: str, count: int) -> tuple[int, float]:
    """Return how many rows were told to so many, and the processor time that the server took."""
    import grpc.aio  # noqa: PLC0415

    from tests.client.flight.barrage.asking import request  # noqa: PLC0415

    rows = [0] * count
    apart = (("grpc.use_local_subchannel_pool", 1),)
    channels = [grpc.aio.insecure_channel(address, apart) for _ in range(count // EACH + 1)]
    shown = (("authorization", "Anonymous"),)

    async def follow(number: int) -> None:
        call = channels[number // EACH].stream_stream(
            "/arrow.flight.protocol.FlightService/DoExchange"
        )
        stream = call(metadata=shown)
        await stream.write(request(as_list=False, interval_ms=int(TICK_S * 1000)))
        while True:
            rows[number] += _rows_in(await stream.read())

    following = [asyncio.create_task(follow(number)) for number in range(count)]
    while not all(rows):
        for task in following:
            if task.done():
                task.result()
        await asyncio.sleep(0.1)
    await asyncio.sleep(SECONDS / 2)
    before, cpu_s = sum(rows), _cpu_s(pid)
    await asyncio.sleep(SECONDS)
    told, cpu_s = sum(rows) - before, _cpu_s(pid) - cpu_s
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    for channel in channels:
        await channel.close()
    return told, cpu_s


def _rows_in(message: bytes) -> int:
    """Return the rows of the record batch in a message, if it has one."""
    from flatbuffers import number_types  # noqa: PLC0415
    from flatbuffers.table import Table  # noqa: PLC0415

    from ripple.client.flight.messages.flight_pb2 import FlightData  # noqa: PLC0415

    header = FlightData.FromString(message).data_header
    table = Table(header, int.from_bytes(header[:4], "little"))
    if table.GetSlot(6, 0, number_types.Uint8Flags) != 3:
        return 0
    batch = Table(header, table.Indirect(table.Pos + table.Offset(8)))
    return int(batch.GetSlot(4, 0, number_types.Int64Flags))


def _cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def _ripple() -> None:
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    from ripple.engine.changes.layout import Layout, snapshot_of  # noqa: PLC0415
    from tests.client.flight.barrage.serving import serving  # noqa: PLC0415

    layout = Layout(pa.schema([("key", pa.int64()), ("value", pa.float64())]), ("key",))
    async with serving(partitions=1) as served:
        sys.stdout.write(f"listens {served.address}\n")
        sys.stdout.flush()
        for tick in range(1 << 30):
            values = np.arange(ROWS) * 0.5 + tick
            table = pa.RecordBatch.from_arrays([np.arange(ROWS), values], schema=layout.table)
            served.seen.layout = layout
            served.seen.emit(0, snapshot_of(layout, table))
            await asyncio.sleep(TICK_S)


def _deephaven() -> Any:
    from deephaven_server import Server  # noqa: PLC0415

    anonymous = "-DAuthHandlers=io.deephaven.auth.AnonymousAuthenticationHandler"
    cycle = f"-DPeriodicUpdateGraph.targetCycleDurationMillis={int(TICK_S * 1000)}"
    server = Server(port=0, jvm_args=["-Xmx2g", anonymous, cycle])
    server.start()
    from deephaven import time_table  # noqa: PLC0415

    live = time_table(f"PT{TICK_S / ROWS:.6f}S").view([f"key = ii % {ROWS}", "value = ii * 0.5"])
    sys.modules["__main__"].live = live.last_by("key")  # type: ignore[attr-defined]
    sys.stdout.write(f"listens 127.0.0.1:{server.port}\n")
    sys.stdout.flush()
    time.sleep(3600)


if __name__ == "__main__":
    if sys.argv[1] == "ripple":
        asyncio.run(_ripple())
    else:
        _deephaven()
