"""Snapshots of a running cluster's outputs, subscribed to on the first request."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.reader import check_reads, readable
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import pyarrow as pa

    from ripple.client.outputs import Observer, OutputRows, OutputSubscription
    from ripple.core.cut import Cut
    from ripple.world.ports import Clock

HEARD_S = 10.0
IDLE_S = 60.0
CUTS, BEGINS, OUTPUT = "ripple.cuts", "ripple.begins", "ripple.output"


@dataclass(slots=True, eq=False)
class _Followed:
    """An output with a subscription. used_ns: time of the last request."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    seen: OutputSubscription | None = None
    used_ns: int = 0


class Tables:
    """Snapshots of outputs, each partition at its own cut.

    A subscription ends ``idle_s`` after the last request: so the next answer costs only the changes
    since, and without requests there are no subscriptions.
    """

    def __init__(
        self, observer: Observer, clock: Clock, *, heard_s: float = HEARD_S, idle_s: float = IDLE_S
    ) -> None:
        self._observer = observer
        self._clock = clock
        self._heard_s = heard_s
        self._idle_s = idle_s
        self._followed: dict[str, _Followed] = {}

    async def names(self) -> list[str]:
        """Return the names of readable outputs. Raises FlightError if none is available."""
        return readable(await self._names())

    async def _names(self) -> list[str]:
        try:
            return list(await self._observer.known(self._heard_s))
        except ConnectionError as error:
            raise FlightError(Why.AWAY, str(error)) from error

    async def table(self, output: str, key: Mapping[str, object] | None = None) -> pa.Table:
        """Return the current rows; the schema's metadata has the cuts, and of events the begins.

        key: only rows with these key fields. The rows of a dead owner are of its last cut.
        Raises FlightError, also for a partition without any rows so far.
        """
        check_reads(output)
        return await self._table(output, key)

    async def _table(self, output: str, key: Mapping[str, object] | None) -> pa.Table:
        async with self._following(output) as seen:
            shown = await seen.whole(self._heard_s)
            if shown.missing:
                raise FlightError(
                    Why.AWAY,
                    f"output {output!r}: {len(shown.missing)} of {seen.partitions} partitions "
                    f"did not answer within {self._heard_s:g} s, {shown.missing[0]} first",
                )
            if key:
                try:
                    shown = seen.shown(key)
                except InputError as error:
                    raise FlightError(Why.WRONG, f"output {output!r}: {error}") from error
        about = {OUTPUT: output, CUTS: cuts_of(shown)}
        if shown.begins:
            about[BEGINS] = _json_of(shown.begins)
        return shown.table.replace_schema_metadata(about)

    async def keys(self, output: str) -> tuple[str, ...]:
        """Return the fields of an output's key. Raises FlightError."""
        check_reads(output)
        return await self._keys(output)

    async def _keys(self, output: str) -> tuple[str, ...]:
        async with self._following(output) as seen:
            await seen.whole(self._heard_s)
            return () if seen.layout is None else seen.layout.keys

    async def rest(self) -> None:
        """End idle subscriptions, for ever."""
        while True:
            await self._clock.sleep(self._idle_s / 4)
            before_ns = self._clock.monotonic_ns() - int(self._idle_s * 1e9)
            for output, one in list(self._followed.items()):
                if one.used_ns < before_ns and not one.lock.locked():
                    del self._followed[output]
                    self._observer.leave(output)

    @asynccontextmanager
    async def _following(self, output: str) -> AsyncIterator[OutputSubscription]:
        if output not in await self._names():
            known = ", ".join(readable(self._observer.outputs))
            raise FlightError(Why.UNKNOWN, f"no output {output!r}: there are {known or 'none'}")
        one = self._followed.setdefault(output, _Followed())
        async with one.lock:  # a subscription has one caller at a time
            if one.seen is None:
                one.seen = await self._observer.follow(output, self._heard_s)
            try:
                yield one.seen
            finally:
                one.used_ns = self._clock.monotonic_ns()


def cuts_of(shown: OutputRows) -> str:
    """Return the cut of each partition, as JSON."""
    return _json_of({number: position.cut for number, position in shown.cuts.items()})


def _json_of(cuts: Mapping[int, Cut]) -> str:
    found = {str(number): dict(cut) for number, cut in cuts.items()}
    return json.dumps(found, sort_keys=True)
