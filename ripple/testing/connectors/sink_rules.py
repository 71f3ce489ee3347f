"""The promises of every sink (ripple.connectors.contract.Sink), a rule a function."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from ripple.connectors.connector import Writing
from ripple.connectors.contract import Commit, is_sink
from ripple.connectors.installed import load
from ripple.connectors.target import WHOLE
from ripple.core.errors import RippleError
from ripple.testing.connectors.outside import killed, nothing_left
from ripple.testing.connectors.rows import (
    CUT_OFFSETS,
    CUTS,
    OUTPUT,
    PLAN,
    changes,
    cut_after,
    newest,
    other_changes,
    reached,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ripple.connectors.connector import Connector, Use
    from ripple.connectors.contract import Sink

FEW = 3
CALLS = range(1, 2 * 5 + 1)  # of write and commit, after which a writer is killed
REFUSALS = (RippleError, OSError)


class SinkSubject:
    """A connector under test: its sink, its target, and the rows that readers find there.

    place, read, changes: see ``sink_suite``. plain: its plain use, which is not continued.
    """

    def __init__(
        self,
        connector: Connector,
        place: Callable[[Path], str],
        read: Callable[[str], list[dict[str, Any]]],
        *,
        plain: bool = False,
        changes: Mapping[str, Callable[[Path], object]] | None = None,
    ) -> None:
        self.changes = changes or {}
        self.connector = connector
        self.place = place
        self.read = read
        self.plain = plain
        self._expected: dict[int, list[dict[str, Any]]] = {}

    @property
    def use(self) -> Use:
        """Return the use that is tried."""
        use = self.connector.sink if self.plain else self.connector.continued_sink
        assert use is not None
        return use

    def open(self, path: str, epoch: int | None = None) -> Sink:
        """Open the sink."""
        opens = load(self.connector.scheme, self.connector.package, self.use.opens)
        sink = opens(path, Writing(PLAN, OUTPUT, epoch=epoch))
        assert is_sink(sink), f"{type(sink).__name__} lacks something of Sink"
        return sink

    def write(self, path: str, first: int, end: int, *, commit_every: int = 1) -> None:
        """Write cuts, commit, and close."""
        sink = self.open(path)
        try:
            write(sink, first, end, commit_every=commit_every)
        finally:
            sink.close()

    def expected(self, folder: Path, cuts: int = CUTS) -> list[dict[str, Any]]:
        """Return the rows that readers find after so many cuts, undisturbed."""
        if cuts not in self._expected:
            self._expected[cuts] = []
            if cuts:
                undisturbed = folder / f"undisturbed-{cuts}"
                undisturbed.mkdir()
                path = self.place(undisturbed)
                self.write(path, 0, cuts)
                self._expected[cuts] = self.read(path)
        return self._expected[cuts]


def write(sink: Sink, first: int, end: int, *, commit_every: int = 1) -> None:
    """Write cuts and commit, the last one in any case."""
    for cut in range(first, end):
        sink.write(changes(cut), reached(cut))
        if (cut + 1) % commit_every == 0 or cut == end - 1:
            sink.commit(reached(cut))


def committed_rows_are_found(subject: SinkSubject, folder: Path) -> None:
    """Readers find the newest row of each key."""
    path = subject.place(folder)
    subject.write(path, 0, CUTS, commit_every=CUTS if subject.plain else 1)
    found = {row["name"]: row["number"] for row in subject.read(path)}
    assert {name: int(number) for name, number in found.items()} == newest(CUTS), (
        f"rows: {newest(CUTS)} were committed, and readers find {found}"
    )


def promise_is_in_words(subject: SinkSubject, folder: Path) -> None:
    """The sink states its guarantee to readers, equal to the connector's."""
    sink = subject.open(subject.place(folder))
    try:
        assert sink.promise, "promise: the sink makes none; say in words on what readers may rely"
        assert subject.use.promise, "promise: the connector makes none"
        assert sink.name, "name: the sink has none"
        if not subject.plain and sink.records_cut:
            assert (sink.committed, sink.unfinished) == (None, None), (
                "committed: it is set where nothing was ever written"
            )
        if not sink.records_cut:
            assert sink.committed is None, "committed: it is set by a sink that records no cut"
            assert "once" not in sink.promise, "promise: each cut once, and the sink records no cut"
    finally:
        sink.close()


def closing_at_any_time_leaves_nothing(subject: SinkSubject, folder: Path) -> None:
    """A sink is closed unwritten, uncommitted, committed and twice; no file, no thread is left."""
    for name in ("first", "then"):
        (folder / name).mkdir()
    _close_all(subject, folder / "first")  # imports stay
    with nothing_left("close"):
        _close_all(subject, folder / "then")


