"""``ripple run`` reads and writes values with schemas in a real registry."""

from __future__ import annotations

import asyncio
import base64
import http.server
import io
import json
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from aiokafka import AIOKafkaConsumer

from ripple.connectors.formats.framed import head_of
from ripple.connectors.formats.registry import Registry, RegistryError
from ripple.connectors.kafka.settings import RegistrySecurity
from ripple.model.schema.avro import to_avro
from ripple.model.schema.json_schema import to_json_schema
from ripple.model.schema.types import Field, Float, Int64, Schema, String
from ripple.world.broker import Record, TopicPartition
from tests.connectors.formats.test_avro import framed
from tests.connectors.formats.test_table_changes import ENVELOPE, KEY
from tests.patience import PATIENCE_S
from tests.services.certificate import certified
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError, skip
from tests.services.registry import SchemaRegistry
from tests.services.test_kafka_source import (
    PIPELINE,
    as_csv,
    filled,
    ran,
    refused,
    trades,
)

pytestmark = pytest.mark.services

TRADE = Schema(
    "Trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int64()),
        Field("timestamp_ns", Int64()),
        Field("venue", String(), optional=True),
    ),
)
NAMES = ("symbol", "price", "size", "timestamp_ns")
ROWS = 2_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    try:
        server = SchemaRegistry(tmp_path_factory.mktemp("registry") / "apicurio")
    except MissingError as error:
        skip(error)
    with server:
        yield server


@pytest.fixture
def registry(server: SchemaRegistry) -> Registry:
    return Registry(server.url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vwap.py").write_text(PIPELINE)
    (tmp_path / "trades.csv").write_bytes(b"\n".join(map(as_csv, trades(rows=ROWS))) + b"\n")
    return tmp_path


def avro(number: int) -> Any:
    document = fastavro.parse_schema(to_avro(TRADE))

    def form(row: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, document, dict(zip(NAMES, row, strict=True)))
        return head_of(number) + out.getvalue()

    return form


def read(bootstrap: str, topic: str) -> list[bytes]:
    async def main() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
        )
        async with consumer:
            (place,) = consumer.assignment()
            end, found = (await consumer.end_offsets([place]))[place], []
            while await consumer.position(place) < end:
                batch = await consumer.getmany(place, timeout_ms=500)
                found += [record.value for record in batch.get(place, ())]
            return found

    return asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_avro_is_read_as_a_file_is(
    broker: Broker, topic: str, server: SchemaRegistry, registry: Registry, folder: Path
) -> None:
    number = registry.register(f"{topic}-value", "AVRO", json.dumps(to_avro(TRADE)))
    filled(broker.bootstrap, topic, trades(rows=ROWS), form=avro(number))
    place, given = f"kafka:{broker.bootstrap}/{topic}", {"RIPPLE_KAFKA_REGISTRY_URL": server.url}
    ran(folder, "--source", f"{place}?format=avro", "--sink", "topic.csv", **given)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()
    said = refused(folder, "--source", f"{place}?format=json-schema", **given)
    assert f"subject '{topic}-value', schema {number}" in said
    assert "it is AVRO, and JSON was asked for" in said
    said = refused(folder, "--source", f"{place}?format=avro")
    assert "set RIPPLE_KAFKA_REGISTRY_URL" in said


def test_a_schema_that_does_not_fit_is_refused_before_anything_is_read(
    broker: Broker, topic: str, server: SchemaRegistry, registry: Registry, folder: Path
) -> None:
    filled(broker.bootstrap, topic, [])
    other = Schema("Trade", (*TRADE.fields[:1], Field("price", String()), *TRADE.fields[2:]))
    registry.register(f"{topic}-value", "AVRO", json.dumps(to_avro(other)))
    said = refused(
        folder,
        *("--source", f"kafka:{broker.bootstrap}/{topic}?format=avro"),
        RIPPLE_KAFKA_REGISTRY_URL=server.url,
    )
    assert f"subject '{topic}-value'" in said
    assert "trade.price: the reader has type Float, the writer String" in said


