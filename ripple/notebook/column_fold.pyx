# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Cells that fold all rows of a column, by taking changed rows out and putting them in again.

They read values where the column has them: a notebook has no linked columns.
"""

from cpython.float cimport PyFloat_AS_DOUBLE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from ripple.model.aggregate.exact cimport ExactSums
from ripple.model.aggregate.integers cimport i128
from ripple.engine.graph.cell cimport PHYSICAL, Cell
from ripple.engine.graph.column cimport Column, Field, saved_at, seen
from ripple.notebook.keyed cimport KeyedColumn
from ripple.engine.graph.node cimport Graph, Node
from ripple.model.keys.slots cimport SlotSet

cdef extern from "integers.h" nogil:
    void integer_add(i128* sum, int64_t value, int64_t direction)
    int integer_read(const i128* sum, int64_t* out)

cdef object UNSET = object()
cdef object ZERO = np.zeros(1, np.int64)


cdef class ColumnFold(Cell):
    """The common part of folds.

    A fold follows its column's changes when it is notified of them, which is once for each
    change; its value is published when its turn comes. So a stabilize that failed elsewhere does
    not matter, and nothing must be kept by slot. An error while following makes the fold start
    afresh from all rows at its turn, where an error names this node and is retried.
    """

    # Invariant: unless `stale`, the state is the fold of the column's rows, less those noted.

    cdef KeyedColumn column
    cdef bint stale

    cdef int open(self, KeyedColumn column, cutoff, name, serializer) except -1:
        self.column = column
        self.stale = True
        self.configure(cutoff, name, serializer)
        return self.enter(column.graph, [column])

    cdef int parent_changed(self, Node parent) except -1:
        if not self.stale:
            try:
                self.follow()
            except Exception:
                # Not lost: recompute rebuilds from the rows, and raises it again if it lasts.
                self.stale = True
        return 0

    cdef bint recompute(self) except -1:
        if self.stale:
            self.rebuild()
            self.stale = False
        return self.publish(self.result())

    cdef int followed(self, object new) except -1:
        """Take what ``row_changed`` made, None if it is the same, as the value: not stale any more."""
        cdef Node next
        if new is None:
            self.count_cutoff()
        elif self.is_output or self.dependents:
            self.previous, self.current = self.current, new
            next = self.graph.mark_changed(self)
            if next is not None:
                self.graph.mark_dirty(next)
        else:
            self.current = new
            self.count_change()
        self.stale = False
        return 0

    cdef int follow(self) except -1:
        """Take the column's changes over."""
        return 0

    cdef int rebuild(self) except -1:
        """Take all rows over, as readers see them."""
        return 0

    cdef object result(self):
        raise NotImplementedError

    def again(self):
        """Return the value computed from nothing."""
        raise NotImplementedError

    cdef int removed(self) except -1:
        self.column = None
        return 0

    cpdef str kind(self):
        return "column_fold"

    cpdef object check(self):
        self.agree(self.again())


cdef class RowCount(ColumnFold):
    """The number of rows."""

    def __init__(self, KeyedColumn column not None, cutoff=None, name=None, serializer=None):
        self.open(column, cutoff, name, serializer)

    cdef object result(self):
        return self.column.seen_count()

    def again(self):
        return len(self.column.seen_slots())


