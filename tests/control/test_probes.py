"""Pages for probes: no request, and no client, is trusted."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from ripple.control.probes import (
    REQUEST_BYTES_MAX,
    REQUEST_S,
    REQUESTS_MAX,
    Page,
    page_of,
    serve_pages,
)
from ripple.testing import SimCluster, SimWorld
from tests.world.clusters import idle, on, simulated

PAGES = {
    "/large": lambda: Page("x" * 3_000_000),
    "/health": lambda: Page('{"status": "größer"}', content_type="application/json"),
    "/ready": lambda: Page("NOT READY\n", 503),
}


async def serving(world: SimWorld) -> None:
    assert world.network is not None
    await serve_pages(world.network, "b:9201", PAGES)
    await asyncio.Event().wait()


async def asked(cluster: SimCluster, *parts: bytes) -> bytes:
    host = cluster.host("a")

    async def ask() -> bytes:
        stream = await host.world.network.connect("b:9201")
        for part in parts:
            await stream.write(part)
            await asyncio.sleep(0.1)
        answer = b""
        while more := await stream.read(1 << 16):
            answer += more
        return answer

    return bytes(await on(host, ask()))


@simulated
async def test_pages_are_answered_with_their_length_and_the_connection_ends(
    cluster: SimCluster,
) -> None:
    cluster.host("b").start(serving)
    cluster.host("a").start(idle)
    await asyncio.sleep(1)
    answer = await asked(cluster, b"GET /health?x=1 HT", b"TP/1.1\r\nHost: b\r\n", b"\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 200 OK"
    assert f"Content-Length: {len(body)}".encode() in head.splitlines()
    assert b"Content-Type: application/json" in head.splitlines()
    assert body.decode() == '{"status": "größer"}'
    answer = await asked(cluster, b"HEAD /health HTTP/1.0\r\n\r\n")
    assert answer == head + b"\r\n\r\n"
    answer = await asked(cluster, b"GET /ready HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable")


BAD = [
    (b"GET /other HTTP/1.1\r\n\r\n", b"404 Not Found"),
    (b"POST /ready HTTP/1.1\r\n\r\n", b"405 Method Not Allowed"),
    (b"\x16\x03\x01\x00\n\n", b"400 Bad Request"),
    (b"GET /ready\r\n\r\n", b"400 Bad Request"),
]


@pytest.mark.parametrize(("request_bytes", "status"), BAD)
@simulated
async def test_invalid_request_gets_an_error_page(
    cluster: SimCluster, request_bytes: bytes, status: bytes
) -> None:
    cluster.host("b").start(serving)
    cluster.host("a").start(idle)
    await asyncio.sleep(1)
    assert status in (await asked(cluster, request_bytes)).splitlines()[0]


@simulated
async def test_slow_client_does_not_delay_others(cluster: SimCluster) -> None:
    cluster.host("b").start(serving)
    host = cluster.host("a")
    host.start(idle)
    await asyncio.sleep(1)
    began = cluster.loop.time()
    slow: list[Any] = [await on(host, host.world.network.connect("b:9201")) for _ in range(3)]
    assert b"200 OK" in await asked(cluster, b"GET /health HTTP/1.1\r\n\r\n")
    for stream in slow:
        assert await on(host, stream.read(10)) == b""
    assert REQUEST_S - 1 < cluster.loop.time() - began < REQUEST_S + 2


@simulated
async def test_request_without_an_end_is_hung_up_on(cluster: SimCluster) -> None:
    cluster.host("b").start(serving)
    cluster.host("a").start(idle)
    await asyncio.sleep(1)
    began = cluster.loop.time()
    with suppress(ConnectionError):
        assert await asked(cluster, b"x" * (REQUEST_BYTES_MAX + 1)) == b""
    assert cluster.loop.time() - began < REQUEST_S - 1


@simulated
async def test_silent_clients_keep_no_client_out(cluster: SimCluster) -> None:
    cluster.host("b").start(serving)
    host = cluster.host("a")
    host.start(idle)
    await asyncio.sleep(1)

    async def connect() -> list[Any]:
        connect = host.world.network.connect
        return await asyncio.gather(*(connect("b:9201") for _ in range(REQUESTS_MAX + 16)))

    streams = await on(host, connect())
    await asyncio.sleep(1)  # until all were taken
    assert b"200 OK" in await asked(cluster, b"GET /health HTTP/1.1\r\n\r\n")
    for stream in streams:
        stream.close()
    await asyncio.sleep(1)
    assert b"200 OK" in await asked(cluster, b"GET /health HTTP/1.1\r\n\r\n")


@simulated
async def test_a_page_is_had_whole_or_not_at_all(cluster: SimCluster) -> None:
    async def cut_off(stream: Any) -> None:
        await stream.read(4096)
        await stream.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nxx")

    cluster.host("b").start(serving)
    cluster.host("a").start(idle)
    await asyncio.sleep(1)
    network = cluster.host("a").world.network

    async def page(path: str, address: str = "b:9201") -> bytes:
        return bytes(await on(cluster.host("a"), page_of(network, address, path, 0.8)))

    assert await page("/large") == b"x" * 3_000_000
    with pytest.raises(ConnectionError, match="503"):
        await page("/ready")
    with pytest.raises(OSError):  # noqa: PT011 - each network has words of its own
        await page("/health", "b:1")
    await on(cluster.host("b"), cluster.host("b").world.network.listen("b:9", cut_off))
    with pytest.raises(ConnectionError, match="and 2 bytes"):
        await page("/health", "b:9")
