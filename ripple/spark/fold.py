"""What tasks do: an engine over a share, and over what goes from stage to stage.

No Spark here: a job is a value that yields packets, whoever runs it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ripple.batch import Batch
from ripple.engine import Engine
from ripple.engine.edge_changes import EdgeChanges
from ripple.engine.follower import Follower
from ripple.engine.router import OFFSET, WATERMARK, Router
from ripple.errors import InputError
from ripple.partition.drive import Drive
from ripple.pipeline.stages import divided_into, stages_of
from ripple.spark import packets
from ripple.spark.options import BATCH_ROWS
from ripple.spark.packets import Packet, packets_in, packets_of
from ripple.window import OnCount, OnInterval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ripple.batch import Rejected
    from ripple.engine import Changes
    from ripple.engine.division import Division
    from ripple.engine.partition import Partition
    from ripple.pipeline.plan import Plan
    from ripple.spark.draft import Desk, Part
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Teller
    from ripple.spark.shares import Share, Source

# After so many batches a sender gives away what it has for the next stage, where rows become final.
BATCHES_BETWEEN_SENDS = 16
LETTERS_MAX = 1 << 14


class Job(Protocol):
    """Something that a task does."""

    def run(self) -> Iterator[Packet]:
        """Yield what there is to give."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a replay is to give: rows of these outputs, and whether windows end with the input.

    desks: where tasks put rows of outputs themselves.
    """

    outputs: tuple[str, ...]
    closes: bool = True
    desks: Mapping[str, Desk] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fold:
    """One share through the first stage, or through all where it is the only one.

    staged: whether further stages follow elsewhere. divides: whether its records go to partitions
    of the first stage by key, instead of being folded here.
    """

    parcel: Parcel
    share: Share
    wanted: Wanted
    staged: bool = False
    divides: bool = False
    division: Division | None = None
    teller: Teller | None = None
    batch_rows: int = BATCH_ROWS

    def run(self) -> Iterator[Packet]:
        """Yield rows, letters, what the next stage gets, and a report."""
        plan, share = self.parcel.plan(), self.share
        kind = Router if self.divides else Engine
        start = {share.name: share.first} if share.first else {}
        engine = kind(
            plan, share.number, (share.name,), start=start, staged=self.staged, finals=True
        )
        if self.division is not None:
            engine.expect(self.division)
        drive, giving = Drive(engine), Giving(plan, engine, self.wanted, share.number)
        sending = _sending(plan, engine, share.number)
        for entry in share.entries(plan, self.batch_rows):
            giving.refuse(share.name, drive.apply(share.name, entry))
            changes = drive.bring_up()
            yield from giving.changed(changes)
            yield from sending.batch()
            self._tell(engine, last=False)
        if self.wanted.closes and not self.divides:
            yield from giving.changed(drive.close())
        yield from sending.all()
        yield from giving.end()
        self._tell(engine, last=True)

    def _tell(self, engine: Engine, *, last: bool) -> None:
        if self.teller is not None:
            done = engine.cut[self.share.name] - self.share.first
            total = self.share.rows
            fraction = (done / total if total else 1.0) if total is not None else float(last)
            self.teller.tell(done, fraction, last=last)


class Giving:
    """What an engine of a task has to show: rows once each, letters, and the report."""

    def __init__(self, plan: Plan, engine: Partition, wanted: Wanted, number: int) -> None:
        self._plan = plan
        self._engine = engine
        self._wanted = wanted
        self._number = number
        self._letters: list[dict[str, Any]] = []
        self._causes: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._parts: dict[str, Part] = {}
        self._here = () if isinstance(engine, Router) else tuple(engine.digests)

    def refuse(self, name: str, rejected: Iterable[Rejected]) -> None:
        """Take refused records of an input."""
        for bad in rejected:
            self._causes[bad.cause] += 1
            self._letters.append(
                {
                    "source": name,
                    "offset": bad.offset,
                    "line_number": bad.line_number,
                    "reason": bad.cause,
                    "raw": bad.raw,
                }
            )

    def changed(self, changes: Changes) -> Iterator[Packet]:
        """Yield rows that became final, and letters where they are many."""
        if len(self._letters) >= LETTERS_MAX:
            yield from self._given_letters()
        for output in self._here:
            rows = changes.final.get(output)
            if rows is not None and rows.num_rows:
                yield from self._given(output, rows)

    def end(self) -> Iterator[Packet]:
        """Yield the rows that are left, the letters and the report."""
        if self._letters:
            yield from self._given_letters()
        for output in self._here:
            table = self._engine.table(output)
            if table.num_rows:
                yield from self._given(output, table)
        for part in self._parts.values():
            part.finish()
        yield Packet(packets.REPORT, stage=self._stage, sender=self._number, about=self._report())

    @property
    def _stage(self) -> int:
        return -1 if isinstance(self._engine, Router) else self._engine.stage or 0

    def _given(self, output: str, rows: pa.RecordBatch | pa.Table) -> Iterator[Packet]:
        self._rows[output] += rows.num_rows
        desk = self._wanted.desks.get(output)
        if desk is not None:
            if output not in self._parts:
                self._parts[output] = desk.begin(self._stage, self._number)
            self._parts[output].add(rows)
        elif output in self._wanted.outputs:
            packet = Packet(packets.ROWS, output, self._stage, sender=self._number)
            yield from packets_of(rows, packet)

    def _given_letters(self) -> Iterator[Packet]:
        rows = pa.RecordBatch.from_pylist(self._letters, packets.LETTER)
        self._letters.clear()
        yield from packets_of(rows, Packet(packets.LETTERS, sender=self._number))

    def _report(self) -> dict[str, Any]:
        engine = self._engine
        digests = {output: engine.digests[output] for output in self._here}
        return {
            "stage": self._stage,
            "partition": self._number,
            "cut": dict(engine.cut),
            "watermark_ns": engine.watermark_ns,
            "counters": engine.counters.as_dict(),
            "letters": dict(self._causes),
            "rows": {output: self._rows[output] for output in self._here},
            "digests": digests,
            "uncomputable": {name: one.count for name, one in engine.uncomputable.items()},
        }


class Sending:
    """What an engine of a task has for the next stage; nothing where there is none."""

    def __init__(self, engine: Partition, stage: int, number: int, *, often: bool) -> None:
        """Send to ``stage``. often: whether what waits grows with the input."""
        self._engine = engine
        self._stage = stage
        self._number = number
        self._often = often
        self._batches = self._turn = 0
        engine.send_as_log()

    def batch(self) -> Iterator[Packet]:
        """Yield what waits, if it is time to."""
        self._batches += 1
        if self._often and self._batches % BATCHES_BETWEEN_SENDS == 0:
            yield from self.all()

    def all(self) -> Iterator[Packet]:
        """Yield what waits."""
        for target, changes in enumerate(self._engine.outgoing()):
            since = None if changes.since is None else dict(changes.since)
            about = {
                "since": since,
                "cut": dict(changes.cut),
                "watermark_ns": changes.watermark_ns,
            }
            packet = Packet(
                packets.EDGE, "", self._stage, target, self._turn, self._number, about=about
            )
            yield from packets_of(changes.rows, packet)
        self._turn += 1


class Dividing:
    """What a router has for the partitions of the first stage."""

    def __init__(self, engine: Router, number: int) -> None:
        self._engine = engine
        self._number = number
        self._given = 0

    def batch(self) -> Iterator[Packet]:
        """Yield the records of a batch, to those who have some."""
        yield from self._take(whole=False)

    def all(self) -> Iterator[Packet]:
        """Tell all how far the input goes."""
        yield from self._take(whole=True)

    def _take(self, *, whole: bool) -> Iterator[Packet]:
        ((name, end),) = self._engine.cut.items()
        targets = range(divided_into(self._engine.plan))  # of the one input that it has
        for target, changes in self._engine.outgoing_to(targets).items():
            if not changes.rows.num_rows and not whole:
                continue
            about = {"cut": end, "watermark_ns": changes.watermark_ns}
            # Inputs are read side by side; those of one are told apart by their pieces.
            packet = Packet(
                packets.DIVIDED,
                name,
                0,
                target,
                end // BATCH_ROWS,
                self._number,
                self._given,
                about,
            )
            yield from packets_of(changes.rows, packet)
        self._given += 1 + BATCH_ROWS // packets.BODY_ROWS_MAX


class _Nowhere:
    def batch(self) -> Iterator[Packet]:
        return iter(())

    all = batch


def _sending(plan: Plan, engine: Partition, number: int) -> Sending | Dividing | _Nowhere:
    if isinstance(engine, Router):
        return Dividing(engine, number)
    stage = engine.stage
    if stage is None or stage + 1 == len(stages_of(plan)):
        return _Nowhere()
    often = plan.frees(plan.folds[0])
    return Sending(engine, stage + 1, number, often=often)


@dataclass(frozen=True, slots=True)
class Gather:
    """Partitions of a stage, each from what came for it; what is not for the stage passes through.

    stage: 0 where records were divided anew. senders: the names of the inputs, or how many
    partitions the stage before has.
    """

    parcel: Parcel
    stage: int
    senders: tuple[str, ...]
    wanted: Wanted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Take packets in the order of kind, target, turn, sender and piece."""
        for packet in self.run(packets_in(batches)):
            yield packet.as_batch()

    def targets(self, plan: Plan) -> int:
        """Return how many partitions the stage has."""
        if self.stage == 0:
            return divided_into(plan)
        count = stages_of(plan)[self.stage].partitions
        assert count is not None
        return count

    @property
    def takes(self) -> str:
        """The kind of the packets that are for it."""
        return packets.EDGE if self.stage else packets.DIVIDED

    def run(self, given: Iterable[Packet]) -> Iterator[Packet]:
        """Yield what the partitions have to give."""
        for target, found in groupby(given, key=self._target):
            if target is None:
                yield from found
            elif self.stage:
                yield from self._follow(target, found)
            else:
                yield from self._fold(target, found)

    def _target(self, packet: Packet) -> int | None:
        is_ours = (packet.kind, packet.stage) == (self.takes, self.stage)
        return packet.target if is_ours else None

    def _fold(self, target: int, given: Iterable[Packet]) -> Iterator[Packet]:
        plan = self.parcel.plan()
        staged = len(stages_of(plan)) > 1
        engine = Engine(plan, target, self.senders, staged=staged, finals=True)
        drive, giving = Drive(engine), Giving(plan, engine, self.wanted, target)
        sending = _sending(plan, engine, target)
        for packet in given:
            giving.refuse(packet.name, drive.apply(packet.name, divided_batch(packet, plan)))
            yield from giving.changed(drive.bring_up())
            yield from sending.batch()
        if self.wanted.closes:
            yield from giving.changed(drive.close())
        yield from sending.all()
        yield from giving.end()

    def _follow(self, target: int, given: Iterable[Packet]) -> Iterator[Packet]:
        plan = self.parcel.plan()
        follower = Follower(plan, self.stage, self.senders, target, finals=True)
        giving = Giving(plan, follower, self.wanted, target)
        sending = _sending(plan, follower, target)
        for _, turn in groupby(given, key=lambda packet: packet.turn):
            for sender, changes in _changes(turn):
                follower.follow(str(sender), 0, changes)
            yield from giving.changed(follower.stabilize())
            yield from sending.batch()
        yield from sending.all()
        yield from giving.end()


