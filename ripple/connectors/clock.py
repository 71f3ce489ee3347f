"""A source of the clock's ticks, which are a function of their offsets.

Tick n has the time ``since + n * every``. So a cut records which ticks have come, and a replay
reads the same ones; the clock says only how many there are by now.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.inputs import Signal
from ripple.core.arguments import need_bool, need_text, shown
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.records.record import Timestamp, record
from ripple.model.window import duration_ns, watermark
from ripple.world.live import LiveClock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.connector import Reading
    from ripple.core.cut import Cut
    from ripple.world.ports import Clock

PREFIX = "clock:"
FORM = f"{PREFIX}EVERY,SINCE"
EVERY_NS_MIN = 1_000_000
_NS = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA = pa.schema([pa.field("timestamp_ns", pa.int64(), nullable=False)])


@record(version=1)
class Tick:
    """A tick of the clock: the record of a source that ``clock`` reads."""

    timestamp_ns: Timestamp


def clock(
    name: str,
    *,
    every: str | int,
    since: str | int | datetime | None = None,
    follow: bool = True,
) -> ClockInputs:
    """Return the ticks of the clock as the input of source ``name``, whose record is ``Tick``.

    A run gets each tick once its time has come, also ticks that have passed since it was stopped.
    In commands and on clusters it is the URI ``clock:EVERY,SINCE``::

        ticks = market.source("ticks", rp.Tick)
        ...
        rp.run(..., source={"ticks": rp.clock("ticks", every="1s", since="2026-11-26T00:00Z")})

    every: from one tick to the next, as ``"1s"`` or an int of nanoseconds, at least 1 ms. since:
    the time of the first tick, as ISO 8601 with a time zone, or an int of nanoseconds since 1970
    UTC. It must stay the same: offsets count from there. follow: wait for the next tick, in a
    run with ``follow=True``; else the input ends at the last past tick. Raises InputError and
    PlanError.
    """
    need_text("clock: name", name, InputError)
    need_bool("clock: follow", follow, InputError)
    if since is None:
        raise InputError(
            "clock: since must be a time with its zone, of the first tick, and is missing: "
            "offsets count from it in all runs alike, as from since='2026-11-26T00:00Z'"
        )
    return ClockInputs(name, _every_ns(every), _time_ns(since), LiveClock(), follow=follow)


def open_inputs(path: str, reading: Reading) -> ClockInputs:
    """Return the ticks of a URI, ``EVERY,SINCE``; raises InputError, PlanError and SchemaError."""
    every_ns, since_ns = _parsed(path)
    if reading.shape.table is not None or reading.shape.arrow_schema() != _SCHEMA:
        raise InputError(
            f"source {reading.name!r}: the records of clock:{path} are rp.Tick: say "
            f"source({reading.name!r}, rp.Tick)"
        )
    return ClockInputs(reading.name, every_ns, since_ns, LiveClock(), follow=reading.follow)


def check(path: str) -> str:
    """Return a description of a URI's ticks; raises as ``open_inputs``."""
    from ripple.model.pipeline.description import span_text  # noqa: PLC0415 - only people ask

    every_ns, since_ns = _parsed(path)
    ticks = ClockInputs("ticks", every_ns, since_ns, LiveClock())
    since = (_EPOCH + timedelta(microseconds=since_ns // 1000)).isoformat()
    return f"a tick each {span_text(every_ns)} since {since}: {ticks.come} have come"


def identity(path: str) -> str:
    """Return the same text for all spellings of the same ticks; raises as ``open_inputs``."""
    every_ns, since_ns = _parsed(path)
    return f"{PREFIX}{every_ns},{since_ns}"


def offset_at(uri: str, time_ns: int) -> int:
    """Return the offset of the first tick at or after a time; raises as ``open_inputs``."""
    every_ns, since_ns = _parsed(uri.removeprefix(PREFIX))
    return max(0, -((since_ns - time_ns) // every_ns))


class ClockInputs:
    """The ticks from a time on; see Inputs. A clock that goes back only lets ticks wait."""

    def __init__(
        self, name: str, every_ns: int, since_ns: int, time: Clock, *, follow: bool = True
    ) -> None:
        """Read ticks as the input ``name``. time: tells how many there are."""
        self._name, self._every_ns, self._since_ns = name, every_ns, since_ns
        self._clock, self._follow = time, follow
        self._at, self._rows, self._stop = 0, 1, watermark.END
        self._recorded = (
            0  # a cut tells that ticks before it have come, also where the clock is back
        )
        self._woken = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    @property
    def uri(self) -> str:
        """The same ticks as a URI."""
        return f"{PREFIX}{self._every_ns}ns,{self._since_ns}"

    @property
    def ended_by(self) -> str:
        """The code with which ticks end; see EndlessInputs."""
        return "rp.clock(..., follow=False)" if self._follow else ""

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return offset 0, and the offset of the next tick; see Inputs."""
        return {self._name: 0}, {self._name: self._there}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the ticks before ``cut`` are those of the cut."""
        was = identities.get(self._name, "")
        if cut[self._name] and was and was != self._identity:
            raise InputError(
                f"clock {self._name!r}: the run has read ticks {was}, and they are now "
                f"{self._identity}: leave every= and since= as they were, or begin with another "
                "folder of checkpoints and outputs"
            )
        self._recorded = max(self._recorded, cut[self._name])

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return a text that identifies the ticks; see Inputs."""
        return dict.fromkeys(cut, self._identity)

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        self._at, self._rows = cut[self._name], rows
        if stop is None:
            self._stop = watermark.END if self._follow else self._there
            return
        self._stop = stop[self._name]
        if self._stop < watermark.END:  # recorded, maybe by an owner whose clock is ahead of ours
            self._recorded = max(self._recorded, self._stop)

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the due ticks after ``cut``; see Inputs."""
        first = self._at = cut[self._name]
        if first >= self._stop:
            return Signal.ENDED
        end = min(self._there, self._stop, (first // self._rows + 1) * self._rows)
        if first >= end:
            return Signal.WAITING
        times = self._since_ns + np.arange(first, end, dtype=np.int64) * self._every_ns
        return self._name, Batch(pa.record_batch([pa.array(times)], schema=_SCHEMA), end)

    async def more(self) -> None:
        """Wait until the next tick; see Inputs."""
        due_ns = self._since_ns + self._at * self._every_ns - self._clock.now_ns()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0, due_ns) / _NS):
                await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return; see Inputs."""
        self._woken.set()

    async def sync(self) -> None:
        """Do nothing: a tick is nowhere but in the cut."""

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @property
    def come(self) -> int:
        """How many ticks have come by the clock."""
        passed_ns = self._clock.now_ns() - self._since_ns
        return passed_ns // self._every_ns + 1 if passed_ns >= 0 else 0

    @property
    def _there(self) -> int:
        """The offset of the next tick, after all those read."""
        return max(self._at, self._recorded, self.come)

    @property
    def _identity(self) -> str:
        return f"every {self._every_ns} ns since {self._since_ns}"


def _parsed(path: str) -> tuple[int, int]:
    every, comma, since = path.partition(",")
    if not comma:
        raise InputError(
            f"cannot tell which ticks clock:{path} has: it must be {FORM}, as in "
            "clock:1s,2026-11-26T00:00Z"
        )
    is_number = since.isascii() and since.isdecimal() and len(since) < 20
    return _every_ns(every), _time_ns(int(since) if is_number else since)


def _every_ns(every: str | int) -> int:
    every_ns = duration_ns(every, "clock: every", of_wall_clock=True)
    if every_ns < EVERY_NS_MIN:
        raise InputError(f"clock: every must be at least 1ms, as in every='1s', not {shown(every)}")
    return every_ns


def _time_ns(since: str | int | datetime) -> int:
    if isinstance(since, int) and not isinstance(since, bool):
        since_ns = since
    else:
        try:
            moment = datetime.fromisoformat(since) if isinstance(since, str) else since
        except ValueError:
            moment = None
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise InputError(
                "clock: since must be a time with its zone, as in '2026-11-26T00:00Z', or integer "
                f"nanoseconds, not {shown(since)}"
            )
        since_ns = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
    if not 0 <= since_ns < watermark.EVENT_TIME_NS_MAX:
        raise InputError(f"clock: since must be a time from 1970 to 2116, not {shown(since)}")
    return since_ns