def test_references_of_a_schema_are_resolved(
    broker: Broker, topic: str, server: SchemaRegistry, folder: Path
) -> None:
    fee = {"type": "record", "name": "Fee", "fields": [{"name": "cents", "type": "long"}]}
    document = {**to_avro(TRADE), "fields": [*to_avro(TRADE)["fields"]]}  # type: ignore[misc]
    document["fields"].insert(1, {"name": "fee", "type": "Fee"})
    referred(server, f"{topic}-fee", fee)
    reference = {"name": "Fee", "subject": f"{topic}-fee", "version": 1}
    number = referred(server, f"{topic}-value", document, reference)
    named: dict[str, Any] = {}
    fastavro.parse_schema(fee, named)
    parsed = fastavro.parse_schema(document, named)

    def form(row: Any) -> bytes:
        out = io.BytesIO()
        given = {**dict(zip(NAMES, row, strict=True)), "fee": {"cents": 7}}
        fastavro.schemaless_writer(out, parsed, given)
        return head_of(number) + out.getvalue()

    filled(broker.bootstrap, topic, trades(rows=ROWS), form=form)
    place, given = f"kafka:{broker.bootstrap}/{topic}", {"RIPPLE_KAFKA_REGISTRY_URL": server.url}
    ran(folder, "--source", f"{place}?format=avro", "--sink", "topic.csv", **given)
    ran(folder, "--source", "trades.csv", "--sink", "file.csv")
    assert (folder / "topic.csv").read_bytes() == (folder / "file.csv").read_bytes()


