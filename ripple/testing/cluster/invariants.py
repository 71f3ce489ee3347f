"""Invariants of a cluster, by name, checked from outside after each event.

A name is that of the invariant in the design's list. The other invariants concern one life
(``CrashScenario`` looks at each of its steps), or times, and have tests of their own:
``docs/simulation.md`` says where each is checked.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from ripple.control.assignment import worker_of
from ripple.control.assignment.rules import check_follows
from ripple.core.cut import is_within
from ripple.model.pipeline.input_names import of_sources
from ripple.testing.check import Marker

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from ripple.control.assignment import Assignment
    from ripple.core.events import Committed
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.session import Session
    from ripple.storage.checkpoint import Checkpoint
    from ripple.storage.checkpoint.manifest import Holding
    from ripple.testing.cluster.truth import Truth

FRAME_BYTES = 8192  # a frame's overhead without its rows
_MOVED = re.compile(r"partition \d+ (moves to|has failed)")
VERSIONS_A_MINUTE = 62  # one a second, and those by chance at the ends


class Broken(AssertionError):  # noqa: N818 - a finding, not an error
    """An invariant does not hold."""


def hold(holds: bool, name: str, what: str) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(f"{name}: {what}")


class OfPartition:
    """Invariants of one partition over all its owners, fed with their events."""

    def __init__(self, truth: Truth, stage: int, number: int, first: int) -> None:
        self._truth = truth
        self._place = stage, number, first
        self._end = truth.end_of(stage, number, first)
        # Where nothing is written, a commit is of nothing, and only checkpoints are left of it.
        self._writes = bool(truth.outputs_of(stage))
        self._name = f"partition {number}" + (f" of stage {stage}" if stage else "")
        self._reads = stage in truth.front.reading
        self.committed: Mapping[str, int] = {}
        self._epoch = 0  # of the newest owner whose outputs are open
        self._found: Mapping[str, int] = {}  # the cut that it found in them
        self._claimed = 0
        self._entry: int | None = None
        self._checkpoints_named: Sequence[Checkpoint] = ()
        self._checkpoints: dict[str, Checkpoint] = {}
        self._damaged: dict[int, frozenset[str]] = {}  # when an owner's newest life began

    @property
    def is_at_end(self) -> bool:
        """Whether all records are committed, windows that markers end, and rows with answers."""
        read = {name: at for name, at in self.committed.items() if not _is_of_log(name)}
        return read == self._end and self._truth.is_over(*self._place, self.committed)

    def began(self, epoch: int, damaged: frozenset[str]) -> None:
        """Note a new owner, and the objects that were damaged by then."""
        self._damaged[epoch] = damaged

    def restored(self, epoch: int, cut: Mapping[str, int], checkpoint: str | None) -> None:
        """I2: an owner resumes at the committed cut, and fences its predecessors."""
        self._is_sound(epoch, checkpoint)
        if epoch > self._epoch:
            self._epoch, self._found = epoch, cut
            if self._writes:
                self._cuts_rise(cut)
            self.committed = cut

    def _is_sound(self, epoch: int, name: str | None) -> None:
        """I14: no part of the checkpoint that an owner resumes from was damaged before."""
        damaged = self._damaged.get(epoch, frozenset())
        while name is not None and name in self._checkpoints:
            one = self._checkpoints[name]
            bad = [part.object_name for part in one.parts if part.object_name in damaged]
            hold(not bad, "I14", f"{self._name} resumes from {one.name}, of which {bad} is damaged")
            name = one.base

    def strayed(self, why: str) -> None:
        """J4: a follower has its owner's digests at each commit that it comes to."""
        hold(holds=False, name="J4", what=f"{self._name}: {why}")

    def committing(self, epoch: int, event: Committed) -> None:
        """Look at a commit of an owner."""
        self._equals_fresh(event)
        if epoch < self._epoch:
            if self._writes:
                self._was_before(epoch, event.cut)
        elif epoch == self._epoch:  # else it replays, muted, up to the committed cut
            self._cuts_rise(event.cut)
            self.committed = event.cut

    def _equals_fresh(self, event: Committed) -> None:
        """I1, I6, I9, I13, J8: the state committed at a cut equals a fresh evaluation of it.

        Digests are of every bit of every row, so an incremental aggregate equals the fresh one; a
        later stage is compared with each sender at its part of the cut; every owner that reaches a
        cut has the same digests.
        """
        fresh = self._truth.digests_at(*self._place, event.cut)
        hold(
            dict(event.digests) == {name: fresh[name] for name in event.digests},
            "I1",
            f"{self._name} at {dict(event.cut)} has {dict(event.digests)}, not {fresh}",
        )

    def _cuts_rise(self, cut: Mapping[str, int]) -> None:
        """I2, J3: a partition's committed cut never goes back."""
        hold(
            is_within(self.committed, cut),
            "I2",
            f"{self._name} has committed {dict(self.committed)}, and then {dict(cut)}",
        )

    def _was_before(self, epoch: int, cut: Mapping[str, int]) -> None:
        """I4, J2: once a successor has its outputs, no earlier owner commits anything.

        An owner that was paused between a commit and its event reports it late.
        """
        hold(
            is_within(cut, self._found),
            "I4",
            f"{self._name}: epoch {epoch} commits {dict(cut)} after epoch {self._epoch} took over",
        )

    def stored(self, cut: Mapping[str, int]) -> None:
        """I3: a checkpoint is never ahead of the committed cut."""
        hold(
            is_within(cut, self.committed),
            "I3",
            f"{self._name} has a checkpoint of {dict(cut)}, and committed {dict(self.committed)}",
        )

    def entry(self, number: int, holding: Holding) -> None:
        """Look at a new entry of the partition's manifest."""
        self._follows(number, holding)
        for one in holding.checkpoints:
            if one.name not in self._checkpoints:
                self._watermarks_rise(one.cut, one.watermarks_ns)
                self._adds_up(one.cut, one.counters)
                self._checkpoints[one.name] = one

    def _follows(self, number: int, holding: Holding) -> None:
        """I5: manifests have no gap, and their epochs never fall."""
        hold(
            self._entry in (None, number - 1),
            "I5",
            f"{self._name}: entry {number} of its manifest comes after {self._entry}",
        )
        hold(
            holding.epoch >= self._claimed,
            "I5",
            f"{self._name}: the epoch of its manifest fell to {holding.epoch}",
        )
        self._entry, self._claimed = number, holding.epoch
        self._checkpoints_named = holding.checkpoints

    def names_what_is_there(self, objects: Container[str]) -> None:
        """I15: no object that the manifest names is deleted."""
        for one in self._checkpoints_named:
            gone = [part.object_name for part in one.parts if part.object_name not in objects]
            hold(not gone, "I15", f"{self._name}: {one.name} has lost {gone}")

    def _watermarks_rise(self, cut: Mapping[str, int], watermarks_ns: Mapping[str, int]) -> None:
        """I8: a watermark never goes back: where the cut is further it is as far."""
        for other in self._checkpoints.values():
            if is_within(other.cut, cut):
                others_ns = other.watermarks_ns
                back = [name for name, at in others_ns.items() if watermarks_ns.get(name, at) < at]
                hold(not back, "I8", f"{self._name} at {dict(cut)}: watermarks fell of {back}")

    def _adds_up(self, cut: Mapping[str, int], counters: Mapping[str, int]) -> None:
        """I7: every event before the cut is applied, too late, or a dead letter."""
        if not self._reads or not counters:
            return
        events = self._truth.source.events
        expected = sum(
            not isinstance(event, Marker)
            for name, offset in cut.items()
            for event in events.get(name, [])[:offset]
        )
        found = sum(counters[name] for name in ("applied", "very_late", "dead_lettered"))
        hold(found == expected, "I7", f"{self._name} at {dict(cut)}: {dict(counters)}")


