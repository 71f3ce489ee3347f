"""A table's changes as the input of a task: offset n is the change that came after n others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.buffered_input import BufferedInput
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.postgres.changes import Changes, Refused
from ripple.connectors.postgres.position import Mark, Position, lsn_text
from ripple.connectors.postgres.slot import Slot, Slots, error_of, is_denied
from ripple.connectors.postgres.stream import Alive, Stream
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.batch import Rejected
from ripple.world.pauses import DELAYS_S

with needed("postgres", "a table of PostgreSQL"):
    import psycopg

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.connector import Reading
    from ripple.connectors.postgres.uri import PostgresUri
    from ripple.core.cut import Cut

# So many messages are taken before others have their turn.
AT_ONCE = 500
ASK_S = 0.02
REST_S = 5.0
# Nothing is told of a table that is gone, or is not published any more: that is looked for.
LOOK_S = 30.0
LAST_WORDS_S = 2.0
# What the log may keep so that the oldest checkpoint can be gone on from, and not the newest alone.
SPARE_BYTES = 256 << 20
SEGMENT_BYTES = 16 << 20
# A server that shuts down asks again and again until all that it has sent is not needed any more.
ASKED_MAX = 10
ANEW = "Make a new slot, and name another --checkpoint-dir and other outputs, to start over"


class _Identity(NamedTuple):
    """The identity of the changes before a cut: server, slot, publication, and the last change.

    published: as of a slot; "" of runs that did not note it.
    """

    server: str
    slot: str
    mark: Mark
    published: str = ""

    def __str__(self) -> str:
        at, committed_ns, xid = self.mark
        return f"{self.server} {self.slot} {at} {self.published or '-'} {committed_ns} {xid}"

    @classmethod
    def parse(cls, text: str) -> _Identity:
        server, slot, at, *more = text.split(" ")
        if not more:
            return cls(server, slot, Mark(Position.parse(at)))
        published, committed_ns, xid = more
        mark = Mark(Position.parse(at), int(committed_ns), int(xid))
        return cls(server, slot, mark, published.strip("-"))


class PostgresInputs(BufferedInput[Mark]):
    """All changes of one table since its slot was made, in the order of their commits.

    Reads on a connection of its own; a lost one is replaced at the same position. The server
    retains the log until a stored checkpoint includes it.

    Invariants: changes before ``_from`` are counted, not held; ``_at`` is the position in the log
    after the changes read. ``end`` is known while no change is waiting. The slot advances only to
    positions that are in ``ripple_slots`` before, and of a checkpoint.
    """

    moments = 4  # the slot's other reader may take one more

    def __init__(self, place: PostgresUri, reading: Reading) -> None:
        """Take the table; nothing is asked yet. Without checkpoints the slot stays where it is."""
        super().__init__(JsonValues(reading.shape), reading)
        self._place = place
        self._slots = Slots(place, reading.shape)
        self._keeps = not reading.one_shot
        self._from = 0
        self._at = Position(0)
        self._server = self._published = ""
        self._mark = Mark(self._at)  # after the last change
        self._slot: Slot | None = None  # as it was found, until it is read
        self._end_lsn = 0
        self._is_caught_up = False
        self._stream: Stream | None = None
        self._stored: list[tuple[int, Position]] = []  # the newest first
        self._let_go = (0, Position(0))

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from; the end is not counted."""
        return {self.name: (await self._look()).first}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the slot is the same, and still has the next changes."""
        offset = cut[self.name]
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
            raise error_of(self._place, error) from error
        self.marks[offset], self._server, self._published = (
            known.mark,
            known.server,
            known.published,
        )

    def _check_same(self, slot: Slot, offset: int, known: _Identity) -> None:
        """Raise InputError for differences that need no reading."""
        if known[:2] != (slot.server, self._slots.name):
            raise InputError(
                f"{self._place}: it was read up to {offset} from the slot {known.slot!r} of the "
                f"server {known.server}, and this is {self._slots.name!r} of {slot.server}"
            )
        if known.published and known.published != slot.published:
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
                    stream.send_status(asks=True)
                    await stream.wait(ASK_S)
                elif isinstance(said, Alive):
                    changes.passed(said.lsn)
                else:
                    changes.take(said)
        finally:
            await stream.close()

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the server, the slot, its answer, and the last change before the cut."""
        mark = self.marks.get(cut[self.name])
        known = _Identity(self._server, self._slots.name, mark, self._published) if mark else ""
        return {self.name: str(known)}

    def _identity(self, identities: Mapping[str, str]) -> _Identity | None:
        text = identities.get(self.name, "")
        return _Identity.parse(text) if text else None

    async def begin(self, offset: int) -> None:
        """Find the slot, and in it the last position that is known before ``offset``."""
        self._is_caught_up = False
        slot = await self._look(was_read=offset > 0)
        self._slot, self._from = slot, offset
        self._check_first(slot, self._from)
        self.through, self._mark = slot.first, Mark(slot.at)
        known = self.marks.get(self._from)
        if known is not None and (self._from > slot.first or known.at >= slot.at):
            self.through, self._mark = self._from, known
        if self.through == self._from:
            self.marks[self._from] = known or self._mark
        self._at = self._mark.at
        if self._published and (self._server, self._published) != (slot.server, slot.published):
            raise self._changed()
        self._server, self._published, self._end_lsn = slot.server, slot.published, slot.end
        self._let_go = (slot.first, slot.at)
        if self._keeps:
            try:
                await self._slots.prepare()
            except psycopg.Error as error:
                raise error_of(self._place, error) from error

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let the slot advance with checkpoints; see KeepingInputs."""
        self._stored = []
        for cut, identities in checkpoints:
            known = self._identity(identities)
            if known is not None and known[:2] == (self._server, self._slots.name):
                self._stored.append((cut[self.name], known.mark.at))
        self.reading.took()
        if self._stream is not None:
            self._stream.stir()

    async def _look(self, *, was_read: bool = False) -> Slot:
        """Return the slot; a server that restarts is asked again. Raises InputError."""
        delays = iter(DELAYS_S[: self.moments])
        while True:
            try:
                return await self._slots.look(was_read=was_read)
            except (psycopg.Error, OSError) as error:
                delay_s = next(delays, None) if self.is_away(error) else None
                if delay_s is None:
                    raise error_of(self._place, error) from error
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
                    stream.send_status(asks=True)
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

    async def error_of(self, error: Exception) -> Exception:
        """Return an error of the client in one line."""
        return (
            error_of(self._place, error) if isinstance(error, (psycopg.Error, OSError)) else error
        )

    def is_away(self, error: Exception) -> bool:
        """Tell whether a server may be back soon, or the slot's other reader may leave it."""
        return isinstance(
            error, psycopg.OperationalError | psycopg.InterfaceError | OSError
        ) and not is_denied(error)

    async def read(self) -> None:
        """Read over one connection; the slot was looked at when the first one began."""
        slot, self._slot = self._slot, None
        await self._read(slot or await self._look_again())

    async def _look_again(self) -> Slot:
        """Return the slot. Raises InputError where another one, or another table, is told of."""
        slot = await self._slots.look(was_read=True)
        if (slot.server, slot.published) != (self._server, self._published):
            raise self._changed()
        return slot

    async def _read(self, slot: Slot) -> None:
        """Read until enough is held. Raises the reader's errors, and InputError."""
        if self._mark.at < slot.at and self.through != slot.first:
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
                if changes.has_relation or loop.time() - looked_s > LOOK_S:
                    await self._look_again()
                    changes.has_relation, looked_s = False, loop.time()
                if stream.asked > ASKED_MAX:
                    await self._slots.ping()  # a server that shuts down accepts no connection
                    stream.asked = 0
                await self._advance(stream)
                if self.is_full:
                    await self._rest(stream)
                elif self._take(stream, changes):
                    await asyncio.sleep(0)
                else:
                    if not self._is_caught_up:
                        stream.send_status(asks=True)
                    await stream.wait(REST_S if self._is_caught_up else ASK_S)
        finally:
            self._stream = None
            with suppress(psycopg.Error, OSError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await self._advance(stream)
            await stream.close()

    def _take(self, stream: Stream, changes: Changes) -> bool:
        """Take some of the available messages; return whether there may be more."""
        self.end = None
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
            if self.end is not None or changes.has_relation:
                break
        if self._is_caught_up and said is None:
            self.end = self.through
        self.reading.wake()
        return said is not None

    def _hold(self, found: bytes | Refused, mark: Mark) -> None:
        offset = self.through
        if offset < self._from:
            self.through += 1
        elif isinstance(found, Refused):
            self.hold(offset, Rejected(offset, None, *found), mark)
        else:
            self.hold(offset, found, mark)

    def _catch_up(self) -> None:
        """Note that all has come that was there when it was opened. Raises InputError."""
        if self.through < self._from:
            raise self._ends(self.through, self._from)
        self._is_caught_up = True
        if not self.follow and self.stop is None:
            self.end = self.through

    async def _rest(self, stream: Stream) -> None:
        """Read nothing until more is wanted, and keep the connection alive."""
        try:
            async with asyncio.timeout(REST_S):
                await self.reading.room()
        except TimeoutError:
            await self._slots.ping()  # what the server asks is not read meanwhile
        stream.send_status()
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
        if offset == self.through and self._at.lsn - at.lsn >= SEGMENT_BYTES:
            at = max(at, self._at)
        was_offset, was_at = self._let_go
        if at <= was_at or (offset == was_offset and at.lsn - was_at.lsn < SEGMENT_BYTES):
            return
        await self._look_again()
        await self._slots.know(offset, at)
        self._let_go = (offset, at)
        stream.needed_lsn = at.lsn
        stream.send_status()
