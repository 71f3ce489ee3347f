"""Roles and records that Flight's tests share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ripple.client.flight.server import FlightServer
from ripple.client.flight.service import Flights
from ripple.client.flight.sql import FlightSql
from ripple.client.flight.tables import BEGINS, CUTS, Tables
from ripple.core.access import access_of
from ripple.model.schema.types import Field, Float, Int, Schema, String

TRADES = Schema("trade", (Field("symbol", String()), Field("price", Float()), Field("size", Int())))
TOKENS = {role: f"{role}-token-of-at-least-32-characters" for role in ("reader", "operator")}
ROLES = "".join(f"[{role}.tokens]\n{role}s = '{token}'\n" for role, token in TOKENS.items())


OUT = pa.table({"symbol": ["A", "B", "C"], "vwap": [1.5, 2.5, None], "trades": [1, 2, 2**62]})
TOTALS = pa.table({"symbol": ["A", "B"], "size": [10, 20]})


class FixedTables(Tables):
    """Tables at cuts that nobody moves."""

    def __init__(self, **tables: pa.Table) -> None:
        self._fixed = tables

    async def _names(self) -> list[str]:
        return list(self._fixed)

    async def _table(self, output: str, key: object = None) -> pa.Table:
        del key
        about = {CUTS: f'{{"0": {{"{output}": 7}}}}'}
        if output == "by-class":  # an output of events
            about[BEGINS] = '{"0": {"trades/0": 3}}'
        return self._fixed[output].replace_schema_metadata(about)

    async def _keys(self, output: str) -> tuple[str, ...]:
        return ("symbol",)


TABLES = FixedTables(**{"vwap": OUT, "by-class": TOTALS})


def asked(ask: Callable[[str], None], *, roles: bool = False, **limits: Any) -> None:
    """Let a client ask, in a thread of its own."""

    async def serve() -> None:
        flights = Flights(TABLES, {}, FlightSql(TABLES, **limits))
        access = access_of(ROLES.encode(), "roles") if roles else None
        server = FlightServer(flights, access)
        await server.start("127.0.0.1:0", None)
        try:
            await asyncio.to_thread(ask, f"grpc://{server.address}")
        finally:
            await server.close(0)

    asyncio.run(serve())
