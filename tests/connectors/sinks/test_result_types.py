"""Every type that a result can have, against every kind of sink that needs no server.

A value comes back as it was, or the sink refuses the output by an error of ours that names the
field, before anything is written. What PostgreSQL makes of each is asked of a real server.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ripple as rp
from ripple.connectors.contract import NOWHERE
from ripple.connectors.kafka.row_values import FORMS, ValueForm, row_values
from ripple.connectors.locate import open_sink
from ripple.connectors.memory import MemorySink
from ripple.core.errors import OutputError, PlanError, RippleError
from ripple.storage.log import PartitionReader, Topic
from ripple.world import LiveDisk
from tests.connectors.sinks.result_types import EVENTS, KINDS, REFUSED, Kind, pipeline_of

HELD = {"text", "int", "float", "bool", "optional_text", "time", "list", "optional_list"}


class Registry:
    """One that takes any schema, as number 7. taken: how many."""

    taken = 0

    def register(self, *_: str) -> int:
        self.taken += 1
        return 7


def changes(kind: Kind) -> tuple[rp.Plan, pa.RecordBatch]:
    """Return a plan whose output has the type, and what comes to its sink."""
    held = MemorySink()
    pipeline = pipeline_of(x=kind.type)
    rp.run(pipeline, source=EVENTS, sink=held)
    (batch,) = held.batches
    assert [row["x"] for row in held.rows()] == [*kind.stored]
    return pipeline.plan(), batch


def written(place: str, plan: rp.Plan, batch: pa.RecordBatch) -> None:
    """Write to a place as a run does."""
    sink = open_sink(place, plan, "o")
    try:
        sink.write(batch, NOWHERE)
        sink.commit(NOWHERE)
    finally:
        sink.close()


def refused(error: RippleError) -> None:
    """Check that an error is of one line, and names the field."""
    assert "field 'x' " in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize("name", KINDS)
def test_a_result_comes_back_from_every_sink_or_is_refused_by_name(
    name: str, tmp_path: Path
) -> None:
    kind = KINDS[name]
    plan, batch = changes(kind)
    place = {one: f"{tmp_path}/o.{one}" for one in ("csv", "jsonl", "parquet")}
    for path in place.values():
        written(path, plan, batch)
    in_json = [json.loads(line)["x"] for line in Path(place["jsonl"]).read_text().splitlines()]
    assert in_json == [*kind.stored]
    with open(place["csv"], newline="") as file:
        in_csv = [row[1] for row in csv.reader(file)]
    assert in_csv == ["x"] + [text_of(value) for value in kind.stored]
    assert pq.read_table(place["parquet"]).column("x").to_pylist() == [*kind.stored]

    written(f"log:{tmp_path}/o", plan, batch)
    with PartitionReader(Topic.open(LiveDisk(str(tmp_path)), "o"), 0) as reader:
        in_log = [row["x"] for entry in reader.read() for row in entry.records.to_pylist()]  # type: ignore[union-attr]  # no markers
    assert in_log == [*kind.stored]

    delta = f"{tmp_path}/delta"
    if name in HELD:
        written(f"delta:{delta}", plan, batch)
        rows = DeltaTable(delta).to_pyarrow_table().sort_by("k")
        assert rows.column("x").to_pylist() == [*kind.stored]
    else:
        with pytest.raises(OutputError) as caught:
            open_sink(f"delta:{delta}", plan, "o")
        refused(caught.value)
        assert not Path(delta).exists()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_result_is_a_value_in_every_format_of_kafka_or_is_refused_by_name(
    form: ValueForm, name: str
) -> None:
    kind = KINDS[name]
    plan, batch = changes(kind)
    output = plan.output("o")
    if form in ("avro", "msgpack") and name not in HELD:
        registry = Registry()
        with pytest.raises(OutputError) as caught:
            row_values(form, output, "kafka:b/o", registry, "o-value")
        refused(caught.value)
        assert not registry.taken
        return
    values = row_values(form, output, "kafka:b/o", Registry(), "o-value").values(batch)
    found = [read(form, value) for value in values.to_pylist()]
    if form == "csv":
        assert found == [text_of(value) for value in kind.stored]
    elif form != "avro":
        assert found == [*kind.stored]


@pytest.mark.parametrize("of", REFUSED)
def test_impossible_result_type_is_refused_when_the_pipeline_is_built(of: Any) -> None:
    with pytest.raises(PlanError, match=r"Made\.x: .* cannot be expressed: ") as caught:
        pipeline_of(x=of)
    assert "\n" not in str(caught.value)


def read(form: ValueForm, value: bytes) -> Any:
    """Return the field of a value as other programs read it."""
    if form == "msgpack":
        return msgspec.msgpack.decode(value)["x"]
    if form == "csv":
        return next(csv.reader([value.decode()]))[1]
    return (
        None if form == "avro" else json.loads(value[5:] if form == "json-schema" else value)["x"]
    )


def text_of(value: Any) -> str:
    """Return a value as CSV has it: JSON where there is no other text of it."""
    if value is None or isinstance(value, str):
        return value or ""
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
