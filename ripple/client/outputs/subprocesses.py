"""Processes that do what would keep the server waiting."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process


async def start(
    module: str,
    *arguments: str,
    stdin: int = DEVNULL,
    stderr: int = DEVNULL,
    limit: int = 1 << 16,
) -> Process:
    """Start a module as a program, with the modules that we have found. Raises OSError.

    limit: bytes that are read ahead of what it says.
    """
    return await asyncio.create_subprocess_exec(
        # Not what lies in the folder that we were started in.
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=stdin,
        stdout=PIPE,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        limit=limit,
    )


async def tell(stdin: asyncio.StreamWriter, data: bytes | memoryview) -> None:
    """Write to a process once there is room. Raises ConnectionError where it has ended.

    Every event loop lets its own transports say so in another way, or not at all.
    """
    if stdin.is_closing():
        raise ConnectionResetError("the process has ended")
    stdin.write(data)
    await stdin.drain()


def ended(process: Process) -> str:
    """Return how a process has ended, for people."""
    code = process.returncode
    return f"its process ended by signal {-code}" if code and code < 0 else f"it ended with {code}"


async def end(process: Process) -> None:
    """End one at once, unless it has ended."""
    if process.returncode is None:
        process.kill()
        await process.wait()
