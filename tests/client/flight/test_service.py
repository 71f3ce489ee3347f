"""What Flight answers about a cluster whose machines die: the truth at the cuts that it states."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.framing import Batches, frames
from ripple.client.flight.messages.flight_pb2 import (
    FlightData,
    FlightDescriptor,
    FlightInfo,
    PutResult,
    SchemaResult,
    Ticket,
)
from ripple.client.flight.messages.flight_sql_pb2 import CommandStatementQuery
from ripple.client.flight.reader import read_as
from ripple.client.flight.server import FlightServer
from ripple.client.flight.service import Flights, Wanted
from ripple.client.flight.sql import packed
from ripple.client.flight.tables import CUTS, Tables
from ripple.client.flight.writing import Written
from ripple.client.outputs import Endpoints, Observer
from ripple.core.access import EVERYBODY, access_of
from ripple.storage.log import PartitionReader, Topic
from ripple.testing import SimCluster, SimWorld
from ripple.world import LiveClock, LiveDisk, LiveExecutor, SyncFailedError
from ripple.world.live_disk import LiveFile
from ripple.world.ports import INLINE, Executor
from tests.client.flight.flights import ROLES, TOKENS, TRADES
from tests.engine.machine.stage_plans import PLANS, trades
from tests.examples import EXAMPLES
from tests.exchange.hosts import Hosts, Pipeline, endpoints_of
from tests.exchange.trouble import RARELY, Trouble, finish
from tests.world.clusters import simulate


async def got(flights: Flights, ticket: bytes) -> pa.Table:
    """Ask for a table as clients do."""
    taken, batches = Batches(), []
    schema: pa.Schema | None = None
    async for data in flights.do_get(Ticket(ticket=ticket).SerializeToString()):
        one = FlightData.FromString(data)
        if schema is None:
            header = one.data_header
            prefix = b"\xff\xff\xff\xff" + len(header).to_bytes(4, "little")
            schema = pa.ipc.read_schema(pa.py_buffer(prefix + header))
        batch = taken.take(one)
        batches += [] if batch is None else [batch]
    return pa.Table.from_batches(batches, schema)


def rows_of(*tables: pa.Table) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


class Client:
    """Asks for all outputs again and again, and judges each answer."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.judged = self.away = 0
        self.cuts: dict[str, dict[int, Any]] = {}

    async def main(self, world: SimWorld) -> None:
        async def find() -> Endpoints:
            return endpoints_of(self.hosts)

        read_as(EVERYBODY)
        async with Observer(world, find, insecure=True) as observer:
            tables = Tables(observer, world.clock, heard_s=5, idle_s=7)
            resting = asyncio.create_task(tables.rest())
            flights = Flights(tables, {})
            while not self.hosts.is_over:
                for output in self.hosts.pipeline.plan.outputs:
                    await self.ask(flights, output.name)
                await world.clock.sleep(Random(self.judged).choice([0, 1, 20]))
            resting.cancel()

    async def ask(self, flights: Flights, name: str) -> None:
        try:
            table = await got(flights, name.encode())
        except FlightError as error:
            if error.why is not Why.AWAY:
                raise
            self.away += 1
            return
        pipeline = self.hosts.pipeline
        stage = next(s for s, some in pipeline.outputs.items() if name in {o.name for o in some})
        cuts = {int(n): cut for n, cut in json.loads(table.schema.metadata[CUTS.encode()]).items()}
        assert sorted(cuts) == list(range(pipeline.counts[stage]))
        for number, before in self.cuts.get(name, {}).items():
            assert all(cuts[number][key] >= offset for key, offset in before.items())
        self.cuts[name] = cuts
        fresh = [pipeline.fresh((stage, n), cut).table(name) for n, cut in cuts.items()]
        assert rows_of(table) == rows_of(*fresh)
        self.judged += 1


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_each_answer_is_the_truth_at_the_cuts_that_it_states(seed: int) -> None:
    async def scenario(cluster: SimCluster, _: int) -> None:
        random = Random(f"flight/{seed}")
        pipeline = Pipeline(PLANS["by-value"], trades(random, 60), random.choice([1, 2]))
        hosts = Hosts(cluster, pipeline, random.choice([1, 2, 3]), settings=RARELY)
        cluster.disturb()
        hosts.start()
        client = Client(hosts)
        cluster.host("client").start(client.main)
        trouble = Trouble(cluster, hosts, random)
        await trouble.go_on(20)
        trouble.heal()
        pipeline.write_all()
        await asyncio.sleep(120)
        judged = client.judged
        await asyncio.sleep(60)
        assert client.judged > judged, "nobody is answered any more"
        for output in pipeline.plan.outputs:
            assert output.name in client.cuts
        await finish(hosts)

    simulate(scenario, seed)