def _close_all(subject: SinkSubject, folder: Path) -> None:
    for calls in range(3):
        (folder / str(calls)).mkdir()
        sink = subject.open(subject.place(folder / str(calls)))
        if calls > 0:
            sink.write(changes(0), reached(0))
        if calls > 1:
            sink.commit(reached(0))
        sink.close()
        sink.close()


def a_failed_run_leaves_the_old_output(subject: SinkSubject, folder: Path) -> None:
    """Closed without a commit, an all-or-nothing output does not appear."""
    if subject.use.promise != WHOLE:
        return
    path = subject.place(folder)
    before = subject.read(path)
    sink = subject.open(path)
    sink.write(changes(0), reached(0))
    sink.close()
    assert subject.read(path) == before, "close: rows that were never committed are there"


def restarts_resume_after_the_committed_cut(subject: SinkSubject, folder: Path) -> None:
    """Opened again it knows its last cut, and all in all each cut is there once."""
    for stop in range(CUTS + 1):
        (folder / str(stop)).mkdir()
        path = subject.place(folder / str(stop))
        subject.write(path, 0, stop)
        sink = subject.open(path)
        try:
            _check_known(sink.committed, stop)
            write(sink, stop, CUTS)
        finally:
            sink.close()
        _check_all(subject, folder, path, f"after a restart at cut {stop}")


def a_killed_writer_leaves_each_cut_once(subject: SinkSubject, folder: Path) -> None:
    """Killed after any call, never closed: each committed cut is there, and once."""
    for calls, path in _killed_after_each_call(subject, folder):
        sink = subject.open(path)
        try:
            found = cut_after(sink.committed)
            assert calls // 2 <= found <= (calls + 1) // 2, (
                f"crash: after {calls // 2} commits the sink says that {found} cuts are committed"
            )
            if sink.unfinished is not None:
                assert dict(sink.unfinished) == dict(reached(found).cut), (
                    "crash: it is in the midst of another cut than the next"
                )
            write(sink, found, CUTS)
        finally:
            sink.close()
        _check_all(subject, folder, path, f"after a kill after {calls} calls")


def _killed_after_each_call(subject: SinkSubject, folder: Path) -> list[tuple[int, str]]:
    """Kill writers; return where. First of all: not every library bears a fork once it is used."""
    found = []
    for calls in CALLS:
        (folder / str(calls)).mkdir()
        path = subject.place(folder / str(calls))
        killed(lambda path=path, calls=calls: _call(subject.open(path), calls))  # type: ignore[misc]  # bound now
        found.append((calls, path))
    return found


def _call(sink: Sink, calls: int) -> None:
    """Write and commit by turns, so many calls."""
    for call in range(calls):
        cut, is_commit = divmod(call, 2)
        if is_commit:
            sink.commit(reached(cut))
        else:
            sink.write(changes(cut), reached(cut))


def uncommitted_rows_are_superseded(subject: SinkSubject, folder: Path) -> None:
    """Written, not committed, closed: readers of committed rows find none of it twice."""
    for stop in (1, 4, 5):
        (folder / str(stop)).mkdir()
        path = subject.place(folder / str(stop))
        sink = subject.open(path)
        write(sink, 0, stop - 1)
        sink.write(changes(stop - 1), reached(stop - 1))
        sink.close()
        sink = subject.open(path)
        try:
            again = cut_after(sink.committed)
            assert again in (stop - 1, stop), f"uncommitted: {again} cuts are said to be committed"
            write(sink, again, CUTS)
        finally:
            sink.close()
        _check_all(subject, folder, path, f"where cut {stop - 1} was written without a commit")


def a_commit_without_changes_is_remembered(subject: SinkSubject, folder: Path) -> None:
    """The cut advances where no row changes, and readers find the same rows."""
    path = subject.place(folder)
    subject.write(path, 0, FEW)
    before = subject.read(path)
    sink, later = subject.open(path), Commit({"ticks": 99 * CUT_OFFSETS}, "f" * 16)
    sink.write(changes(1), later)  # it has none
    sink.commit(later)
    sink.close()
    sink = subject.open(path)
    try:
        known = sink.committed
        assert known is not None, "empty commit: it is forgotten"
        assert dict(known.cut) == dict(later.cut), "empty commit: it is forgotten"
    finally:
        sink.close()
    assert subject.read(path) == before, "empty commit: readers find something else than before"


def a_second_writer_is_refused(subject: SinkSubject, folder: Path) -> None:
    """Of two writers at once one is fenced: the second at its open, or the first from then on."""
    path = subject.place(folder)
    first = subject.open(path)
    second = None
    try:
        write(first, 0, FEW)
        with suppress(*REFUSALS):
            second = subject.open(path)
        if second is not None:
            is_refused = False
            write(second, FEW, FEW + 1)
            try:
                first.write(changes(FEW), reached(FEW))
                first.commit(reached(FEW))
            except REFUSALS:
                is_refused = True
            assert is_refused, "second writer: two write at the same time, and neither is refused"
    finally:
        first.close()
        if second is not None:
            second.close()
    done = FEW if second is None else FEW + 1
    assert subject.read(path) == subject.expected(folder, done), (
        "second writer: readers do not find the rows of one of them"
    )
    with closing(subject.open(path)) as sink:
        _check_known(sink.committed, done)


