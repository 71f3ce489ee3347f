"""Tables as messages of Flight, and what clients may send back."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from ripple.client.flight.errors import FlightError
from ripple.client.flight.framing import DATA_BYTES, Batches, frames, schema_bytes
from ripple.client.flight.messages.flight_pb2 import FlightData
from tests.examples import EXAMPLES

LARGE = 70_000


def table(rows: int) -> pa.Table:
    return pa.table(
        {
            "symbol": pa.array([f"S{n}" for n in range(rows)], pa.string()),
            "vwap": pa.array([None if n % 5 == 0 else n / 3 for n in range(rows)], pa.float64()),
            "levels": pa.array([[n / 7, -0.0] for n in range(rows)], pa.list_(pa.float64())),
        }
    )


@pytest.mark.parametrize("rows", [0, 1, 1000, LARGE])
def test_a_table_comes_back_as_it_was(rows: int) -> None:
    sent = table(rows)
    data = list(frames(sent, b"about"))
    assert data[0].app_metadata == b"about"
    assert all(len(one.data_body) < 2 * DATA_BYTES for one in data)
    assert (len(data) > 2) == (rows == LARGE)
    taken = Batches()
    found = [taken.take(one) for one in data]
    assert found[0] is None
    batches = [batch for batch in found if batch is not None]
    assert pa.Table.from_batches(batches, sent.schema).equals(sent)
    assert pa.ipc.read_schema(pa.py_buffer(schema_bytes(sent.schema))).equals(sent.schema)


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_damaged_messages_are_refused_or_harmless(seed: int) -> None:
    random = Random(seed)
    whole = list(frames(table(20)))
    refused = harmless = 0
    for _ in range(200):
        taken = Batches()
        for one in whole:
            header, body = bytearray(one.data_header), bytearray(one.data_body)
            for part in (header, body):
                if part and random.random() < 0.7:
                    part[random.randrange(len(part))] ^= 1 << random.randrange(8)
                if part and random.random() < 0.2:
                    del part[random.randrange(len(part)) :]
            damaged = FlightData(data_header=bytes(header), data_body=bytes(body))
            try:
                batch = taken.take(damaged)
            except FlightError:
                refused += 1
                continue
            if batch is not None:
                batch.validate(full=True)
                harmless += 1
    assert refused
    assert harmless


def test_compressed_batches_are_refused() -> None:
    sink = pa.BufferOutputStream()
    batch = table(1000).to_batches()[0]
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    reader = pa.BufferReader(sink.getvalue())
    taken = Batches()
    for _ in range(2):
        message = pa.ipc.read_message(reader)
        data = FlightData(
            data_header=message.metadata.to_pybytes(),
            data_body=b"" if message.body is None else message.body.to_pybytes(),
        )
        if message.type == "schema":
            assert taken.take(data) is None
        else:
            with pytest.raises(FlightError, match="compress"):
                taken.take(data)
