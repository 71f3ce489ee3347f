"""The outputs of a partition as one commit group: files, logs or a transaction."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ripple.connectors.contract import KnowingSink, is_readable_sink
from ripple.connectors.endings import failures
from ripple.core.errors import OutputAwayError, OutputError
from ripple.core.events import CommitWaits, EventListener, OutputTruncated, Promise, no_listener
from ripple.core.frozen import frozen
from ripple.core.tracing import TracedGroup
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.contract import Commit, ReadableSink, RestingSink, Sink
    from ripple.core.cut import Cut
    from ripple.model.schema.exported import Made
    from ripple.world.ports import Executor

    Written = tuple[pa.RecordBatch, str]
    ReadBack = Callable[[str | None], Iterator[Written]]


# As commits of Kafka have it.
PATIENCE_S = 180.0
PAUSE_S, PAUSE_S_MAX = 0.1, 10.0
EMIT_FIRST_S, EMIT_INTERVAL_S = 5.0, 30.0  # when a wait is reported first, and then how often
AHEAD_AT_ONCE = 64  # batches of a read-back per turn on the executor


@frozen
class OutputStatus:
    """The state of an output when its group is opened: see Sink.

    name: of its target, for people. takes_made: whether it takes encoded rows, too. is_shared:
    whether rows read back include those of other partitions. holder: the unique id of the topic
    with the rows, if they and their cut record may be separated; else "". takes_stored: whether it
    takes columns of logical types as numbers. takes_maps: whether it takes Arrow's maps. others:
    the cuts of the partitions that this one takes over.
    """

    name: str
    records_cut: bool
    committed: Commit | None
    unfinished: Cut | None
    takes_made: bool = False
    is_shared: bool = False
    holder: str = ""
    takes_stored: bool = False
    takes_maps: bool = False
    others: tuple[Cut, ...] = ()


class CommitGroup(Protocol):
    """The outputs of one partition, which are committed together.

    The calls are ``open``, then ``write`` and ``commit`` in turns, and ``close``. With
    ``commits_beside`` the changes of later cuts may be written during a commit, which covers the
    changes written before it was called. Commits do not overlap.
    """

    @property
    def commits_beside(self) -> bool:
        """Whether more may be written while a commit is under way."""
        ...

    async def open(
        self, epoch: int | None, emit: EventListener = no_listener
    ) -> Mapping[str, OutputStatus]:
        """Become the only writer and return the cut of each output.

        epoch: marks the records; a target that can rejects a lower one. None if the partition has
        no owner, because nothing is resumed. Raises OutputError, DiskLockedError and OSError; then
        nothing is open.
        """
        ...

    def write(self, output: str, changes: pa.RecordBatch | Made, reached: Commit) -> None:
        """Take one output's changes since the last write, and their cut; see Sink.

        As they were made only if the standing of the output says so.
        """
        ...

    def commit(self, reached: Mapping[str, Commit]) -> Coroutine[Any, Any, None]:
        """Return the commit of the changes written so far, and of their cuts."""
        ...

    async def close(self) -> None:
        """Release the outputs; uncommitted changes may be lost. Closing twice is allowed."""
        ...


@runtime_checkable
class PreparedGroup(Protocol):
    """A group that can do a part of ``open`` while the owner before goes on writing."""

    async def prepare(self) -> None:
        """Prepare ``open`` as far as that does not disturb the owner. Raises as it does."""
        ...


@runtime_checkable
class AheadGroup(Protocol):
    """A group with outputs that can be read back while their former owner still writes."""

    async def read_ahead(
        self, output: str, mark: str | None, take: Callable[[pa.RecordBatch], None]
    ) -> str | None:
        """Give ``take`` an output's changes after a mark; return the mark after them.

        Called before ``open``; afterwards ``written_since`` has the rest. mark: None for all
        changes. Returns None if nothing can be read. Raises OutputError and OSError.
        """
        ...


@runtime_checkable
class KeyListingGroup(Protocol):
    """A group that can tell which keys its readers have."""

    def shown_keys(self, output: str, key: Sequence[str]) -> AsyncIterator[pa.RecordBatch]:
        """Yield which keys the readers of an output have, as far as it tells; see KnowingSink."""
        ...


@runtime_checkable
class ShrinkingGroup(Protocol):
    """A group with outputs of more partitions, perhaps, than write there now."""

    def beside(self, output: str) -> Sequence[RestingSink]:
        """Return the partitions of an output that this one takes over."""
        ...

    async def rest(self, sink: RestingSink, removed: pa.RecordBatch) -> None:
        """Remove the rows of a partition that was taken over, and release it."""
        ...


@runtime_checkable
class RereadGroup(Protocol):
    """A group that returns the changes after a mark."""

    def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield at least the changes that an output's readers may have got after a mark."""
        ...


