"""What holds of a cluster at every moment, each with its name; somebody outside looks.

A name is that of the invariant in the design's list. Those that are not here concern one life
(``CrashScenario`` looks at each of its steps), what no life can show (corruption that is read), or
times, and have tests of their own: ``docs/simulation.md`` says where each is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.assignment.rules import check_follows
from ripple.cut import is_within
from ripple.testing.check import Marker

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from ripple.assignment import Assignment
    from ripple.checkpoint import Checkpoint
    from ripple.checkpoint.manifest import Holding
    from ripple.events import Committed
    from ripple.testing.cluster_truth import Truth

VERSIONS_A_MINUTE = 62  # one a second, and what chance puts at the ends


class Broken(AssertionError):  # noqa: N818 - what was found, not what went wrong
    """An invariant does not hold."""


def hold(holds: bool, name: str, what: str) -> None:
    """Raise Broken unless it holds."""
    if not holds:
        raise Broken(f"{name}: {what}")


class OfPartition:
    """What holds of one partition, whoever owns it: told of all that its owners say."""

    def __init__(self, truth: Truth, stage: int, number: int, first: int) -> None:
        self._truth = truth
        self._place = stage, number, first
        # Where nothing is written, a commit is of nothing, and only checkpoints are left of it.
        self._writes = bool(truth.outputs_of(stage))
        self._name = f"partition {number}" + (f" of stage {stage}" if stage else "")
        self.committed: Mapping[str, int] = {}
        self._epoch = 0  # of the newest owner whose outputs are open
        self._found: Mapping[str, int] = {}  # what it found in them
        self._claimed = 0
        self._entry: int | None = None
        self._checkpoints_named: Sequence[Checkpoint] = ()
        self._checkpoints: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {}

    def restored(self, epoch: int, cut: Mapping[str, int]) -> None:
        """I2: an owner goes on at what was committed, and shuts out whoever was before it."""
        if epoch > self._epoch:
            self._epoch, self._found = epoch, cut
            if self._writes:
                self._cuts_rise(cut)
            self.committed = cut

    def committing(self, epoch: int, event: Committed) -> None:
        """Look at a commit of an owner."""
        self._equals_fresh(event)
        if epoch < self._epoch:
            if self._writes:
                self._was_before(epoch, event.cut)
        elif epoch == self._epoch:  # else it replays, unseen, what outputs hold
            self._cuts_rise(event.cut)
            self.committed = event.cut

    def _equals_fresh(self, event: Committed) -> None:
        """I1, I6, I9, I13, J8: what is committed at a cut is what is computed of it from nothing.

        Digests are of every bit of every row, so an aggregate that is kept up is the fresh one; of
        a later stage the senders are taken at their part of the cut; and whoever comes to the same
        cut again has the same.
        """
        fresh = self._truth.digests_at(*self._place, event.cut)
        hold(
            dict(event.digests) == {name: fresh[name] for name in event.digests},
            "I1",
            f"{self._name} at {dict(event.cut)} has {dict(event.digests)}, not {fresh}",
        )

    def _cuts_rise(self, cut: Mapping[str, int]) -> None:
        """I2, J3: what a partition commits never goes back."""
        hold(
            is_within(self.committed, cut),
            "I2",
            f"{self._name} has committed {dict(self.committed)}, and then {dict(cut)}",
        )

    def _was_before(self, epoch: int, cut: Mapping[str, int]) -> None:
        """I4, J2: once a successor has its outputs, nobody of before commits anything.

        Whoever was paused between the commit and the word of it says so late.
        """
        hold(
            is_within(cut, self._found),
            "I4",
            f"{self._name}: epoch {epoch} commits {dict(cut)} beside epoch {self._epoch}",
        )

    def stored(self, cut: Mapping[str, int]) -> None:
        """I3: a checkpoint is never ahead of what is committed."""
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
                self._checkpoints[one.name] = one.cut, one.watermarks_ns

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
        """I15: nothing that the manifest names is deleted."""
        for one in self._checkpoints_named:
            gone = [part.object_name for part in one.parts if part.object_name not in objects]
            hold(not gone, "I15", f"{self._name}: {one.name} has lost {gone}")

    def _watermarks_rise(self, cut: Mapping[str, int], watermarks_ns: Mapping[str, int]) -> None:
        """I8: a watermark never goes back: where the cut is further it is as far."""
        for other, others_ns in self._checkpoints.values():
            if is_within(other, cut):
                back = [name for name, at in others_ns.items() if watermarks_ns.get(name, at) < at]
                hold(not back, "I8", f"{self._name} at {dict(cut)}: watermarks fell of {back}")

    def _adds_up(self, cut: Mapping[str, int], counters: Mapping[str, int]) -> None:
        """I7: every event before the cut is applied, too late, or a dead letter."""
        if self._place[0] or not counters:
            return
        events = self._truth.source.events
        expected = sum(
            not isinstance(event, Marker)
            for name, offset in cut.items()
            for event in events[name][:offset]
        )
        found = sum(counters[name] for name in ("applied", "very_late", "dead_lettered"))
        hold(found == expected, "I7", f"{self._name} at {dict(cut)}: {dict(counters)}")


class OfChain:
    """What holds of the versions of the assignment, whoever proposes and reads them."""

    def __init__(self) -> None:
        self.history: dict[int, Assignment] = {}
        self._numbers: list[int] = []

    def read(self, version: Assignment) -> None:
        """I12: whoever reads a version reads the same. J1: each follows from the one before."""
        was = self.history.setdefault(version.version, version)
        hold(was == version, "I12", f"version {version.version} was another")
        if was is version and version.version - 1 in self.history:
            check_follows(self.history[version.version - 1], version)

    def look(self) -> None:
        """J7: versions a minute are bounded; called every second."""
        self._numbers.append(max(self.history, default=0))
        risen = self._numbers[-1] - self._numbers[-61:][0]
        hold(risen <= VERSIONS_A_MINUTE, "J7", f"{risen} versions in a minute")

    @property
    def newest(self) -> Assignment | None:
        """The newest version that anybody has read."""
        return self.history[max(self.history)] if self.history else None
