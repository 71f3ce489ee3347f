"""Checks the invariants of a simulated cluster after each effect and each event."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ripple.core.codec.crc import crc32c
from ripple.core.errors import RippleError
from ripple.core.events import Committed, Diverged, PartitionFailed, Restored, Started, Stored
from ripple.storage.checkpoint.manifest import HoldingContent
from ripple.storage.fenced import decode_entry
from ripple.task.standby import StandbyDivergedError
from ripple.testing.cluster.invariants import (
    Broken,
    OfChain,
    OfConnection,
    OfPartition,
    hold,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Assignment
    from ripple.core.events import Event
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.session import Session
    from ripple.testing.cluster.truth import Truth
    from ripple.testing.cluster.worker import Process
    from ripple.testing.sim.cluster import SimCluster

_ENTRY = re.compile(r".*/(\d{5})/manifest/(\d{16})\.json")


class Watch:
    """Observations of a run. ``chain``: the versions; ``partitions``: by number among all."""

    def __init__(self, cluster: SimCluster, truth: Truth, first: int) -> None:
        """Watch a cluster; its first stage has ``first`` partitions."""
        self._objects = cluster.store._objects
        self._count, self._last = 0, ""  # how many objects there were, and which came last
        self._note = cluster.note
        self._broken: AssertionError | None = None
        self._seen: dict[str, int] = {}
        self.failed: dict[int, Exception] = {}
        """Why a partition's last task has ended, until another one resumes."""
        self.chain = OfChain()
        self._truth, self._first = truth, first
        self._places = [
            (stage, number)
            for stage, count in truth.counts(first).items()
            for number in range(count)
        ]
        self.partitions = [
            OfPartition(truth, stage, number, first) for stage, number in self._places
        ]
        cluster.always(self.look)

    @property
    def has_begun(self) -> bool:
        """Whether any partition has committed anything."""
        return any(any(one.committed.values()) for one in self.partitions)

    @property
    def lagging(self) -> list[int]:
        """The partitions that have not committed everything."""
        return [at for at, one in enumerate(self.partitions) if not one.is_at_end]

    def settle(self) -> None:
        """Take the last cuts as those of the truth."""
        cuts = zip(self._places, self.partitions, strict=True)
        self._truth.settle({place: one.committed for place, one in cuts}, self._first)

    def on_version(self, version: Assignment) -> None:
        """Check a version of the assignment that a process has read."""
        self.chain.read(version)

    def on_event(self, process: Process, partition: int, epoch: int | None, event: Event) -> None:
        """Take an event of a partition's owner."""
        where = f"{process.name}: partition {partition}, epoch {epoch}"
        if isinstance(event, PartitionFailed):
            self.failed[partition] = event.error
        elif isinstance(event, Restored):
            self.failed.pop(partition, None)
        try:
            self._take(where, self.partitions[partition], epoch or 0, event)
        except AssertionError as error:
            # Raised here, it would end the task, and another one would start.
            self._broken = self._broken or error
            raise

    def _take(self, where: str, one: OfPartition, epoch: int, event: Event) -> None:
        match event:
            case Committed():
                self._note(f"{where} has committed {dict(event.cut)}")
                one.committing(epoch, event)
            case Started():
                one.began(epoch, self._damaged())
            case Restored():
                self._note(f"{where} resumes at {dict(event.cut)}")
                one.restored(epoch, event.cut, event.checkpoint)
            case Stored():
                self._note(f"{where} has stored {dict(event.cut)}")
                one.stored(event.cut)
            case Diverged():
                raise Broken(f"I13: {where}: {event}")
            case PartitionFailed():
                self._note(f"{where} fails: {event.error}")
                if isinstance(event.error, StandbyDivergedError):
                    one.strayed(str(event.error))
                if not isinstance(event.error, OSError | RippleError):
                    raise AssertionError(f"{where} failed: {event.error!r}") from event.error

    def connected(self, name: str, limits: ExchangeLimits) -> Callable[[Session], None]:
        """Return a listener for all events on a new connection."""
        connection = OfConnection(name, limits)

        def look(session: Session) -> None:
            try:
                connection.look(session)
            except AssertionError as error:
                self._broken = self._broken or error
                raise

        return look

    def _damaged(self) -> frozenset[str]:
        """Return the objects that differ from when they were first seen."""
        return frozenset(
            name for name, data in self._objects.items() if self._seen.get(name) != crc32c(data)
        )

    def look(self) -> None:
        """Check new objects in the store, if there are any."""
        if self._broken is not None:
            raise self._broken
        objects = self._objects
        last = next(reversed(objects), "")
        if last is self._last and len(objects) == self._count:
            return
        self._count, self._last = len(objects), last
        for name in [name for name in objects if name not in self._seen]:
            self._seen[name] = crc32c(objects[name])
            wrong = self._truth.recorded.came(name, objects[name])
            hold(wrong is None, "J11", str(wrong))
            found = _ENTRY.fullmatch(name)
            if found is not None:
                entry = decode_entry(objects[name], name, HoldingContent())
                number = int(found.group(2))
                self.partitions[int(found.group(1))].entry(number, entry.content)
        for one in self.partitions:
            one.names_what_is_there(objects)
