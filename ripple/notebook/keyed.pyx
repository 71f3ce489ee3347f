# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns as users see them: rows by key, read, written and folded.

Like a cell's value, a column's rows are those of the last stabilize: later writes are
kept apart until the next one ends, so that the graph always shows one consistent state.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from ripple.engine.graph.column cimport BOOL, FLOAT, INT, OBJECT, Column, Field, float_bits, saved_at, seen
from ripple.notebook.directory cimport Directory
from ripple.engine.graph.node cimport Graph, Node

from types import GenericAlias

from ripple.core.errors import GraphError, SchemaError
from ripple.engine.graph.canonical import fingerprint
from ripple.model.schema.values import INT64_MAX, INT64_MIN, Misfit, converter

cdef object UNSET = object()

cdef int64_t SHED_ROOM = 1024  # a column without rows keeps arrays up to this size


cdef class KeyedColumn(Column):
    """Rows by key, as of the last stabilize."""

    __class_getitem__ = classmethod(GenericAlias)

    cdef int configure(
        self, Graph graph, list parents, Directory directory, row_type, name
    ) except -1:
        self.directory = directory
        self.row_type = row_type
        self.is_single = row_type.is_single
        self.make = row_type.make
        self.reported_old = {}
        self.reported_keys = {}
        Column.__init__(self, graph, parents, directory.space, row_type.storage, name)
        return 0

    cdef void settled(self) noexcept:
        Column.settled(self)
        if self.row_count == 0 and self.room > SHED_ROOM:
            self.shed()
        if self.graph is not None and self.directory.vacated.size:
            self.directory.reclaim(self.graph)

    cdef int removed(self) except -1:
        self.row_count = 0
        self.shed()
        self.reported_old.clear()
        self.reported_keys.clear()
        return 0

    # --- reading ---

    def __getitem__(self, key):
        cdef int64_t slot = self.directory.find(key)
        if not seen(self, slot):
            raise KeyError(key)
        return self.row_at(slot, saved_at(self, slot))

    def value(self, key):
        """Return the row of a key; raises KeyError if it has none."""
        return self[key]

    def get(self, key, default=None):
        """Return the row of a key, or ``default``."""
        cdef int64_t slot = self.directory.find(key)
        return self.row_at(slot, saved_at(self, slot)) if seen(self, slot) else default

    def __contains__(self, key):
        return seen(self, self.directory.find(key))

    def __len__(self):
        return self.seen_count()

    def __iter__(self):
        slots = self.seen_slots()
        return zip(self.directory.keys_at(slots), self.rows_at(slots))

    def keys(self):
        """Return the keys that have rows, in slot order."""
        return self.directory.keys_at(self.seen_slots())

    def to_arrow(self):
        """Return keys and rows as an Arrow table, in slot order."""
        slots = self.seen_slots()
        fields = self.space.fields
        return self.row_type.table(self.space.arrays(slots), fields, self.gathered(slots))

    cdef int64_t seen_count(self) noexcept:
        return self.row_count

    cdef object seen_slots(self):
        """Return the slots where readers see a row, ascending: int64[len(self)]."""
        cdef int64_t slot, n = 0
        slots = np.empty(self.seen_count(), np.int64)
        cdef int64_t[::1] out = slots
        for slot in range(self.room):
            if seen(self, slot):
                out[n] = slot
                n += 1
        return slots

    def rows_at(self, const int64_t[::1] slots not None):
        """Return the rows that readers see at slots."""
        cdef int64_t slot
        return [self.row_at(slot, saved_at(self, slot)) for slot in slots]

    cdef object row_at(self, int64_t slot, int64_t saved):
        """Return the present row at a slot, or, not negative, the one saved at ``saved``."""
        cdef int f
        if self.is_single:
            return self.value_at(0, slot, saved)
        return self.make(**{self.names[f]: self.value_at(f, slot, saved) for f in range(self.field_count)})

    cdef object value_at(self, int f, int64_t slot, int64_t saved):
        cdef Field* field = &self.fields[f]
        cdef int64_t bits = field.bits[slot] if saved < 0 else field.old_bits[saved]
        cdef double number
        if field.nullable and not (field.valid[slot] if saved < 0 else field.old_valid[saved]):
            return None
        if field.kind == FLOAT:
            memcpy(&number, &bits, 8)
            return number
        if field.kind == INT:
            return bits
        if field.kind == BOOL:
            return bits != 0
        return self.objects[f][slot] if saved < 0 else self.old_objects[f][saved]

    cdef list gathered(self, const int64_t[::1] slots):
        """Return the rows that readers see at slots: per field (values, valid or None)."""
        cdef int f
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef int64_t saved
        cdef int64_t[::1] bits
        cdef uint8_t[::1] flags
        cdef list columns = []
        cdef Field* field
        if self.position < 0 or self.touched.size == 0:
            return [self._gather(f, slots, None) for f in range(self.field_count)]
        for f in range(self.field_count):
            field = &self.fields[f]
            values = np.empty(n, np.int64)
            valid = np.ones(n, np.uint8)
            bits, flags = values, valid
            for i in range(n):
                saved = saved_at(self, slots[i])
                bits[i] = field.bits[slots[i]] if saved < 0 else field.old_bits[saved]
                if field.nullable:
                    flags[i] = field.valid[slots[i]] if saved < 0 else field.old_valid[saved]
            if field.kind == OBJECT:
                values = [self.value_at(f, slots[i], saved_at(self, slots[i])) for i in range(n)]
            columns.append((self._typed(field.kind, values), valid if field.nullable else None))
        return columns

    # --- reports of an output ---

    cdef int note_report(self) except -1:
        """Remember the rows that changed, as they were."""
        cdef int64_t i, at
        slots = np.empty(self.changed_count, np.int64)
        cdef int64_t[::1] out = slots
        for i in range(self.changed_count):
            out[i] = self.touched._slots[self.changed[i]]
        for i, key in enumerate(self.directory.keys_at(slots)):
            at = self.changed[i]
            if key not in self.reported_keys:
                self.reported_keys[key] = None
                if self.old_present[at]:
                    self.reported_old[key] = self.row_at(out[i], at)
        return 0

    cdef object value_before(self):
        return self.reported_old

    cdef object value_now(self):
        """Return the rows that changed by key; keys that are only in ``old`` were removed."""
        keys, self.reported_keys, self.reported_old = self.reported_keys, {}, {}
        return {key: self[key] for key in keys if key in self}

    # --- folds ---

    def fold(self, *arguments, **options):
        """Return a cell that folds all rows; see :func:`ripple.notebook.folds.fold`."""
        from ripple.notebook import folds

        return folds.fold(self, *arguments, **options)

    def sum(self, field=None, **options):
        """Return the exact sum of a field as a cell; nulls are left out."""
        from ripple.notebook import folds

        return folds.sum_of(self, field, **options)

    def count(self, field=None, **options):
        """Return the number of rows, or of those in which ``field`` is not null, as a cell."""
        from ripple.notebook import folds

        return folds.count_of(self, field, **options)

    def min(self, field=None, **options):
        """Return the smallest value of a field as a cell; None if there is none."""
        from ripple.notebook import folds

        return folds.aggregate_of("min", self, field, **options)

    def max(self, field=None, **options):
        """Return the largest value of a field as a cell; None if there is none."""
        from ripple.notebook import folds

        return folds.aggregate_of("max", self, field, **options)

    def mean(self, field=None, **options):
        """Return the exact mean of a field, rounded once, as a cell; None if there is none."""
        from ripple.notebook import folds

        return folds.aggregate_of("mean", self, field, **options)


