"""The promises of inputs that a restarted run reads (ripple.connectors.inputs.Inputs)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.inputs import Signal, is_inputs
from ripple.connectors.installed import load
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.task.retrying_inputs import RetryingInputs
from ripple.testing.connectors.outside import Ahead, nothing_left, standing_still
from ripple.testing.connectors.rows import is_bad, ticks
from ripple.testing.connectors.source_rules import (
    AHEAD_BYTES_MAX,
    BATCH_ROWS,
    LONG_BYTES,
    LONG_ROWS,
    ROWS,
    SIZES,
    Read,
    SourceSubject,
    check_ends,
    check_records,
    check_rejected,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut

WITHIN_S = 300.0
SOON_S = 0.05
AT_LEAST = 3  # records after which a batch may span a pause


def opened(subject: SourceSubject, path: str, rows: int, *, follow: bool = False) -> Inputs:
    """Return the inputs at a path, not opened yet."""
    use = subject.connector.continued_source
    assert use is not None
    opens = load(subject.connector.scheme, subject.connector.package, use.opens)
    inputs: Inputs = opens(path, subject.reading(rows, follow=follow))
    assert is_inputs(inputs), f"{type(inputs).__name__} lacks something of Inputs"
    return inputs


@asynccontextmanager
async def reading(
    subject: SourceSubject,
    path: str,
    cut: Cut | None = None,
    *,
    rows: int = BATCH_ROWS,
    stop: Cut | None = None,
    follow: bool = False,
) -> AsyncIterator[tuple[Inputs, dict[str, int]]]:
    """Yield inputs, opened at a cut, by default their first one, and that cut; close them."""
    inputs = opened(subject, path, rows, follow=follow)
    try:
        first, _ = await inputs.bounds()
        at = dict(first if cut is None else cut)
        await inputs.open(at, rows, stop)
        yield inputs, at
    finally:
        await inputs.close()


async def read_on(inputs: Inputs, cut: dict[str, int], records: int | None = None) -> Read:
    """Read to the end, or until so many records have come; ``cut`` goes along."""
    read = Read([], [], [], [])
    while records is None or len(read.rows) + len(read.rejected) < records:
        said = inputs.next(cut)
        if said is Signal.ENDED:
            break
        if said is Signal.WAITING:
            await inputs.more()
            continue
        assert not isinstance(said, Signal)
        name, entry = said
        assert entry.next_offset > cut[name], f"next: an entry of {name} goes nowhere"
        if isinstance(entry, Batch) and entry.span:
            assert entry.first_offset >= cut[name], "next: a batch begins before the cut"
        cut[name] = entry.next_offset
        read.add(entry)
    return read


async def all_of(
    subject: SourceSubject, path: str, cut: Cut | None = None, rows: int = BATCH_ROWS
) -> Read:
    """Read from a cut to the end."""
    async with reading(subject, path, cut, rows=rows) as (inputs, at):
        return await read_on(inputs, at)


async def _put(subject: SourceSubject, folder: Path, rows: list[dict[str, Any]]) -> str:
    """Put records in a thread: it may have a loop of its own."""
    return await asyncio.to_thread(subject.put, folder, rows)


async def _name(subject: SourceSubject, path: str) -> str:
    """Return the name of the only input."""
    inputs = opened(subject, path, BATCH_ROWS)
    (name,) = inputs.names
    await inputs.close()
    return name


def _run(story: Awaitable[None]) -> None:
    async def within() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story

    asyncio.run(within())


def inputs_give_every_record_once_and_in_order(subject: SourceSubject, folder: Path) -> None:
    """From the first cut to the end come the records that were put."""

    async def story() -> None:
        read = await all_of(subject, await _put(subject, folder, ticks(0, ROWS)))
        check_records(subject, read, ROWS)

    _run(story())


def inputs_know_their_bounds(subject: SourceSubject, folder: Path) -> None:
    """Reading begins at the first cut and ends at the end, where that is known."""

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        async with reading(subject, path) as (inputs, cut):
            first, end = await inputs.bounds()
            assert set(first) == set(inputs.names) == set(cut), "bounds: not of all inputs"
            read = await read_on(inputs, cut)
            assert not end or cut == end, f"bounds: the end is said to be {end}, and is {cut}"
            assert min(offset for offset, _ in read.rows) >= min(first.values()), (
                "bounds: a record comes before the first cut"
            )

    _run(story())


def inputs_open_at_any_cut(subject: SourceSubject, folder: Path) -> None:
    """From any cut come the same records, refused ones and ends of batches as at first."""

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        first = await all_of(subject, path)
        name = await _name(subject, path)
        for offset in [at for end in first.ends for at in (end - 1, end)]:
            again, wanted = await all_of(subject, path, {name: offset}), first.after(offset)
            assert again.same(wanted), f"open: from {offset} come other records than at first"
            assert again.ends == wanted.ends, f"open: from {offset} batches end elsewhere"

    _run(story())


def inputs_read_alike_in_batches_of_any_size(subject: SourceSubject, folder: Path) -> None:
    """Records are the same however long batches are, and those end at multiples of their size."""

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        first = await all_of(subject, path)
        for rows in (BATCH_ROWS, *SIZES):
            read = await all_of(subject, path, rows=rows)
            assert read.same(first), f"batches: in batches of {rows} come other records"
            check_ends(read, rows)

    _run(story())


def inputs_end_at_a_stop(subject: SourceSubject, folder: Path) -> None:
    """At a stop, also one within a batch, inputs end, for followers too."""

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        first = await all_of(subject, path)
        name = await _name(subject, path)
        for stop in (first.ends[1], first.ends[2] + 3):
            for follow in (False, True):
                async with reading(subject, path, stop={name: stop}, follow=follow) as (inputs, at):
                    read = await read_on(inputs, at)
                assert at == {name: stop}, f"stop: reading ends at {at}, and not at {stop}"
                assert len(read.rows) == len([one for one in first.rows if one[0] < stop]), (
                    f"stop: before {stop} come other records than without it"
                )

    _run(story())


def inputs_end_or_wait(subject: SourceSubject, folder: Path) -> None:
    """Without more they end; with follow they wait, wake, and see new records."""

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        async with reading(subject, path, follow=True) as (inputs, cut):
            await read_on(inputs, cut, ROWS)
            await _caught_up(inputs, cut)
            inputs.wake()
            await inputs.more()
            await _caught_up(inputs, cut)
            await _put(subject, folder, ticks(ROWS, ROWS + AT_LEAST))
            read = await read_on(inputs, cut, AT_LEAST)
            found = [row["number"] for _, row in read.rows]
            wanted = [number for number in range(ROWS, ROWS + AT_LEAST) if not is_bad(number)]
            assert found == wanted, f"follow: {wanted} were added, and {found} came"

    _run(story())


async def _caught_up(inputs: Inputs, cut: Cut) -> None:
    """Wait until there is nothing, and see that nothing comes."""
    for _ in range(100):
        said = inputs.next(cut)
        if said is not Signal.WAITING:
            raise AssertionError(f"follow: at the end comes {said}, and not WAITING")
        try:
            await asyncio.wait_for(inputs.more(), SOON_S)
        except TimeoutError:
            return
    raise AssertionError("follow: more() returns again and again, and there is nothing")


def inputs_know_the_records_they_have_read(subject: SourceSubject, folder: Path) -> None:
    """A cut is accepted for its own records, and rejected beyond the end and for others."""

    async def story() -> None:
        for name in ("one", "other"):
            (folder / name).mkdir()
        path = await _put(subject, folder / "one", ticks(0, ROWS))
        other = await _put(subject, folder / "other", ticks(0, ROWS, "other "))
        async with reading(subject, path) as (inputs, cut):
            for count in (0, 20, None):
                if count != 0:
                    await read_on(inputs, cut, count)
                known = await inputs.identities(dict(cut))
                assert set(known) == set(cut), "identities: not of all inputs"
                await inputs.sync()
                again = opened(subject, path, BATCH_ROWS)
                await again.check(dict(cut), known)
                await again.check(dict(cut), {})
                await again.close()
                if any(known.values()):
                    await _refused(subject, other, dict(cut), known, "of other records")
        beyond = {name: offset + 1000 for name, offset in cut.items()}
        await _refused(subject, path, beyond, {}, "that it does not reach")

    _run(story())


async def _refused(
    subject: SourceSubject, path: str, cut: Cut, known: dict[str, str], what: str
) -> None:
    inputs = opened(subject, path, BATCH_ROWS)
    try:
        await inputs.check(cut, known)
    except InputError:
        return
    finally:
        await inputs.close()
    raise AssertionError(f"identity: the input takes a cut {what}")


def inputs_refuse_bad_records_one_by_one(subject: SourceSubject, folder: Path) -> None:
    """A record that breaks a check costs itself: it has an offset, a reason and its text."""

    async def story() -> None:
        read = await all_of(subject, await _put(subject, folder, ticks(0, ROWS)))
        check_rejected(read, ROWS)

    _run(story())


def inputs_closed_at_any_time_leave_nothing(subject: SourceSubject, folder: Path) -> None:
    """They are closed unopened, half-read, during a wait, and twice."""
    path = subject.put(folder, ticks(0, ROWS))

    async def story() -> None:
        for count in (None, 0, 1, ROWS):
            for follow in (False, True):
                inputs = opened(subject, path, BATCH_ROWS, follow=follow)
                if count is not None:
                    first, _ = await inputs.bounds()
                    cut = dict(first)
                    await inputs.open(cut, BATCH_ROWS)
                    await read_on(inputs, cut, count)
                await inputs.close()
                await inputs.close()

    _run(story())  # imports stay
    with nothing_left("close"):
        _run(story())


def inputs_hold_few_unread_records(subject: SourceSubject, folder: Path) -> None:
    """With a reader that does nothing, a large input is not read into memory."""
    path = subject.put(folder, ticks(0, LONG_ROWS, "x" * LONG_BYTES))

    async def story() -> None:
        with Ahead() as ahead:
            async with reading(subject, path, rows=10, follow=True) as (inputs, cut):
                await read_on(inputs, cut, 1)
                await asyncio.sleep(SOON_S)
                held = ahead.held_bytes()
        assert held < AHEAD_BYTES_MAX, (
            f"back-pressure: {held >> 20} MiB are held while the reader has asked for one batch; "
            f"at most {AHEAD_BYTES_MAX >> 20} may be"
        )

    _run(story())


def inputs_refuse_changed_records(subject: SourceSubject, folder: Path) -> None:
    """Inputs that were recreated, cut back, overtaken or altered while closed are rejected."""

    async def story() -> None:
        for what, change in subject.changes.items():
            own = _folder(folder, what)
            path = await _put(subject, own, ticks(0, ROWS))
            async with reading(subject, path) as (inputs, cut):
                await read_on(inputs, cut)
                known = await inputs.identities(dict(cut))
            await asyncio.to_thread(change, own)
            await _refused(subject, path, dict(cut), known, f"of inputs that were {what}")

    _run(story())


def inputs_refuse_records_changed_during_reading(subject: SourceSubject, folder: Path) -> None:
    """The same is refused while they read, before a record of it comes, and never vouched for."""

    async def story() -> None:
        for what, change in subject.changes.items():
            own = _folder(folder, what)
            path = await _put(subject, own, ticks(0, ROWS))
            inputs = RetryingInputs(opened(subject, path, BATCH_ROWS, follow=True))
            try:
                first, _ = await inputs.bounds()
                cut = dict(first)
                await inputs.open(cut, BATCH_ROWS)
                await read_on(inputs, cut, ROWS)
                at, known = dict(cut), await inputs.identities(dict(cut))
                standing_still(partial(change, own))
                with suppress(InputError):
                    await read_on(inputs, cut, 1)
                    raise AssertionError(f"changed: a record of inputs that were {what} came")
                assert cut == at, f"changed: reading has continued in inputs that were {what}"
                assert await inputs.identities(at) == known, (
                    f"changed: a checkpoint would hold inputs that were {what}"
                )
            finally:
                await inputs.close()

    _run(story())


def inputs_resume_after_an_outage(subject: SourceSubject, folder: Path) -> None:
    """While a server is away, or denies a right, no record comes; then each new one, once."""
    away = subject.away
    assert away is not None

    async def story() -> None:
        path = await _put(subject, folder, ticks(0, ROWS))
        inputs = RetryingInputs(opened(subject, path, BATCH_ROWS, follow=True))
        notified = asyncio.Event()
        inputs.emit = lambda _: notified.set()
        try:
            first, _ = await inputs.bounds()
            cut = dict(first)
            await inputs.open(cut, BATCH_ROWS)
            await read_on(inputs, cut, ROWS)
            is_away = away(folder)
            await asyncio.to_thread(is_away.__enter__)
            while not notified.is_set():
                await _nothing_comes(inputs, cut)
            await asyncio.to_thread(is_away.__exit__, None, None, None)
            await _put(subject, folder, ticks(ROWS, ROWS + AT_LEAST))
            read = await read_on(inputs, cut, AT_LEAST)
        finally:
            await inputs.close()
        found = [row["number"] for _, row in read.rows]
        wanted = [number for number in range(ROWS, ROWS + AT_LEAST) if not is_bad(number)]
        assert found == wanted, f"away: {wanted} were added, and {found} came"

    _run(story())


async def _nothing_comes(inputs: Inputs, cut: Cut) -> None:
    try:
        said = inputs.next(cut)
    except InputError as error:
        raise AssertionError(f"away: it is not waited for: {error}") from error
    assert said is Signal.WAITING, f"away: meanwhile comes {said}"
    with suppress(TimeoutError):
        await asyncio.wait_for(inputs.more(), SOON_S)


def _folder(folder: Path, what: str) -> Path:
    own = folder / what.replace(" ", "-")
    own.mkdir()
    return own


OF_CHANGED = (inputs_refuse_changed_records, inputs_refuse_records_changed_during_reading)
OF_AWAY = (inputs_resume_after_an_outage,)
RULES = (
    inputs_give_every_record_once_and_in_order,
    inputs_know_their_bounds,
    inputs_open_at_any_cut,
    inputs_read_alike_in_batches_of_any_size,
    inputs_end_at_a_stop,
    inputs_end_or_wait,
    inputs_know_the_records_they_have_read,
    inputs_refuse_bad_records_one_by_one,
    inputs_closed_at_any_time_leave_nothing,
    inputs_hold_few_unread_records,
)
