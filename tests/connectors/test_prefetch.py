"""Reading ahead changes nothing but the time, and never outlives its reader."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ripple.connectors.contract import NOWHERE
from ripple.connectors.files.parquet.files import ParquetSink
from ripple.connectors.files.text.sink import TextSink
from ripple.connectors.prefetch import prefetched
from ripple.connectors.synthetic.source import SyntheticSource
from ripple.connectors.target import open_target
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_items_come_in_order_and_then_their_error() -> None:
    def items() -> Iterator[int]:
        yield from range(100)
        raise ValueError("at the end")

    ahead = prefetched(items(), 3, lambda: None)
    assert [next(ahead) for _ in range(100)] == list(range(100))
    with pytest.raises(ValueError, match="at the end"):
        next(ahead)


def test_no_more_is_computed_than_allowed() -> None:
    computed = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(100):
            computed.release()
            yield number

    ahead = prefetched(items(), 3, lambda: None)
    next(ahead)
    for _ in range(5):  # one taken, three waiting, one in hand
        assert computed.acquire(timeout=PATIENCE_S)
    assert not computed.acquire(timeout=0.1)
    ahead.close()


def test_closing_interrupts_a_wait_and_joins_the_thread() -> None:
    woken = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        woken.wait()

    ahead = prefetched(items(), 1, woken.set)
    assert next(ahead) == 1
    ahead.close()
    assert "prefetch" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_process_ends_although_it_has_not_read_to_the_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    sink = TextSink(open_target(path)) if kind == "csv" else ParquetSink(open_target(path))
    for batch in SyntheticSource(1_000_000, batch_rows=100_000).batches():
        sink.write(batch.records, NOWHERE)
    sink.commit(NOWHERE)
    script = f"""
from ripple.connectors.files.csv.format import TRADES
from ripple.connectors.files.csv.source import CsvSource
from ripple.connectors.files.parquet.files import ParquetSource
source = {"CsvSource" if kind == "csv" else "ParquetSource"}({str(path)!r}, TRADES)
batches = source.batches()
print(next(batches).next_offset)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (ended.stdout, ended.stderr) == ("1000\n", "")


def test_regular_file_takes_no_thread_on_a_single_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    computed_in = []

    def items() -> Iterator[int]:
        for number in range(3):
            computed_in.append(threading.current_thread().name)
            yield number
        raise ValueError("at the end")

    for processors, waits, thread in (
        (1, False, "MainThread"),
        (2, False, "prefetch"),
        (1, True, "prefetch"),
    ):
        monkeypatch.setattr("ripple.world.processors.usable", lambda there=processors: there)
        computed_in.clear()
        ahead = prefetched(items(), 3, lambda: None, waits=waits)
        assert [next(ahead) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="at the end"):
            next(ahead)
        assert computed_in == [thread] * 3