class FixedTables(Tables):
    """Tables that nobody has to be asked for."""

    def __init__(self, **tables: pa.Table) -> None:
        self._fixed = tables

    async def _names(self) -> list[str]:
        return list(self._fixed)

    async def _table(self, output: str, key: object = None) -> pa.Table:
        del key
        return self._fixed[output].replace_schema_metadata({CUTS: "{}"})


VWAPS = pa.table({"symbol": ["A", "B"], "vwap": [1.5, None]})


def flights(**logs: Written) -> Flights:
    read_as(EVERYBODY)
    return Flights(FixedTables(vwap=VWAPS), logs)


async def test_flight_info_matches_the_table() -> None:
    service = flights()
    path = FlightDescriptor(type=FlightDescriptor.PATH, path=["vwap"]).SerializeToString()
    info = FlightInfo.FromString(await service.get_flight_info(path))
    listed = [FlightInfo.FromString(one) async for one in service.list_flights(b"")]
    assert listed == [info]
    assert (info.total_records, info.app_metadata) == (2, b"{}")
    assert (await got(service, info.endpoint[0].ticket.ticket)).equals(VWAPS)
    schema = SchemaResult.FromString(await service.get_schema(path)).schema
    assert schema == info.schema
    command = b'{"output": "vwap", "columns": ["vwap"]}'
    wanted = FlightDescriptor(type=FlightDescriptor.CMD, cmd=command).SerializeToString()
    one = FlightInfo.FromString(await service.get_flight_info(wanted))
    assert (await got(service, one.endpoint[0].ticket.ticket)).equals(VWAPS.select(["vwap"]))


@pytest.mark.parametrize(
    ("ticket", "problem"),
    [
        (b"{", "cannot be read"),
        (b"{" * 10_000, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"{}", "names no output"),
        (b'{"output": "vwap", "limit": 3}', "has 'limit': it has output, key, columns"),
        (b'{"output": "vwap", "key": 3}', "key is an object"),
        (b'{"output": "vwap", "columns": ["x"]}', "has no column 'x': it has symbol, vwap"),
        (b'{"output": "vwap", "columns": []}', "columns are names: leave them out to get all"),
        (b'{"output": "vwap", "columns": [1]}', "columns are names"),
        (b'{"output": "vwap", "columns": ["vwap", "vwap"]}', "has the column 'vwap' twice"),
        (b'{"output": "vwap", "columns": ["\\ud800"]}', r"no column '\\ud800'"),
        (b"x" * 20_000, "too long"),
    ],
)
async def test_tickets_that_are_none_are_told_why(ticket: bytes, problem: str) -> None:
    with pytest.raises(FlightError, match=problem):
        await got(flights(), ticket)


def test_a_ticket_says_what_it_was_made_of() -> None:
    for wanted in (Wanted("a", {}, ()), Wanted("a", {"k": "ü"}, ("x",))):
        assert Wanted.parse(wanted.ticket()) == wanted


NONE = pa.array([None], pa.int64())
TOO_LARGE = pa.array([2**63], pa.uint64())


def written(folder: Path, executor: Executor = INLINE) -> Written:
    Topic.create(LiveDisk(folder), "trades", TRADES, partitions=3, key=("symbol",))
    return Written(f"log:{folder}/trades", LiveClock(), "a test", executor)


