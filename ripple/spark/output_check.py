"""Comparison of a live run's outputs with a fresh evaluation at their recorded cuts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.log.grown import in_use
from ripple.connectors.log.sink import reached_in
from ripple.core import cut as cuts
from ripple.core.errors import InputError, OutputError
from ripple.engine.edges.edge_changes import targets_of
from ripple.model.batch import Batch
from ripple.model.pipeline.topology import stage_of_output, stages_of
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
    from ripple.core.cut import Cut
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
    """Check that each input is in the cut of exactly one partition of an output.

    Of a later stage it may be in all of them.
    """

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
        read = Counter(
            name
            for one in reached
            if one is not None
            for name in sorted({cuts.source_of(each) for each in one.cut})
        )
        lines = []
        if not any(one is not None and _is_downstream(one.cut) for one in reached):
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
        cut, is_part = self._read(plan, reached.cut), False
        if _is_downstream(reached.cut):
            is_part = in_use(topic) > 1
        begun = self.beginning.state(plan, cut)
        feed = None
        fresh = (FreshFeed if self.changes else Fresh)(
            plan,
            self.shares,
            cut,
            self.engine,
            staged=False,
            sample=sample,
            begun=begun,
        )
        finding.note = self.beginning.note
        if isinstance(fresh, FreshFeed):
            self._check_feed(plan, topic, is_begun=begun is not None)
            feed = FeedCheck(plan, output, fresh, self.shares)
            feed.run(topic, self.partition, end, cut, self.reporter)
        fresh.go_to(cut, self.reporter)
        finding.rows = fresh.rows
        where = f"the cut {cuts.text(reached.cut)}"
        expected = fresh.table(output)
        if is_part:
            expected = self._own(fresh, output, expected, in_use(topic))
        found = _written(topic, self.partition, plan, output, end)
        if sample is not None:  # history has all keys
            expected, found = sample.kept(expected, plan), sample.kept(found, plan)
        differs = first_difference(expected, found) is not None
        digest = fresh.engine.digests[output.name]
        has_digest = sample is None and not is_part  # it is of all keys
        finding.cases += has_digest
        if has_digest and reached.digest not in ("", digest):
            text = f"the log has recorded digest {reached.digest}, a fresh evaluation has {digest}"
            same = "" if differs else "; the rows are the same"
            finding.differences.append(Difference(f"{where}: {text}{same}", output.name))
        finding.cases += len(expected)
        if differs:
            read = self.shares, cut
            finding.add(*differences(plan, output, where, (expected, found), read))
        if feed is not None:
            feed.add_to(finding, all_differences(expected, found) if differs else ())
        self.beginning.excuse_rows(output.name, finding)
        yield finding.packet()

    def _read(self, plan: Plan, cut: Cut) -> Cut:
        """Return what one evaluation reads for the rows at a cut. Raises InputError."""
        if not _is_downstream(cut):
            return cut
        where, why = f"{self.output} in {self.place}/{self.partition} is of a later stage", ""
        whole = cuts.of_sources(cut)
        if self.changes:
            why = "its changes are by the cuts of its senders: leave out --changes"
        elif whole is None:
            why = "some of its senders are behind: stop the cluster (SIGTERM), and compare then"
        elif plan.frees_rows and len({name.partition("/")[0] for name in cut}) > 1:
            why = (
                "each of its senders closes windows by its own inputs, and one evaluation by the "
                "slowest: compare the outputs of the first stage, or test with "
                "ripple.testing.cluster_test"
            )
        if why or whole is None:
            raise InputError(f"{where}, and {why}")
        return whole

    def _own(self, fresh: Fresh, output: Output, table: Table, partitions: int) -> Table:
        """Return the rows of a later stage's partition: those of its groups."""
        rows = list(table.items())
        if not rows:
            return table
        stage = stages_of(fresh.plan)[stage_of_output(fresh.plan, self.output)]
        types = fresh.engine.table(output.name).schema
        batch = pa.RecordBatch.from_pylist(
            [row for _, row in rows], schema=pa.schema([types.field(name) for name in stage.key])
        )
        at = targets_of(batch, stage.key, partitions)
        return {
            key: row
            for (key, row), target in zip(rows, at.tolist(), strict=True)
            if target == self.partition
        }

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


@dataclass(frozen=True, slots=True)
class AtRest:
    """Check that a partition at rest, of a stage with fewer partitions now, has no rows."""

    parcel: Parcel
    output: str
    place: str
    partition: int
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the finding."""
        plan = self.parcel.plan()
        finding = Finding("outputs", f"{self.output} in {self.place}/{self.partition}")
        topic, _ = open_topic(self.place)
        _, end = _reached(topic, self.partition)
        found = _written(topic, self.partition, plan, plan.output(self.output), end)
        finding.cases = 1
        for key in list(found)[:1]:
            text = f"a row of the key {key}, and its stage has fewer partitions now"
            finding.differences.append(Difference(text, self.output))
        report_progress(self.reporter, 0, 1.0, last=True)
        yield finding.packet()


def _is_downstream(cut: Cut) -> bool:
    """Whether a cut is of a later stage, by the paths of its events."""
    return any(cuts.source_of(name) != name for name in cut)


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
