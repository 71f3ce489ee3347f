"""Dead letters given back to where their records came from, by the command that people use for it.

It runs as a process of its own: it locks, appends and syncs, and nothing here waits for a disk.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.client.dashboard.contract import AskedError
from ripple.client.outputs import subprocesses
from ripple.control.assignment.version import PARTITIONS_MAX

if TYPE_CHECKING:
    from ripple.client.dashboard.contract import Values

WITHIN_S = 60.0
SAID_BYTES_MAX = 1 << 20
ASKED_MAX = 4  # at once: one that is done, and those that wait for their turn


class Retry(NamedTuple):
    """What is to be retried: one letter, or all of one cause in a partition."""

    pipeline: str
    partition: int
    input: str
    offset: int | None
    cause: str | None
    reason: str

    @classmethod
    def of(cls, said: Mapping[str, Any], who: str) -> Retry:
        """Return what somebody says. Raises AskedError."""
        partition, offset, cause = said.get("partition"), said.get("offset"), said.get("cause")
        texts = [said.get(name) for name in ("pipeline", "input", "reason")]
        if not (type(partition) is int and 0 <= partition < PARTITIONS_MAX):
            raise AskedError("partition is no number from 0 on")
        if not all(isinstance(one, str) and one.strip() for one in texts):
            raise AskedError("a retry needs pipeline, input and reason")
        # As text, since it may be more than a browser's numbers hold.
        if isinstance(offset, str) and offset.isascii() and offset.isdigit() and len(offset) < 20:
            cause = None
        elif offset is not None or not (isinstance(cause, str) and cause):
            raise AskedError("a retry needs an offset, as text, or a cause")
        pipeline, name, reason = (str(one).strip() for one in texts)
        reason = f"{reason} ({who})" if who else reason
        return cls(
            pipeline, partition, name, None if offset is None else int(offset), cause, reason
        )

    @property
    def flags(self) -> list[str]:
        """As the command takes it."""
        chosen = f"--reason={self.cause}" if self.offset is None else f"--offset={self.offset}"
        where = [f"--pipeline={self.pipeline}", f"--partition={self.partition}"]
        return [*where, f"--input={self.input}", chosen]


class Retrying:
    """Retries one after the other, since each is a process of its own.

    store: where letters are. source: where records are appended, "" where nobody has said it.
    """

    def __init__(self, store: str, source: str) -> None:
        self._store, self._source = store, source
        self._turn, self._asked = asyncio.Lock(), 0

    async def do(self, asked: Retry) -> Values:
        """Do it in its turn; return what was done. Raises AskedError, also where too many wait."""
        if self._asked >= ASKED_MAX:
            raise AskedError(f"{self._asked} retries are not done yet: retry once they are")
        self._asked += 1
        try:
            async with self._turn:
                return await retry(asked, store=self._store, source=self._source)
        finally:
            self._asked -= 1


async def retry(asked: Retry, *, store: str, source: str) -> Values:
    """Append the records again, each once; return what was done. Raises AskedError.

    store: where letters are. source: where records are appended, "" where nobody has said it.
    """
    if not source:
        raise AskedError(
            "this coordinator was not told where retried records go: give it --retry-source "
            "log:DIR/TOPIC or kafka:BROKERS/TOPIC, or run the command that the page shows"
        )
    flags = [f"--checkpoint-dir={store}", f"--source={source}", *asked.flags, "--format=json"]
    process = await subprocesses.start(
        "ripple.cli.main", "dead-letter", "retry", *flags, stderr=PIPE
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            said, problem = await process.communicate()
    except TimeoutError:
        # What it has noted and not done is done first by whoever retries next.
        raise AskedError(f"not done within {WITHIN_S:g} s: retry again") from None
    finally:
        await subprocesses.end(process)
    if process.returncode:
        lines = problem[-SAID_BYTES_MAX:].decode(errors="replace").strip().splitlines()
        raise AskedError(lines[-1].removeprefix("ripple: ") if lines else "it has failed")
    found = [json.loads(line) for line in said.decode().splitlines()]
    sent, before = (sum(one[name] for one in found) for name in ("sent", "before"))
    refused = [one for box in found for one in box["refused"]]
    if refused and not sent:
        raise AskedError(f"cannot be retried: {refused[0]['reason']}")
    parts = [f"{sent} retried", f"{before} were retried before" if before else ""]
    parts += [f"{len(refused)} cannot be: {refused[0]['reason']}" if refused else ""]
    where = f"{asked.pipeline}/{asked.partition}"
    return {"done": f"{where}: {', '.join(filter(None, parts))}: {asked.reason}"}