async def put(service: Flights, table: pa.Table, name: str = "trades") -> list[dict[str, Any]]:
    async def sent() -> AsyncIterator[bytes]:
        for number, data in enumerate(frames(table)):
            if not number:
                path = FlightDescriptor(type=FlightDescriptor.PATH, path=[name])
                data.flight_descriptor.CopyFrom(path)
            yield data.SerializeToString()

    found = [PutResult.FromString(one) async for one in service.do_put(sent())]
    return [json.loads(one.app_metadata) for one in found]


def in_log(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number in range(3):
        with PartitionReader(Topic.open(LiveDisk(folder), "trades"), number) as reader:
            rows += [row for entry in reader.read() for row in entry.records.to_pylist()]  # type: ignore[union-attr]  # no markers
    return rows


async def test_acknowledged_batches_are_in_the_log(tmp_path: Path) -> None:
    log = written(tmp_path)
    many = 100_000
    names = [f"S{n % 100}" for n in range(many)]
    sizes = pa.array(range(many), pa.int32())  # fits without loss
    table = pa.table({"size": sizes, "symbol": names, "price": [n / 7 for n in range(many)]})
    answers = await put(flights(trades=log), table)
    assert sum(one["rows"] for one in answers) == many
    assert len(answers) > 1
    assert sum(answers[-1]["reached"].values()) == many
    await log.close()
    found = {row["size"]: row for row in in_log(tmp_path)}
    assert [found[n] for n in range(many)] == table.select(["symbol", "price", "size"]).to_pylist()


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table({"symbol": ["A"], "price": [1.0]}), r"the records lack \['size'\]"),
        (
            pa.table({"symbol": ["A"], "price": [1.0], "size": [1], "venue": ["X"]}),
            "has no field 'venue': symbol, price, size",
        ),
        (
            pa.table({"symbol": ["A"], "price": [1.0], "size": pa.array([None], pa.int64())}),
            "'size' is none in 1",
        ),
        (pa.table({"symbol": ["A"], "price": ["x"], "size": [1]}), "topic's types"),
        (pa.table([["A"], ["B"], [1.0], [1]], ["symbol", "symbol", "price", "size"]), "twice"),
        (
            pa.table({"symbol": ["A"], "price": [1.0], "size": pa.array([2**63], pa.uint64())}),
            "topic's types",
        ),
    ],
)
async def test_unfit_records_are_refused_by_field_and_nothing_is_written(
    tmp_path: Path, table: pa.Table, problem: str
) -> None:
    log = written(tmp_path)
    with pytest.raises(FlightError, match=problem) as refused:
        await put(flights(trades=log), table)
    assert refused.value.why is Why.WRONG
    await log.close()
    assert in_log(tmp_path) == []


async def test_clients_that_put_at_once_get_offsets_of_their_own_and_all_is_kept(
    tmp_path: Path,
) -> None:
    log, clients, rounds = written(tmp_path, LiveExecutor()), 4, 20

    async def client(name: int) -> list[int]:
        batches = [
            pa.RecordBatch.from_pylist([{"symbol": "A", "price": 1.0, "size": name * 100 + n}])
            for n in range(rounds)
        ]
        return [sum((await log.append(batch)).values()) for batch in batches]

    reached = await asyncio.gather(*map(client, range(clients)))
    await log.close()
    offsets = sorted(offset for one in reached for offset in one)
    assert offsets == list(range(1, clients * rounds + 1))
    sizes = [name * 100 + n for name in range(clients) for n in range(rounds)]
    assert sorted(row["size"] for row in in_log(tmp_path)) == sizes


async def test_a_log_whose_disk_failed_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = written(tmp_path)
    table = pa.table({"symbol": ["A"], "price": [1.0], "size": [1]})

    def fail(_: LiveFile) -> None:
        raise SyncFailedError(errno.EIO, "the disk fails")

    with monkeypatch.context() as broken:
        broken.setattr(LiveFile, "sync", fail)
        with pytest.raises(FlightError, match="the disk fails") as refused:
            await put(flights(trades=log), table)
    assert refused.value.why is Why.AWAY
    assert await put(flights(trades=log), table)
    await log.close()
    assert len(in_log(tmp_path)) == 1


