"""A stream as the input of a task: offset n is the entry that was added after n others."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.formats.contract import read_batch
from ripple.connectors.inputs import Signal
from ripple.connectors.redis.entry import Documents
from ripple.connectors.redis.page import NOTHING, page_of
from ripple.connectors.redis.session import FAILURES, client_of, told
from ripple.core.errors import InputError
from ripple.model.batch import RAW_BYTES_MAX, Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio import Redis

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.redis.page import Entry, Page
    from ripple.connectors.redis.uri import RedisPlace
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch

PAGE = 1000
# A page's limit is of entries, not of bytes: it follows from the sizes of earlier entries.
FIRST_PAGE, PAGE_GROWS, PAGE_BYTES = 16, 4, 8 << 20
LOOK_MS = 500
# Of so many cuts it is known where they are; of others it is counted.
KNOWN_MAX = 1000
# For a moment; half a minute in all if no task retries, as a server restarts.
MOMENT_S = (0.1, 0.3, 1.0)
DELAYS_S = (*MOMENT_S, 2.0, 4.0, 8.0, 15.0)
ANEW = "Name another --checkpoint-dir and other outputs to start over with the present data"


class _At(NamedTuple):
    """A position in the stream: after ``id``, the position of entry ``offset``."""

    offset: int
    id: bytes


class RedisInputs:
    """All entries of one stream, in its order.

    A page is asked for when a life waits for it, so no more is held than a batch and a page. Each
    page shows that it goes on where the one before ended: the entry that was read last is there
    still, or went as the first of the stream.

    Invariants: ``_entries`` are those from where the life is up to ``_at``, in order; ``_end`` is
    the end as it was last seen.
    """

    def __init__(
        self,
        place: RedisPlace,
        values: Values,
        *,
        name: str,
        batch_rows: int,
        follow: bool = False,
        is_alone: bool = False,
    ) -> None:
        """Take the stream; nothing is asked yet. is_alone: it waits for the server by itself."""
        self._delays_s = DELAYS_S if is_alone else MOMENT_S
        self._page_entries, self._largest_bytes = FIRST_PAGE, 1
        self._place, self._values = place, values
        self._documents = Documents(values.shape)
        self._name, self._batch_rows, self._follow = name, batch_rows, follow
        self._client: Redis | None = None
        self._entries: deque[tuple[int, Entry]] = deque()
        self._at = _At(0, NOTHING)
        self._known: dict[int, bytes] = {}  # the last ids before cuts
        self._end = 0
        self._stop: int | None = None
        self._woken = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None
        self._failure: InputError | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end. Raises InputError."""
        page = await self._page(NOTHING, 1)
        return {self._name: page.first}, {self._name: page.end}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the stream is the same, and still has the next entries."""
        offset, known = cut[self._name], identities.get(self._name, "").encode()
        page = await self._page(known or NOTHING, 1)
        self._check(page, _At(offset, known or NOTHING))
        if known:
            self._known[offset] = known

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the id of the entry before the cut."""
        return {self._name: self._known.get(cut[self._name], b"").decode()}

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._stop_asking()
        self._batch_rows = rows
        self._stop = None if stop is None else stop[self._name]
        self._entries.clear()
        self._failure = None
        offset = cut[self._name]
        self._at = _At(offset, self._known.get(offset, NOTHING))
        page = await self._page(self._at.id, 1)
        self._check(page, self._at)
        self._end = page.end
        if self._at.id == NOTHING and offset > page.first:
            await self._skip(page.first, offset)

    async def _skip(self, first: int, offset: int) -> None:
        """Count up to an offset: only its entries tell where it is."""
        self._at = _At(first, NOTHING)
        while self._at.offset < offset:
            count = min(self._page_entries, offset - self._at.offset)
            page = await self._page(self._at.id, count)
            self._check(page, self._at)
            self._size(page)
            if not page.entries:
                raise InputError(f"{self._place} ends at {page.end}, and {offset} is asked for")
            self._at = _At(self._at.offset + len(page.entries), page.entries[-1].id)

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch; see Inputs."""
        at, last = cut[self._name], self._last()
        if last is not None and at >= last:
            return Signal.ENDED
        end = (at // self._batch_rows + 1) * self._batch_rows
        if last is not None:
            end = min(end, last)
        has_more = self._at.offset < self._end and self._failure is None
        if self._at.offset < end and (has_more or self._at.offset <= at):
            if self._failure is not None:
                raise self._failure
            return Signal.WAITING
        return self._name, self._batch(min(end, self._at.offset))

    def _last(self) -> int | None:
        """Return where reading ends, None if it does not."""
        if self._stop is not None:
            return self._stop
        return None if self._follow else self._end

    def _batch(self, end: int) -> Batch:
        offsets, values, refused = [], [], []
        while self._entries and self._entries[0][0] < end:
            offset, entry = self._entries.popleft()
            self._known[end] = entry.id
            try:
                value = self._documents.of(entry.fields)
            except InputError as error:
                raw = b" ".join(b"%b %b" % one for one in entry.fields.items())[:RAW_BYTES_MAX]
                refused.append(Rejected(offset, None, str(error), raw))
                continue
            offsets.append(offset)
            values.append(value)
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        return read_batch(offsets, values, refused, end, self._values)

    async def more(self) -> None:
        """Wait until more was read."""
        if self._asking is None and self._failure is None:
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(lambda _: self._woken.set())
        await self._woken.wait()
        self._woken.clear()
        if self._asking is not None and self._asking.done():
            asking, self._asking = self._asking, None
            asking.result()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()

    async def sync(self) -> None:
        """Do nothing: the server keeps what it has as it is set to."""

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await self._stop_asking()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _stop_asking(self) -> None:
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking

    async def _ask(self) -> None:
        """Read a page, or wait a little for one; a server that is away is asked again."""
        for delay_s in (*self._delays_s, None):
            try:
                await self._read()
                return
            except FAILURES as error:
                if delay_s is None:
                    self._failure = told(self._place, error)
                    return
                await asyncio.sleep(delay_s)
            except InputError as error:
                self._failure = error
                return

    async def _read(self) -> None:
        page = await self._page(self._at.id, self._page_entries)
        self._check(page, self._at)
        self._size(page)
        first = self._at.offset
        self._entries.extend(enumerate(page.entries, first))
        if page.entries:
            self._at = _At(first + len(page.entries), page.entries[-1].id)
        if self._follow or self._stop is not None:
            self._end = max(self._end, page.end)
        if not page.entries:
            # Only waited for: it is read as a page then.
            await self._connected().xread({self._place.key: self._at.id.decode()}, 1, LOOK_MS)

    def _size(self, page: Page) -> None:
        """Ask for as many entries next as a page may hold, by the largest one so far."""
        lengths = (sum(map(len, one.fields.values())) for one in page.entries)
        self._largest_bytes = max(self._largest_bytes, *lengths, 1)
        most = min(PAGE, PAGE_GROWS * self._page_entries)
        self._page_entries = max(1, min(most, PAGE_BYTES // self._largest_bytes))

    def _check(self, page: Page, at: _At) -> None:
        """Raise InputError unless a page goes on at a place."""
        if at.offset > page.end:
            raise InputError(
                f"{self._place} ends at {page.end}, and it was read up to {at.offset}: its "
                f"records are lost. {ANEW}"
            )
        if at.offset < page.first:
            raise InputError(
                f"{self._place} begins at {page.first}, and it was read up to {at.offset}: "
                f"entries between were trimmed. {ANEW}"
            )
        if at.id != NOTHING and not page.is_named_there and at.offset > page.first:
            raise InputError(
                f"{self._place} has no entry {at.id.decode()}, which was read before {at.offset}: "
                f"it is another stream, or its server has lost entries. {ANEW}"
            )

    async def _page(self, after: bytes, count: int) -> Page:
        try:
            page = await page_of(self._connected(), self._place, after, count)
        except FAILURES as error:
            if self._asking is not None and asyncio.current_task() is self._asking:
                raise
            raise told(self._place, error) from error
        if page is None:
            anew = f" any more: its records are lost. {ANEW}" if after != NOTHING else ""
            raise InputError(f"{self._place}: there is no such stream{anew}")
        return page

    def _connected(self) -> Redis:
        if self._client is None:
            self._client = client_of(self._place)
        return self._client
