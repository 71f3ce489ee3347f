"""What a coordinator's dashboard costs: ``python -m tests.client.dashboard.cost``.

A cluster over 10,000 symbols whose rows change ten times a second. Prints user and system time of
the coordinator (``/proc/PID/stat``) as a share of one core, for each number of viewers; a viewer is
what the page does while its Outputs are open: the websocket, and sixty rows of each version of the
table, at most twice a second.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

import aiohttp

from tests.client.dashboard.running import running

SYMBOLS = [f"S{number:05}" for number in range(10_000)]
RATE = 10_000.0
VIEWERS = (0, 1, 5)
OVER_S = 20
SETTLED_S = 5


def spent_s(number: str) -> float:
    """Return the processor time of a process, user and system."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def look(url: str, path: str | None) -> None:
    """Look at the page, with a table where there is a path."""
    async with aiohttp.ClientSession(url) as session, session.ws_connect("/live") as live:

        async def ask() -> None:
            after = ""
            while path is not None:
                async with session.get(path + after, raise_for_status=True) as response:
                    after = f"&after={(await response.json())['version']}"
                await asyncio.sleep(0.5)

        async def see() -> None:
            async for _ in live:
                pass

        await asyncio.gather(ask(), see())


async def measure(url: str, number: str) -> None:
    """Print the figures."""
    table = "/api/table?output=vwap&by=volume&down=1&rows=60"
    for name, path in (("overview", None), ("outputs", table)):
        for viewers in VIEWERS:
            looking = [asyncio.ensure_future(look(url, path)) for _ in range(viewers)]
            await asyncio.sleep(SETTLED_S)
            before = spent_s(number)
            await asyncio.sleep(OVER_S)
            share = (spent_s(number) - before) / OVER_S
            for one in looking:
                if one.done():
                    one.result()  # what ended a viewer; without them nothing is measured
            sys.stdout.write(f"{name}, {viewers} viewers: {100 * share:.2f} % of a core\n")
            sys.stdout.flush()
            for one in looking:
                one.cancel()
            await asyncio.gather(*looking, return_exceptions=True)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(
            Path(folder),
            RATE,
            pipeline=Path(__file__).parent / "wide.py",
            outputs={"vwap": "vwap"},
            symbols=SYMBOLS,
        ) as (cluster, url),
    ):
        number = cluster.says(r"coordinator-1 +\| process (\d+)")[1]
        asyncio.run(measure(url, number))


if __name__ == "__main__":
    main()
