"""A table's changes as the input of a task: offset n is the change that came after n others."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.formats.contract import read_batch
from ripple.connectors.inputs import Signal
from ripple.connectors.postgres.changes import Changes, Refused
from ripple.connectors.postgres.position import Mark, Position, lsn_text
from ripple.connectors.postgres.slot import Slot, Slots, is_denied, told
from ripple.connectors.postgres.stream import Alive, Stream
from ripple.connectors.reading_ahead import ReadingAhead
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.batch import Batch, Rejected

with needed("postgres", "a table of PostgreSQL"):
    import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.postgres.uri import PostgresUri
    from ripple.core.cut import Cut

AHEAD_BYTES_MAX = 4 << 20
# So many messages are taken before others have their turn.
AT_ONCE = 500
ASK_S = 0.02
REST_S = 5.0
# Nothing is told of a table that is gone, or is not published any more: that is looked for.
LOOK_S = 30.0
LAST_WORDS_S = 2.0
KNOWN_MAX = 1000
# What the log may keep so that the oldest checkpoint can be gone on from, and not the newest alone.
SPARE_BYTES = 256 << 20
SEGMENT_BYTES = 16 << 20
# For a moment; half a minute in all if no task retries, as a server restarts.
MOMENT_S = (0.1, 0.3, 1.0, 2.0)
DELAYS_S = (*MOMENT_S, 4.0, 8.0, 15.0)
# A server that shuts down asks again and again until all that it has sent is not needed any more.
ASKED_MAX = 10
ANEW = "Make a new slot, and name another --checkpoint-dir and other outputs, to start over"


class _Held(NamedTuple):
    """A change that was not handed out yet, as a document or rejected; ``mark`` is after it."""

    offset: int
    mark: Mark
    value: bytes | Rejected
    length_bytes: int


class _Identity(NamedTuple):
    """The identity of the changes before a cut: server, slot, publication, and the last change.

    told: as of a slot; "" of runs that did not note it.
    """

    server: str
    slot: str
    mark: Mark
    told: str = ""

    def __str__(self) -> str:
        at, committed_ns, xid = self.mark
        return f"{self.server} {self.slot} {at} {self.told or '-'} {committed_ns} {xid}"

    @classmethod
    def parse(cls, text: str) -> _Identity:
        server, slot, at, *more = text.split(" ")
        if not more:
            return cls(server, slot, Mark(Position.parse(at)))
        told, committed_ns, xid = more
        mark = Mark(Position.parse(at), int(committed_ns), int(xid))
        return cls(server, slot, mark, told.strip("-"))


class PostgresInputs:
    """All changes of one table since its slot was made, in the order of their commits.

    Reads ahead on a connection of its own; a lost one is replaced at the same position. The server
    retains the log until a stored checkpoint includes it.

    Invariants: ``_held`` are the changes from ``_from`` to before ``_through`` that were not handed
    out yet, in order; ``_at`` is the position in the log after them. The number of held changes is
    bounded, but for the requested batch, which ends at ``_wanted``. The slot advances only to
    positions that are in ``ripple_slots`` before, and of a checkpoint.
    """

    def __init__(
        self,
        place: PostgresUri,
        values: Values,
        *,
        name: str,
        batch_rows: int,
        follow: bool = False,
        keeps: bool = True,
    ) -> None:
        """Take the table; nothing is asked yet.

        keeps: whether checkpoints let the slot advance; a reader without is alone, and waits for
        an unavailable server by itself.
        """
        self._delays_s = MOMENT_S if keeps else DELAYS_S
        self._place, self._values = place, values
        self._slots = Slots(place, values.shape)
        self._name, self._batch_rows = name, batch_rows
        self._follow, self._keeps = follow, keeps
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._from = self._through = self._wanted = 0
        self._at = Position(0)
        self._server = self._told = ""
        self._mark = Mark(self._at)  # after the last change
        self._known: dict[int, Mark] = {}  # the last changes before cuts
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
        """Return the first cut that can be read from; the end is not counted."""
        return {self._name: (await self._look()).first}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the slot is the same, and still has the next changes."""
        offset = cut[self._name]
        slot = await self._look(was_read=offset > 0)
        self._check_first(slot, offset)
        known = self._identity(identities)
        try:
            if known is None:
                await self._count(slot, offset)
                return
            self._check_same(slot, offset, known)
            await self._check_last(slot, known.mark)
        except (psycopg.Error, OSError) as error:
            raise told(self._place, error) from error
        self._known[offset], self._server, self._told = known.mark, known.server, known.told

    def _check_same(self, slot: Slot, offset: int, known: _Identity) -> None:
        """Raise InputError for differences that need no reading."""
        if known[:2] != (slot.server, self._slots.name):
            raise InputError(
                f"{self._place}: it was read up to {offset} from the slot {known.slot!r} of the "
                f"server {known.server}, and this is {self._slots.name!r} of {slot.server}"
            )
        if known.told and known.told != slot.told:
            raise InputError(
                f"{self._place}: the table was recreated, or its publication "
                f"{self._slots.publication!r} was changed, since it was read up to "
                f"{offset}, so changes may be missing. {ANEW}"
            )
        at = known.mark.at
        # An unread slot stays where it was made, and one that is read goes along with the log.
        is_before = at < slot.at and (offset > slot.first or not slot.is_known)
        if at.lsn > slot.end or is_before:
            raise InputError(
                f"{self._place}: it was read up to {offset}, at {at}, and the server has "
                f"{slot.at} to {lsn_text(slot.end)}: it has lost what it had, or the slot is "
                f"another one. {ANEW}"
            )

    async def _check_last(self, slot: Slot, mark: Mark) -> None:
        """Raise InputError unless the last transaction that was read is unchanged.

        The server sends it once more, unless the slot has advanced past it with the log; or if
        another client reads, which then checks.
        """
        if not mark.at.within or mark.at < slot.at:
            return
        try:
            stream = await Stream.begin(self._slots, mark.at.lsn, slot.at.lsn)
        except psycopg.errors.ObjectInUse:
            return
        changes = self._changes(slot, mark)
        try:
            while changes.is_awaiting:
                said = stream.read()
                if said is None:
                    stream.tell(asks=True)
                    await stream.wait(ASK_S)
                elif isinstance(said, Alive):
                    changes.passed(said.lsn)
                else:
                    changes.take(said)
        finally:
            await stream.close()

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the server, the slot, what it tells, and the last change before the cut."""
        mark = self._known.get(cut[self._name])
        known = _Identity(self._server, self._slots.name, mark, self._told) if mark else ""
        return {self._name: str(known)}

    def _identity(self, identities: Mapping[str, str]) -> _Identity | None:
        text = identities.get(self._name, "")
        return _Identity.parse(text) if text else None

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._reading.stop()
        self._batch_rows = rows
        self._stop = None if stop is None else stop[self._name]
        self._held.clear()
        self._held_bytes = 0
        self._is_caught_up = self._is_dry = False
        self._end = None
        slot = await self._look(was_read=cut[self._name] > 0)
        self._from = self._wanted = cut[self._name]
        self._check_first(slot, self._from)
        self._through, self._mark = slot.first, Mark(slot.at)
        known = self._known.get(self._from)
        if known is not None and (self._from > slot.first or known.at >= slot.at):
            self._through, self._mark = self._from, known
        if self._through == self._from:
            self._known[self._from] = known or self._mark
        self._at = self._mark.at
        if self._told and (self._server, self._told) != (slot.server, slot.told):
            raise self._changed()
        self._server, self._told, self._end_lsn = slot.server, slot.told, slot.end
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
        """Return the end of reading, None if there is none or it is not known yet."""
        return self._end if self._stop is None else self._stop

    def _batch(self, end: int) -> Batch:
        offsets: list[int] = []
        values: list[bytes] = []
        refused: list[Rejected] = []
        while self._held and self._held[0].offset < end:
            one = self._held.popleft()
            self._held_bytes -= one.length_bytes
            self._known[end] = one.mark
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
        """Do nothing: the server retains changes until a checkpoint is stored."""

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let the slot advance with checkpoints; see KeepingInputs."""
        self._stored = []
        for cut, identities in checkpoints:
            known = self._identity(identities)
            if known is not None and known[:2] == (self._server, self._slots.name):
                self._stored.append((cut[self._name], known.mark.at))
        self._reading.took()
        if self._stream is not None:
            self._stream.stir()

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await self._reading.stop()

    async def _look(self, *, was_read: bool = False) -> Slot:
        """Return the slot; a server that restarts is asked again. Raises InputError."""
        delays = iter(MOMENT_S)
        while True:
            try:
                return await self._slots.look(was_read=was_read)
            except (psycopg.Error, OSError) as error:
                delay_s = next(delays, None) if _is_away(error) else None
                if delay_s is None:
                    raise told(self._place, error) from error
                await asyncio.sleep(delay_s)

    def _check_first(self, slot: Slot, offset: int) -> None:
        if offset < slot.first:
            raise InputError(
                f"{self._place}: the slot {self._slots.name!r} begins at {slot.first}, and "
                f"{offset} is needed: the changes between were released"
            )

    async def _count(self, slot: Slot, offset: int) -> None:
        """Raise InputError unless there are so many changes; another reader checks by itself."""
        try:
            stream = await Stream.begin(self._slots, slot.at.lsn, slot.at.lsn)
        except psycopg.errors.ObjectInUse:
            return
        changes, through = self._changes(slot, Mark(slot.at)), slot.first
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

    def _changes(self, slot: Slot, begin: Mark) -> Changes:
        return Changes(str(self._place), self._values.shape, slot.table, begin)

    def _changed(self) -> InputError:
        return InputError(
            f"{self._place}: the table was recreated, or its publication "
            f"{self._slots.publication!r} was changed, after {self._mark.at} in its "
            f"log, so changes may be missing. {ANEW}"
        )

    def _ends(self, end: int, offset: int) -> InputError:
        return InputError(f"{self._place} ends at {end}, and it was read up to {offset}")

    async def _read_on(self, slot: Slot) -> None:
        """Read ahead, for ever; a server that is away is asked again, not for long."""
        delays, is_first = iter(self._delays_s), True
        while True:
            before = self._at
            try:
                if not is_first:
                    slot = await self._look_again()
                is_first = False
                await self._read(slot)
                return
            except (psycopg.Error, OSError, InputError) as error:
                if self._at > before:
                    delays = iter(self._delays_s)
                delay_s = next(delays, None) if _is_away(error) else None
                if delay_s is None:
                    raise
                await asyncio.sleep(delay_s)

    async def _look_again(self) -> Slot:
        """Return the slot. Raises InputError where another one, or another table, is told of."""
        slot = await self._slots.look(was_read=True)
        if (slot.server, slot.told) != (self._server, self._told):
            raise self._changed()
        return slot

    async def _read(self, slot: Slot) -> None:
        """Read until enough is held. Raises the reader's errors, and InputError."""
        if self._mark.at < slot.at and self._through != slot.first:
            raise InputError(
                f"{self._place}: the slot {self._slots.name!r} has advanced to {slot.at} while it "
                f"was read, at {self._mark.at}: another client has read from it"
            )
        begin = self._mark if self._mark.at >= slot.at else Mark(slot.at)
        stream = self._stream = await Stream.begin(self._slots, begin.at.lsn, slot.at.lsn)
        changes = self._changes(slot, begin)
        loop = asyncio.get_running_loop()
        looked_s = loop.time()
        try:
            while True:
                if changes.is_told_of or loop.time() - looked_s > LOOK_S:
                    await self._look_again()
                    changes.is_told_of, looked_s = False, loop.time()
                if stream.asked > ASKED_MAX:
                    await self._slots.ping()  # a server that shuts down accepts no connection
                    stream.asked = 0
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
        """Take some of the available messages; return whether there may be more."""
        self._is_dry = False
        said: bytes | Alive | None = None
        for _ in range(AT_ONCE):
            said = stream.read()
            if said is None:
                break
            if isinstance(said, Alive):
                changes.passed(said.lsn)
            elif (found := changes.take(said)) is not None:
                self._hold(found, changes.mark)
            self._at, self._mark = changes.at, changes.mark
            if not self._is_caught_up and self._at.lsn >= self._end_lsn and not self._at.within:
                self._catch_up()
            if self._end is not None or changes.is_told_of:
                break
        self._is_dry = self._is_caught_up and said is None
        self._reading.wake()
        return said is not None

    def _hold(self, found: bytes | Refused, mark: Mark) -> None:
        offset = self._through
        self._through += 1
        if offset < self._from:
            return
        value: bytes | Rejected
        if isinstance(found, Refused):
            value, length_bytes = Rejected(offset, None, *found), len(found.raw)
        else:
            value, length_bytes = found, len(found)
        self._held.append(_Held(offset, mark, value, length_bytes))
        self._held_bytes += length_bytes

    def _catch_up(self) -> None:
        """Note that all has come that was there when it was opened. Raises InputError."""
        if self._through < self._from:
            raise self._ends(self._through, self._from)
        self._is_caught_up = True
        if not self._follow and self._stop is None:
            self._end = self._through

    async def _rest(self, stream: Stream) -> None:
        """Read nothing until more is wanted, and keep the connection alive."""
        try:
            async with asyncio.timeout(REST_S):
                await self._reading.room()
        except TimeoutError:
            await self._slots.ping()  # what the server asks is not read meanwhile
        stream.tell()
        stream.heard()

    async def _advance(self, stream: Stream) -> None:
        """Let the server release the log that no checkpoint needs any more; raises psycopg.Error.

        That is the log before the oldest checkpoint that counts, unless it is too long for that.
        If nothing has come since, the slot advances with the log.
        """
        if not (self._keeps and self._stored):
            return
        offset, at = self._stored[-1]
        if stream.seen_lsn - at.lsn > SPARE_BYTES:
            offset, at = self._stored[0]
        if offset == self._through and self._at.lsn - at.lsn >= SEGMENT_BYTES:
            at = max(at, self._at)
        was_offset, was_at = self._let_go
        if at <= was_at or (offset == was_offset and at.lsn - was_at.lsn < SEGMENT_BYTES):
            return
        await self._look_again()
        await self._slots.know(offset, at)
        self._let_go = (offset, at)
        stream.needed_lsn = at.lsn
        stream.tell()


def _is_away(error: Exception) -> bool:
    """Whether a server may be back soon, or the slot's other reader may leave it."""
    return isinstance(
        error, psycopg.OperationalError | psycopg.InterfaceError | OSError
    ) and not is_denied(error)
