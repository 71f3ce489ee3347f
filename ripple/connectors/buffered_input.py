"""One stream as the input of a task: read ahead, handed out on the grid of cuts."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from ripple.connectors.formats.contract import read_batch
from ripple.connectors.inputs import Signal
from ripple.connectors.reading_ahead import ReadAhead
from ripple.core.errors import InputAwayError
from ripple.model.batch import Rejected
from ripple.world.pauses import DELAYS_S

if TYPE_CHECKING:
    from ripple.connectors.connector import Reading
    from ripple.connectors.formats.contract import Values
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch

M = TypeVar("M")

AHEAD_BYTES_MAX = 4 << 20
# What a record costs beside its bytes, so that the number of empty ones is bounded too.
RECORD_BYTES = 64
# Marks are retained for this many cuts.
MARKS_MAX = 1000
CALM_S = 60.0  # without an error: the next one is the first again


class _Held(NamedTuple, Generic[M]):
    """A record read ahead; ``mark`` identifies it for the input."""

    offset: int
    value: bytes | Rejected
    mark: M

    @property
    def length_bytes(self) -> int:
        data = self.value.raw if isinstance(self.value, Rejected) else self.value
        return len(data) + RECORD_BYTES


class BufferedInput(ReadAhead, Generic[M]):
    """The buffer between a client that reads a stream and the task that takes batches; see Inputs.

    Subclasses implement ``bounds``, ``check``, ``identities`` and ``read``. ``read`` runs in a task
    of its own: it adds records by ``hold``, sets ``end`` as far as it is known, and waits in
    ``room`` while enough is held. RestartableInput is all of this over an iterator.

    Invariants: ``_held`` are the records before ``through`` that were not handed out, in order;
    there are no others before ``through``. ``marks`` has, for the latest cuts, the mark of the last
    record before each. The held records are bounded by AHEAD_BYTES_MAX, one call of ``hold``, and
    the batch that was asked for, which ends at ``_wanted``.
    """

    moments = 3
    """How many of DELAYS_S an outage may take before the task is told, which waits for longer."""

    def __init__(self, values: Values, reading: Reading) -> None:
        """Take the format of records and the parameters of the source; nothing is asked yet."""
        super().__init__()
        self.name, self.follow = reading.name, reading.follow
        self.marks: dict[int, M] = {}
        self.through = 0
        self.end: int | None = None
        self._values, self._batch_rows = values, reading.batch_rows
        self._delays_s = DELAYS_S if reading.one_shot else DELAYS_S[: self.moments]
        self._held: deque[_Held[M]] = deque()
        self._held_bytes = self._wanted = 0
        self.stop: int | None = None

    # --- what a subclass provides ---

    async def begin(self, offset: int) -> None:
        """Prepare to read from ``offset`` on. Raises InputError if that is impossible."""

    async def read(self) -> None:
        """Read from ``through`` on, over one connection, until all is read that is needed."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it reads")

    async def error_of(self, error: Exception) -> Exception:
        """Return an error of ``read`` as users get it."""
        return error

    def is_away(self, error: Exception) -> bool:
        """Tell whether ``read`` may succeed when it is repeated in a moment."""
        return isinstance(error, InputAwayError)

    # --- for ``read`` ---

    def hold(self, offset: int, value: bytes | Rejected, mark: M) -> None:
        """Take the next record. Records may be missing before it: a hole."""
        held = _Held(offset, value, mark)
        self._held.append(held)
        self._held_bytes += held.length_bytes
        self.through = offset + 1

    @property
    def is_full(self) -> bool:
        """Whether enough is held, or all was read that will be handed out."""
        if self.last is not None and self.through >= self.last:
            return True
        return self._held_bytes > AHEAD_BYTES_MAX and self.through >= self._wanted

    async def room(self) -> None:
        """Wait until more is wanted."""
        while self.is_full:
            await self.reading.room()

    @property
    def last(self) -> int | None:
        """The end of reading; None if there is none, or if it is not known yet."""
        if self.stop is not None:
            return self.stop
        return None if self.follow else self.end

    # --- Inputs ---

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self.name,)

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self.reading.stop()
        self._batch_rows = rows
        self.stop = None if stop is None else stop[self.name]
        self._held.clear()
        self._held_bytes = 0
        self.end = None
        self.through = self._wanted = cut[self.name]
        await self.begin(self.through)
        self.reading.start(self._read_on)

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch: whole up to the known end; see Inputs."""
        at, last = cut[self.name], self.last
        if last is not None and at >= last:
            return Signal.ENDED
        # A hole is one batch, up to where the batch of the next record begins.
        first, rows = self._held[0].offset if self._held else self.through, self._batch_rows
        end = max(at // rows + 1, first // rows) * rows
        if last is not None:
            end = min(end, last)
        is_all = self.reading.has_failed or (self.end is not None and self.through >= self.end)
        if self.through < end and not (is_all and self.through > at):
            self.reading.check()
            self._wanted = end
            self.reading.took()
            return Signal.WAITING
        return self.name, self._batch(min(end, self.through))

    def _batch(self, end: int) -> Batch:
        offsets: list[int] = []
        values: list[bytes] = []
        rejected: list[Rejected] = []
        while self._held and self._held[0].offset < end:
            one = self._held.popleft()
            self._held_bytes -= one.length_bytes
            self.marks[end] = one.mark
            if isinstance(one.value, Rejected):
                rejected.append(one.value)
            else:
                offsets.append(one.offset)
                values.append(one.value)
        while len(self.marks) > MARKS_MAX:
            del self.marks[next(iter(self.marks))]
        self.reading.took()
        return read_batch(offsets, values, rejected, end, self._values)

    async def close(self) -> None:
        """Stop reading."""
        await self.reading.stop()

    async def _read_on(self) -> None:
        """Repeat ``read`` after outages, with growing delays while it achieves nothing."""
        delays, now_s = iter(self._delays_s), asyncio.get_running_loop().time
        while True:
            before, begun_s = self.through, now_s()
            try:
                await self.read()
                return
            except Exception as error:
                told = await self.error_of(error)
                if self.through > before or now_s() - begun_s > CALM_S:
                    delays = iter(self._delays_s)
                delay_s = next(delays, None) if self.is_away(error) else None
                if delay_s is None:
                    if told is error:
                        raise
                    raise told from error
            await asyncio.sleep(delay_s)
