"""Logical rows of a stream, until a mark has passed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Layout
from ripple.engine.kernels.intake import Intake
from ripple.engine.kernels.stored import Stored, Waiting, gathered
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.passed_rows import Parts
from ripple.engine.snapshots.held_saving import HeldSaving
from ripple.engine.snapshots.internal import internal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import Gate
    from ripple.engine.snapshots.held_saving import Numbers
    from ripple.model.keys.index import KeyIndex
    from ripple.model.keys.space import KeySpace
    from ripple.model.pipeline.nodes import Fields
    from ripple.model.schema.exported import Made

    Ints = npt.NDArray[np.int64]

TIME, PLACE, IDENTITY = internal("time"), internal("place"), internal("identity")
SLOT = internal("slot")
_PASSED_ROWS_MAX = 1024
_LENT = {pa.int64(), pa.float64(), pa.string(), pa.bool_()}
_NONE = np.empty(0, np.int64)


class HeldRows:
    """Rows with their event times and places, taken out by (time, place).

    ``rows`` has them in order of arrival, and ``waiting`` their order. Taken rows stay there until
    they may outnumber the held ones: a row is copied at its arrival, and when it is taken.
    """

    def __init__(
        self,
        fields: Fields,
        *,
        identities: bool = False,
        slots: bool = False,
        keys: KeySpace | None = None,
    ) -> None:
        """Hold these fields of rows, optionally with identities, or with the slots of their keys.

        Identities are needed if they do not follow from places, as of final rows. keys: has the
        first fields of all rows by these slots, so that they are not held with each.
        """
        self._of, self._fields = fields, arrow_fields(fields)
        self._keys = keys
        self._held_fields = self._fields[0 if keys is None else len(keys.fields) :]
        self._names = [field.name for field in self._held_fields]
        self._has_identities, self._has_slots = identities, slots
        own = [TIME, PLACE, *([IDENTITY] if identities else [])]
        self.schema = pa.schema([*self._fields, *(pa.field(name, pa.int64()) for name in own)])
        self.layout = Layout(self.schema)
        schema = pa.schema([self.schema.field(name) for name in (*self._names, *own)])
        self._held_schema = schema
        self.rows = Stored(schema.append(pa.field(SLOT, pa.int64())) if slots else schema, Parts)
        self.waiting = Waiting(self.rows, TIME, PLACE)
        self._savings: WeakSet[HeldSaving] = WeakSet()
        self._taken_as_news = 0  # of the rows ever held

    def empty(self) -> HeldRows:
        """Return an empty holder of such rows."""
        return HeldRows(self._of, identities=self._has_identities)

    def hold(self, rows: Rows, identities: Ints | None = None, slots: Ints = _NONE) -> None:
        """Hold rows of one batch; slots: of their keys, if these are held."""
        if not rows.count:
            return
        columns = rows.columns.lent_each(self._names)
        if None in columns:
            columns = [
                arrow_column(rows.columns[field.name], field.type) if lent is None else lent
                for field, lent in zip(self._held_fields, columns, strict=True)
            ]
        columns += self._own(rows, identities)
        if self._has_slots:
            columns.append(slots)
        self.rows.add(columns, rows.count)
        self.waiting.add()

    def intake(
        self, gate: Gate, keys: Sequence[str], index: KeyIndex | None, lateness_ns: int
    ) -> Intake | None:
        """Return the intake of whole batches of a source; None if it cannot hold such rows.

        keys: the fields of the key; it leaves a batch with a null among them to ``hold``. index: of
        the one key, if slots are held.
        """
        kinds = {field.name: field.type for field in self._fields}
        is_direct = not self._has_identities and _LENT.issuperset(kinds.values())
        if self._has_slots:
            is_direct = is_direct and len(keys) == 1 and kinds[keys[0]] != pa.bool_()
        if not is_direct:
            return None
        return Intake(
            gate.screen,
            gate.places,
            self.rows,
            self.waiting,
            time=gate.time,
            own_time=TIME,
            own_place=PLACE,
            own_slot=SLOT,
            keys=list(keys),
            index=index if self._has_slots else None,
            texts=self._has_slots and kinds[keys[0]] == pa.string(),
            lateness_ns=lateness_ns,
            future_ns=gate.future_ns,
            future_ns_max=gate.future_ns_max,
        )

    def _own(self, rows: Rows, identities: Ints | None) -> list[Any]:
        own = [rows.times_ns, rows.offsets]
        if self._has_identities:
            own.append(np.zeros(rows.count, np.int64) if identities is None else identities)
        return own

    def _only(self, slots: Ints) -> list[Ints]:
        return [slots] if self._has_slots else []

    def add(self, batch: pa.RecordBatch, slots: Ints = _NONE) -> None:
        """Hold rows of a snapshot, which have times and places; they are no news."""
        columns = batch.select(self._held_schema.names).columns
        self.rows.add([*columns, *self._only(slots)], batch.num_rows)
        self.waiting.add()
        self._taken_as_news = self.rows.added

    def new_count(self) -> int:
        """Return how many rows of batches were held since the last call.

        To be called before any of them leaves: so they are the last ones of ``rows``.
        """
        added = self.rows.added
        count, self._taken_as_news = added - self._taken_as_news, added
        return count

    def take_news(self) -> pa.RecordBatch | Made | None:
        """Return these rows as they were read; None without any."""
        rows, count = self.rows, self.new_count()
        return self.rows_at(np.arange(rows.count - count, rows.count)) if count else None

    def take_below(self, mark_ns: int) -> pa.RecordBatch | None:
        """Take out the rows below a mark, in their order; None if there are none."""
        made = self.take_made(mark_ns)
        return None if made is None else made.arrow()

    def take_batches(self, mark_ns: int) -> list[pa.RecordBatch]:
        """Do so, in several batches where the texts of one would be too long."""
        numbers = self.take_numbers(mark_ns)
        batches = self.batches(numbers)
        if batches:
            self.forget()
        return batches

    def take_made(self, mark_ns: int) -> Made | None:
        """Take out the rows below a mark as they are made here."""
        numbers = self.take_numbers(mark_ns)
        if not len(numbers):
            return None
        made = self.made(numbers)
        self.forget()
        return made

    def take_numbers(self, mark_ns: int) -> Ints:
        """Take out the rows below a mark; return their numbers in their order.

        They stay in ``rows`` until ``forget`` or ``keep``.
        """
        return self.waiting.take_below(mark_ns)

    def made(self, numbers: Ints) -> Made:
        """Return some of the rows in one piece, if each is held with all its fields."""
        return gathered(self.schema, len(numbers), [(self.rows, self.schema.names, numbers)])

    def batches(self, numbers: Ints) -> list[pa.RecordBatch]:
        """Return some of the rows, as several batches where the texts of one would be too long."""
        if self._keys is None or not len(numbers):
            return batches_of(self.rows, self.schema, numbers)
        return _split(self._beside_keys, numbers)

    def rows_at(self, numbers: Ints) -> pa.RecordBatch | Made:
        """Return some of the rows: ``made`` if each is held with all its fields, else a batch."""
        return self.made(numbers) if self._keys is None else self._beside_keys(numbers)

    def _beside_keys(self, numbers: Ints) -> pa.RecordBatch:
        """Return some of the rows with their keys before them."""
        assert self._keys is not None, "it has the keys of all rows"
        schema = self._held_schema
        own = gathered(schema, len(numbers), [(self.rows, schema.names, numbers)]).arrow()
        keys = self._keys.arrays(self.rows.words(SLOT, numbers))
        return pa.RecordBatch.from_arrays([*keys, *own.columns], schema=self.schema)

    def forget(self) -> None:
        """Free the taken rows if they are many."""
        if self.rows.count > 2 * self.waiting.count + _PASSED_ROWS_MAX and self.may_drop():
            self.keep(_NONE)

    def saving(
        self, known: Sequence[pa.RecordBatch] = (), numbers: Sequence[Numbers] = ()
    ) -> HeldSaving:
        """Begin to dump the held rows, in their order. No row is dropped before the last one.

        known, numbers: of rows before them that were taken.
        """
        count = self.rows.count
        saving = HeldSaving(self.schema, known, [*numbers, self.waiting.cut()], self.batches, count)
        self._savings.add(saving)
        return saving

    def may_drop(self) -> bool:
        """Return whether rows may be dropped: none is being dumped.

        A dump that others have waited for too long is completed for it.
        """
        for saving in tuple(self._savings):
            if self.rows.count > 2 * saving.count + _PASSED_ROWS_MAX:
                saving.complete()
            if saving.is_complete:
                self._savings.discard(saving)
        return not self._savings

    def keep(self, numbers: Ints) -> Ints:
        """Keep some of the taken rows, and free the others.

        Returns the former numbers of the remaining rows; the index of each is its new number.
        """
        return self.waiting.keep(numbers)

    def parts(self) -> list[pa.RecordBatch]:
        """Return the held rows, in their order."""
        return self.batches(self.waiting.numbers())

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.waiting.count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.rows.nbytes + self.waiting.nbytes


def batches_of(rows: Stored, schema: pa.Schema, numbers: Ints) -> list[pa.RecordBatch]:
    """Return some rows, as several batches where the texts of one would be too long."""
    if not len(numbers):
        return []

    def made(some: Ints) -> pa.RecordBatch:
        return gathered(schema, len(some), [(rows, schema.names, some)]).arrow()

    return _split(made, numbers)


def _split(made: Callable[[Ints], pa.RecordBatch], numbers: Ints) -> list[pa.RecordBatch]:
    """Return the batches of some rows, of half as many each where they are too large for one."""
    try:
        return [made(numbers)]
    except OverflowError:
        middle = len(numbers) // 2
        if not middle:
            raise
        parts = numbers[:middle], numbers[middle:]
        return [one for part in parts for one in _split(made, part)]


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows by (time, place)."""
    times, places = np.asarray(batch.column(TIME)), np.asarray(batch.column(PLACE))
    rise = times[1:] > times[:-1]
    if (rise | ((times[1:] == times[:-1]) & (places[1:] > places[:-1]))).all():
        return batch
    return batch.take(pa.array(np.lexsort((places, times))))
