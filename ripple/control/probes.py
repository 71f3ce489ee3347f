"""Pages of a process for probes and scrapers: HTTP over the network port.

One request a connection. Enough of HTTP/1.1 for kubelets, Prometheus and curl: GET and HEAD of a
few pages.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ripple.world.seats import Bounds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ripple.world.ports import Listener, Network, Stream

REQUEST_BYTES_MAX = 16 << 10
ANSWER_BYTES_MAX = 16 << 20
REQUEST_S = 5.0
REQUESTS_MAX = 64
BOUNDS = Bounds(most=REQUESTS_MAX, of_address=REQUESTS_MAX * 3 // 4, silent=REQUESTS_MAX)

REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A response. status: of HTTP."""

    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


def json_page(value: object) -> Page:
    """Return a value as a page of JSON."""
    return Page(json.dumps(value) + "\n", content_type="application/json")


Shows: TypeAlias = "Callable[[], Page | Awaitable[Page]]"


async def serve_pages(network: Network, address: str, pages: Mapping[str, Shows]) -> Listener:
    """Serve pages by path at an address. Raises OSError.

    Clients that are too slow are disconnected; of more than ``REQUESTS_MAX`` at once, the longest
    silent ones.
    """

    async def serve(stream: Stream) -> None:
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await _head(stream)
                if head:
                    stream.settle()
                    await stream.write(await _answer(head, pages))
                    stream.finish()
        except TimeoutError:
            pass  # a client that is too slow gets no answer

    return await network.listen(address, serve, bounds=BOUNDS)


async def page_of(
    network: Network,
    address: str,
    path: str,
    within_s: float,
    bytes_max: int = ANSWER_BYTES_MAX,
) -> bytes:
    """Return the body of a page. Raises OSError, also for a bad answer, or none in time."""
    async with asyncio.timeout(within_s):
        stream = await network.connect(address)
        try:
            asked = f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
            await stream.write(asked.encode())
            parts, length = [], 0
            while more := await stream.read(1 << 18):
                parts.append(more)
                length += len(more)
                if length > bytes_max:
                    raise ConnectionError(f"{address}{path} has more than {bytes_max} bytes")
        finally:
            stream.close()
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    is_good = head.startswith(b"HTTP/1.1 200 ")
    if not is_good or f"Content-Length: {len(body)}".encode() not in head.splitlines():
        raise ConnectionError(f"{address}{path} says {head[:80]!r}, and {len(body)} bytes")
    return body


async def _head(stream: Stream) -> bytes:
    """Return the head of a request, empty if none comes."""
    head = b""
    while b"\r\n\r\n" not in head and b"\n\n" not in head:
        more = await stream.read(4096)
        head += more
        if not more or len(head) > REQUEST_BYTES_MAX:
            return b""
    return head


async def _answer(head: bytes, pages: Mapping[str, Shows]) -> bytes:
    words = head.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _bytes(Page("this is no request\n", 400), has_body=True)
    method, path = words[0], words[1].partition("?")[0]
    if path not in pages:
        page = Page(f"there is no {path[:80]} here: there are {' '.join(pages)}\n", 404)
    elif method not in ("GET", "HEAD"):
        page = Page("pages can only be read\n", 405)
    else:
        shown = pages[path]()
        page = shown if isinstance(shown, Page) else await shown
    return _bytes(page, has_body=method != "HEAD")


def _bytes(page: Page, *, has_body: bool) -> bytes:
    body = page.body.encode()
    head = (
        f"HTTP/1.1 {page.status} {REASONS[page.status]}\r\n"
        f"Content-Type: {page.content_type}\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (body if has_body else b"")
