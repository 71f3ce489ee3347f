"""Helper processes for work that would block the server."""

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
    """Start a module as a program, with this process's module path. Raises OSError.

    limit: bytes of its output that are buffered.
    """
    return await asyncio.create_subprocess_exec(
        # Not modules of the current folder.
        *(sys.executable, "-P", "-m", module, *arguments),
        stdin=stdin,
        stdout=PIPE,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        limit=limit,
    )


async def send(stdin: asyncio.StreamWriter, data: bytes | memoryview) -> None:
    """Write to a process, once its pipe has room. Raises ConnectionError if it has ended.

    Event loops report a closed pipe in different ways, or not at all.
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
    """Kill a process, unless it has ended."""
    if process.returncode is None:
        process.kill()
        await process.wait()