@runtime_checkable
class SupersedingGroup(Protocol):
    """A group whose unfinished cuts may be given up."""

    def supersede(self, output: str) -> None:
        """Let the next write of an output reach another cut than the unfinished one."""
        ...


@runtime_checkable
class ProbingGroup(Protocol):
    """A group that can be looked at before anything is claimed for it."""

    async def look(self) -> int:
        """Return the highest epoch that an owner had, 0 for none, with nothing changed.

        Raises as ``open`` does where that would be refused, as far as can be told.
        """
        ...


async def looked_at(group: CommitGroup, epoch: int | None) -> int:
    """Check, with nothing changed, that a group can be opened; return its highest epoch.

    epoch: of the next owner, if one is assigned. Raises FencedError unless that is above the
    epochs of earlier owners, and as ``ProbingGroup.look``.
    """
    known = await group.look() if isinstance(group, ProbingGroup) else 0
    if epoch is not None and known >= epoch:
        from ripple.storage.fenced.errors import FencedError  # noqa: PLC0415 - slow, and plain runs have none

        raise FencedError(
            f"an output was written by an owner of epoch {known}, and epoch {epoch} does not come "
            "after it: it was replaced; or another cluster has written there, with another store. "
            "Resume that one; or end all workers of this one, and remove assign/ from its "
            "store: it begins above that then",
            known,
        )
    return known


class ReadableGroup(CommitGroup, Protocol):
    """Outputs that return their written changes; see ReadableSink."""

    def mark(self, output: str) -> str:
        """Return the position of an output now. Raises OutputError if it cannot be read back."""
        ...

    def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield at least the changes that an output's readers may have got after a mark."""
        ...

    def supersede(self, output: str) -> None:
        """Let the next write of an output reach another cut than the unfinished one."""
        ...