def divided_batch(packet: Packet, plan: Plan) -> Batch:
    """Return records that were divided anew as a batch, at their own offsets."""
    rows = packet.rows()
    offsets = rows.column(OFFSET).to_numpy()
    records = rows.select([one.name for one in plan.source.fields])
    if packet.about["whole"]:
        end, watermark_ns = packet.about["cut"], packet.about["watermark_ns"]
    else:
        end, watermark_ns = int(offsets[-1]) + 1, rows.column(WATERMARK)[-1].as_py()
    return Batch(records, end, (), offsets, watermark_ns)


def _changes(given: Iterable[Packet]) -> Iterator[tuple[int, EdgeChanges]]:
    for sender, pieces in groupby(given, key=lambda packet: packet.sender):
        found = list(pieces)
        rows = found[0].rows() if len(found) == 1 else pa.concat_batches([p.rows() for p in found])
        about = found[0].about
        yield sender, EdgeChanges(about["since"], about["cut"], about["watermark_ns"], rows)


def laid_out(
    parcel: Parcel, plan: Plan, source: Source, wanted: Wanted, teller: Teller | None = None
) -> tuple[list[Fold], list[Gather]]:
    """Return what is done with an input: a job for each share, then one gathering after another.

    Raises InputError for what several inputs cannot be computed from.
    """
    stages, shares = len(stages_of(plan)), source.shares
    divides = source.divided_anew(plan) is not None
    staged = stages > 1 and len(shares) > 1
    if divides:
        check_triggers(plan)
    jobs = [
        Fold(
            parcel,
            share,
            wanted,
            staged,
            divides,
            source.division(plan),
            None if teller is None else teller.of(share.number),
        )
        for share in shares
    ]
    gathers = []
    if divides:
        gathers.append(Gather(parcel, 0, tuple(share.name for share in shares), wanted))
    senders = divided_into(plan) if divides else len(shares)
    for stage in range(1, stages if staged else 1):
        gathers.append(Gather(parcel, stage, tuple(map(str, range(senders))), wanted))
        senders = gathers[-1].targets(plan)
    return jobs, gathers


def check_triggers(plan: Plan) -> None:
    """Raise InputError where rows would depend on the order in which inputs are read."""
    window = plan.folds[0].window
    if window is not None and isinstance(window.trigger, OnCount | OnInterval):
        raise InputError(
            "a window that shows partial results by OnCount or OnInterval cannot be computed over "
            "several inputs that are divided anew: what it shows depends on the order of reading"
        )
