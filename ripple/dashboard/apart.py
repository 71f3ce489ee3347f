"""SQL over tables, answered by a process of its own: whoever serves others never waits for it.

What it may take is limited twice: by DuckDB, and by the system, which ends the process. It is told
the question and the tables on standard input, and tells one table on standard output.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.dashboard import children
from ripple.errors import InputError, LimitError

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S = 10.0
START_S = 30.0  # a process begins late where others are busy
MEMORY_MIB = 256
# Of addresses, most of which nothing is ever written to.
ADDRESSES_BYTES_MAX = 4 << 30
TABLES_BYTES_MAX = 64 << 20
ANSWER_BYTES_MAX = 16 << 20


async def query_apart(
    sql: str, tables: Mapping[str, pa.Table], *, rows_max: int, timeout_s: float = TIMEOUT_S
) -> pa.Table:
    """Return what one statement says of ``tables``, by name; at most ``rows_max`` rows and one.

    Raises InputError for what is wrong with it, LimitError for too much, TimeoutError after
    ``timeout_s``.
    """
    size = sum(table.nbytes for table in tables.values())
    if size > TABLES_BYTES_MAX:
        raise LimitError(f"the tables have {size:,} bytes, more than {TABLES_BYTES_MAX:,}")
    told = {"sql": sql, "tables": list(tables), "rows_max": rows_max, "timeout_s": timeout_s}
    process = await children.start(__name__, stdin=PIPE, limit=ANSWER_BYTES_MAX)
    try:
        async with asyncio.timeout(timeout_s + START_S):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(told).encode() + b"\n")
            for table in tables.values():
                process.stdin.write(_stream(table))
                await process.stdin.drain()
            process.stdin.close()
            kind = (await process.stdout.readline()).decode().strip()
            body = await _read(process.stdout)
    except ConnectionError:
        kind, body = "", b""
    finally:
        await children.end(process)
    if kind == "wrong":
        raise InputError(body.decode())
    if kind == "late":
        raise TimeoutError(body.decode())
    if kind != "rows":
        raise LimitError("the question took more memory or time than it may")
    return pa.ipc.open_stream(body).read_all()


async def _read(stream: asyncio.StreamReader) -> bytes:
    found = b""
    while more := await stream.read(1 << 16):
        found += more
        if len(found) > ANSWER_BYTES_MAX:
            raise LimitError(f"the answer has more than {ANSWER_BYTES_MAX:,} bytes: ask for less")
    return found


def _stream(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def main() -> None:
    """Answer one question."""
    told = json.loads(sys.stdin.buffer.readline())
    source = pa.PythonFile(sys.stdin.buffer, mode="r")
    tables = {name: pa.ipc.open_stream(source).read_all() for name in told["tables"]}
    cpu_s = int(told["timeout_s"] + START_S)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES_MAX, ADDRESSES_BYTES_MAX))
    try:
        from ripple.observing.sql import query  # noqa: PLC0415 - an extra, and slow

        rows = query(
            told["sql"],
            tables,
            timeout_s=told["timeout_s"],
            memory_mib=MEMORY_MIB,
            rows_max=told["rows_max"] + 1,
            threads=1,
        )
        kind, body = b"rows\n", _stream(rows)
    except (InputError, ModuleNotFoundError) as error:
        kind, body = b"wrong\n", memoryview(str(error).encode())
    except TimeoutError as error:
        kind, body = b"late\n", memoryview(str(error).encode())
    sys.stdout.buffer.write(kind)
    sys.stdout.buffer.write(body)


if __name__ == "__main__":
    main()