class SinkGroup:
    """Sinks that each commit alone, one after the other; their life calls one thing at a time.

    A crash between two of them leaves one ahead of the other, which is then muted in the replay.
    """

    commits_beside = False

    def __init__(
        self,
        openers: Mapping[str, Callable[[], Sink]],
        executor: Executor = INLINE,
        *,
        looks: Collection[Callable[[], int]] = (),
        reads: Mapping[str, ReadBack] = MappingProxyType({}),
        waits: bool = True,
    ) -> None:
        """Take functions that open the sink of each output, called by the only writer.

        executor: where sinks are opened, committed and closed, which block on disks. looks: see
        ProbingGroup, of sinks. reads: by output, for AheadGroup. waits: whether to wait for a
        server that is unavailable.
        """
        self._waits = waits
        self._emit: EventListener = no_listener
        self._openers = openers
        self._looks = tuple(looks)
        self._reads = reads
        self._executor = executor
        self._sinks: dict[str, Sink] = {}

    async def look(self) -> int:
        """Look at the sinks; see ProbingGroup."""
        return max([0, *[await self._executor.run(look) for look in self._looks]])

    async def read_ahead(
        self, output: str, mark: str | None, take: Callable[[pa.RecordBatch], None]
    ) -> str | None:
        """Read a sink that is not open yet; see AheadGroup."""
        read = self._reads.get(output)
        found = iter(()) if read is None else read(mark)
        while (after := await self._executor.run(_given, found, take)) is not None:
            mark = after
        return mark

    async def open(
        self, epoch: int | None, emit: EventListener = no_listener
    ) -> Mapping[str, OutputStatus]:
        """Open the sinks, in order; if one cannot be, those before are given up."""
        self._emit = emit
        try:
            for output, open_sink in self._openers.items():
                await self._executor.run(self._open, output, open_sink)
                sink = self._sinks[output]
                if epoch is not None and not sink.records_cut:
                    emit(Promise(sink.name, sink.promise))
                if sink.cut_off_bytes:
                    emit(OutputTruncated(sink.name, sink.cut_off_bytes))
        except failures():
            await self.close()
            raise
        return {
            output: OutputStatus(
                sink.name,
                sink.records_cut,
                sink.committed,
                sink.unfinished,
                getattr(sink, "takes_made", False),
                getattr(sink, "is_shared", False),
                takes_stored=getattr(sink, "takes_stored", False),
                takes_maps=getattr(sink, "takes_maps", False),
                others=getattr(sink, "others", ()),
            )
            for output, sink in self._sinks.items()
        }

    def _open(self, output: str, open_sink: Callable[[], Sink]) -> None:
        # A field, since a caller that is cancelled during the opening still has to close it.
        self._sinks[output] = open_sink()

    def write(self, output: str, changes: pa.RecordBatch | Made, reached: Commit) -> None:
        """Pass the changes on."""
        self._sinks[output].write(changes, reached)

    def mark(self, output: str) -> str:
        """Return the position of an output now."""
        return self._readable(output).mark()

    async def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield the changes that an output's readers may have got after a mark."""
        for batch in self._readable(output).written_since(mark):
            yield batch

    def supersede(self, output: str) -> None:
        """Let the next write of an output reach another cut than the unfinished one."""
        self._readable(output).supersede()

    def beside(self, output: str) -> Sequence[RestingSink]:
        """Return the partitions that this one takes over."""
        found: Sequence[RestingSink] = getattr(self._sinks[output], "beside", ())
        return found

    async def rest(self, sink: RestingSink, removed: pa.RecordBatch) -> None:
        """Remove the rows of a partition that was taken over, and release it."""
        await self._executor.run(sink.rest, removed)

    async def shown_keys(self, output: str, key: Sequence[str]) -> AsyncIterator[pa.RecordBatch]:
        """Yield which keys the readers of an output have, as far as it tells."""
        sink = self._sinks[output]
        if isinstance(sink, KnowingSink):
            for batch in sink.shown_keys(key):
                yield batch
        elif is_readable_sink(sink):
            for batch in sink.written_since(None):
                yield batch

    def _readable(self, output: str) -> ReadableSink:
        sink = self._sinks[output]
        if not is_readable_sink(sink):
            raise OutputError(
                f"cannot write {output!r} to {sink.name}: it belongs to a later stage, which after "
                "a crash reads its outputs back. Write to log:DIR/TOPIC or kafka:TOPIC"
            )
        return sink

    async def commit(self, reached: Mapping[str, Commit]) -> None:
        """Commit one sink after the other."""
        for output, commit in reached.items():
            await self._committed(self._sinks[output], commit)

    async def _committed(self, sink: Sink, commit: Commit) -> None:
        """Commit; a server that is away is asked again for a time, with pauses that grow."""
        try:
            await self._executor.run(sink.commit, commit)
        except OutputAwayError as error:
            if not self._waits:
                raise
            await self._committed_again(sink, commit, error)

    async def _committed_again(self, sink: Sink, commit: Commit, error: OutputAwayError) -> None:
        import asyncio  # noqa: PLC0415 - slow, and plain runs have no loop

        loop = asyncio.get_running_loop()
        began_s, pause_s, emit_at_s = loop.time(), PAUSE_S, EMIT_FIRST_S
        while True:
            waited_s = loop.time() - began_s
            if waited_s >= PATIENCE_S:
                raise OutputError(
                    f"{error}; that is so for {PATIENCE_S:.0f} s now. What was committed "
                    "stays; start again once the server answers"
                ) from error
            if waited_s >= emit_at_s:
                emit_at_s = waited_s + EMIT_INTERVAL_S
                self._emit(CommitWaits(waited_s, 0, str(error)))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)
            try:
                await self._executor.run(sink.commit, commit)
                return
            except OutputAwayError as other:
                error = other

    async def close(self) -> None:
        """Close all sinks, also if closing one raises; the first error is raised."""
        await self._executor.run(self._close)

    def _close(self) -> None:
        error: Exception | None = None
        for sink in self._sinks.values():
            try:
                sink.close()
            except Exception as other:
                error = error or other
        if error is not None:
            raise error


