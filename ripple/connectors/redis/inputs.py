"""A stream as the input of a task: offset n is the entry that was added after n others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.buffered_input import BufferedInput
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.redis.entry import Documents
from ripple.connectors.redis.page import NOTHING, page_of
from ripple.connectors.redis.session import FAILURES, client_of, error_of
from ripple.core.errors import InputError
from ripple.model.batch import RAW_BYTES_MAX, Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio import Redis

    from ripple.connectors.connector import Reading
    from ripple.connectors.redis.page import Entry, Page
    from ripple.connectors.redis.uri import RedisUri
    from ripple.core.cut import Cut

PAGE = 1000
# A page's limit is of entries, not of bytes: it follows from the sizes of earlier entries.
FIRST_PAGE, PAGE_GROWS, PAGE_BYTES = 16, 4, 8 << 20
LOOK_MS = 500
ANEW = "Name another --checkpoint-dir and other outputs to start over with the present data"


class _At(NamedTuple):
    """A position in the stream: after ``id``, the position of entry ``offset``."""

    offset: int
    id: bytes


class RedisInputs(BufferedInput[bytes]):
    """All entries of one stream, in its order; their marks are their ids.

    Reads a page at a time. Each shows that it goes on where the one before ended: the entry that
    was read last is there still, or went as the first of the stream. ``end`` is the end as it was
    last seen.
    """

    def __init__(self, place: RedisUri, reading: Reading) -> None:
        """Take the stream; nothing is asked yet."""
        super().__init__(JsonValues(reading.shape), reading)
        self._page_entries, self._largest_bytes = FIRST_PAGE, 1
        self._place = place
        self._documents = Documents(reading.shape)
        self._client: Redis | None = None
        self._at = _At(0, NOTHING)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end. Raises InputError."""
        page = await self._page(NOTHING, 1)
        return {self.name: page.first}, {self.name: page.end}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the stream is the same, and still has the next entries."""
        offset, known = cut[self.name], identities.get(self.name, "").encode()
        page = await self._page(known or NOTHING, 1)
        self._check(page, _At(offset, known or NOTHING))
        if known:
            self.marks[offset] = known

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return the id of the entry before the cut."""
        return {self.name: self.marks.get(cut[self.name], b"").decode()}

    async def begin(self, offset: int) -> None:
        """Find the entry before ``offset``."""
        self._at = _At(offset, self.marks.get(offset, NOTHING))
        page = await self._page(self._at.id, 1)
        self._check(page, self._at)
        self.end = page.end
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

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await super().close()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def error_of(self, error: Exception) -> Exception:
        """Return an error of the client in one line."""
        return error_of(self._place, error) if isinstance(error, FAILURES) else error

    def is_away(self, error: Exception) -> bool:
        """Tell whether the server may answer soon."""
        return isinstance(error, FAILURES)

    async def read(self) -> None:
        """Read one page after another; at the end, wait a little for an entry."""
        while True:
            await self.room()
            page = await self._asked(self._at.id, self._page_entries)
            self._check(page, self._at)
            self._size(page)
            for offset, entry in enumerate(page.entries, self._at.offset):
                self._take(offset, entry)
            if self.follow or self.stop is not None:
                self.end = max(self.end or 0, page.end)
            self.wake()
            if not page.entries:
                # Only waited for: it is read as a page then.
                await self._connected().xread({self._place.key: self._at.id.decode()}, 1, LOOK_MS)

    def _take(self, offset: int, entry: Entry) -> None:
        value: bytes | Rejected
        try:
            value = self._documents.of(entry.fields)
        except InputError as error:
            raw = b" ".join(b"%b %b" % one for one in entry.fields.items())[:RAW_BYTES_MAX]
            value = Rejected(offset, None, str(error), raw)
        self.hold(offset, value, entry.id)
        self._at = _At(offset + 1, entry.id)

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
            return await self._asked(after, count)
        except FAILURES as error:
            raise error_of(self._place, error) from error

    async def _asked(self, after: bytes, count: int) -> Page:
        page = await page_of(self._connected(), self._place, after, count)
        if page is None:
            anew = f" any more: its records are lost. {ANEW}" if after != NOTHING else ""
            raise InputError(f"{self._place}: there is no such stream{anew}")
        return page

    def _connected(self) -> Redis:
        if self._client is None:
            self._client = client_of(self._place)
        return self._client
