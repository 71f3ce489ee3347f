"""The server over gRPC, and clients that mean harm: a clear status, and memory that is bounded."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import grpc
import grpc.aio
import pyarrow.flight as fl
import pytest

from ripple.client.flight import server as flight_server
from ripple.client.flight.barrage import server as barrage_server
from ripple.client.flight.barrage.deephaven_pb2 import (
    BatchTableRequest,
    ConfigurationConstantsResponse,
    ExportedTableCreationResponse,
    ExportRequest,
    FetchTableRequest,
    FieldsChangeUpdate,
    TableReference,
    TableTicket,
)
from ripple.client.flight.barrage.server import DEEPHAVEN, FLIGHT, STREAMS_MAX
from ripple.core.access import access_of
from tests.client.flight.barrage.asking import request
from tests.client.flight.barrage.serving import ROLES, TOKEN, Served, begin, serving
from tests.client.flight.barrage.workload import Workload

EXCHANGE = f"/{FLIGHT}/DoExchange"
LARGE = bytes(32 << 20)
EACH = 60  # streams of a connection, of which the server takes 64


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        begin(Workload(1), served.seen)
        yield served


@pytest.fixture
async def guarded() -> AsyncIterator[Served]:
    """Yield a server that admits a token."""
    async with serving(access=access_of(ROLES.encode(), "roles")) as served:
        begin(Workload(1), served.seen)
        yield served


async def call(channel: Any, method: str, message: Any = b"", token: str = "") -> tuple[bytes, str]:
    """Call as clients do; return the answer, and the token that came with it."""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    calling = channel.unary_unary(f"/{DEEPHAVEN}.{method}")(data, metadata=shown(token))
    headers = dict(await calling.initial_metadata())
    return await calling, headers["authorization"].removeprefix("Bearer ")


def shown(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}" if token else "Anonymous"),)


def fetch(source: bytes, number: int) -> FetchTableRequest:
    return FetchTableRequest(
        source_id=TableReference(ticket=TableTicket(ticket=source)), result_id=numbered(number)
    )


def numbered(number: int) -> TableTicket:
    return TableTicket(ticket=b"e" + number.to_bytes(4, "little"))


async def test_a_table_is_opened_by_name_and_then_goes_by_the_clients_number(
    served: Served,
) -> None:
    async with grpc.aio.insecure_channel(served.address) as channel:
        answer, token = await call(channel, "ConfigService/GetConfigurationConstants")
        constants = ConfigurationConstantsResponse.FromString(answer).config_values
        assert constants["http.session.durationMs"].string_value == "300000"
        answer, again = await call(channel, "TableService/FetchTable", fetch(b"s/live", 1), token)
        assert again == token
        made = ExportedTableCreationResponse.FromString(answer)
        assert (made.success, made.is_static) == (True, False)
        assert made.result_id.ticket == numbered(1)
        both = ExportRequest(source_id=numbered(1), result_id=numbered(2))
        await call(channel, "SessionService/ExportFromTicket", both, token)
        batch = BatchTableRequest()
        batch.ops.add().fetch_table.CopyFrom(fetch(numbered(2).ticket, 3))
        batch.ops.add().fetch_table.source_id.batch_offset = 0
        several = channel.unary_stream(f"/{DEEPHAVEN}.TableService/Batch")
        found = [
            ExportedTableCreationResponse.FromString(one)
            async for one in several(batch.SerializeToString(), metadata=shown(token))
        ]
        assert [one.schema_header for one in found] == [made.schema_header] * 2
        listing = channel.unary_stream(f"/{DEEPHAVEN}.ApplicationService/ListFields")(
            b"", metadata=shown(token)
        )
        fields = FieldsChangeUpdate.FromString(await listing.read())
        assert [field.field_name for field in fields.created] == ["live"]
        listing.cancel()
        await call(channel, "SessionService/CloseSession", b"", token)
        with pytest.raises(grpc.aio.AioRpcError, match="stands for no table") as refused:
            await call(channel, "TableService/FetchTable", fetch(numbered(1).ticket, 4), token)
        assert refused.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("method", "message", "problem"),
    [
        ("TableService/FetchTable", b"\xff", "this is not a FetchTableRequest"),
        ("TableService/FetchTable", fetch(b"s/other", 1), "no output 'other': there are live"),
        ("SessionService/ExportFromTicket", ExportRequest(), "stands for no table"),
    ],
)
async def test_calls_that_cannot_be_answered_are_told_why(
    served: Served, method: str, message: Any, problem: str
) -> None:
    async with grpc.aio.insecure_channel(served.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match=problem):
            await call(channel, method, message)


async def test_a_name_and_a_token_are_as_good_as_a_token(guarded: Served) -> None:
    def come_in() -> None:
        with fl.connect(f"grpc://{guarded.address}") as client:
            header = client.authenticate_basic_token("alice", TOKEN)
            assert header[0] == b"authorization"
            assert guarded.sessions.of(header[1].decode().removeprefix("Bearer ")) is not None
            with pytest.raises(
                fl.FlightUnauthenticatedError, match="no token or certificate identifies"
            ):
                client.authenticate_basic_token("bob", TOKEN)

    await asyncio.to_thread(come_in)


async def test_a_guest_subscribes_to_the_outputs_that_the_roles_name() -> None:
    tokens = {name: f"{name}-token-of-at-least-32-characters" for name in ("live", "other")}
    roles = "[guest.tokens]\n" + "".join(f'{name} = "{t}"\n' for name, t in tokens.items())
    roles += "[guest.outputs]\n" + "".join(f'{name} = ["{name}"]\n' for name in tokens)
    says = "other is guest, and may not read the output 'live': .* names other"
    async with (
        serving(access=access_of(roles.encode(), "roles")) as served,
        grpc.aio.insecure_channel(served.address) as channel,
    ):
        begin(Workload(1), served.seen)
        for name, token in tokens.items():
            listing = channel.unary_stream(f"/{DEEPHAVEN}.ApplicationService/ListFields")(
                b"", metadata=shown(token)
            )
            fields = FieldsChangeUpdate.FromString(await listing.read())
            assert [one.field_name for one in fields.created] == ["live"] * (name == "live")
            listing.cancel()
        await call(channel, "TableService/FetchTable", fetch(b"s/live", 1), tokens["live"])
        with pytest.raises(grpc.aio.AioRpcError, match=says) as refused:
            await call(channel, "TableService/FetchTable", fetch(b"s/live", 1), tokens["other"])
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
        streams = {}
        for name, token in tokens.items():
            streams[name] = channel.stream_stream(EXCHANGE)(metadata=shown(token))
            await streams[name].write(request(b"s/live"))
        assert await streams["live"].read() is not grpc.aio.EOF
        assert await streams["other"].code() == grpc.StatusCode.PERMISSION_DENIED
        assert "may not read the output 'live'" in await streams["other"].details()
        streams["live"].cancel()


@pytest.mark.parametrize(
    "method", [f"{FLIGHT}/GetFlightInfo", f"{FLIGHT}/DoGet", f"{DEEPHAVEN}.TableService/Batch"]
)
async def test_messages_of_a_stranger_are_not_read(
    guarded: Served, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(_: object) -> bytes:
        raise AssertionError("it was read")

    for module in (flight_server, barrage_server):
        monkeypatch.setattr(module, "the_one", read)
    unbounded = (("grpc.max_send_message_length", -1),)
    async with grpc.aio.insecure_channel(guarded.address, unbounded) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in channel.unary_stream(f"/{method}")(LARGE):
                pass
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_garbage_on_a_stream_ends_that_stream_alone(served: Served) -> None:
    random = Random(3)
    async with grpc.aio.insecure_channel(served.address) as channel:
        for _ in range(100):
            stream = channel.stream_stream(EXCHANGE)(metadata=shown(""))
            await stream.write(random.randbytes(random.randrange(1, 200)))
            await stream.done_writing()
            assert await stream.code() in (
                grpc.StatusCode.INVALID_ARGUMENT,
                grpc.StatusCode.OK,  # bytes that are a message which asks for nothing
            )
        stream = channel.stream_stream(EXCHANGE)(metadata=shown(""))
        await stream.write(request())
        assert await stream.read()
        stream.cancel()


@pytest.mark.services
async def test_as_many_follow_as_there_is_room_for_and_the_next_is_told_so(served: Served) -> None:
    channels = [
        grpc.aio.insecure_channel(served.address, options=(("grpc.use_local_subchannel_pool", 1),))
        for _ in range(STREAMS_MAX // EACH + 1)
    ]
    _, token = await call(channels[0], "ConfigService/GetConfigurationConstants")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    streams = []
    for number in range(STREAMS_MAX):
        stream = channels[number // EACH].stream_stream(EXCHANGE)(metadata=shown(token))
        await stream.write(request())
        streams.append(stream)
    for stream in streams:  # the columns, and the table
        assert await stream.read()
        assert await stream.read()
    late = channels[-1].stream_stream(EXCHANGE)(metadata=shown(token))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await late.read()
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    workload = Workload(2)
    served.seen.emit(*workload.step())
    for stream in streams:
        assert await stream.read()
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 300_000, "of both sides, which are one process here"
    for stream in streams:
        stream.cancel()
    for channel in channels:
        await channel.close()
    while served.feeds._feeds["live"].users:
        await asyncio.sleep(0.01)
