# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
# distutils: include_dirs = ripple/engine/graph ripple/model/aggregate
# Told here, since Cython would find the two by a set of modules, and write them in any order.
"""Changed rows of one fold on their way into another: out of their groups, and in again."""

from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.model.aggregate.integers cimport Counts
from ripple.model.aggregate.part cimport Operand
from ripple.engine.kernels.states cimport States
from ripple.engine.graph.canonical cimport Form, Read
from ripple.engine.graph.column cimport BOOL, FLOAT, HELD, INT, Column, Field, Places
from ripple.model.keys.checked cimport check_length, check_range, check_slots
from ripple.model.keys.index cimport KeyIndex
from ripple.model.keys.slots cimport SlotSet

from ripple.model.expression.bound import Values

NONE = np.empty(0, np.int64)


cdef class Feed:
    """Which group each row of a column is in, and the rows that leave one or come.

    Invariant: groups[s] is the group of the present row at slot s as it was taken in, or -1.
    """

    cdef Column column
    cdef States states          # of the groups
    cdef list wanted            # positions of the column's fields that are read
    cdef list key_names         # of its key, if one of those is read
    cdef vector[int64_t] groups
    # Of the rows that leave, or come: slots, or where old rows are.
    cdef vector[int64_t] places
    cdef bint old
    cdef object slots
    # Per input of the states, the position of the field that it is; none where not all are fields.
    cdef vector[int] sources
    cdef readonly bint is_plain     # whether the states take in fields as they are, and no more

    def __init__(self, Column column not None, names, States states not None):
        """Feed ``states`` with the fields called ``names``, of the column's key or its own."""
        self.column, self.states = column, states
        self.wanted = [f for f, name in enumerate(column.names) if name in names]
        keys = [field.name for field in column.keys.fields]
        self.key_names = keys if any([name in names for name in keys]) else []
        self.is_plain = not states.others and not states.may_fail and all(
            [self.is_number(bound.tree) for bound in states.inputs]
        )
        if self.is_plain:
            for bound in states.inputs:
                self.sources.push_back(column.names.index(bound.tree.value))

    cdef bint is_number(self, tree) except -1:
        """Whether an expression is a field of numbers."""
        if tree.operation != "col" or tree.value not in self.column.names:
            return False
        kind = self.column.fields[<int>self.column.names.index(tree.value)].kind
        return kind == FLOAT or kind == INT

    def gone(self):
        """Return the groups, int64[n], of the changed rows that were in one.

        They are in none any more. ``columns`` and ``fold`` are about these rows as they were.
        """
        cdef Column column = self.column
        cdef int64_t i, at, slot
        cdef int64_t[::1] group
        self.cover()
        self.old, self.slots = True, None
        self.places.clear()
        for i in range(column.changed_count):
            at = column.changed[i]
            if column.old_present[at] and self.groups[column.touched._slots[at]] >= 0:
                self.places.push_back(at)
        if self.places.empty():
            return NONE
        groups = np.empty(self.places.size(), np.int64)
        group = groups
        for i in range(<int64_t>self.places.size()):
            slot = column.touched._slots[self.places[i]]
            group[i] = self.groups[slot]
            self.groups[slot] = -1
        return groups

    def come(self):
        """Return the slots, int64[n], of the changed rows that there are.

        ``columns`` and ``fold`` are about these rows.
        """
        cdef Column column = self.column
        cdef int64_t i, slot
        self.old = False
        self.places.clear()
        for i in range(column.changed_count):
            slot = column.touched._slots[column.changed[i]]
            if column.present[slot]:
                self.places.push_back(slot)
        self.slots = int64s(self.places)
        return self.slots

    def changed(self):
        """Return the slots of the rows that changed: int64[n]."""
        cdef int64_t i
        slots = np.empty(self.column.changed_count, np.int64)
        cdef int64_t[::1] out = slots
        for i in range(self.column.changed_count):
            out[i] = self.column.touched._slots[self.column.changed[i]]
        return slots

    def fold(self, const int64_t[::1] groups not None, *, bint remove):
        """Add the rows to these groups, or remove them, where ``is_plain``."""
        check_length(self.places.size(), groups.shape[0])
        if groups.shape[0]:
            check_slots(groups, self.states.room)
            self.fold_places(&groups[0], remove)

    def fold_all(self, KeyIndex total not None, SlotSet touched not None, ledger):
        """Let the changed rows leave and come where all are in one group, and ``is_plain``.

        total: has the group, as the empty key. ledger: hears of it before, if it marks.
        """
        cdef Column column = self.column
        cdef const int64_t* slots = column.touched._slots
        cdef vector[int64_t] groups, coming
        cdef int64_t i, at, slot, group = -1, gone = 0, come = 0, n = column.changed_count
        self.cover()
        self.places.resize(n)
        coming.resize(n)
        # No branches: a row that does not count is written over.
        for i in range(n):
            at = column.changed[i]
            slot = slots[at]
            self.places[gone], coming[come] = at, slot
            if column.old_present[at] and self.groups[slot] >= 0:
                group = self.groups[slot]
                gone += 1
            come += column.present[slot]
            self.groups[slot] = -1
        self.places.resize(gone)
        coming.resize(come)
        if gone:
            groups.resize(gone, group)
            self.old, self.slots = True, None
            self.fold_one(groups, touched, ledger, True)
        if come:
            group = total.find_or_add(NULL, 0)
            self.states.reserve(total.capacity)
            groups.assign(come, group)
            for i in range(come):
                self.groups[coming[i]] = group
            self.places.swap(coming)
            self.old, self.slots = False, None
            self.fold_one(groups, touched, ledger, False)

    cdef int fold_one(
        self, const vector[int64_t]& groups, SlotSet touched, ledger, bint remove
    ) except -1:
        if ledger.marks:
            ledger.change(np.array([groups[0]], np.int64))
        check_range(groups.data(), 1, self.states.room)
        self.fold_places(groups.data(), remove)
        touched.reserve(groups[0] + 1)
        touched.push(groups[0])
        return 0

    cdef int fold_places(self, const int64_t* groups, bint remove) except -1:
        """Add the rows to groups that are in range, or remove them."""
        cdef Py_ssize_t i, n = self.places.size()
        cdef size_t k
        cdef const int64_t* from_bits
        cdef const uint8_t* from_flags
        cdef uint8_t* mask
        cdef const int64_t* places
        cdef const Field* field
        cdef Places room = Places()
        cdef vector[Operand] operands
        cdef vector[const uint8_t*] chosen
        cdef vector[vector[int64_t]] bits
        cdef vector[vector[uint8_t]] masks
        assert self.is_plain
        operands.resize(self.sources.size())
        bits.resize(self.sources.size())
        for k in range(self.sources.size()):
            field = self.face(self.sources[k])
            operands[k].is_integer = field.kind != FLOAT
            if not self.states.is_taken[k]:
                continue
            from_bits = field.old_bits if self.old else field.bits
            places = self.where(self.sources[k], room)
            bits[k].resize(n)
            for i in range(n):
                bits[k][i] = from_bits[places[i]]
            operands[k].values = bits[k].data()
        masks.resize(len(self.states.nullable))
        for k, nulls in enumerate(self.states.nullable):
            for at in nulls:
                field = self.face(self.sources[<int>at])
                if not field.nullable:
                    continue
                from_flags = field.old_valid if self.old else field.valid
                places = self.where(self.sources[<int>at], room)
                masks[k].resize(n, 1)
                for i in range(n):
                    masks[k][i] &= from_flags[places[i]]
            mask = masks[k].data() if masks[k].size() else NULL
            chosen.push_back(mask)
        return self.states.fold_given(groups, n, NULL, operands, chosen, -1 if remove else 1)

    cdef Field* face(self, int f) noexcept:
        return &self.column.fields[f] if self.old else self.column.face(f)

    cdef const int64_t* where(self, int f, Places room) except? NULL:
        """Return where the face of a field has the rows."""
        cdef const int64_t* places = self.places.data()
        if self.old:
            return places
        return self.column.where(f, places, self.places.size(), room)

    def columns(self):
        """Return the wanted fields of the rows, by name."""
        cdef Column column = self.column
        cdef int64_t i
        cdef int64_t[::1] out
        if self.slots is None:
            self.slots = int64s(self.places)
            out = self.slots
            for i in range(out.shape[0]):
                out[i] = column.touched._slots[out[i]]
        return self.read(self.slots, self.places, self.old)

    cdef dict read(self, slots, const vector[int64_t]& places, bint old):
        """Return the wanted fields of rows at ``places``: slots, or positions of old rows."""
        cdef Column column = self.column
        cdef dict named = {}
        cdef const Field* field
        cdef const int64_t* at
        cdef Places room = Places()
        cdef int64_t i, n = places.size()
        cdef int64_t[::1] bits
        cdef uint8_t[::1] flags
        cdef const int64_t* from_bits
        cdef const uint8_t* from_flags
        cdef Read read
        cdef int f
        if self.key_names:
            named.update(zip(self.key_names, column.keys.arrays(slots), strict=True))
        for f in self.wanted:
            field = &column.fields[f] if old else column.face(f)
            at = places.data()
            if not old:
                at = column.where(f, at, n, room)
            mask = None
            if field.nullable:
                from_flags = field.old_valid if old else field.valid
                mask = np.empty(n, np.bool_)
                flags = mask.view(np.uint8)
                for i in range(n):
                    flags[i] = from_flags[at[i]]
            if field.kind == HELD:
                read = (<Form>column.forms[f]).read(
                    field.old_held if old else field.held, at, n, NULL, NULL
                )
                named[column.names[f]] = Values(read.arrow(), mask)
                continue
            from_bits = field.old_bits if old else field.bits
            values = np.empty(n, np.int64)
            bits = values
            for i in range(n):
                bits[i] = from_bits[at[i]]
            if field.kind == FLOAT:
                values = values.view(np.float64)
            elif field.kind == BOOL:
                values = values.astype(np.bool_)
            named[column.names[f]] = Values(values, mask)
        return named

    cdef int cover(self) except -1:
        if <int64_t>self.groups.size() < self.column.room:
            self.groups.resize(self.column.room, -1)
        return 0

    def put(self, const int64_t[::1] slots not None, const int64_t[::1] groups not None):
        """Take notice that the rows at ``slots`` are in these groups now."""
        cdef Py_ssize_t i
        self.cover()
        check_length(slots.shape[0], groups.shape[0])
        check_slots(slots, self.groups.size())
        for i in range(slots.shape[0]):
            self.groups[slots[i]] = groups[i]

    def retire(self, const int64_t[::1] slots not None):
        """Return the groups that the rows at ``slots`` are in, rising, each once: int64[n].

        The rows are final, and will be in none any more: their groups keep what they have of them.
        """
        cdef Py_ssize_t i
        left = set()
        for i in range(slots.shape[0]):
            if 0 <= slots[i] < <int64_t>self.groups.size() and self.groups[slots[i]] >= 0:
                left.add(self.groups[slots[i]])
                self.groups[slots[i]] = -1
        return np.array(sorted(left), np.int64)

    @property
    def nbytes(self):
        """Bytes held."""
        return <int64_t>(self.groups.capacity() * sizeof(int64_t))


def take_touched(SlotSet touched not None, Counts members not None):
    """Return (groups that have members, groups that have none) of those touched; empty the set."""
    cdef const int64_t[::1] slots
    cdef Py_ssize_t i
    cdef int64_t empty = 0
    groups = touched.take()
    slots = groups
    check_slots(slots, members.room())
    for i in range(slots.shape[0]):
        empty += members.at(slots[i])[0] == 0
    if empty == 0:
        return groups, NONE
    if empty == slots.shape[0]:
        return NONE, groups
    is_empty = members.result(groups) == 0
    return groups[~is_empty], groups[is_empty]