cdef class FloatSum(ColumnFold):
    """The exact sum of a float field, nulls left out."""

    cdef ExactSums sums
    cdef int field

    def __init__(self, KeyedColumn column not None, int field, cutoff=None, name=None, serializer=None):
        self.field = field
        self.open(column, cutoff, name, serializer)

    cdef int follow(self) except -1:
        cdef Column column = self.column
        cdef Field* field = &column.fields[self.field]
        cdef int64_t i, at, slot
        cdef int failed = 0
        for i in range(column.changed_count):
            at = column.changed[i]
            slot = column.touched._slots[at]
            if column.old_present[at] and not (field.nullable and not field.old_valid[at]):
                failed |= self.sums.add_one(0, (<double*>field.old_bits)[at], -1)
            if column.present[slot] and not (field.nullable and not field.valid[slot]):
                failed |= self.sums.add_one(0, (<double*>field.bits)[slot], 1)
        if failed:
            raise MemoryError
        return 0

    cdef bint row_changed(self, int64_t slot, int64_t was, int64_t now) except -1:
        cdef double left, entered, total
        if self.stale or self.position >= 0 or self.rule != PHYSICAL:
            return False
        memcpy(&left, &was, 8)
        memcpy(&entered, &now, 8)
        self.stale = True
        if self.sums.replace_one(0, left, entered):
            raise MemoryError
        total = self.sums.sum_one(0)
        self.followed(None if same_number(self.current, total) else total)
        return True

    cdef ExactSums total(self):
        cdef Column column = self.column
        cdef Field* field = &column.fields[self.field]
        cdef int64_t slot, at
        cdef int failed = 0
        cdef ExactSums sums = ExactSums()
        sums.resize(1)
        for slot in range(column.room):
            if not seen(column, slot):
                continue
            at = saved_at(column, slot)
            if at < 0:
                if not (field.nullable and not field.valid[slot]):
                    failed |= sums.add_one(0, (<double*>field.bits)[slot], 1)
            elif not (field.nullable and not field.old_valid[at]):
                failed |= sums.add_one(0, (<double*>field.old_bits)[at], 1)
        if failed:
            raise MemoryError
        return sums

    cdef int rebuild(self) except -1:
        self.sums = self.total()
        return 0

    cdef object result(self):
        return self.sums.sum_one(0)

    def again(self):
        return self.total().sum_one(0)


cdef class IntSum(ColumnFold):
    """The sum of an int field, nulls left out: a Python int, never wrapped."""

    cdef i128 sum
    cdef int field

    def __init__(self, KeyedColumn column not None, int field, cutoff=None, name=None, serializer=None):
        self.field = field
        self.open(column, cutoff, name, serializer)

    cdef int follow(self) except -1:
        cdef Column column = self.column
        cdef Field* field = &column.fields[self.field]
        cdef int64_t i, at, slot
        # A null and an absent row have zero bits.
        for i in range(column.changed_count):
            at = column.changed[i]
            slot = column.touched._slots[at]
            integer_add(&self.sum, field.old_bits[at], -1)
            integer_add(&self.sum, field.bits[slot], 1)
        return 0

    cdef bint row_changed(self, int64_t slot, int64_t was, int64_t now) except -1:
        if self.stale or self.position >= 0 or self.rule != PHYSICAL:
            return False
        self.stale = True
        integer_add(&self.sum, was, -1)
        integer_add(&self.sum, now, 1)
        total = integer_of(&self.sum)
        self.followed(None if total == self.current else total)
        return True

    cdef int total(self, i128* sum) except -1:
        cdef Column column = self.column
        cdef Field* field = &column.fields[self.field]
        cdef int64_t slot, at
        memset(sum, 0, 16)
        for slot in range(column.room):
            at = saved_at(column, slot)
            integer_add(sum, field.bits[slot] if at < 0 else field.old_bits[at], 1)
        return 0

    cdef int rebuild(self) except -1:
        return self.total(&self.sum)

    cdef object result(self):
        return integer_of(&self.sum)

    def again(self):
        cdef i128 sum
        self.total(&sum)
        return integer_of(&sum)


cdef inline bint same_number(object value, double number) noexcept:
    """Whether a value is the float of these bits."""
    cdef double own
    if type(value) is not float:
        return False
    own = PyFloat_AS_DOUBLE(value)
    return memcmp(&own, &number, 8) == 0


cdef object integer_of(const i128* sum):
    cdef int64_t value
    if integer_read(sum, &value):
        return int.from_bytes((<const char*>sum)[:16], "little", signed=True)
    return value


