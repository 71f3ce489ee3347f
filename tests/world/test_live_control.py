"""Behaviour of the control port over gRPC alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ripple.client.flight import server as flight_server
from ripple.core.access import Caller
from ripple.world import LiveNetwork, Stream, addresses, live_control_server
from ripple.world.control import (
    FAILED,
    KEEPALIVE_S,
    KEEPALIVE_TIMEOUT_S,
    Conversation,
    RefusedError,
    Service,
    UnreachableError,
)
from ripple.world.live_control import LiveControl
from ripple.world.live_control_door import Door
from ripple.world.seats import Bounds
from tests.cli.processes import RIPPLE, run
from tests.patience import PATIENCE_S
from tests.world.certificates import LiveCertificates
from tests.world.control_contract import echo, offered, upper


async def test_bug_of_a_handler_is_told_to_its_loop_and_the_service_goes_on() -> None:
    async def fail(request: bytes) -> bytes:
        raise KeyError("secret of the service")

    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    async with offered(LiveControl(), Service({"bad": fail, "good": upper})) as channel:
        with pytest.raises(RefusedError, match=FAILED) as caught:
            await channel.call("bad", b"", deadline_s=PATIENCE_S)
        assert "secret" not in str(caught.value)
        assert await channel.call("good", b"a", deadline_s=PATIENCE_S) == b"A"
    assert [type(context["exception"]) for context in told] == [KeyError]


async def test_call_without_tls_to_a_server_with_tls_names_the_reason(tmp_path: Path) -> None:
    tls = LiveCertificates(tmp_path).issue("worker")

    control = LiveControl()
    server = await control.serve("127.0.0.1:0", Service({"good": upper}), tls=tls)
    channel = control.channel(server.address)
    try:
        with pytest.raises(UnreachableError, match=r"does it ask for TLS \(--tls-certificate"):
            await channel.call("good", b"", deadline_s=PATIENCE_S)
    finally:
        await channel.close()
        await server.close(0)


async def test_health_is_answered_as_every_grpc_service_does() -> None:
    server = await LiveControl().serve("localhost:0", Service())
    async with grpc.aio.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        reply = await health.Check(health_pb2.HealthCheckRequest(service=""), timeout=PATIENCE_S)
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
    await server.close()


def test_grpc_is_imported_on_first_use() -> None:
    code = "import sys, ripple.world, ripple.world.control; print('grpc' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.services  # it takes as long as a peer may be silent
async def test_conversation_with_a_peer_that_no_longer_answers_breaks() -> None:
    frozen = asyncio.Event()
    network = LiveNetwork()

    async def converse(conversation: Conversation) -> None:
        await conversation.send(b"here")
        await asyncio.sleep(3600)

    server = await LiveControl().serve("localhost:0", Service(conversations={"c": converse}))

    between_them: list[Stream] = []

    async def pass_on(source: Stream, target: Stream) -> None:
        while data := await source.read(1 << 16):
            if not frozen.is_set():
                await target.write(data)

    async def between(stream: Stream) -> None:
        other = await network.connect(server.address)
        between_them.extend((stream, other))
        await asyncio.gather(pass_on(stream, other), pass_on(other, stream))

    proxy = await network.listen("127.0.0.1:0", between)
    channel = LiveControl().channel(proxy.address)
    conversation = await channel.open("c", deadline_s=PATIENCE_S)
    assert await conversation.receive() == b"here"
    frozen.set()
    started = asyncio.get_running_loop().time()
    with pytest.raises(UnreachableError):
        await asyncio.wait_for(conversation.receive(), 60)
    silence_s = asyncio.get_running_loop().time() - started
    assert silence_s < 2 * (KEEPALIVE_S + KEEPALIVE_TIMEOUT_S)
    await channel.close()
    await server.close()
    proxy.close()
    for stream in between_them:
        stream.close()
    await asyncio.sleep(0.1)


def test_grpc_says_nothing_of_its_own_about_connections(tmp_path: Path) -> None:
    """Somebody who does not speak TLS is no news for whoever reads our lines."""
    assert run(RIPPLE, "cert", "--dir", tmp_path, "--name", "a").code == 0
    code = """
import asyncio, sys
from ripple.world import LiveNetwork, Tls
from ripple.world.control import Service
from ripple.world.live_control import LiveControl
from ripple.world.live_control_door import Door
from ripple.world.seats import Bounds

async def main(folder):
    files = {"certificate": "a.crt", "key": "a.key", "authority": "ca.crt"}
    tls = Tls(**{use: f"{folder}/{name}" for use, name in files.items()})
    server = await LiveControl().serve("localhost:0", Service(), tls=tls)
    stream = await LiveNetwork().connect(server.address)
    await stream.write(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" * 10)
    try:
        await stream.read(1000)
    except ConnectionError:
        pass
    stream.close()
    await server.close()

asyncio.run(main(sys.argv[1]))
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("secured", [False, True])
async def test_crowd_of_silent_connections_keeps_no_client_out(
    secured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who may call stay, whatever comes; of the others the oldest give way."""
    monkeypatch.setattr(live_control_server, "Door", lambda: Door(Bounds(8, 6, 3)))
    certificates = LiveCertificates(tmp_path)
    tls = certificates.issue("worker") if secured else None

    def allows(_: str, caller: Caller, __: bytes) -> str | None:
        return "you may not" if caller.token == "no" else None

    service = Service({"good": upper}, {"c": echo}, allows=allows)
    server = await LiveControl().serve("127.0.0.1:0", service, tls=tls)
    host, port = addresses.parts(server.address)
    known = LiveControl().channel(server.address, tls=tls)
    conversation = await known.open("c", deadline_s=PATIENCE_S)
    refused = LiveControl("no").channel(server.address, tls=tls)
    with pytest.raises(RefusedError, match="you may not"):
        await refused.call("good", b"", deadline_s=PATIENCE_S)
    crowd = [await asyncio.open_connection(host, port) for _ in range(20)]
    ends = [asyncio.create_task(_end_of(reader)) for reader, _ in crowd]
    another = LiveControl().channel(server.address, tls=tls)
    assert await another.call("good", b"a", deadline_s=PATIENCE_S) == b"A"
    while sum(end.done() for end in ends) < 17:
        await asyncio.sleep(0.01)
    assert len(server.door.seats) <= 5
    await conversation.send(b"still here")
    assert await conversation.receive() == b"still here"
    for _, writer in crowd:
        writer.close()
    for channel in (known, refused, another):
        await channel.close()
    await asyncio.gather(*ends)
    await server.close()
    while len(server.door.seats):
        await asyncio.sleep(0.01)


async def test_proxy_passes_much_both_ways_and_names_its_clients() -> None:
    peers = []

    async def told(conversation: Conversation) -> None:
        peers.append(conversation.peer)
        await echo(conversation)

    async with offered(LiveControl(), Service(conversations={"c": told})) as channel:
        conversation = await channel.open("c", deadline_s=PATIENCE_S)
        for size in (0, 1, 3 << 20):
            sent = bytes(range(256)) * (size // 256) or bytes(size)
            await conversation.send(sent)
            assert await conversation.receive() == sent
        await conversation.finish()
        assert await conversation.receive() is None
    assert {addresses.parts(peer)[0] for peer in peers} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("options", [live_control_server.OPTIONS, flight_server.OPTIONS])
def test_every_server_of_grpc_is_bounded(options: tuple[tuple[str, int], ...]) -> None:
    assert set(live_control_server.BOUNDS) <= set(options)


async def _end_of(reader: asyncio.StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(1000):
            pass
