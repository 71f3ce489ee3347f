"""The examples of services run: one that takes posts, and one that reads a websocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from examples import service, ticks


async def test_a_service_takes_posts_and_serves_a_view() -> None:
    app = service.Service()
    to_app: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    from_app: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
    living = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    to_app.put_nowait({"type": "lifespan.startup"})
    assert await from_app.get() == {"type": "lifespan.startup.complete"}

    async def asked(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        given: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        data = json.dumps(body).encode()
        given.put_nowait({"type": "http.request", "body": data[:5], "more_body": True})
        given.put_nowait({"type": "http.request", "body": data[5:]})
        answer: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        await app({"type": "http", "method": method, "path": path}, given.get, answer.put)
        return answer.get_nowait()["status"], json.loads(answer.get_nowait()["body"])

    assert await asked("GET", "/vwaps") == (200, [])
    trade = {"symbol": "A", "price": 10.0, "size": 1, "at": 1}
    assert await asked("POST", "/trades", [trade, trade | {"price": 30.0, "size": 3}]) == (202, {})
    view = [{"symbol": "A", "vwap": 25.0, "volume": 4}]
    assert await asked("GET", "/vwaps") == (200, view)
    status, said = await asked("POST", "/trades", trade | {"size": "many"})
    assert (status, "must be an integer" in said["problem"]) == (422, True)
    assert (await asked("GET", "/"))[0] == 404
    assert await asked("GET", "/vwaps") == (200, view)
    to_app.put_nowait({"type": "lifespan.shutdown"})
    assert await from_app.get() == {"type": "lifespan.shutdown.complete"}
    await living


async def test_ticks_of_a_websocket_become_changes() -> None:
    shown: asyncio.Queue[None] = asyncio.Queue()

    async def send(client: ServerConnection) -> None:
        for at, price in enumerate((3.0, 1.0, 2.0)):
            await client.send(json.dumps({"symbol": "A", "price": price, "at": at}))
            await shown.get()  # its change came before the next tick

    rows = []
    async with serve(send, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async for change in ticks.ranges(f"ws://127.0.0.1:{port}"):
            rows.append(change.row)
            shown.put_nowait(None)
    assert [(row["low"], row["high"], row["ticks"]) for row in rows] == [
        (3.0, 3.0, 1),
        (1.0, 3.0, 2),
        (1.0, 3.0, 3),
    ]
