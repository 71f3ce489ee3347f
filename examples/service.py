"""A web service around a pipeline: trades come by POST, and the newest VWAPs go by GET.

An ASGI application without a framework, which ``uvicorn examples.service:app`` serves. A service of
FastAPI enters ``running`` in its lifespan, and awaits the stream in its handlers, alike::

    curl -d '[{"symbol": "A", "price": 10.0, "size": 1, "at": 1}]' localhost:8000/trades
    curl localhost:8000/vwaps
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pyarrow as pa

import ripple as rp

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


@rp.record(version=1)
class Trade:
    """A posted trade; at: nanoseconds since 1970."""

    symbol: str
    price: float = rp.field(gt=0, finite=True)
    size: int = rp.field(gt=0)
    at: rp.Timestamp


pipeline = (
    rp.Pipeline("service")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .fold("vwap", vwap=rp.vwap("price", "size"), volume=rp.sum("size"))
    .sink("vwaps")
)


class Service:
    """The application. Its run goes on as long as ``running`` is entered."""

    def __init__(self) -> None:
        self._vwaps: dict[str, dict[str, Any]] = {}
        self._stream = rp.Stream(Trade)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the pipeline, beside the event loop of the server."""
        self._stream = rp.Stream(Trade)
        run = asyncio.create_task(
            rp.arun(pipeline, source=self._stream, sink=self._show, max_rejected="100%")
        )
        try:
            await self._stream.opened()
            yield
        finally:
            self._stream.close()
            await run

    async def _show(self, changes: pa.RecordBatch) -> None:
        """Take the changes of the view, in the server's loop."""
        for row in changes.select(["symbol", "vwap", "volume"]).to_pylist():
            self._vwaps[row["symbol"]] = row

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection, or the lifespan."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            status, answer = await self._answer(scope["method"], scope["path"], receive)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    async def _live(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            await receive()
            await stack.enter_async_context(self.running())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, method: str, path: str, receive: Receive) -> tuple[int, Any]:
        if (method, path) == ("GET", "/vwaps"):
            return 200, [self._vwaps[symbol] for symbol in sorted(self._vwaps)]
        if (method, path) != ("POST", "/trades"):
            return 404, {"problem": "there are GET /vwaps and POST /trades"}
        try:
            trades = json.loads(await _body_of(receive))
            for trade in trades if isinstance(trades, list) else [trades]:
                await self._stream.apush(trade)
        except (ValueError, RecursionError, rp.RippleError) as error:
            return 422, {"problem": str(error)}
        await self._stream.drained()  # so that a GET after it has them
        return 202, {}


async def _body_of(receive: Receive) -> bytes:
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    return body


app = Service()
