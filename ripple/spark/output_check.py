"""Comparison of a live run's outputs with a fresh evaluation at their recorded cuts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.log.sink import reached_in
from ripple.core import cut as cuts
from ripple.core.errors import InputError, OutputError
from ripple.model.batch import Batch
from ripple.spark.feed_check import FeedCheck, FreshFeed, versions_in
from ripple.spark.finding import (
    OUR_ENGINE,
    Difference,
    EventTable,
    Finding,
    differences,
    identity_of,
)
from ripple.spark.fresh import Fresh
from ripple.spark.log_table import open_topic
from ripple.spark.oracle import Table, all_differences, first_difference
from ripple.spark.progress import report_progress
from ripple.spark.starting_point import NOTHING, StartingPoint
from ripple.storage.log import PartitionReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.contract import Commit
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.sampling import Sample
    from ripple.spark.shares import Share
    from ripple.storage.log import Topic

LOOKS_MAX = 200


@dataclass(frozen=True, slots=True)
class Divided:
    """Check that each input is in the cut of exactly one partition of an output."""

    shares: tuple[Share, ...]
    output: str
    place: str
    partitions: int
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the findings."""
        finding = Finding("outputs", f"inputs of {self.output} in {self.place}")
        topic, _ = open_topic(self.place)
        reached = [_reached(topic, number)[0] for number in range(self.partitions)]
        read = Counter(name for one in reached if one is not None for name in one.cut)
        lines = [f"{name} is read by {n} partitions" for name, n in read.items() if n > 1]
        if None not in reached:  # else reported separately
            lines += [
                f"{share.name} is read by no partition: its records are in no row"
                for share in self.shares
                if share.name not in read
            ]
        finding.differences += [Difference(text, self.output) for text in lines]
        report_progress(self.reporter, 0, 1.0, last=True)
        yield finding.packet()


@dataclass(frozen=True, slots=True)
class AgainstLog:
    """Comparison of one partition of an output in a log with a fresh evaluation at its cut.

    changes: whether its changes are compared, too, at each cut: none may be of other code.
    """

    parcel: Parcel
    shares: tuple[Share, ...]
    output: str
    place: str
    partition: int
    engine: str = OUR_ENGINE
    beginning: StartingPoint = NOTHING
    sample: Sample | None = None
    changes: bool = False
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the findings."""
        plan, sample = self.parcel.plan(), self.sample
        output = plan.output(self.output)
        finding = Finding("outputs", f"{output.name} in {self.place}/{self.partition}")
        topic, _ = open_topic(self.place)
        reached, end = _reached(topic, self.partition)
        if reached is None:
            raise InputError(
                f"{self.place}/{self.partition} has no recorded cut: only a run with "
                "checkpoints, or a worker, writes one"
            )
        begun = self.beginning.state(plan, reached.cut)
        feed = None
        fresh = (FreshFeed if self.changes else Fresh)(
            plan,
            self.shares,
            reached.cut,
            self.engine,
            staged=False,
            sample=sample,
            begun=begun,
        )
        finding.note = self.beginning.note
        if isinstance(fresh, FreshFeed):
            self._check_feed(plan, topic, is_begun=begun is not None)
            feed = FeedCheck(plan, output, fresh, self.shares)
            feed.run(topic, self.partition, end, reached.cut, self.reporter)
        fresh.go_to(reached.cut, self.reporter)
        finding.rows = fresh.rows
        where = f"the cut {cuts.text(reached.cut)}"
        expected = fresh.table(output)
        found = _written(topic, self.partition, plan, output, end)
        if sample is not None:  # history has all keys
            expected, found = sample.kept(expected, plan), sample.kept(found, plan)
        differs = first_difference(expected, found) is not None
        digest = fresh.engine.digests[output.name]
        finding.cases += sample is None  # the digest is of all keys
        if sample is None and reached.digest not in ("", digest):
            text = f"the log has recorded digest {reached.digest}, a fresh evaluation has {digest}"
            same = "" if differs else "; the rows are the same"
            finding.differences.append(Difference(f"{where}: {text}{same}", output.name))
        finding.cases += len(expected)
        if differs:
            read = self.shares, reached.cut
            finding.add(*differences(plan, output, where, (expected, found), read))
        if feed is not None:
            feed.add_to(finding, all_differences(expected, found) if differs else ())
        self.beginning.excuse_rows(output.name, finding)
        yield finding.packet()

    def _check_feed(self, plan: Plan, topic: Topic, *, is_begun: bool) -> None:
        """Raise InputError where no evaluation has the changes from the first one on."""
        why = ""
        if is_begun:
            why = "the pipeline began from history, without changes for its rows"
        elif self.beginning.changed or self.beginning.migrated:
            why = "code of the pipeline has changed, and earlier changes are of other code"
        elif plan.partial_folds:
            why = "partial results depend on the order of reading"
        elif not _at_0(topic, self.partition):
            why = "the first of them are gone, by the retention of the log"
        if why:
            raise InputError(
                f"the changes of {self.output} in {self.place} cannot be compared: {why}; leave "
                "out --changes"
            )


def _at_0(topic: Topic, partition: int) -> bool:
    with PartitionReader(topic, partition) as reader:
        return reader.range()[0] == 0


def _reached(topic: Topic, partition: int) -> tuple[Commit | None, int]:
    """Return a partition's cut, and its end offset there; its owner may be writing to it."""
    for attempt in range(LOOKS_MAX):
        with PartitionReader(topic, partition) as reader:
            _, end = reader.range()
        try:
            reached = reached_in(topic, partition)
        except OutputError:
            if attempt + 1 < LOOKS_MAX:
                continue  # between two frames of a cut
            raise
        with PartitionReader(topic, partition) as reader:
            if reader.range()[1] == end:
                return reached, end
    raise InputError(f"{topic.path}/{partition} is written to faster than it can be read")


def _written(topic: Topic, partition: int, plan: Plan, output: Output, end: int) -> Table:
    """Return the table of a log of changes at an offset, or the events of a log of them."""
    table: Table = {}
    events = EventTable()
    names = identity_of(plan, output)
    with PartitionReader(topic, partition) as reader:
        for entry in reader.read(reader.range()[0], end):
            if not isinstance(entry, Batch):
                continue
            if output.is_stream:
                events.add(entry.records.to_pylist())
                continue
            for key, row in versions_in(entry.records, names):
                if row is None:
                    table.pop(key, None)
                else:
                    table[key] = row
    return events.rows if output.is_stream else table
