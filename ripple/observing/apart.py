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
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.errors import InputError, LimitError
from ripple.frozen import frozen
from ripple.observing import children

if TYPE_CHECKING:
    from collections.abc import Mapping

START_S = 30.0  # a process begins late where others are busy
# Of addresses, most of which nothing is ever written to.
ADDRESSES_BYTES_MAX = 4 << 30


@frozen
class Limits:
    """What one question may take. timeout_s: to be answered, once the process has started."""

    timeout_s: float = 10.0
    memory_mib: int = 256
    tables_bytes_max: int = 64 << 20
    answer_bytes_max: int = 16 << 20


async def query_apart(
    sql: str,
    tables: Mapping[str, pa.Table],
    *,
    rows_max: int | None = None,
    limits: Limits | None = None,
    parameters: pa.RecordBatch | None = None,
    are_given: bool = True,
) -> pa.Table:
    """Return what one statement says of ``tables``, by name; at most ``rows_max`` rows and one.

    parameters: one row, for its question marks; without ``are_given`` they are null. Raises
    InputError for what is wrong with it, LimitError for too much, TimeoutError.
    """
    limits = Limits() if limits is None else limits
    size = sum(table.nbytes for table in tables.values())
    if size > limits.tables_bytes_max:
        raise LimitError(f"the tables have {size:,} bytes, more than {limits.tables_bytes_max:,}")
    told = {
        "sql": sql,
        "tables": list(tables),
        "rows_max": None if rows_max is None else rows_max + 1,
        "timeout_s": limits.timeout_s,
        "memory_mib": limits.memory_mib,
        "are_given": are_given,
        "has_parameters": parameters is not None,
    }
    given = [] if parameters is None else [pa.Table.from_batches([parameters])]
    try:
        process = await children.start(__name__, stdin=PIPE, limit=1 << 20)
    except OSError as error:
        raise LimitError(f"no process can be started to answer it: {error}") from error
    try:
        async with asyncio.timeout(limits.timeout_s + START_S):
            assert process.stdin is not None
            assert process.stdout is not None
            with suppress(ConnectionError):  # how it has ended is told below
                await children.tell(process.stdin, json.dumps(told).encode() + b"\n")
                for table in (*tables.values(), *given):
                    await children.tell(process.stdin, _stream(table))
                process.stdin.close()
            kind = (await process.stdout.readline()).decode().strip()
            body = await _read(process.stdout, limits.answer_bytes_max)
            await process.wait()
    finally:
        await children.end(process)
    if kind == "wrong":
        raise InputError(body.decode())
    if kind == "late":
        raise TimeoutError(body.decode())
    if kind != "rows" or process.returncode:
        raise LimitError(
            f"the question took more memory or time than it may: {children.ended(process)}"
        )
    return pa.ipc.open_stream(body).read_all()


async def _read(stream: asyncio.StreamReader, bytes_max: int) -> bytes:
    found = bytearray()
    while more := await stream.read(1 << 20):
        found += more
        if len(found) > bytes_max:
            raise LimitError(f"the answer has more than {bytes_max:,} bytes: ask for less")
    return bytes(found)


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
    parameters: list[object] | None = [] if told["are_given"] else None
    if told["has_parameters"]:
        (row,) = pa.ipc.open_stream(source).read_all().to_batches()
        parameters = [column[0].as_py() for column in row.columns]
    cpu_s = int(told["timeout_s"] + START_S)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES_MAX, ADDRESSES_BYTES_MAX))
    try:
        from ripple.observing.sql import query  # noqa: PLC0415 - an extra, and slow

        rows = query(
            told["sql"],
            tables,
            timeout_s=told["timeout_s"],
            memory_mib=told["memory_mib"],
            rows_max=told["rows_max"],
            threads=1,
            parameters=parameters,
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
