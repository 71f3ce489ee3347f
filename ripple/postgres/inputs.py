"""A table's changes as the input of a life: offset n is the change that came after n others."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.batch import Batch, Rejected
from ripple.connectors.inputs import Signal
from ripple.connectors.reading_ahead import ReadingAhead
from ripple.errors import InputError
from ripple.extras import needed
from ripple.postgres.changes import Changes, Refused
from ripple.postgres.position import Position, lsn_text
from ripple.postgres.slot import Slot, Slots, told
from ripple.postgres.stream import Alive, Stream
from ripple.values.contract import read_batch

with needed("postgres", "a table of PostgreSQL"):
    import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.postgres.place import PostgresPlace
    from ripple.cut import Cut
    from ripple.values.contract import Values

AHEAD_BYTES_MAX = 4 << 20
# So many messages are taken before others have their turn.
AT_ONCE = 500
ASK_S = 0.02
REST_S = 5.0
LAST_WORDS_S = 2.0
KNOWN_MAX = 1000
# What the log may keep so that the oldest checkpoint can be gone on from, and not the newest alone.
SPARE_BYTES = 256 << 20
SEGMENT_BYTES = 16 << 20
# Half a minute in all: a server that restarts is back by then.
DELAYS_S = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0)
LOOKS = 4  # of them where a run begins: somebody waits, and may have named another server


class _Held(NamedTuple):
    """A change that was not given out yet, as a document or refused; ``at`` is behind it."""

    offset: int
    at: Position
    value: bytes | Rejected
    length_bytes: int


class PostgresInputs:
    """All changes of one table since its slot was made, in the order in which they were committed.

    Reads ahead on a connection of its own; where that is lost, another one begins where it was. The
    server keeps what it has sent until a checkpoint that was stored includes it.

    Invariants: ``_held`` are the changes from ``_from`` to before ``_through`` that were not given
    out yet, in order; ``_at`` is where the log goes on behind them. What is held is bounded, but
    for the batch that is asked for, which ends at ``_wanted``. What the slot is told is known in
    ``ripple_slots`` before, and is of a checkpoint.
    """

    def __init__(
        self,
        place: PostgresPlace,
        values: Values,
        *,
        name: str,
        batch_rows: int,
        follow: bool = False,
        keeps: bool = True,
    ) -> None:
        """Read; nothing is asked yet. keeps: whether checkpoints let the slot advance."""
        self._place, self._values = place, values
        self._slots = Slots(place, values.shape)
        self._name, self._batch_rows = name, batch_rows
        self._follow, self._keeps = follow, keeps
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._from = self._through = self._wanted = 0
        self._at = Position(0)
        self._server = ""
        self._known: dict[int, Position] = {}  # the last places before cuts
        self._end: int | None = None
        self._end_lsn = 0
        self._is_caught_up = self._is_dry = False
        self._stop: int | None = None
        self._reading = ReadingAhead()
        self._stream: Stream | None = None
        self._stored: list[tuple[int, Position]] = []  # the newest first
        self._let_go = (0, Position(0))

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from; nobody has counted up to the end."""
        return {self._name: (await self._look()).first}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless it is the slot that was read, and still has what follows."""
        slot, offset = await self._look(), cut[self._name]
        self._check_first(slot, offset)
        known = self._identity(identities)
        if known is None:
            try:
                await self._count(slot, offset)
            except (psycopg.Error, OSError) as error:
                raise told(self._place, error) from error
            return
        server, name, at = known
        if (server, name) != (slot.server, self._slots.name):
            raise InputError(
                f"{self._place}: it was read up to {offset} from the slot {name!r} of the server "
                f"{server}, and this is {self._slots.name!r} of {slot.server}"
            )
        if at.lsn > slot.end or (at < slot.at and offset > slot.first):
            raise InputError(
                f"{self._place}: it was read up to {offset}, at {at}, and the server has "
                f"{slot.at} to {lsn_text(slot.end)}: it has lost what it had, or the slot is "
                "another one"
            )
        self._known[offset], self._server = at, server

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the server, the slot, and the place of the cut in its log."""
        offset = cut[self._name]
        at = self._at if offset == self._through else self._known.get(offset)
        return {self._name: f"{self._server} {self._slots.name} {at}" if at is not None else ""}

    def _identity(self, identities: Mapping[str, str]) -> tuple[str, str, Position] | None:
        text = identities.get(self._name, "")
        if not text:
            return None
        server, name, at = text.split(" ")
        return server, name, Position.parse(at)

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._reading.stop()
        self._batch_rows = rows
        self._stop = None if stop is None else stop[self._name]
        self._held.clear()
        self._held_bytes = 0
        self._is_caught_up = self._is_dry = False
        self._end = None
        slot = await self._look()
        self._from = self._wanted = cut[self._name]
        self._check_first(slot, self._from)
        self._through, self._at = slot.first, slot.at
        if self._from in self._known and self._from > slot.first:
            self._through, self._at = self._from, self._known[self._from]
        self._server, self._end_lsn = slot.server, slot.end
        self._let_go = (slot.first, slot.at)
        if self._keeps:
            try:
                await self._slots.prepare()
            except psycopg.Error as error:
                raise told(self._place, error) from error
        self._reading.start(lambda: self._read_on(slot), lambda error: told(self._place, error))

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch; see Inputs."""
        at, last = cut[self._name], self._last()
        if last is not None and at >= last:
            return Signal.ENDED
        end = (at // self._batch_rows + 1) * self._batch_rows
        if last is not None:
            end = min(end, last)
        is_all = self._is_dry or self._reading.has_failed
        if self._through < end and not (is_all and self._through > at):
            self._reading.check()
            self._wanted = end
            self._reading.took()
            return Signal.WAITING
        return self._name, self._batch(min(end, self._through))

    def _last(self) -> int | None:
        """Return where reading ends, None if it does not or nobody knows yet."""
        return self._end if self._stop is None else self._stop

    def _batch(self, end: int) -> Batch:
        offsets: list[int] = []
        values: list[bytes] = []
        refused: list[Rejected] = []
        while self._held and self._held[0].offset < end:
            one = self._held.popleft()
            self._held_bytes -= one.length_bytes
            self._known[end] = one.at
            if isinstance(one.value, Rejected):
                refused.append(one.value)
            else:
                offsets.append(one.offset)
                values.append(one.value)
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._reading.took()
        return read_batch(offsets, values, refused, end, self._values)

    async def more(self) -> None:
        """Wait until more was read."""
        await self._reading.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._reading.wake()

    async def sync(self) -> None:
        """Do nothing: the server keeps what was read until a checkpoint is stored."""

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let the slot advance behind checkpoints; see KeepingInputs."""
        self._stored = []
        for cut, identities in checkpoints:
            known = self._identity(identities)
            if known is not None and known[:2] == (self._server, self._slots.name):
                self._stored.append((cut[self._name], known[2]))
        self._reading.took()
        if self._stream is not None:
            self._stream.stir()

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await self._reading.stop()

    async def _look(self) -> Slot:
        """Return the slot; a server that restarts is asked again. Raises InputError."""
        delays = iter(DELAYS_S[:LOOKS])
        while True:
            try:
                return await self._slots.look()
            except (psycopg.Error, OSError) as error:
                delay_s = next(delays, None) if _is_away(error) else None
                if delay_s is None:
                    raise told(self._place, error) from error
                await asyncio.sleep(delay_s)

    def _check_first(self, slot: Slot, offset: int) -> None:
        if offset < slot.first:
            raise InputError(
                f"{self._place}: the slot {self._slots.name!r} begins at {slot.first}, and "
                f"{offset} is asked for: what is between has been let go"
            )

    async def _count(self, slot: Slot, offset: int) -> None:
        """Raise InputError unless there are so many changes; who reads them now will see."""
        try:
            stream = await Stream.begin(self._slots, slot.at.lsn, slot.at.lsn)
        except psycopg.errors.ObjectInUse:
            return
        changes, through = self._changes(slot, slot.at), slot.first
        try:
            while through < offset:
                said = stream.read()
                if said is None:
                    if changes.at >= Position(slot.end):
                        raise self._ends(through, offset)
                    stream.tell(asks=True)
                    await stream.wait(ASK_S)
                elif isinstance(said, Alive):
                    changes.passed(said.lsn)
                else:
                    through += changes.take(said) is not None
        finally:
            await stream.close()

    def _changes(self, slot: Slot, at: Position) -> Changes:
        return Changes(str(self._place), self._values.shape, slot.relation, at)

    def _ends(self, end: int, offset: int) -> InputError:
        return InputError(f"{self._place} ends at {end}, and it was read up to {offset}")

    async def _read_on(self, slot: Slot) -> None:
        """Read ahead, for ever; a server that is away is asked again for half a minute."""
        delays, is_first = iter(DELAYS_S), True
        while True:
            before = self._at
            try:
                if not is_first:
                    slot = await self._slots.look()
                is_first = False
                await self._read(slot)
                return
            except (psycopg.Error, OSError, InputError) as error:
                if self._at > before:
                    delays = iter(DELAYS_S)
                delay_s = next(delays, None) if _is_away(error) else None
                if delay_s is None:
                    raise
                await asyncio.sleep(delay_s)

    async def _read(self, slot: Slot) -> None:
        """Read on until nobody wants more. Raises what went wrong, and InputError."""
        if self._at < slot.at and self._through != slot.first:
            raise InputError(
                f"{self._place}: the slot {self._slots.name!r} has advanced to {slot.at} while it "
                f"was read, at {self._at}: somebody else has read from it"
            )
        begin = max(self._at, slot.at)
        stream = self._stream = await Stream.begin(self._slots, begin.lsn, slot.at.lsn)
        changes = self._changes(slot, begin)
        try:
            while True:
                await self._advance(stream)
                last = self._last()
                if last is not None and self._through >= last:
                    if not self._keeps:
                        return
                    await self._rest(stream)
                elif self._held_bytes > AHEAD_BYTES_MAX and self._through >= self._wanted:
                    await self._rest(stream)
                elif self._take(stream, changes):
                    await asyncio.sleep(0)
                else:
                    if not self._is_caught_up:
                        stream.tell(asks=True)
                    await stream.wait(REST_S if self._is_caught_up else ASK_S)
        finally:
            self._stream = None
            with suppress(psycopg.Error, OSError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await self._advance(stream)
            await stream.close()

    def _take(self, stream: Stream, changes: Changes) -> bool:
        """Take some of what is there; return whether there may be more."""
        self._is_dry = False
        said: bytes | Alive | None = None
        for _ in range(AT_ONCE):
            said = stream.read()
            if said is None:
                break
            if isinstance(said, Alive):
                changes.passed(said.lsn)
            elif (found := changes.take(said)) is not None:
                self._hold(found, changes.at)
            self._at = changes.at
            if not self._is_caught_up and self._at.lsn >= self._end_lsn and not self._at.within:
                self._catch_up()
            if self._end is not None:
                break
        self._is_dry = self._is_caught_up and said is None
        self._reading.wake()
        return said is not None

    def _hold(self, found: bytes | Refused, at: Position) -> None:
        offset = self._through
        self._through += 1
        if offset < self._from:
            return
        value: bytes | Rejected
        if isinstance(found, Refused):
            value, length_bytes = Rejected(offset, None, *found), len(found.raw)
        else:
            value, length_bytes = found, len(found)
        self._held.append(_Held(offset, at, value, length_bytes))
        self._held_bytes += length_bytes

    def _catch_up(self) -> None:
        """Note that all has come that was there when it was opened. Raises InputError."""
        if self._through < self._from:
            raise self._ends(self._through, self._from)
        self._is_caught_up = True
        if not self._follow and self._stop is None:
            self._end = self._through

    async def _rest(self, stream: Stream) -> None:
        """Read nothing until somebody wants more, and let the server know that we are there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(REST_S):
                await self._reading.room()
        stream.tell()
        stream.heard()

    async def _advance(self, stream: Stream) -> None:
        """Let the server forget what no checkpoint needs any more; raises psycopg.Error.

        That is what is before the oldest checkpoint that counts, as long as the log is not too long
        for that. Where nothing has come since, it goes along with the log.
        """
        if not (self._keeps and self._stored):
            return
        offset, at = self._stored[-1]
        if stream.seen_lsn - at.lsn > SPARE_BYTES:
            offset, at = self._stored[0]
        if offset == self._through:
            at = max(at, self._at)
        was_offset, was_at = self._let_go
        if at <= was_at or (offset == was_offset and at.lsn - was_at.lsn < SEGMENT_BYTES):
            return
        await self._slots.know(offset, at)
        self._let_go = (offset, at)
        stream.needed_lsn = at.lsn
        stream.tell()


def _is_away(error: Exception) -> bool:
    """Whether a server may be back soon, or whoever has read the slot may leave it."""
    # libpq has no codes for what fails while it connects.
    is_refused = "authentication failed" in str(error) or "does not exist" in str(error)
    is_lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | OSError)
    return is_lost and not is_refused