def _is_of_log(name: str) -> bool:
    """Return whether an input is a log of markers or of answers, behind any path of senders."""
    return not of_sources([name.lstrip("0123456789/")])


def _takers(version: Assignment) -> dict[str, tuple[int, int] | None]:
    """Return the processes that may have partitions, and which run of each is meant."""
    leaving = {member.id for member in version.members if member.is_leaving}
    return {
        process: version.start_of(process)
        for process in version.processes
        if worker_of(process) not in leaving
    }


def _is_forced(version: Assignment) -> bool:
    """Return whether the version follows a commanded or a failed move."""
    return _MOVED.search(version.cause) is not None


class OfConnection:
    """Invariants of a connection between two processes."""

    def __init__(self, name: str, limits: ExchangeLimits) -> None:
        self._name = name
        self._limits = limits
        # A frame is begun while there is room for one byte.
        self._frame_bytes = 4 * limits.bundle_bytes + FRAME_BYTES

    def look(self, session: Session) -> None:
        """I10, J9: queued rows and bytes in flight stay within their limits."""
        hold(
            session.most_of_a_stream <= 1,
            "I10",
            f"{self._name}: {session.most_of_a_stream} batches of one stream wait",
        )
        for what, room in (("sent", session.room_bytes), ("got", session.granted_bytes)):
            hold(
                -self._frame_bytes <= room <= self._limits.window_bytes,
                "J9",
                f"{self._name}: it has {what} {self._limits.window_bytes - room} bytes that are "
                f"not applied, of {self._limits.window_bytes}",
            )


class OfChain:
    """Invariants of the versions of the assignment, over all proposers and readers."""

    def __init__(self) -> None:
        self.history: dict[int, Assignment] = {}
        self._numbers: list[int] = []

    def read(self, version: Assignment) -> None:
        """I12: a version reads the same for all. J1: each follows from the one before."""
        was = self.history.setdefault(version.version, version)
        hold(was == version, "I12", f"version {version.version} was another")
        before = self.history.get(version.version - 1)
        if was is version and before is not None:
            check_follows(before, version)
            self._moves_least(before, version)

    def _moves_least(self, before: Assignment, after: Assignment) -> None:
        """J1: where all is spread evenly, and the same processes are there, nothing moves.

        Commanded moves, and those after failed moves, are exempt.
        """
        there = _takers(before)
        if not there or before.pins or after.pins or there != _takers(after) or _is_forced(after):
            return
        targets = [share.target for share in before.shares]
        count = Counter(targets)
        most, least = (edge(count[process] for process in there) for edge in (max, min))
        if set(targets) <= there.keys() and most - least <= 1:
            now = [share.target for share in after.shares]
            moved = {p: to for p, to in enumerate(now) if to != targets[p]}
            hold(
                not moved,
                "J1",
                f"version {after.version} moves {moved}, which nothing asks for: {after.cause}",
            )

    def look(self) -> None:
        """J7: versions a minute are bounded; called every second."""
        self._numbers.append(max(self.history, default=0))
        risen = self._numbers[-1] - self._numbers[-61:][0]
        hold(risen <= VERSIONS_A_MINUTE, "J7", f"{risen} versions in a minute")

    @property
    def newest(self) -> Assignment | None:
        """The newest version that a process has read."""
        return self.history[max(self.history)] if self.history else None
