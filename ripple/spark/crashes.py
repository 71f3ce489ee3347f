"""Crash test: crashes at random points of an input, and a comparison with an unbroken run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.core import cut as cuts
from ripple.core.errors import RippleError
from ripple.spark.finding import (
    OUR_ENGINE,
    Difference,
    Finding,
    difference,
    engine_class,
    table_of,
)
from ripple.spark.merge import entries_in_time
from ripple.spark.progress import report_progress
from ripple.storage.checkpoint.format import decode, encode
from ripple.task.drive import Drive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.core.cut import Cut
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Portion
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share

CRASHES_DEFAULT = 100
_BATCH_ROWS = (7, 64, 1000, 8192, 65_536)
_BATCHES_MAX = 200


@dataclass(frozen=True, slots=True)
class Crashes:
    """Crashes at random points of a portion; each restores the last stored state.

    Another engine never crashes; after each replay the digests must be equal, and at the end, with
    windows closed.
    """

    parcel: Parcel
    portion: Portion
    count: int
    seed: int
    engine: str = OUR_ENGINE
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield the finding."""
        plan, chance = self.parcel.plan(), random.Random(self.seed)  # noqa: S311 - repeatable
        portion = self.portion
        finding = Finding("crashes", f"{', '.join(portion.names)}, seed {self.seed}")
        start = portion.start
        end = {
            share.name: share.end if share.end is not None else _end_of(share, plan)
            for share in portion.shares
        }
        finding.rows = _span(start, end)
        kind = engine_class(self.engine)
        steady, crashing = (kind(plan, 0, portion.names, start=start) for _ in range(2))
        points = {
            name: sorted(chance.randint(first, end[name]) for _ in range(2 * self.count))
            for name, first in start.items()
        }
        turns = [{name: at[turn] for name, at in points.items()} for turn in range(2 * self.count)]
        for stored, crash in zip(turns[::2], turns[1::2], strict=True):
            done = _span(start, crash)
            where = f"crash at {_text(crash)}, back from {_text(stored)}"
            finding.cases += 1
            finding.at.append(round(done / max(1, finding.rows), 4))
            try:
                self._drive(plan, crashing, stored, chance)
                state = _stored(crashing.snapshot())
                self._drive(plan, crashing, crash, chance)  # the lost work
                crashing = kind.restore(plan, state)
                self._drive(plan, crashing, crash, chance)
            except RippleError as error:
                finding.differences.append(
                    Difference(f"{where.removeprefix('crash at ')}: {error}")
                )
                break
            self._drive(plan, steady, crash, chance)
            if self._differs(plan, steady, crashing, where, finding):
                break
            report_progress(self.reporter, done, finding.cases / self.count)
        else:
            for engine in (steady, crashing):
                self._drive(plan, engine, end, chance)
                engine.close()
                engine.stabilize()
            finding.cases += 1
            self._differs(plan, steady, crashing, "the end, windows closed", finding)
        report_progress(self.reporter, finding.rows, 1.0, last=True)
        yield finding.packet()

    def _drive(self, plan: Plan, engine: Engine, until: Cut, chance: random.Random) -> None:
        since, drive = engine.cut, Drive(engine)
        left = [one for one in self.portion.shares if since[one.name] < until[one.name]]
        if left:
            most = max(until[one.name] - since[one.name] for one in left)
            fitting = [n for n in _BATCH_ROWS if most // n < _BATCHES_MAX]
            rows = chance.choice(fitting or _BATCH_ROWS[-1:])
            for name, entry in entries_in_time(plan, left, engine, rows, until=until):
                drive.apply(name, entry)
        drive.stabilize()

    def _differs(
        self, plan: Plan, steady: Engine, other: Engine, where: str, finding: Finding
    ) -> bool:
        for output in plan.outputs:
            if steady.digests[output.name] == other.digests[output.name]:
                continue
            expected = table_of(steady.table(output.name), plan, output)
            found = table_of(other.table(output.name), plan, output)
            finding.differences.append(
                difference(plan, output, where, (expected, found), (self.portion.shares, other.cut))
            )
        return bool(finding.differences)


def _span(first: Cut, end: Cut) -> int:
    return sum(end.values()) - sum(first.values())


def _text(cut: Cut) -> str:
    """Return a cut for people: an offset where there is one input."""
    if len(cut) == 1:
        return f"offset {next(iter(cut.values()))}"
    return cuts.text(cut)


def _stored(snapshot: Any) -> Any:
    """Return a snapshot after storing and reading it."""
    checkpoint, files = encode(snapshot, "0000000001-check", 1, 0)
    return decode(checkpoint, {name: bytes(data) for name, data in files.items()})


def _end_of(share: Share, plan: Plan) -> int:
    end = share.first
    for entry in share.entries(plan):
        end = entry.next_offset
    return end