def a_replaced_owner_changes_nothing(subject: SinkSubject, folder: Path) -> None:
    """The owner of a higher epoch takes over; later calls of the one before have no effect."""
    path = subject.place(folder)
    old = subject.open(path, 1)
    write(old, 0, FEW)
    new = subject.open(path, 2)
    _check_known(new.committed, FEW)
    write(new, FEW, FEW + 1)
    is_refused = False
    try:
        old.write(other_changes(FEW), reached(FEW))
        old.commit(reached(FEW))
        old.write(other_changes(FEW + 1), reached(FEW + 1))
        old.commit(reached(FEW + 1))
    except REFUSALS:
        is_refused = True
    assert is_refused, "epoch: an owner that was replaced is let write"
    old.close()
    write(new, FEW + 1, CUTS)
    new.close()
    assert subject.read(path) == subject.expected(folder), "epoch: the replaced owner's rows count"
    is_refused = False
    try:
        subject.open(path, 1).close()
    except REFUSALS:
        is_refused = True
    assert is_refused, "epoch: an owner of a lower epoch takes over"


def an_output_changed_during_writing_is_left(subject: SinkSubject, folder: Path) -> None:
    """An output removed, recreated or altered gets no more rows, and the writer fails."""
    for what, change in subject.changes.items():
        own = folder / what.replace(" ", "-")
        own.mkdir()
        path = subject.place(own)
        sink = subject.open(path)
        try:
            write(sink, 0, FEW)
            change(own)
            before = _found(subject, path)
            try:
                write(sink, FEW, FEW + 1)
            except REFUSALS:
                pass
            else:
                raise AssertionError(
                    f"changed: an output that was {what} is written on without an error"
                )
        finally:
            sink.close()
        assert _found(subject, path) == before, f"changed: an output that was {what} was written on"


def _found(subject: SinkSubject, path: str) -> list[dict[str, Any]] | None:
    """Return the rows that readers find, None where they are refused."""
    try:
        return subject.read(path)
    except REFUSALS:
        return None


def an_output_changed_between_runs_is_not_trusted(subject: SinkSubject, folder: Path) -> None:
    """Opening an output that was removed or recreated fails, or begins from nothing."""
    for what, change in subject.changes.items():
        own = folder / what.replace(" ", "-")
        own.mkdir()
        path = subject.place(own)
        subject.write(path, 0, FEW)
        change(own)
        try:
            sink = subject.open(path)
        except REFUSALS:
            continue
        committed = sink.committed
        sink.close()
        assert committed != reached(FEW - 1), (
            f"changed: the cut of an output that was {what} is trusted"
        )


def a_killed_writer_loses_nothing(subject: SinkSubject, folder: Path) -> None:
    """Committed rows survive any kill; rows written again may be there twice."""
    for calls, path in _killed_after_each_call(subject, folder):
        subject.write(path, calls // 2, CUTS)
        found, wanted = _texts(subject.read(path)), _texts(subject.expected(folder))
        assert not set(wanted) - set(found), f"crash: rows are lost after a kill after {calls}"
        assert not set(found) - set(wanted), "crash: there are rows that were never written"


def _texts(rows: list[dict[str, Any]]) -> list[str]:
    return [repr(sorted(row.items())) for row in rows]


def _check_known(committed: Commit | None, cuts: int) -> None:
    wanted = reached(cuts - 1) if cuts else None
    same = (
        committed is None
        if wanted is None
        else committed is not None
        and (dict(committed.cut), committed.digest) == (dict(wanted.cut), wanted.digest)
    )
    assert same, f"restart: {wanted} was committed last, and the sink knows of {committed}"


def _check_all(subject: SinkSubject, folder: Path, path: str, when: str) -> None:
    assert subject.read(path) == subject.expected(folder), (
        f"once: {when} readers find something else than without it"
    )


ALWAYS = (
    committed_rows_are_found,
    promise_is_in_words,
    closing_at_any_time_leaves_nothing,
)
OF_PLAIN = (a_failed_run_leaves_the_old_output,)
OF_ONCE = (
    restarts_resume_after_the_committed_cut,
    a_killed_writer_leaves_each_cut_once,
    uncommitted_rows_are_superseded,
    a_commit_without_changes_is_remembered,
    a_second_writer_is_refused,
)
OF_EPOCHS = (a_replaced_owner_changes_nothing,)
OF_CHANGED = (
    an_output_changed_during_writing_is_left,
    an_output_changed_between_runs_is_not_trusted,
)
OF_WEAKER = (a_killed_writer_loses_nothing,)
"""Rules of sinks that a restarted run writes to, which record no cut."""
