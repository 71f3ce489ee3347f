"""SQL over tables, run by a subprocess, so that the server never waits for it.

DuckDB limits the query, and so do the system and the parent, which end the process. The process
reads the query from standard input, and writes to standard output the names of its tables, a
line when it begins, and the result.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from asyncio.subprocess import PIPE
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.client.outputs import subprocesses
from ripple.core.errors import InputError, LimitError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    Tables = Mapping[str, pa.Table]

START_S = 30.0  # on a busy machine, a process starts late and its input arrives late
# Beyond its time limit, a query that no interrupt ends is killed.
GRACE_S = 1.0
# Memory beyond the tables and DuckDB's own accounting.
SLACK_BYTES = 32 << 20


@frozen
class Limits:
    """Limits of one query. timeout_s: from the arrival of its tables."""

    timeout_s: float = 10.0
    memory_mib: int = 256
    tables_bytes_max: int = 64 << 20
    answer_bytes_max: int = 16 << 20


async def query_apart(
    sql: str,
    known: Iterable[str],
    fetch: Callable[[list[str]], Awaitable[Tables]],
    *,
    rows_max: int | None = None,
    limits: Limits | None = None,
    parameters: pa.RecordBatch | None = None,
    are_given: bool = True,
) -> pa.Table:
    """Return the result of one statement; at most ``rows_max`` + 1 rows.

    known: the names of all tables. fetch: gets the tables of the statement, by name.
    parameters: one row, for the placeholders; nulls unless ``are_given``. Raises InputError for an
    invalid statement, LimitError for too much data, TimeoutError; and the errors of ``fetch``.
    """
    limits = Limits() if limits is None else limits
    request = {
        "sql": sql,
        "known": list(known),
        "rows_max": None if rows_max is None else rows_max + 1,
        "timeout_s": limits.timeout_s,
        "memory_mib": limits.memory_mib,
        "answer_bytes_max": limits.answer_bytes_max,
        "are_given": are_given,
        "has_parameters": parameters is not None,
    }
    try:
        process = await subprocesses.start(__name__, stdin=PIPE, limit=1 << 20)
    except OSError as error:
        raise LimitError(f"cannot start a process for the query: {error}") from error
    conversation = _Conversation(process)
    try:
        async with asyncio.timeout(START_S):
            await conversation.send(json.dumps(request).encode() + b"\n")
            named = json.loads(await conversation.reply("tables"))
        tables = await fetch(named)
        size = sum(table.nbytes for table in tables.values())
        if size > limits.tables_bytes_max:
            raise LimitError(
                f"the tables have {size:,} bytes, more than {limits.tables_bytes_max:,}"
            )
        async with asyncio.timeout(START_S):
            await conversation.send(json.dumps(list(tables)).encode() + b"\n")
            for table in tables.values():
                await conversation.send(_stream(table))
            if parameters is not None:
                await conversation.send(_stream(pa.Table.from_batches([parameters])))
            await conversation.reply("begins")
        with suppress(TimeoutError):  # reported below
            async with asyncio.timeout(limits.timeout_s + GRACE_S):
                size = int(await conversation.reply("rows"))
            async with asyncio.timeout(START_S):
                return pa.ipc.open_stream(await conversation.read(size)).read_all()
        raise TimeoutError(f"no answer within {limits.timeout_s:g} s")
    finally:
        await subprocesses.end(process)


class _Conversation:
    """The protocol with the process: lines with a keyword and its arguments."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout

    async def send(self, data: bytes | memoryview) -> None:
        with suppress(ConnectionError):  # the reader reports how the process ended
            await subprocesses.send(self._stdin, data)

    async def reply(self, wanted: str) -> str:
        """Return the arguments of the expected keyword. Raises the process's error."""
        kind, _, said = (await self._stdout.readline()).decode().strip().partition(" ")
        if kind == wanted:
            return said
        if kind in _ERRORS:
            raise _ERRORS[kind](json.loads(said))
        raise await self._ended()

    async def read(self, size: int) -> bytes:
        try:
            return await self._stdout.readexactly(size)
        except asyncio.IncompleteReadError:
            raise await self._ended() from None

    async def _ended(self) -> LimitError:
        await self._process.wait()
        how = subprocesses.ended(self._process)
        return LimitError(f"the query took more memory or time than allowed: {how}")


_ERRORS: dict[str, Any] = {"wrong": InputError, "much": LimitError, "late": TimeoutError}


def _stream(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def main() -> None:
    """Run one query."""
    request = json.loads(sys.stdin.buffer.readline())
    try:
        from ripple.client.sql.query import query  # noqa: PLC0415 - the same
        from ripple.client.sql.tables_read import mentioned  # noqa: PLC0415 - an extra, and slow

        _say("tables", json.dumps(mentioned(request["sql"], request["known"])))
        names = json.loads(sys.stdin.buffer.readline())
        source = pa.PythonFile(sys.stdin.buffer, mode="r")
        tables = {name: pa.ipc.open_stream(source).read_all() for name in names}
        parameters: list[object] | None = [] if request["are_given"] else None
        if request["has_parameters"]:
            (row,) = pa.ipc.open_stream(source).read_all().to_batches()
            parameters = [column[0].as_py() for column in row.columns]
        _limit(request)
        _say("begins")
        rows = query(
            request["sql"],
            tables,
            timeout_s=request["timeout_s"],
            memory_mib=request["memory_mib"],
            rows_max=request["rows_max"],
            bytes_max=request["answer_bytes_max"],
            threads=1,
            parameters=parameters,
        )
        body = _stream(rows)
    except (InputError, ModuleNotFoundError) as error:
        _say("wrong", json.dumps(str(error)))
    except (LimitError, MemoryError) as error:
        _say("much", json.dumps(str(error) or "it needs more memory than allowed: select less"))
    except TimeoutError as error:
        _say("late", json.dumps(str(error)))
    else:
        _say("rows", str(len(body)))
        sys.stdout.buffer.write(body)


def _say(kind: str, said: str = "") -> None:
    sys.stdout.buffer.write(f"{kind} {said}\n".encode())
    sys.stdout.buffer.flush()


def _limit(request: Mapping[str, Any]) -> None:
    """Set the system's limits of memory and time."""
    cpu_s = int(request["timeout_s"] + START_S)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    data = _data_bytes() + (request["memory_mib"] << 20) + request["answer_bytes_max"] + SLACK_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))


def _data_bytes() -> int:
    """Return the present data size of this process, as RLIMIT_DATA counts it."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[5]) * resource.getpagesize()


if __name__ == "__main__":
    main()