async def test_only_named_logs_are_written(tmp_path: Path) -> None:
    log = written(tmp_path)
    with pytest.raises(FlightError, match="no log 'others' is writable: there are trades"):
        await put(flights(trades=log), VWAPS, "others")
    await log.close()


async def test_a_guest_gets_the_outputs_that_the_roles_name(tmp_path: Path) -> None:
    table = pa.table({"symbol": ["A"], "price": [1.0], "size": [1]})
    token = "guest-token-of-at-least-32-characters"
    roles = f'[guest.tokens]\nbob = "{token}"\n[guest.outputs]\nbob = ["vwap"]\n'

    def ask(address: str) -> None:
        options = fl.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
        with fl.connect(f"grpc://{address}") as client:
            (listed,) = client.list_flights(options=options)
            assert listed.descriptor.path == [b"vwap"]
            assert client.do_get(fl.Ticket(b"vwap"), options).read_all().equals(VWAPS)
            fills = fl.FlightDescriptor.for_path("fills")
            says = "bob is guest, and may not read the output 'fills': .* names vwap"
            for refused in (
                lambda: client.do_get(fl.Ticket(b"fills"), options).read_all(),
                lambda: client.do_get(fl.Ticket(b'{"output": "fills"}'), options).read_all(),
                lambda: client.get_flight_info(fills, options),
                lambda: client.get_schema(fills, options),
            ):
                with pytest.raises((fl.FlightUnauthorizedError, OSError), match=says):
                    refused()
            for sql, is_read in (("select * from vwap", True), ("select * from fills", False)):
                asked = packed(CommandStatementQuery(query=sql))
                command = fl.FlightDescriptor.for_command(asked)
                with nullcontext() if is_read else pytest.raises(pa.ArrowException, match="fills"):
                    info = client.get_flight_info(command, options)
                    found = client.do_get(info.endpoints[0].ticket, options).read_all()
                    assert found.num_rows == len(VWAPS)
            path = fl.FlightDescriptor.for_path("trades")
            with pytest.raises(
                fl.FlightUnauthorizedError, match="bob is guest, and may not operate"
            ):
                client.do_put(path, table.schema, options)[1].read()

    served = Flights(FixedTables(vwap=VWAPS, fills=VWAPS), {"trades": written(tmp_path)})
    server = FlightServer(served, access_of(roles.encode(), "roles"))
    await server.start("127.0.0.1:0", None)
    try:
        await asyncio.to_thread(ask, server.address)
    finally:
        await server.close(0)


async def test_readers_get_and_operators_put_and_nobody_does_either(tmp_path: Path) -> None:
    log = written(tmp_path)
    table = pa.table({"symbol": ["A"], "price": [1.0], "size": [1]})

    def ask(address: str) -> None:
        with fl.connect(f"grpc://{address}") as client:
            for role, gets, puts in (
                ("", fl.FlightUnauthenticatedError, fl.FlightUnauthenticatedError),
                ("reader", None, fl.FlightUnauthorizedError),
                ("operator", None, None),
            ):
                shown = [(b"authorization", f"Bearer {TOKENS[role]}".encode())] if role else []
                options = fl.FlightCallOptions(headers=shown)
                with pytest.raises(gets) if gets else nullcontext():
                    assert client.do_get(fl.Ticket(b"vwap"), options).read_all().equals(VWAPS)
                with pytest.raises(puts) if puts else nullcontext():
                    path = fl.FlightDescriptor.for_path("trades")
                    writer, answers = client.do_put(path, table.schema, options)
                    writer.write_table(table)
                    said = answers.read()
                    writer.close()  # tells what went wrong, where nothing was said
                    assert json.loads(said.to_pybytes())["rows"] == 1

    server = FlightServer(flights(trades=log), access_of(ROLES.encode(), "roles"))
    await server.start("127.0.0.1:0", None)
    try:
        await asyncio.to_thread(ask, server.address)
    finally:
        await server.close(0)
    await log.close()
    assert len(in_log(tmp_path)) == 1