def _given(found: Iterator[Written], take: Callable[[pa.RecordBatch], None]) -> str | None:
    """Give some changes to ``take``; return the mark after them, None without any."""
    mark = None
    for rows, after in islice(found, AHEAD_AT_ONCE):
        take(rows)
        mark = after
    return mark


class Groups:
    """Several groups as one: they are committed one after the other, in order.

    A crash between two of them leaves one ahead of the other, which is then muted in the replay.
    """

    def __init__(self, groups: Sequence[ReadableGroup]) -> None:
        self._groups = tuple(groups)
        self._by_output: dict[str, ReadableGroup] = {}

    @property
    def commits_beside(self) -> bool:
        """Whether more may be written to all of them while a commit is under way."""
        return all(group.commits_beside for group in self._groups)

    async def look(self) -> int:
        """Look at the outputs that can be; see ProbingGroup."""
        return max([0, *[await looked_at(group, None) for group in self._groups]])

    async def prepare(self) -> None:
        """Prepare the outputs that can be."""
        for group in self._groups:
            if isinstance(group, PreparedGroup):
                await group.prepare()

    async def read_ahead(
        self, output: str, mark: str | None, take: Callable[[pa.RecordBatch], None]
    ) -> str | None:
        """Read an output with its group, if the group can."""
        for group in self._groups:
            if isinstance(group, AheadGroup):
                mark = await group.read_ahead(output, mark, take)
        return mark

    async def open(
        self, epoch: int | None, emit: EventListener = no_listener
    ) -> Mapping[str, OutputStatus]:
        """Open all, in order; if one cannot be, those before are given up."""
        found: dict[str, OutputStatus] = {}
        try:
            for group in self._groups:
                standings = await group.open(epoch, emit)
                self._by_output |= dict.fromkeys(standings, group)
                found |= standings
        except failures():
            await self.close()
            raise
        return found

    def write(self, output: str, changes: pa.RecordBatch | Made, reached: Commit) -> None:
        """Pass the changes on."""
        self._by_output[output].write(output, changes, reached)

    def trace(self, context: str | None) -> None:
        """Take the context of the next writes."""
        for group in self._groups:
            if isinstance(group, TracedGroup):
                group.trace(context)

    def mark(self, output: str) -> str:
        """Return the position of an output now."""
        return self._by_output[output].mark(output)

    def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield at least the changes that an output's readers may have got after a mark."""
        return self._by_output[output].written_since(output, mark)

    def supersede(self, output: str) -> None:
        """Let the next write of an output reach another cut than the unfinished one."""
        self._by_output[output].supersede(output)

    def beside(self, output: str) -> Sequence[RestingSink]:
        """Return the partitions that this one takes over."""
        group = self._by_output[output]
        return group.beside(output) if isinstance(group, ShrinkingGroup) else ()

    async def rest(self, sink: RestingSink, removed: pa.RecordBatch) -> None:
        """Remove the rows of a partition that was taken over, and release it."""
        await next(one for one in self._groups if isinstance(one, ShrinkingGroup)).rest(
            sink, removed
        )

    def shown_keys(self, output: str, key: Sequence[str]) -> AsyncIterator[pa.RecordBatch]:
        """Yield which keys the readers of an output have, as far as it tells."""
        group = self._by_output[output]
        return group.shown_keys(output, key) if isinstance(group, KeyListingGroup) else _nothing()

    def commit(self, reached: Mapping[str, Commit]) -> Coroutine[Any, Any, None]:
        """Return a commit of one group after the other."""
        commits = []
        for group in self._groups:
            own = {name: one for name, one in reached.items() if self._by_output[name] is group}
            if own:
                commits.append(group.commit(own))
        return _in_order(commits)

    async def close(self) -> None:
        """Close all groups, also if closing one raises; the first error is raised."""
        error: Exception | None = None
        for group in self._groups:
            try:
                await group.close()
            except Exception as other:
                error = error or other
        if error is not None:
            raise error


async def _nothing() -> AsyncIterator[pa.RecordBatch]:
    return
    yield


async def _in_order(commits: Sequence[Coroutine[Any, Any, None]]) -> None:
    try:
        for commit in commits:
            await commit
    finally:
        for commit in commits:  # those not begun never will be
            commit.close()