def referred(server: SchemaRegistry, subject: str, document: Any, *references: Any) -> int:
    """Register a schema with those that it refers to; return its id."""
    body = {"schema": json.dumps(document), "schemaType": "AVRO", "references": references}
    asked = urllib.request.Request(
        f"{server.url}/subjects/{subject}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
        return int(json.loads(answer.read())["id"])


@pytest.mark.parametrize("form", ["avro", "json-schema", "msgpack"])
def test_rows_are_written_with_the_schema_that_they_have(
    broker: Broker, topic: str, registry: Registry, folder: Path, form: str
) -> None:
    given = {"RIPPLE_KAFKA_REGISTRY_URL": registry.url}
    place = f"kafka:{broker.bootstrap}/{topic}"
    ran(folder, "--source", "trades.csv", "--sink", f"{place}?format={form}", **given)
    ran(folder, "--source", "trades.csv", "--sink", f"{place}-json", **given)
    expected = [json.loads(value) for value in read(broker.bootstrap, f"{topic}-json")]
    values = read(broker.bootstrap, topic)
    assert expected
    if form == "msgpack":
        import msgspec

        assert [msgspec.msgpack.decode(value) for value in values] == expected
        return
    latest = registry.latest(f"{topic}-value")
    assert latest is not None
    assert {value[:5] for value in values} == {head_of(latest.id)}
    if form == "avro":
        document = fastavro.parse_schema(json.loads(latest.text))
        rows = [fastavro.schemaless_reader(io.BytesIO(value[5:]), document) for value in values]
    else:
        rows = [json.loads(value[5:]) for value in values]
    assert rows == expected


def test_a_registry_that_asks_for_a_password_gets_it_over_tls(
    server: SchemaRegistry, tmp_path: Path
) -> None:
    key, certificate = certified(tmp_path)
    wanted = "Basic " + base64.b64encode(b"u:secret-word").decode()

    class Guard(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.passed(None)

        def do_POST(self) -> None:
            self.passed(self.rfile.read(int(self.headers["Content-Length"])))

        def passed(self, body: bytes | None) -> None:
            if self.headers["Authorization"] != wanted:
                self.send_error(401)
                return
            asked = urllib.request.Request(
                server.url + self.path, body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
                self.send_response(answer.status)
                self.end_headers()
                self.wfile.write(answer.read())

        def log_message(self, *_: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guard) as guard:
        guard.socket = context.wrap_socket(guard.socket, server_side=True)
        threading.Thread(target=guard.serve_forever, daemon=True).start()
        try:
            url = f"https://127.0.0.1:{guard.server_address[1]}"
            files = RegistrySecurity(url, ca_file=str(certificate))

            def registry(password: str) -> Registry:
                return Registry(url, user="u", password=password, context=files.context())

            text = json.dumps(to_json_schema(TRADE))
            number = registry("secret-word").register("guarded", "JSON", text)
            assert registry("secret-word").latest("guarded") == (number, "JSON", text)
            with pytest.raises(RegistryError, match="HTTP 401") as told:
                registry("guess").latest("guarded")
            assert "guess" not in str(told.value)
        finally:
            guard.shutdown()


CDC = """
import ripple as rp

@rp.record(version=1)
class Dated:
    id: int
    name: str
    price: float | None
    since: int

table = rp.Pipeline("cdc").table("items", Dated, key="id", format="debezium")
pipeline = table.sink("output")
"""


def test_envelopes_of_debezium_in_avro_are_a_table_before_and_after_a_restart(
    broker: Broker, topic: str, server: SchemaRegistry, registry: Registry, folder: Path
) -> None:
    key = registry.register(f"{topic}-key", "AVRO", json.dumps(KEY))
    value = registry.register(f"{topic}-value", "AVRO", json.dumps(ENVELOPE))
    (folder / "vwap.py").write_text(CDC)

    def change(op: str, at: int, name: str | None = None) -> Record:
        row = {"id": at, "name": name, "price": 0.1, "more": [], "since": 7}
        said = {"op": op, "after": None if name is None else row}
        return Record(framed(KEY, {"id": at}, key), framed(ENVELOPE, said, value))

    async def append(*records: Record, new: bool = False) -> None:
        async with Topics(broker.bootstrap) as topics:
            if new:
                await topics.create(topic, 1)
            await topics.append(TopicPartition(topic, 0), records)

    tombstone = Record(framed(KEY, {"id": 1}, key), None)
    first = [change("r", 1, "a"), change("c", 2, "b"), change("d", 1), tombstone]
    asyncio.run(append(*first, new=True))
    place, given = f"kafka:{broker.bootstrap}/{topic}", {"RIPPLE_KAFKA_REGISTRY_URL": server.url}
    source, sink = ("--source", f"{place}?format=avro"), ("--sink", "rows.jsonl")
    ran(folder, *source, *sink, "--checkpoint-dir", "state", **given)
    asyncio.run(append(change("u", 2, "c"), change("c", 3, "d"), Record(b"7", None)))
    ran(folder, *source, *sink, "--checkpoint-dir", "state", **given)
    lines = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    rows = {line["id"]: (line["op"], line["name"], line["since"]) for line in lines}
    assert rows == {2: ("set", "c", 7000), 3: ("set", "d", 7000)}
    said = refused(folder, *source)
    assert "set RIPPLE_KAFKA_REGISTRY_URL" in said
    said = refused(folder, "--source", f"{place}?format=avro&key=id", **given)
    assert "record keys are Avro, and lie where murmur2 puts their bytes" in said
    registry.register(f"{topic}-value", "AVRO", json.dumps(KEY))
    said = refused(folder, *source, **given)
    assert f"subject '{topic}-value'" in said
    assert "it has no record in after, as an envelope of Debezium has" in said


VISITS = """
import datetime
import decimal
from typing import Annotated

import ripple as rp

@rp.record(version=1)
class Visit:
    at: rp.Timestamp
    labels: dict[str, str]
    sizes: dict[str, int] | None
    prices: list[Annotated[decimal.Decimal, rp.Decimal(19, 4)]]
    days: list[datetime.date] | None

pipeline = rp.Pipeline("visits").source("visits", Visit).sink("output")
"""
VISIT_ROWS: list[dict[str, Any]] = [
    {"at": 1, "labels": {"a": "é", "b": ""}, "sizes": {"x": -1}, "prices": ["999999999999999.9999"],
     "days": ["2026-01-31"]},
    {"at": 2, "labels": {}, "sizes": None, "prices": [], "days": None},
]  # fmt: skip


@pytest.mark.parametrize("form", ["avro", "json", "msgpack"])
def test_maps_and_lists_go_through_a_topic(
    broker: Broker, topic: str, server: SchemaRegistry, folder: Path, form: str
) -> None:
    (folder / "vwap.py").write_text(VISITS)
    bad = {**VISIT_ROWS[0], "at": 3, "labels": {"a": 1}}
    rows = [*VISIT_ROWS, bad, {**VISIT_ROWS[0], "at": 4}]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    place, given = f"kafka:{broker.bootstrap}/{topic}", {"RIPPLE_KAFKA_REGISTRY_URL": server.url}
    ran(folder, "--source", "in.jsonl", "--sink", f"{place}?format={form}", **given)
    ran(folder, "--source", f"{place}?format={form}", "--sink", "out.jsonl", **given)
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert found == [row for row in rows if row is not bad]
