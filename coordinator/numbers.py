"""What workers say of themselves on their pages, asked by the dashboard once a tick.

A worker that does not answer in time is shown without numbers; nobody waits for it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ripple.extras import needed
from ripple.observe.samples import Samples

with needed("dashboard", "the dashboard"):
    import aiohttp

if TYPE_CHECKING:
    from collections.abc import Iterable

ANSWER_S = 0.8
BYTES_MAX = 16 << 20


class Numbers:
    """Asks workers at their addresses."""

    def __init__(self) -> None:
        """Ask nothing yet; in a running loop."""
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ANSWER_S), auto_decompress=False, trust_env=False
        )

    async def of(self, workers: Iterable[tuple[str, str]]) -> dict[str, Samples]:
        """Return by worker what each counts, of those that answer; given: names and addresses."""
        workers = list(workers)
        found = await asyncio.gather(*(self.page(address, "numbers") for _, address in workers))
        return {
            worker: samples
            for (worker, _), values in zip(workers, found, strict=True)
            if values is not None and (samples := _samples(values)) is not None
        }

    async def page(self, address: str, name: str) -> Any:
        """Return what a page says; None where nobody answers, or what is no JSON."""
        try:
            async with self._session.get(
                f"http://{address}/{name}", allow_redirects=False
            ) as response:
                if response.status != 200:
                    return None
                return json.loads(await response.content.readexactly(_length(response)))
        except (aiohttp.ClientError, asyncio.IncompleteReadError, OSError, ValueError):
            return None

    async def close(self) -> None:
        """Ask no more."""
        await self._session.close()


def _length(response: aiohttp.ClientResponse) -> int:
    length = response.content_length
    if length is None or length > BYTES_MAX:
        raise ValueError("a page without its length, or too long")
    return length


def _samples(values: Any) -> Samples | None:
    try:
        return Samples.from_values(values)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # of a worker of another release
