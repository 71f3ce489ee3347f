"""SQL in a process of its own: answered, refused, ended; the asker's loop goes on."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pyarrow as pa
import pytest

from ripple.client.outputs import subprocesses
from ripple.client.sql import isolated
from ripple.client.sql.isolated import Limits, query_apart
from ripple.control import event_loop
from ripple.core.errors import InputError, LimitError
from tests.patience import PATIENCE_S


async def ask_of(tables: dict[str, pa.Table], sql: str, **more: Any) -> pa.Table:
    async def fetch(names: list[str]) -> dict[str, pa.Table]:
        return {name: tables[name] for name in names}

    return await query_apart(sql, tables, fetch, **more)


TABLE = pa.table({"symbol": ["A", "B", "A"], "size": [1, 2, 2**62]})
ANSWERED: dict[str, Any] = {
    "SELECT symbol, sum(size) AS sizes FROM trades GROUP BY symbol ORDER BY symbol": None,
    "SELECT count(*) FROM other": None,
    "SELECT * FROM range(100000)": None,
    "SELECT * FROM read_csv('/etc/passwd')": (InputError, "Cannot access file"),
    "SELEC": (InputError, "syntax error"),
}
TOO_LONG: dict[str, Any] = {
    "SELECT sum(a.range * b.range) FROM range(9999999) a, range(9999999) b": (
        TimeoutError,
        "no answer within",
    ),
    # No interrupt ends a function: its process is ended.
    "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))": (
        TimeoutError,
        "no answer within",
    ),
}
TOO_LARGE: dict[str, Any] = {
    "SELECT list(range) FROM range(900000000)": (LimitError, "more than the 128 MiB"),
    "SELECT length(repeat('x', 1000000000))": (LimitError, "more than the 128 MiB"),
    "SELECT * FROM range(100000000)": (LimitError, "the result has more than 1,000,000 bytes"),
}


@pytest.mark.services
async def test_each_question_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "START_S", PATIENCE_S)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.02)
            turns += 1

    async def asked(
        questions: dict[str, Any], rows_max: int | None, limits: Limits
    ) -> list[object]:
        tables = {"trades": TABLE, "other": TABLE}
        asking = (ask_of(tables, sql, rows_max=rows_max, limits=limits) for sql in questions)
        return list(await asyncio.gather(*asking, return_exceptions=True))

    turning = asyncio.ensure_future(turn())
    found = [
        *await asked(ANSWERED, 5, Limits(PATIENCE_S)),
        *await asked(TOO_LONG, None, Limits(1, 128, answer_bytes_max=1_000_000)),
        *await asked(TOO_LARGE, None, Limits(PATIENCE_S, 128, answer_bytes_max=1_000_000)),
    ]
    turning.cancel()
    for (sql, wanted), answer in zip((ANSWERED | TOO_LONG | TOO_LARGE).items(), found, strict=True):
        if wanted is None:
            assert isinstance(answer, pa.Table), (sql, answer)
        else:
            assert isinstance(answer, wanted[0]), (sql, answer)
            assert wanted[1] in str(answer)
    by_symbol, counted, cut = (one for one in found if isinstance(one, pa.Table))
    assert by_symbol.to_pylist() == [
        {"symbol": "A", "sizes": 2**62 + 1},
        {"symbol": "B", "sizes": 2},
    ]
    assert counted.to_pylist() == [{"count_star()": 3}]
    assert cut.num_rows == 6  # one more than is shown: so that it can be said
    assert turns > 10


async def test_tables_have_a_limit() -> None:
    limits = Limits(tables_bytes_max=10)
    with pytest.raises(LimitError, match="more than 10"):
        await ask_of({"t": TABLE}, "FROM t", limits=limits)


@pytest.mark.parametrize("run", [asyncio.run, event_loop.run])
def test_a_process_that_dies_before_it_is_asked_is_told_of(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocesses.start

    async def dead(*given: Any, **more: Any) -> Any:
        process = await start(*given, **more)
        process.kill()
        await process.wait()
        await asyncio.sleep(0.01)  # until the loop has seen its pipe close, too
        return process

    monkeypatch.setattr(subprocesses, "start", dead)
    with pytest.raises(LimitError, match=f"ended by signal {signal.SIGKILL:d}"):
        run(ask_of({"t": TABLE}, "SELECT 1"))


async def test_failure_to_start_a_process_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocesses, "start", none)
    with pytest.raises(LimitError, match="cannot start a process"):
        await ask_of({"t": TABLE}, "SELECT 1")