@cython.final
cdef class LeafColumn(KeyedColumn):
    """A column written from outside: whole rows, by key."""

    def __cinit__(self):
        self.staged_objects = []

    def __init__(self, Graph graph not None, Directory directory not None, row_type, name=None):
        self.configure(graph, [], directory, row_type, name)
        self.staged_bits = <int64_t*>calloc(self.field_count, sizeof(int64_t))
        self.staged_valid = <uint8_t*>calloc(self.field_count, 1)
        if not (self.staged_bits and self.staged_valid):
            raise MemoryError
        self.staged_objects = [None] * self.field_count
        self.converters = [converter(field.type) for field in row_type.fields]
        directory.leaves.append(self)
        self.may_go_straight = self.field_count == 1 and not self.fields.nullable
        self.may_go_straight &= self.fields.kind != OBJECT

    def __dealloc__(self):
        free(self.staged_bits)
        free(self.staged_valid)

    # --- writing ---

    def __setitem__(self, key, row):
        self.put(key, row)

    def set(self, key, row=UNSET, /, **fields):
        """Give a key its row, as from the next stabilize on.

        row: the value of a column of single values; else a record or a dict, or the fields by
        name. A field that is left out is null. Raises SchemaError, and changes nothing, for values
        that do not fit.
        """
        if row is UNSET:
            self.put(key, fields[self.names[0]] if self.is_single and self.names[0] in fields and len(fields) == 1 else fields)
        elif fields:
            raise GraphError("give a row or its fields, not both")
        else:
            self.put(key, row)

    cdef int put(self, object key, object row) except -1:
        cdef Field* field = self.fields
        cdef int64_t slot
        cdef int f
        if self.graph is None or self.graph.busy():
            self.refuse_write()
        if self.is_single and field.kind == FLOAT and type(row) is float:
            slot = self.directory.find_or_add(key, self.graph)
            self.open_row(slot)
            field.bits[slot] = float_bits(<double>row)
            if field.nullable:
                field.valid[slot] = 1
            return self.graph.mark_dirty(self)
        if self.is_single:
            self.stage(0, row)
        else:
            for f, value in enumerate(self.row_type.values_of(row)):
                self.stage(f, value)
        return self.commit(key)

    cdef int stage(self, int f, object value) except -1:
        """Convert a value of the row on its way in; raises SchemaError."""
        cdef Field* field = &self.fields[f]
        self.staged_valid[f] = 1
        if field.kind == FLOAT and type(value) is float:
            self.staged_bits[f] = float_bits(<double>value)
            return 0
        if field.kind == INT and type(value) is int and INT64_MIN <= value <= INT64_MAX:
            self.staged_bits[f] = value
            return 0
        if value is None:
            if not field.nullable:
                raise SchemaError(f"the field {self.names[f]!r} cannot be null; declare it as | None")
            self.staged_valid[f] = 0
            self.staged_bits[f] = 0
            self.staged_objects[f] = None
            return 0
        try:
            value = self.converters[f](value)
        except Misfit as misfit:
            raise SchemaError(f"the field {self.names[f]!r} {misfit}") from None
        if field.kind == FLOAT:
            self.staged_bits[f] = float_bits(<double>value)
        elif field.kind == OBJECT:
            self.staged_bits[f] = fingerprint(value)
            self.staged_objects[f] = value
        else:
            self.staged_bits[f] = value
        return 0

    cdef int commit(self, object key) except -1:
        """Write the staged row."""
        cdef int64_t slot = self.directory.find_or_add(key, self.graph)
        cdef Field* field
        cdef int f
        self.open_row(slot)
        for f in range(self.field_count):
            field = &self.fields[f]
            field.bits[slot] = self.staged_bits[f]
            if field.nullable:
                field.valid[slot] = self.staged_valid[f]
            if field.kind == OBJECT:
                self.objects[f][slot] = self.staged_objects[f]
                self.staged_objects[f] = None
        self.graph.mark_dirty(self)
        return 0

    cdef int open_row(self, int64_t slot) except -1:
        """Save the row at a slot and see that there is one."""
        if slot >= self.room:
            self.reserve(self.directory.index.capacity)
        self.touch(slot)
        if not self.present[slot]:
            self.present[slot] = 1
            self.row_count += 1
        return 0

    def apply(self, keys, values=None, /, **arrays):
        """Give many keys their rows; of a key that is there twice, the last one counts.

        keys: a list, NumPy or Arrow array (of tuples for keys of several parts, or a tuple of one
        array per part). values: the array of the only field; or arrays by name: lists, NumPy or
        Arrow arrays, one value a key. A field that is left out is null. Raises SchemaError, and
        changes nothing, for values that do not fit.
        """
        cdef int64_t[::1] slots
        cdef Py_ssize_t i
        if self.graph is None or self.graph.busy():
            self.refuse_write()
        if values is not None and arrays:
            raise GraphError("give values or arrays by name, not both")
        key_arrays = self.directory.arrays(keys)
        columns, valid = self.row_type.arrays(arrays if values is None else values, len(key_arrays[0]))
        self.directory.reclaim(self.graph)
        added = self.space.slots(key_arrays)
        self.space.adopt(added)
        slots = added
        self.reserve(self.directory.index.capacity)
        # Dirty first: should a value be refused half-way, readers see the rows that were saved.
        if slots.shape[0]:
            self.graph.mark_dirty(self)
        self.write_rows(slots, columns, valid)

    def remove(self, key):
        """Take a key's row away; return whether it had one. Its slot will be used again."""
        if self.graph is None or self.graph.busy():
            self.refuse_write()
        return self.take_out(self.directory.find(key))

    def remove_all(self, keys):
        """Take the rows of many keys away; return how many there were."""
        cdef int64_t removed = 0
        if self.graph is None or self.graph.busy():
            self.refuse_write()
        arrays = [array.to_pylist() for array in self.directory.arrays(keys)]
        for key in arrays[0] if len(arrays) == 1 else zip(*arrays):
            removed += self.take_out(self.directory.find(key))
        return removed

    def __delitem__(self, key):
        if not self.remove(key):
            raise KeyError(key)

    cdef bint take_out(self, int64_t slot) except -1:
        if slot < 0 or slot >= self.room or not self.present[slot]:
            return False
        self.touch(slot)
        self.erase_one(slot)
        self.directory.vacate(slot)
        self.graph.mark_dirty(self)
        return True

    cdef int refuse_write(self) except -1:
        if self.graph is None:
            raise GraphError(f"{self!r} cannot be written any more")
        return self.graph.refuse_while_busy(f"write {self!r}")

    # --- stabilizing ---

    cdef int64_t seen_count(self) noexcept:
        return self.stable_count if self.position >= 0 else self.row_count

    cdef bint straight(self) except -1:
        cdef const Field* field = self.fields
        cdef int64_t slot, was
        if self.touched.size != 1 or len(self.dependents) != 1:
            return False
        if self.is_output or self.directory.vacated.size:
            return False
        slot, was = self.touched._slots[0], field.old_bits[0]
        if not self.old_present[0] or not self.present[slot] or was == field.bits[slot]:
            return False
        if not (<Node>self.dependents[0]).row_changed(slot, was, field.bits[slot]):
            return False
        self.count_change()
        self.rows_in += 1
        self.rows_out += 1
        self.touched.empty()
        return True

    cdef bint recompute(self) except -1:
        cdef bint changed = self.settle_changes()
        self.stable_count = self.row_count
        if changed and self.is_output:
            self.note_report()
        if not changed:
            self.settled()
        return changed

    cdef int removed(self) except -1:
        cdef int64_t slot
        for slot in range(self.room):
            # A row that was erased but not stabilized is in `vacated` already.
            if self.present[slot]:
                self.directory.vacate(slot)
        self.directory.leaves.remove(self)
        return KeyedColumn.removed(self)

    cpdef str kind(self):
        return "column"

    cpdef object check(self):
        """Raise AssertionError when rows and keys contradict each other."""
        Column.check(self)
        self.directory.check()