cdef class AggregateFold(ColumnFold):
    """Any aggregate of ``ripple.model.aggregate`` over the rows."""

    cdef object aggregate       # ripple.notebook.folds.BoundAggregate
    cdef object state
    cdef SlotSet due            # slots of rows that are not in the state

    def __init__(self, KeyedColumn column not None, aggregate, cutoff=None, name=None, serializer=None):
        self.aggregate = aggregate
        self.due = SlotSet()
        self.open(column, cutoff, name, serializer)

    cdef int follow(self) except -1:
        """Take the changed rows out as they were; they are put in when it is this fold's turn."""
        cdef KeyedColumn column = self.column
        cdef int64_t i, at
        self.due.reserve(column.room)
        kept = np.zeros(column.changed_count, np.bool_)
        cdef uint8_t[::1] taken_out = kept.view(np.uint8)
        for i in range(column.changed_count):
            at = column.changed[i]
            if not self.due._place[column.touched._slots[at]]:
                self.due.push(column.touched._slots[at])
                taken_out[i] = column.old_present[at]
        if kept.any():
            self.aggregate.change(self.state, column.old_rows(), kept, remove=True)
        return 0

    cdef int rebuild(self) except -1:
        self.due.empty()
        self.state = self.fresh()
        return 0

    cdef object fresh(self):
        state = self.aggregate.state()
        slots = self.column.seen_slots()
        if len(slots):
            self.aggregate.change(state, self.column.gathered(slots), None, remove=False)
        return state

    cdef bint recompute(self) except -1:
        cdef KeyedColumn column = self.column
        cdef int64_t i, n = 0
        if not self.stale and self.due.size:
            slots = np.empty(self.due.size, np.int64)
            for i in range(self.due.size):
                if seen(column, self.due._slots[i]):
                    slots[n] = self.due._slots[i]
                    n += 1
            self.stale = True  # until all rows are in
            if n:
                self.aggregate.change(self.state, column.gathered(slots[:n]), None, remove=False)
            self.due.empty()
            self.stale = False
        return ColumnFold.recompute(self)

    cdef void settled(self) noexcept:
        Cell.settled(self)
        if self.column.room == 0:
            self.due.shed()

    cdef object result(self):
        return self.aggregate.result(self.state)

    def again(self):
        return self.aggregate.result(self.fresh())

    cdef int removed(self) except -1:
        self.state = None
        self.due.shed()
        return ColumnFold.removed(self)


cdef class FunctionFold(ColumnFold):
    """A user's ``add`` and ``remove``."""

    cdef object init, total, add, remove
    cdef dict noted             # changed slot -> its row that is still in the total, or UNSET
    cdef bint approximate

    def __init__(
        self, KeyedColumn column not None, init, add, remove, approximate=False,
        cutoff=None, name=None, serializer=None,
    ):
        self.init = init
        self.add = add
        self.remove = remove
        self.approximate = approximate
        self.noted = {}
        self.open(column, cutoff, name, serializer)

    cdef int follow(self) except -1:
        cdef KeyedColumn column = self.column
        cdef int64_t i, at, slot
        for i in range(column.changed_count):
            at = column.changed[i]
            slot = column.touched._slots[at]
            if slot not in self.noted:
                self.noted[slot] = column.row_at(slot, at) if column.old_present[at] else UNSET
        return 0

    cdef int rebuild(self) except -1:
        self.noted.clear()
        self.total = self.all_rows()
        return 0

    cdef object all_rows(self):
        total = self.init
        for row in self.column.rows_at(self.column.seen_slots()):
            total = self.add(total, row)
        return total

    cdef bint recompute(self) except -1:
        cdef KeyedColumn column = self.column
        cdef int64_t slot
        if not self.stale and self.noted:
            total = self.total
            for slot, old in self.noted.items():
                if old is not UNSET:
                    total = self.remove(total, old)
                if seen(column, slot):
                    total = self.add(total, column.row_at(slot, -1))
            self.total = total
            self.noted.clear()
        return ColumnFold.recompute(self)

    cdef object result(self):
        return self.total

    def again(self):
        return self.all_rows()

    cdef int removed(self) except -1:
        self.init = self.total = self.add = self.remove = None
        self.noted.clear()
        return ColumnFold.removed(self)

    cpdef object check(self):
        """Compare with a fold from the start; not if ``approximate``: remove need not be exact."""
        if not self.approximate:
            ColumnFold.check(self)
