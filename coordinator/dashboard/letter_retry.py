"""Retries of dead letters from the dashboard, by the same command that people use.

It runs as its own process, since it locks, appends and syncs: the coordinator never waits for a
disk.
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
from ripple.core.named_uris import name_and_uri, sources_listed

if TYPE_CHECKING:
    from ripple.client.dashboard.contract import Values

WITHIN_S = 60.0
SAID_BYTES_MAX = 1 << 20
ASKED_MAX = 4  # at once: the running one, and those that wait


class Retry(NamedTuple):
    """A requested retry: one dead letter, or all of one cause in a partition."""

    pipeline: str
    partition: int
    input: str
    offset: int | None
    cause: str | None
    reason: str

    @classmethod
    def of(cls, said: Mapping[str, Any], who: str) -> Retry:
        """Parse a request. Raises AskedError."""
        partition, offset, cause = said.get("partition"), said.get("offset"), said.get("cause")
        texts = [said.get(name) for name in ("pipeline", "input", "reason")]
        if not (type(partition) is int and 0 <= partition < PARTITIONS_MAX):
            raise AskedError("partition is not a number from 0")
        if not all(isinstance(one, str) and one.strip() for one in texts):
            raise AskedError("a retry needs pipeline, input and reason")
        # As text: it may exceed the numbers of a browser.
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
        """The flags of the command."""
        chosen = f"--reason={self.cause}" if self.offset is None else f"--offset={self.offset}"
        where = [f"--pipeline={self.pipeline}", f"--partition={self.partition}"]
        return [*where, f"--input={self.input}", chosen]


class Retrying:
    """Runs retries one after the other, each as its own process.

    store: of dead letters. source: the target of the records, of several sources each as
    ``SOURCE=URI``, separated by commas; "" if it is not configured.
    """

    def __init__(self, store: str, source: str) -> None:
        self._store, self._source = store, source
        self._turn, self._asked = asyncio.Lock(), 0

    async def do(self, asked: Retry) -> Values:
        """Run a retry in its turn; return its result. Raises AskedError, also if too many wait."""
        if self._asked >= ASKED_MAX:
            raise AskedError(f"{self._asked} retries are not done yet: retry once they are")
        self._asked += 1
        try:
            async with self._turn:
                return await retry(asked, store=self._store, source=self._source)
        finally:
            self._asked -= 1


def _source_of(name: str, source: str) -> str:
    """Return the ``SOURCE=URI`` of an input, or the one URI; "" where there is none."""
    listed = sources_listed(source)
    if not name_and_uri(listed[0])[0]:
        return source
    of = name.partition("/")[0]
    return next((one for one in listed if name_and_uri(one)[0] == of), "")


async def retry(asked: Retry, *, store: str, source: str) -> Values:
    """Append the records again, each once; return the result. Raises AskedError.

    store: of dead letters. source: the target of the records; see Retrying.
    """
    source = _source_of(asked.input, source)
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
        # The next retry completes what this one has noted and not done.
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
