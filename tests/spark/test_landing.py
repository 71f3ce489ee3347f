"""Micro-batches land in a log once each, whatever is interrupted, and whatever is given again."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.locate import open_inputs
from ripple.core.errors import InputError, SchemaError
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.log_table import LogTable, batches_of
from ripple.spark.streaming.landing import Landing
from ripple.storage.log import PartitionWriter
from tests.spark.streams import SOURCE, events

COLUMNS = ["symbol", "price", "size", "t"]


class DiedError(Exception):
    """What ends an append where a kill would."""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "streamed.py").write_text(SOURCE)
    return load_plan(f"{tmp_path}/streamed.py:tumbling")


def landing(folder: Path, plan: Plan, partitions: int = 2) -> Landing:
    found = Landing.at(f"log:{folder}/landed", plan, partitions)
    remembered = Path(found.query)
    remembered.mkdir(exist_ok=True)
    if not (remembered / "metadata").exists():
        (remembered / "metadata").write_text('{"id":"0b1"}')
    return found


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def landed(folder: Path) -> list[dict[str, Any]]:
    splits = LogTable.of({"path": f"{folder}/landed"}).splits
    rows = [row for one in splits for batch in batches_of(one) for row in batch.to_pylist()]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let appends die: the number is of those that are left."""
    left = [1 << 30]
    append = PartitionWriter.append

    def dying(self: PartitionWriter, *given: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise DiedError
        return append(self, *given, **named)

    monkeypatch.setattr(PartitionWriter, "append", dying)
    return left


def test_batches_that_are_interrupted_and_given_otherwise_land_once(
    plan: Plan, tmp_path: Path, kills: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ripple.spark.streaming.landing.ROWS_MAX", 16)
    given = [events(120)[at : at + 60] for at in (0, 60)]
    for number, batch in enumerate(given):
        for survived in range(100):
            kills[0] = survived
            # After the first attempt Spark has other rows: what counts is what came first.
            rows = partial(table, batch if not survived else events(7))
            try:
                assert landing(tmp_path, plan).take(number, rows) == 60
                break
            except DiedError:
                continue
        assert survived > 2
        kills[0] = 1 << 30
        assert landing(tmp_path, plan).take(number, lambda: table(events(9))) == 60
    assert in_order(landed(tmp_path)) == in_order([row for batch in given for row in batch])


def test_a_batch_is_in_order_of_event_time(plan: Plan, tmp_path: Path) -> None:
    given: list[dict[str, Any]] = [
        {"symbol": "A", "price": 1.0, "size": at, "t": 7 * at % 10} for at in range(20)
    ]
    landing(tmp_path, plan, 1).take(0, lambda: table(given))
    assert landed(tmp_path) == sorted(given, key=lambda row: row["t"])


def test_landing_without_its_query_checkpoint_is_rejected(plan: Plan, tmp_path: Path) -> None:
    landing(tmp_path, plan).take(0, lambda: table(events(50)))
    (tmp_path / "landed.spark" / "query" / "metadata").write_text('{"id":"another"}')
    with pytest.raises(InputError, match="was filled by another query"):
        landing(tmp_path, plan).take(0, lambda: table(events(50)))
    assert len(landed(tmp_path)) == 50


def test_invalid_records_become_dead_letters(plan: Plan, tmp_path: Path) -> None:
    rows = [*events(20), {"symbol": None, "price": 1.0, "size": 1, "t": 3}]
    assert landing(tmp_path, plan).take(4, lambda: table(rows)) == 20
    (line,) = (tmp_path / "landed.spark" / "refused-4.jsonl").read_text().splitlines()
    assert json.loads(line)["source"] == "batch 4"


def test_where_records_cannot_land_is_said(plan: Plan, tmp_path: Path) -> None:
    for place, why in [("kafka:h/t", "land in a log"), (f"log:{tmp_path}/a/0", "all partitions")]:
        with pytest.raises(InputError, match=why):
            Landing.at(place, plan, None)
    with pytest.raises(SchemaError, match="price"):
        landing(tmp_path, plan).check(pa.schema([pa.field("symbol", pa.string())]))
    inputs = open_inputs(f"log:{tmp_path}/landed", plan, 10, follow=False)
    assert len(inputs.names) == 2
