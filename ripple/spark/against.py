"""What a live run has written against a fresh evaluation at the same cut."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ripple import cut as cuts
from ripple.batch import Batch
from ripple.checkpoint import Checkpoints
from ripple.connectors.log.sink import reached_in
from ripple.engine import Engine
from ripple.errors import InputError, OutputError, RippleError
from ripple.log import PartitionReader
from ripple.ops import OP, OP_NAMES, OP_REMOVE
from ripple.partition.drive import Drive
from ripple.partition.restoring import origin_of
from ripple.spark.checkpoint_table import named, store_at
from ripple.spark.finding import (
    OUR_ENGINE,
    Difference,
    Finding,
    difference,
    engine_class,
    identity_of,
    table_of,
)
from ripple.spark.log_table import open_topic
from ripple.spark.oracle import Table, first_difference
from ripple.spark.progress import tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.checkpoint.format import Checkpoint
    from ripple.connectors.contract import Commit
    from ripple.engine import Changes
    from ripple.engine.snapshot import Snapshot
    from ripple.log import Topic
    from ripple.pipeline.plan import Output, Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Teller
    from ripple.spark.sampling import Sample
    from ripple.spark.shares import Share

LOOKS_MAX = 200


@dataclass(frozen=True, slots=True)
class AgainstCheckpoints:
    """The checkpoints of one partition against a fresh evaluation at their cuts."""

    parcel: Parcel
    shares: tuple[Share, ...]
    path: str
    pipeline: str
    partition: int
    engine: str = OUR_ENGINE
    teller: Teller | None = None

    def run(self) -> Iterator[Packet]:
        """Yield what was found, of all checkpoints that are kept."""
        plan = self.parcel.plan()
        finding = Finding("checkpoints", f"{self.pipeline}/{self.partition}")
        checkpoints = Checkpoints(store_at(self.path), self.pipeline, self.partition)
        listed = asyncio.run(checkpoints.list())
        fresh: Fresh | None = None
        if origin_of(listed):
            finding.note = "it began from history that was backfilled, which is in no log"
            listed = ()
        rising = cuts.in_order([one.cut for one in listed])
        for one in rising:
            checkpoint = next(each for each in listed if dict(each.cut) == dict(one))
            where = f"checkpoint {checkpoint.name} at {cuts.text(checkpoint.cut)}"
            if checkpoint.topology_hash != plan.topology_hash:
                raise InputError(
                    f"{where} is of topology {checkpoint.topology_hash}, and the pipeline is "
                    f"{plan.topology_hash}: give the file that wrote it"
                )
            if checkpoint.stage:
                finding.note = f"stage {checkpoint.stage} follows others: not compared"
                break
            fresh = fresh or Fresh(
                plan, self.shares, checkpoint.cut, self.engine, staged=checkpoint.stage is not None
            )
            fresh.go_to(checkpoint.cut, self.teller, last=rising[-1])
            finding.cases += 1
            finding.rows = fresh.rows
            snapshot = asyncio.run(checkpoints.read(named(listed, checkpoint.name)))
            finding.differences += self._differences(fresh, checkpoint, snapshot, where)
            if finding.differences:
                break
        yield finding.packet()

    def _differences(
        self, fresh: Fresh, checkpoint: Checkpoint, snapshot: Snapshot, where: str
    ) -> Iterator[Difference]:
        """Yield in what a checkpoint differs from an engine that has read up to its cut."""
        plan, engine = fresh.plan, fresh.engine
        found = engine.snapshot().digests
        differing = [name for name, both in checkpoint.digests.items() if both != found[name]]
        try:
            cut = {name: snapshot.cut[name] for name in engine.cut}
            restored = Engine.restore(plan, replace(snapshot, cut=cut))
        except RippleError as error:
            yield Difference(f"{where} cannot be restored: {error}")
            return
        for output in plan.outputs:
            if output.name not in restored.digests:
                continue
            expected = table_of(engine.table(output.name), plan, output)
            there = table_of(restored.table(output.name), plan, output)
            if output.of in differing or first_difference(expected, there) is not None:
                cut = dict(checkpoint.cut)
                yield difference(plan, output, where, (expected, there), (self.shares, cut))


@dataclass(frozen=True, slots=True)
class AgainstLog:
    """A partition of an output in a log against a fresh evaluation at the cut that it reaches."""

    parcel: Parcel
    shares: tuple[Share, ...]
    output: str
    place: str
    partition: int
    engine: str = OUR_ENGINE
    sample: Sample | None = None
    teller: Teller | None = None

    def run(self) -> Iterator[Packet]:
        """Yield what was found."""
        plan, sample = self.parcel.plan(), self.sample
        output = plan.output(self.output)
        finding = Finding("outputs", f"{output.name} in {self.place}/{self.partition}")
        topic, _ = open_topic(self.place)
        reached, end = _standing(topic, self.partition)
        if reached is None:
            raise InputError(
                f"{self.place}/{self.partition} does not say what it reaches: only a run with "
                "checkpoints, or a worker, writes that"
            )
        fresh = Fresh(plan, self.shares, reached.cut, self.engine, staged=False, sample=sample)
        fresh.go_to(reached.cut, self.teller)
        finding.rows = fresh.rows
        where = f"the cut {cuts.text(reached.cut)}"
        digest = fresh.engine.digests[output.name]
        finding.cases += sample is None  # the digest is of all keys
        if sample is None and reached.digest not in ("", digest):
            text = f"{where}: the log has recorded digest {reached.digest}, a fresh evaluation "
            finding.differences.append(Difference(f"{text}has {digest}", output.name))
        expected = fresh.table(output)
        found = _written(topic, self.partition, plan, output, end)
        found = found if sample is None else sample.kept(found, plan)
        finding.cases += len(expected)
        if first_difference(expected, found) is not None:
            finding.differences.append(
                difference(plan, output, where, (expected, found), (self.shares, reached.cut))
            )
        yield finding.packet()


def _standing(topic: Topic, partition: int) -> tuple[Commit | None, int]:
    """Return what a partition reaches, and where it ends there; its owner may be writing to it."""
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
    raise InputError(f"{topic.path}/{partition} is written to faster than it can be looked at")


def _written(topic: Topic, partition: int, plan: Plan, output: Output, end: int) -> Table:
    """Return the rows that readers of a log of changes have at an offset."""
    table: Table = {}
    names = identity_of(plan, output)
    with PartitionReader(topic, partition) as reader:
        for entry in reader.read(reader.range()[0], end):
            if not isinstance(entry, Batch):
                continue
            for row in entry.records.to_pylist():
                op = row.pop(OP)
                key = tuple(row[name] for name in names)
                if op == OP_NAMES[OP_REMOVE]:
                    table.pop(key, None)
                else:
                    table[key] = row
    return table


class Fresh:
    """An engine that reads the inputs of a cut from their beginning, once; cut after cut."""

    def __init__(
        self,
        plan: Plan,
        shares: Sequence[Share],
        cut: Mapping[str, int],
        engine: str,
        *,
        staged: bool,
        sample: Sample | None = None,
    ) -> None:
        """Make it. sample: of the keys that are computed.

        Raises InputError where an input of the cut is not among the shares.
        """
        self.plan = plan
        by_name = {share.name: share for share in shares}
        missing = [name for name in cut if name not in by_name]
        if missing:
            raise InputError(
                f"what was written has read {', '.join(missing)}, and the source has "
                f"{', '.join(by_name)}: give the place that the live run reads"
            )
        # A stored cut has them in the order of their names; a run has them in that of the source.
        self._shares = [share for share in shares if share.name in cut]
        names = tuple(share.name for share in self._shares)
        kind = engine_class(engine)
        kind = kind if sample is None else sample.engine(kind)
        self.engine = kind(plan, 0, names, staged=staged, finals=True)
        self._final: dict[str, Table] = {output.name: {} for output in plan.outputs}

    @property
    def rows(self) -> int:
        """How many offsets were read."""
        return sum(self.engine.cut.values())

    def go_to(
        self,
        cut: Mapping[str, int],
        teller: Teller | None = None,
        *,
        last: Mapping[str, int] | None = None,
    ) -> None:
        """Read up to a cut, all inputs side by side. Raises InputError where they end before.

        teller: told how much that is of the ``last`` cut to go to, by default this one.
        """
        whole = sum((cut if last is None else last).values())
        drive, present = Drive(self.engine), self.engine.cut
        turns = deque(
            (share.name, share.entries(self.plan, since=present[share.name], until=end))
            for share in self._shares
            for end in [cut[share.name]]
            if present[share.name] < end
        )
        while turns:
            name, entries = turns.popleft()
            entry = next(entries, None)
            if entry is not None:
                turns.append((name, entries))
                drive.apply(name, entry)
                self.keep(drive.bring_up())
                tell(teller, self.rows, self.rows / whole)
        self.keep(drive.bring_up())
        tell(teller, self.rows, self.rows / whole if whole else 1.0, last=self.rows == whole)

    def table(self, output: Output) -> Table:
        """Return all rows that an output has had, those that became final among them."""
        rows = self.engine.table(output.name)
        return {**self._final[output.name], **table_of(rows, self.plan, output)}

    def keep(self, changes: Changes) -> None:
        """Keep the rows that became final."""
        for output in self.plan.outputs:
            rows = changes.final.get(output.name)
            if rows is not None and rows.num_rows:
                self._final[output.name].update(table_of(rows, self.plan, output))
