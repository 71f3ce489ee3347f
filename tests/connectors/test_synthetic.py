"""The synthetic trades are those of the documentation, in batches of any size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ripple.connectors.synthetic.source import SyntheticSource
from ripple.core.errors import InputError


def twin(i: int) -> dict:
    return {
        "symbol": f"SYM{i % 100:04}",
        "price": float(f"{100 + (i % 101) // 10}.{(i % 101) % 10}"),
        "size": 100 * (1 + i % 7),
        "timestamp_ns": 1_000_000_000 + i * 1_000_000,
        "venue": "XNAS" if i % 2 == 0 else "XNYS",
    }


@pytest.mark.parametrize("batch_rows", [1, 7, 1000, 5000])
def test_every_trade_follows_the_rule(batch_rows: int) -> None:
    batches = list(SyntheticSource(2345, batch_rows=batch_rows).batches())
    table = pa.Table.from_batches([batch.records for batch in batches])
    table.validate(full=True)
    assert table.to_pylist() == [twin(i) for i in range(2345)]
    assert [batch.span for batch in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    later = list(SyntheticSource(2345, batch_rows=batch_rows).batches(1234))
    assert later[0].first_offset == 1234
    assert [row for b in later for row in b.records.to_pylist()] == [
        twin(i) for i in range(1234, 2345)
    ]


def test_100000_events_end_at_the_watermark_of_the_book() -> None:
    *_, last = SyntheticSource(100_000).batches()
    assert last.next_offset == 100_000
    assert last.records.column("timestamp_ns")[-1].as_py() == 100_999_000_000
    prices = {
        row
        for b in SyntheticSource(1000).batches()
        for row in b.records.column("price").to_pylist()
    }
    assert (min(prices), max(prices), len(prices)) == (100.0, 110.0, 101)


def test_no_events_give_no_batches() -> None:
    assert list(SyntheticSource(0).batches()) == []
    with pytest.raises(InputError, match="not -1 in batches of 1000"):
        SyntheticSource(-1)
