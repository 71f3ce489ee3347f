"""The way of one source's records into a plan with branches: its inputs, schema and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Layout
from ripple.engine.kernels.identities import identities_of
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.way import PRECEDING, SPAN, Way
from ripple.engine.operators.admission import Admission, Declared
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.deletion_times import give_times
from ripple.engine.operators.waiting import Gate
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import duration_ns, watermark
from ripple.model.window.spec import FUTURE_TOLERANCE_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.machine.inputs import Input
    from ripple.engine.operators.asked_rows import AskedRows
    from ripple.engine.operators.event_fold import EventFold
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.waiting import Side
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan

    Ints = npt.NDArray[np.int64]


class Port(Way):
    """A source, and the nodes over its records, each after its inputs.

    A row's place is (source, offset, input, index in its record), as one number.
    """

    def __init__(self, plan: Plan, source: SourceSpec, names: Sequence[str]) -> None:
        """names: of its inputs, in their order."""
        super().__init__(source.name)
        self.source = source
        self.counters = Counters()
        self._inputs = {name: number for number, name in enumerate(names)}
        self.inputs = tuple(names)
        """The names of its inputs."""
        self.step = len(names) * FLAT_ROWS_MAX
        """How far the places of an input's records are apart."""
        self._base = plan.sources.index(source) * SPAN
        first = self._base - PRECEDING
        self.span = (first, first + SPAN, self._base)
        """The first place of its rows, the next one after all, and the place of the record at
        offset 0 of its first input."""
        is_alone = len(plan.sources) == 1 and not plan.waiting
        self._end = watermark.END if is_alone else SPAN - PRECEDING
        self.accepted = pa.schema(arrow_fields(source.fields_taken))
        """The schema of batches that need no conversion."""
        self.declared = Declared(source)
        self.layout = Layout(self.accepted)
        self._admission = Admission(source, self.layout)
        self.intake: Intake | None = None
        """The holder of whole batches, where a record needs nothing else."""

    def lead(
        self,
        plan: Plan,
        folds: Sequence[EventFold],
        streams: Mapping[str, StreamRows],
        sides: Sequence[Side],
        asks: Sequence[AskedRows],
    ) -> None:
        """Lead the records through ``plan`` to its waiting nodes, folds and outputs."""
        super().lead(plan, folds, streams, sides, asks)
        spans_ns = [one.fold.future_ns for one in self.folds if one.fold.future_ns is not None]
        self.future_ns = min(spans_ns, default=duration_ns(FUTURE_TOLERANCE_DEFAULT))
        time, table = self.source.time_field, self.source.table
        if self.alone is not None and time is not None and table is None:
            ahead_ns = self.source.reject_future_ns
            ahead_ns = watermark.ANY_FUTURE_NS if ahead_ns is None else ahead_ns
            gate = Gate(self._admission.screen, self.layout.places, time, self.future_ns, ahead_ns)
            self.intake = self.alone.intake(gate)

    def admit(self, rows: Rows, given: Input) -> None:
        """Reject the records of an input that do not count, before they are judged by time."""
        if not self._admission.passes(rows.columns):
            self._admission.refuse(rows)
        if self.source.table is not None:
            give_times(rows, self.source, given.watermark_ns, given.future_ns_max)

    @property
    def offset_max(self) -> int:
        """The limit of offsets, so that every row has a place."""
        return self._end // (len(self._inputs) * FLAT_ROWS_MAX)

    def places(self, name: str, offsets: Ints) -> Ints:
        """Return the places of the first row of records of an input."""
        places = offsets * self.step
        places += self._inputs[name] * FLAT_ROWS_MAX + self._base
        return places

    def places_before(self, given: Input, count: int, offsets: Ints | None) -> Ints:
        """Return the places of the first rows of so many records, which an input was moved past.

        offsets: theirs, where they do not follow each other.
        """
        if offsets is not None:
            return self.places(given.name, offsets)
        first, step = self.place_of(given.name, given.next_offset - count), self.step
        return np.arange(first, first + count * step, step)

    def place_of(self, name: str, offset: int) -> int:
        """Return the place of the first row of a record of an input."""
        return offset * self.step + self._inputs[name] * FLAT_ROWS_MAX + self._base

    @property
    def base(self) -> int:
        """The place of the record at offset 0 of its first input."""
        return self._base

    def numbers(self, places: Ints) -> Ints:
        """Return of which input, by its number, the rows at these places are."""
        return (places - self._base) // FLAT_ROWS_MAX % len(self._inputs)

    def precede(self) -> None:
        """Give its rows places before all rows of the source in other engines.

        They stay after all rows of earlier declared sources, and keep their inputs; for other
        engines their offsets are below 0.
        """
        unit = FLAT_ROWS_MAX * len(self._inputs)
        self._base -= PRECEDING // unit * unit
        self.span = (*self.span[:2], self._base)
        self._end = PRECEDING

    def identities(self, places: Ints) -> tuple[Ints, Ints]:
        """Return the offsets of rows of an input, and their indexes in their records."""
        return identities_of(places, self._base, len(self._inputs), FLAT_ROWS_MAX)
