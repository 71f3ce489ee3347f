"""Live outputs for the page: an output has one subscription, shared by its viewers."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.client.dashboard.contract import AskedError
from ripple.client.dashboard.tables import (
    columns_of,
    filtered,
    for_browser,
    of_key,
    texts,
    whole_texts,
    window,
)
from ripple.client.outputs import Observer
from ripple.client.sql.isolated import query_apart
from ripple.core.errors import InputError, LimitError, RippleError
from ripple.core.row_ops import with_named_ops
from ripple.engine.changes.layout import CLEARED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ripple.client.dashboard.contract import Values
    from ripple.client.outputs import Change, Endpoints, OutputSubscription
    from ripple.world.ports import Clock, World
    from ripple.world.tls import Tls

# Without a request for so long, a viewer is gone.
LOOKS_S = 20.0
# The publisher merges changes between two requests: each changed row comes once, in one batch a
# partition, whatever the number of commits. A page asks as often.
TAKEN_EVERY_S = 0.5
# Versions of a large table are made less often: at most this share of the time is spent on them.
SHARE_MAX = 0.005
EVERY_MAX_S = 5.0
FOUND_S = 3.0
# A viewer with the current version is answered at the next one, or after so long.
WAITS_S = 5.0
ROWS = 60
TAP_ROWS = 200
TAP_ROWS_KEPT = 5_000
WINDOWS_KEPT = 64
STREAM_BYTES_MAX = 32 << 20
SQL_CHARACTERS_MAX = 20_000
SQL_ROWS_MAX = 1_000
# At once: each is a process that uses a core.
QUESTIONS_MAX = 2


class Outputs:
    """Subscriptions to a cluster's outputs."""

    def __init__(
        self, world: World, find: Callable[[], Awaitable[Endpoints]], *, tls: Tls | None = None
    ) -> None:
        """Create it without subscriptions."""
        self._world = world
        self._find = find
        self._tls = tls
        self._observer: Observer | None = None
        self._followed: dict[str, _Followed] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()
        self._questions = 0
        self._looked_ns = 0

    async def names(self) -> Values:
        """Return the names of the outputs."""
        known = await (await self._open()).known(FOUND_S)
        found = [{"name": name, "stage": edge.stage} for name, edge in known.items()]
        return {"outputs": sorted(found, key=lambda one: (one["stage"], one["name"]))}

    async def table(self, asked: Mapping[str, str]) -> Values:
        """Return the visible rows: ``output``, ``by``, ``down``, ``q``, ``first``.

        after: the version that the viewer has.
        """
        one = await self._follow(asked)
        await one.newer(asked.get("after", ""))
        return one.window(
            by=asked.get("by", ""),
            is_down=asked.get("down", "") == "1",
            words=asked.get("q", ""),
            first=_number(asked, "first", 0),
            rows=_number(asked, "rows", ROWS),
        )

    async def tap(self, asked: Mapping[str, str]) -> Values:
        """Return the newest changes of an output that match a filter, newest first."""
        one = await self._follow(asked)
        await one.newer(asked.get("after", ""))
        return one.tap(asked.get("q", ""))

    async def row(self, asked: Mapping[str, str]) -> Values:
        """Return the row of a key, and its newest changes: ``output``, ``key``, ``after``.

        key: the texts of its fields, null for none, as an array of JSON.
        """
        one = await self._follow(asked)
        await one.newer(asked.get("after", ""))
        return one.row(_key(asked))

    async def stream(self, asked: Mapping[str, str]) -> tuple[str, bytes]:
        """Return all rows of ``output`` as an Arrow stream, and their version."""
        return (await self._follow(asked)).stream()

    async def query(self, sql: str) -> Values:
        """Return the result of a SQL statement over outputs, with their cuts."""
        if len(sql) > SQL_CHARACTERS_MAX:
            raise AskedError(f"a statement has at most {SQL_CHARACTERS_MAX} characters")
        found = []

        async def fetch(names: list[str]) -> dict[str, pa.Table]:
            found.extend([await self._follow({"output": name}) for name in names])
            return {one.name: one.table for one in found}

        if self._questions >= QUESTIONS_MAX:
            raise AskedError(f"{QUESTIONS_MAX} queries are running: try again")
        self._questions += 1
        try:
            known = await (await self._open()).known(FOUND_S)
            rows = await query_apart(sql, known, fetch, rows_max=SQL_ROWS_MAX)
        except (InputError, LimitError, TimeoutError) as error:
            raise AskedError(str(error)) from error
        finally:
            self._questions -= 1
        return {
            "columns": columns_of(rows.schema, ()),
            "rows": texts(rows.slice(0, SQL_ROWS_MAX)),
            "is_cut": rows.num_rows > SQL_ROWS_MAX,
            "cuts": [{"output": one.name} | cut for one in found for cut in one.cuts],
            "missing": [f"{one.name}/{number}" for one in found for number in one.missing],
        }

    async def close(self) -> None:
        """End all subscriptions."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for one in self._followed.values():
            one.close()
        self._followed.clear()
        if self._observer is not None:
            observer, self._observer = self._observer, None
            await observer.__aexit__()

    async def _open(self) -> Observer:
        self._looked_ns = self._world.clock.monotonic_ns()
        async with self._opening:
            if self._observer is None:
                observer = Observer(self._world, self._find, tls=self._tls, is_composed=True)
                self._observer = await observer.__aenter__()
                self._sweeping = asyncio.ensure_future(self._sweep())
            return self._observer

    async def _follow(self, asked: Mapping[str, str]) -> _Followed:
        name = asked.get("output", "")
        observer = await self._open()
        if name not in self._followed:
            try:
                seen = await observer.follow(name, FOUND_S)
            except RippleError as error:
                raise AskedError(str(error)) from error
            self._followed[name] = _Followed(seen, self._world.clock)
        one = self._followed[name]
        one.looked_ns = self._looked_ns
        await one.ready()
        return one

    async def _sweep(self) -> None:
        """End subscriptions without viewers, and in the end the connections."""
        while True:
            await self._world.clock.sleep(LOOKS_S / 4)
            old_ns = self._world.clock.monotonic_ns() - round(LOOKS_S * 1e9)
            for name, one in list(self._followed.items()):
                if one.looked_ns < old_ns and self._observer is not None:
                    del self._followed[name]
                    one.close()
                    self._observer.leave(name)
            if not self._followed and self._looked_ns < old_ns and self._observer is not None:
                observer, self._observer = self._observer, None
                await observer.__aexit__()
                return


class _Followed:
    """One output with viewers."""

    def __init__(self, seen: OutputSubscription, clock: Clock) -> None:
        self.looked_ns = 0
        self._clock = clock
        self._seen = seen
        self._version = 0
        self._turned = asyncio.Event()
        self._busy_ns = 0
        self._changed = 0
        self._tapped: deque[tuple[int, Change]] = deque()  # when they came, in milliseconds
        self._tapped_rows = 0
        self._windows: dict[tuple[object, ...], Values] = {}
        self._stream: tuple[str, bytes] = ("", b"")
        self._taking = asyncio.ensure_future(self._take())

    @property
    def name(self) -> str:
        """The output's schema."""
        return self._seen.name

    @property
    def table(self) -> pa.Table:
        """The current rows."""
        return self._seen.shown().table

    @property
    def missing(self) -> list[int]:
        """The partitions without rows so far."""
        return list(self._seen.missing)

    @property
    def cuts(self) -> list[Values]:
        """The position of each partition; of events, also the cut after which no row is missing."""
        shown = self._seen.shown()
        return [
            {
                "partition": number,
                "epoch": str(one.epoch),
                "cut": {name: str(offset) for name, offset in one.cut.items()},
                "watermark_ns": str(one.watermark_ns),
                "begins": {name: str(at) for name, at in shown.begins.get(number, {}).items()},
            }
            for number, one in shown.cuts.items()
        ]

    def stream(self) -> tuple[str, bytes]:
        """Return all rows as an Arrow stream, shared by its requests."""
        version = f'"{id(self)}-{self._version}"'
        if self._stream[0] != version:
            table = self.table
            if table.nbytes > STREAM_BYTES_MAX:
                raise AskedError(
                    f"{self.name} has {table.nbytes:,} bytes, more than the {STREAM_BYTES_MAX:,} "
                    "that a browser can load: use SQL"
                )
            sink = pa.BufferOutputStream()
            plain = for_browser(table)
            with pa.ipc.new_stream(sink, plain.schema) as writer:
                writer.write_table(plain)
            self._stream = version, sink.getvalue().to_pybytes()
        return self._stream

    async def ready(self) -> None:
        """Wait a little for the first rows."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FOUND_S):
                while self._seen.missing and not self._taking.done():
                    await asyncio.sleep(0.05)

    async def newer(self, version: str) -> None:
        """Wait a little for a version after this one."""
        if version == str(self._version):
            with suppress(TimeoutError):
                async with asyncio.timeout(WAITS_S):
                    await self._turned.wait()

    def close(self) -> None:
        """End the subscription."""
        self._taking.cancel()
        self._turned.set()

    async def _take(self) -> None:
        while True:
            await self._seen.arrived()
            before_ns = self._clock.monotonic_ns()
            if not (changes := self._seen.take()):
                continue
            self._version += 1
            self._windows.clear()
            for change in changes:
                if change.since is not None:  # a whole table is not a change
                    self._changed += change.rows.num_rows
                    self._tapped.append((self._clock.now_ns() // 1_000_000, change))
                    self._tapped_rows += change.rows.num_rows
            while self._tapped_rows > TAP_ROWS_KEPT and len(self._tapped) > 1:
                self._tapped_rows -= self._tapped.popleft()[1].rows.num_rows
            self._turned.set()
            self._turned = asyncio.Event()
            self._busy_ns += self._clock.monotonic_ns() - before_ns
            if not self._seen.missing:
                paid_s, self._busy_ns = self._busy_ns / 1e9 / SHARE_MAX, 0
                await self._clock.sleep(min(max(paid_s, TAKEN_EVERY_S), EVERY_MAX_S))

    def window(self, *, by: str, is_down: bool, words: str, first: int, rows: int) -> Values:
        """Return some rows, computed once for equal requests."""
        wanted = (by, is_down, words, first, rows)
        found = self._windows.get(wanted)
        if found is None:
            if len(self._windows) >= WINDOWS_KEPT:
                self._windows.clear()
            before_ns = self._clock.monotonic_ns()
            shown, layout = self._seen.shown(), self._seen.layout
            keys = () if layout is None else layout.keys
            if shown.begins and not by:  # of events the newest ones first
                by, is_down = keys[1], True
            found = window(
                shown.table, keys, by=by, is_down=is_down, words=words, first=first, rows=rows
            )
            found |= {
                "output": self._seen.name,
                "version": self._version,
                "changed": self._changed,
                "missing": list(shown.missing),
                "partitions": self._seen.partitions,
                "cuts": self.cuts,
            }
            self._windows[wanted] = found
            self._busy_ns += self._clock.monotonic_ns() - before_ns
        return found

    @property
    def _keys(self) -> Sequence[str]:
        return () if self._seen.layout is None else self._seen.layout.keys

    def row(self, key: Sequence[str | None]) -> Values:
        """Return the row of a key, None if there is none, and its changes, newest first.

        Raises AskedError for a shortened key of several rows.
        """
        keys, table = self._keys, self.table
        if len(key) != len(keys):
            raise AskedError(f"a key of {self.name} has {', '.join(keys) or 'no fields'}")
        found = of_key(table, keys, key)
        if found.num_rows > 1:
            raise AskedError(
                f"{found.num_rows} rows of {self.name} have keys that begin so: find it by Query"
            )
        if found.num_rows:
            (key,) = whole_texts(found.select(keys)) if keys else ((),)
        _, changes = self._changes(lambda one: of_key(one, keys, key))
        rows = texts(found)
        return {
            "output": self.name,
            "version": self._version,
            "columns": columns_of(table.schema, keys),
            "row": rows[0] if rows else None,
            "changes": changes,
        }

    def _changes(self, pick: Callable[[pa.Table], pa.Table]) -> tuple[list[Values], list[Values]]:
        """Return the columns, and the newest changes that are picked, newest first."""
        found: list[Values] = []
        columns: list[Values] = []
        for time_ms, change in reversed(self._tapped):
            named = with_named_ops(change.rows)
            names = [name for name in named.schema.names if not name.startswith(CLEARED)]
            table = pick(pa.Table.from_batches([named.select(names)]))
            columns = columns_of(table.schema, self._keys)[1:]
            cut = ", ".join(f"{name} {offset}" for name, offset in change.position.cut.items())
            about = {"time_ms": time_ms, "partition": change.partition, "cut": cut}
            found += [about | {"op": op, "row": row} for op, *row in texts(table)]
            if len(found) >= TAP_ROWS:
                break
        return columns, found[:TAP_ROWS]

    def tap(self, words: str) -> Values:
        """Return the newest changes, one row for a key and turn."""
        columns, changes = self._changes(lambda table: filtered(table, words))
        return {
            "output": self._seen.name,
            "version": self._version,
            "columns": columns,
            "changes": changes,
            "changed": self._changed,
            "kept": self._tapped_rows,
        }


def _key(asked: Mapping[str, str]) -> list[str | None]:
    try:
        key = json.loads(asked.get("key", ""))
    except ValueError:
        key = None
    if not (isinstance(key, list) and all(one is None or isinstance(one, str) for one in key)):
        raise AskedError("key is not an array of texts: choose a row of the table")
    return key


def _number(asked: Mapping[str, str], name: str, default: int) -> int:
    text = asked.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise AskedError(f"{name} is not a number")
    return int(text)
