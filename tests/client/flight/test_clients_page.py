"""The Python in ``docs/clients.md`` runs as it stands, at a gateway's own service."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ripple.cli.main import main
from ripple.client.flight.server import FlightServer
from ripple.client.flight.service import Flights
from ripple.core.access import access_of
from ripple.storage.log import Topic
from ripple.world import LiveClock, LiveDisk
from ripple.world.ports import INLINE
from ripple.world.tls import Tls
from tests.client.flight.flights import ROLES, TOKENS, TRADES, FixedTables
from tests.client.flight.test_service import Written

PAGE = Path(__file__).parents[3] / "docs/clients.md"
PLAIN, SECURED = "grpc://localhost:9300", "grpc+tls://gateway.example.com:9300"
VWAP = pa.table({"symbol": ["AAPL", "MSFT"], "vwap": [150.5, 2.0], "trades": [300, 20]})
BATCH = pa.RecordBatch.from_pylist([{"symbol": "A", "price": 1.0, "size": 1}])


class OneKey(FixedTables):
    async def table(self, output: str, key: object = None) -> pa.Table:
        table = await super().table(output)
        return table.slice(0, 1) if key else table


# In a thread from the first client to the last: the servers' loop must not wait for one.
def run_all(names: dict[str, Any], open_to_all: str, named: str, secure: str) -> list[int]:
    page = PAGE.read_text()
    at = page.replace(PLAIN, f"grpc://{open_to_all}").replace(SECURED, f"grpc+tls://{secure}")
    for code in re.findall(r"```python\n(.*?)```", at, re.DOTALL):
        if "deephaven" in code or "Session(" in code:
            continue  # its clients are judges of their own: tests/client/flight/barrage
        if "Bearer" in code:
            names["client"] = names["flight"].connect(f"grpc://{named}")
        if "do_put" in code:
            names["table"] = pa.Table.from_batches([BATCH])
        exec(code, names)
        if "writer" in names:
            names.pop("writer").close()
    assert names["client"].do_get(names["flight"].Ticket(b"vwap")).read_all().equals(VWAP)
    for row in re.findall(r"^\| (?:pandas|Polars|DuckDB) \| `(.*)` \|$", page, re.MULTILINE):
        exec(f"import duckdb; {row}", {**names, "table": VWAP})
    trades = names["frame"]["trades"].to_list()
    names.clear()
    return list(trades)


async def test_each_snippet_runs(tmp_path: Path) -> None:
    Topic.create(LiveDisk(tmp_path), "trades", TRADES, partitions=1, key=("symbol",))
    assert main(["cert", "--dir", str(tmp_path)]) == 0
    certificate, key, authority = (
        tmp_path / name for name in ("worker.crt", "worker.key", "ca.crt")
    )
    tls = Tls(certificate=str(certificate), key=str(key), authority=str(authority))
    log = Written(f"log:{tmp_path}/trades", LiveClock(), "a test", INLINE)
    flights = Flights(OneKey(vwap=VWAP), {"trades": log})
    names: dict[str, Any] = {
        "polars": pl,
        "batch": BATCH,
        "token": TOKENS["reader"].encode(),
        "authority": authority.read_bytes(),
        "certificate": certificate.read_bytes(),
        "key": key.read_bytes(),
    }

    servers = [FlightServer(flights) for _ in range(3)]
    servers[1] = FlightServer(flights, access_of(ROLES.encode(), "roles"))
    for server, its_tls in zip(servers, (None, None, tls), strict=True):
        await server.start("127.0.0.1:0", its_tls)
    try:
        shown = await asyncio.to_thread(run_all, names, *(server.address for server in servers))
    finally:
        for server in servers:
            await server.close(0)
    assert shown == [300, 20]
    await log.close()
