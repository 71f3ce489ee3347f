"""What real clients show, compared with what the table was, update by update."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ripple.client.flight.barrage.rows import Rows
from tests.client.flight.barrage.rows import digest_in_order, plain
from tests.client.flight.barrage.workload import LAYOUT, TABLE
from tests.patience import PATIENCE_S

HERE = Path(__file__).parent


class Judge:
    """A client in a process of its own, which says what it sees, a line an update."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self, timeout_s: float = PATIENCE_S) -> str:
        """Return its next line; none after ``timeout_s``."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(timeout_s):
                return (await self._process.stdout.readline()).decode().strip()
        except TimeoutError:
            return ""

    def ask(self, line: str) -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())


@asynccontextmanager
async def judge(script: str, environment: dict[str, str], *given: str) -> AsyncIterator[Judge]:
    """Run a client."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / script), *given),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        limit=1 << 26,
    )
    try:
        yield Judge(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Truth:
    """States in the order in which they were: each that is seen is the last one, or a later one."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.seen = 0
        self._at = 0

    def see(self, state: str) -> None:
        """Take what a client shows. Raises AssertionError where the table never was like that."""
        rest = self.states[self._at :]
        assert state in rest, f"update {self.seen}: {state} was none of {len(rest)} states"
        self._at += rest.index(state)
        self.seen += 1

    @property
    def is_last(self) -> bool:
        """Whether what was seen last is how the table is."""
        return bool(self.seen) and self.states[self._at] == self.states[-1]


def session_of(address: str, **more: Any) -> str:
    """Return what the judge in C++ takes."""
    host, _, port = address.rpartition(":")
    return json.dumps({"host": host, "port": int(port), **more})


def view(
    name: str,
    positions: tuple[int, int] | None,
    columns: list[int] | None,
    *,
    reverse: bool = False,
) -> dict[str, Any]:
    """Return a view as the judge in Java takes it."""
    return {
        "name": name,
        "view": positions,
        "columns": columns,
        "reverse": reverse,
        "width": len(TABLE),
    }


def as_seen(rows: Rows, of: dict[str, Any]) -> str:
    """Return what a view shows of a table, in order."""
    now = rows.version().rows
    if of["view"] is not None:
        first, last = of["view"]
        places = np.arange(first, min(last + 1, len(now)))
        now = now[np.sort(len(now) - 1 - places) if of["reverse"] else places]
    columns = of["columns"] or list(range(len(TABLE)))
    names = [LAYOUT.table.names[at] for at in columns]
    return digest_in_order(plain(pa.table([rows.values(at, now) for at in columns], names)))
