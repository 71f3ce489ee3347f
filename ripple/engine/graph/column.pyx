# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
# distutils: include_dirs = ripple/engine/graph
"""A keyed node: one row of values per key, kept as arrays by slot.

Writing a slot for the first time since the last stabilize saves its row. Stabilization compares
the saved rows with the present ones: those that differ are the column's changes, the rest is cut
off. Rows are equal when they are equal bit for bit (every NaN is the same NaN).

The rows of a linked column have no values of their own but those of a row on each of two sides: so
a join whose rows are many holds no texts again. Only what it saves of a changed row are values.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from ripple.model.keys.checked cimport check_length, check_slots, first_outside
from ripple.engine.graph.canonical cimport Form, Written
from ripple.core.kept cimport Kept, kept_again, kept_drop
from ripple.engine.graph.node cimport Graph, Node
from ripple.model.keys.slots cimport SlotSet, next_room
from ripple.core.hashing cimport mix, mix_at

from ripple.engine.graph.canonical import fingerprint

cdef extern from *:
    """
    #define RIPPLE_NULL_HASH 0x9AE16A3B2F90404FULL
    """
    const uint64_t RIPPLE_NULL_HASH

cdef enum:
    HASHED_TOGETHER = 64

KINDS = {"float": FLOAT, "int": INT, "bool": BOOL, "object": OBJECT}


cdef void* grown(void* block, int64_t old_bytes, int64_t new_bytes) except NULL:
    """Return the block enlarged, the new part zero."""
    cdef void* bigger = realloc(block, new_bytes)
    if not bigger:
        raise MemoryError
    memset(<char*>bigger + old_bytes, 0, new_bytes - old_bytes)
    return bigger


cdef inline bint same_row(Column column, int64_t at, int64_t slot) noexcept nogil:
    """Whether the row saved at ``at`` is the present one at ``slot``."""
    cdef const Field* field = column.fields
    cdef const Field* end = field + column.field_count
    if column.old_present[at] != column.present[slot]:
        return False
    while field < end:
        if field.old_bits[at] != field.bits[slot]:
            return False
        if field.nullable and field.old_valid[at] != field.valid[slot]:
            return False
        field += 1
    return True


cdef inline int held_fields(Column column) noexcept nogil:
    """How many fields have their present values here: none of a linked column."""
    return 0 if column.side_fields else column.field_count


cdef class Places:
    def __dealloc__(self):
        free(self.left)
        free(self.right)


cdef class Column(Node):
    # Invariants (check_invariants):
    #   row_count slots are present; a slot that is absent or null has zero bits, so that equality
    #   and hashes need not look at former values; `touched` is empty between stabilizes
    #   unless the column is dirty.

    def __init__(self, Graph graph not None, parents, keys, fields, str name=None):
        """Add an empty column to ``graph``.

        keys: the key space of its slots. fields: (name, kind, nullable) each, kind one of
        "float", "int", "bool", or a :class:`Form`, or "object": values that are kept as they are.
        """
        self.name = name
        self.space = keys
        self.names = tuple(name for name, _, _ in fields)
        self.field_count = len(fields)
        self.fields = <Field*>calloc(max(1, self.field_count), sizeof(Field))
        if not self.fields:
            raise MemoryError
        self.objects = []
        self.old_objects = []
        self.forms = []
        self.touched = SlotSet()
        self.is_plain = True
        for f, (_, kind, nullable) in enumerate(fields):
            self.forms.append(None if isinstance(kind, str) else kind)
            self.fields[f].kind = KINDS[kind] if isinstance(kind, str) else HELD
            self.fields[f].nullable = nullable
            is_object = self.fields[f].kind == OBJECT
            self.is_plain &= self.fields[f].kind < HELD
            self.objects.append([] if is_object else None)
            self.old_objects.append([] if is_object else None)
        graph.attach(self, list(parents))

    def __dealloc__(self):
        self.free_all()
        free(self.fields)
        free(self.side_fields)

    def __len__(self):
        return self.row_count

    # --- memory ---

    cdef int reserve(self, int64_t slots) except -1:
        """Make room for slots below ``slots``: a capacity, which grows by more than one at a time."""
        cdef int64_t room = max(<int64_t>64, slots)
        cdef int f
        if slots <= self.room:
            return 0
        self.present = <uint8_t*>grown(self.present, self.room, room)
        if self.side_fields:
            self.left_slots = <int64_t*>grown(self.left_slots, self.room * 8, room * 8)
            self.right_slots = <int64_t*>grown(self.right_slots, self.room * 8, room * 8)
        for f in range(held_fields(self)):
            self.fields[f].bits = <int64_t*>grown(self.fields[f].bits, self.room * 8, room * 8)
            if self.fields[f].nullable:
                self.fields[f].valid = <uint8_t*>grown(self.fields[f].valid, self.room, room)
            if self.fields[f].kind == HELD:
                self.fields[f].held = <Kept**>grown(self.fields[f].held, self.room * 8, room * 8)
            elif self.fields[f].kind == OBJECT:
                self.objects[f].extend([None] * (room - self.room))
        self.touched.reserve(room)
        self.room = room
        return 0

    cdef int cover(self, const int64_t[::1] slots) except -1:
        """Make room for every slot of the key space and refuse slots beyond it."""
        if first_outside(slots, self.room) < 0:
            return 0
        self.reserve(self.space.capacity)
        check_slots(slots, self.room)
        return 0

    cdef int save_others(self, int64_t slot, int64_t at) except -1:
        """Save the values of a slot's row that are no numbers."""
        cdef int f
        for f in range(self.field_count):
            if self.fields[f].kind == HELD:
                self.fields[f].old_held[at] = kept_again(self.fields[f].held[slot])
            elif self.fields[f].kind == OBJECT:
                self.old_objects[f].append(self.objects[f][slot])
        return 0

    cdef int touch_all(self, const int64_t* slots, Py_ssize_t n) except -1:
        """Save the rows of slots, field by field, except those that this stabilize has already."""
        cdef int64_t first = self.touched.size, at, end
        cdef const int64_t* saved
        cdef int64_t* old_bits
        cdef const int64_t* bits
        cdef uint8_t* old_flags
        cdef const uint8_t* flags
        cdef Field* field
        cdef list objects, old
        cdef int f
        if first + n > self.old_room:
            self.make_room_for_saved(first + n)
        self.touched.push_all(slots, n)
        end, saved = self.touched.size, self.touched._slots
        old_flags, flags = self.old_present, self.present
        for at in range(first, end):
            old_flags[at] = flags[saved[at]]
        if self.side_fields:
            return self.save_linked(first, end)
        for f in range(self.field_count):
            field = &self.fields[f]
            old_bits, bits = field.old_bits, field.bits
            for at in range(first, end):
                old_bits[at] = bits[saved[at]]
            if field.nullable:
                old_flags, flags = field.old_valid, field.valid
                for at in range(first, end):
                    old_flags[at] = flags[saved[at]]
            if field.kind == HELD:
                for at in range(first, end):
                    field.old_held[at] = kept_again(field.held[saved[at]])
            elif field.kind == OBJECT:
                objects, old = self.objects[f], self.old_objects[f]
                for at in range(first, end):
                    old.append(objects[saved[at]])
        return 0

    cdef int save_linked(self, int64_t first, int64_t end) except -1:
        """Save linked rows, of which a side may have been written in this stabilize."""
        cdef const int64_t* saved = self.touched._slots
        cdef const int64_t* slots
        cdef Column side
        cdef Field* field
        cdef const Field* of
        cdef int64_t at, slot, was
        cdef Kept* kept
        cdef int f
        for f in range(self.field_count):
            field, side, of = &self.fields[f], self.side_of(f), self.face(f)
            slots = self.left_slots if f < self.left_count else self.right_slots
            for at in range(first, end):
                if not self.old_present[at]:
                    field.old_bits[at] = 0
                    if field.nullable:
                        field.old_valid[at] = 0
                    continue
                slot = slots[saved[at]]
                was = <int64_t>side.touched._place[slot] - 1 if side.touched.size else -1
                field.old_bits[at] = of.bits[slot] if was < 0 else of.old_bits[was]
                if field.nullable:
                    field.old_valid[at] = not of.nullable or (
                        of.valid[slot] if was < 0 else of.old_valid[was]
                    )
                if field.kind == HELD:
                    kept = of.held[slot] if was < 0 else of.old_held[was]
                    field.old_held[at] = kept_again(kept)
        return 0

    cdef bint same_linked(self, int64_t at, int64_t slot) noexcept:
        """Whether the linked row saved at ``at`` is the present one at ``slot``."""
        cdef const Field* field = self.fields
        cdef const Field* of
        cdef int64_t there
        cdef int f
        if self.old_present[at] != self.present[slot]:
            return False
        if not self.present[slot]:
            return True
        for f in range(self.field_count):
            field, of = &self.fields[f], self.face(f)
            there = self.left_slots[slot] if f < self.left_count else self.right_slots[slot]
            if field.old_bits[at] != of.bits[there]:
                return False
            if field.nullable and field.old_valid[at] != (not of.nullable or of.valid[there]):
                return False
        return True

    cdef Column side_of(self, int f):
        """Return the side of a linked column that has a field."""
        return self.left_side if f < self.left_count else self.right_side

    cdef Field* face(self, int f) noexcept:
        """Return the field that has the present values of this one."""
        if self.side_fields == NULL:
            return &self.fields[f]
        return &self.side_of(f).fields[self.side_fields[f]]

    cdef const int64_t* where(
        self, int f, const int64_t* slots, Py_ssize_t n, Places room
    ) except? NULL:
        """Return where the face of a field has the present rows at ``slots``.

        That of an absent row is any. room: for all fields of the same slots, empty at first.
        """
        cdef int64_t** places
        cdef const int64_t* of
        cdef Py_ssize_t i
        if self.side_fields == NULL or n == 0:
            return slots
        places = &room.left if f < self.left_count else &room.right
        if not places[0]:
            of = self.left_slots if f < self.left_count else self.right_slots
            self.side_of(f).reserve(1)
            places[0] = <int64_t*>malloc(n * sizeof(int64_t))
            if not places[0]:
                raise MemoryError
            for i in range(n):
                places[0][i] = of[slots[i]] if self.present[slots[i]] else 0
        return places[0]

    cdef int make_room_for_saved(self, int64_t count) except -1:
        """Make room for the saved rows of so many slots."""
        cdef int64_t room = next_room(self.old_room, count)
        cdef int f
        self.old_present = <uint8_t*>grown(self.old_present, self.old_room, room)
        self.changed = <int64_t*>grown(self.changed, self.old_room * 8, room * 8)
        for f in range(self.field_count):
            self.fields[f].old_bits = <int64_t*>grown(
                self.fields[f].old_bits, self.old_room * 8, room * 8
            )
            if self.fields[f].nullable:
                self.fields[f].old_valid = <uint8_t*>grown(
                    self.fields[f].old_valid, self.old_room, room
                )
            if self.fields[f].kind == HELD:
                self.fields[f].old_held = <Kept**>grown(
                    self.fields[f].old_held, self.old_room * 8, room * 8
                )
        self.old_room = room
        return 0

    @property
    def keys(self):
        """The key space of the column's slots."""
        return self.space

    @property
    def nbytes(self):
        """Bytes held by arrays, without values that are no numbers, which columns share."""
        cdef int f
        total = self.room + self.old_room * 9 + self.touched.nbytes
        if self.side_fields:
            total += self.room * 16
        for f in range(self.field_count):
            a_row = 16 if self.fields[f].kind == HELD else 8
            held = self.old_room if self.side_fields else self.room + self.old_room
            total += held * (a_row + self.fields[f].nullable)
        return total

    cdef void shed(self) noexcept:
        """Give the memory of a column without rows and without saved rows back."""
        self.free_all()
        self.touched.shed()

    cdef void free_all(self) noexcept:
        """Free all values and arrays: no slot is covered."""
        cdef Field* field
        cdef int64_t at
        cdef int f
        for f in range(self.field_count):
            field = &self.fields[f]
            if field.kind == HELD:
                for at in range(0 if self.side_fields else self.room):
                    kept_drop(field.held[at])
                for at in range(self.old_room):
                    kept_drop(field.old_held[at])
            elif field.kind == OBJECT and self.objects is not None:
                (<list>self.objects[f]).clear()
            free(field.bits)
            free(field.valid)
            free(field.held)
            free(field.old_bits)
            free(field.old_valid)
            free(field.old_held)
            field.bits = field.old_bits = NULL
            field.valid = field.old_valid = NULL
            field.held = field.old_held = NULL
        free(self.left_slots)
        free(self.right_slots)
        self.left_slots = self.right_slots = NULL
        free(self.present)
        free(self.old_present)
        free(self.changed)
        self.present = self.old_present = NULL
        self.changed = NULL
        self.room = self.old_room = 0

    # --- writing ---

    cdef int write_rows(self, const int64_t[::1] slots, list values, list valid) except -1:
        """Put whole rows at slots, the last one counting: per field an array, a mask or None."""
        cdef Py_ssize_t i
        cdef int f
        assert self.side_fields == NULL, "a linked column has no values"
        if slots.shape[0]:
            self.touch_all(&slots[0], slots.shape[0])
        for i in range(slots.shape[0]):
            self.row_count += not self.present[slots[i]]
            self.present[slots[i]] = 1
        for f in range(self.field_count):
            self.write_field(f, slots, values[f], valid[f])
        return 0

    cdef int write_field(
        self, int f, const int64_t[::1] slots, object values, object valid
    ) except -1:
        cdef Field* field = &self.fields[f]
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef const double[::1] floats
        cdef const int64_t[::1] ints
        cdef const uint8_t[::1] flags
        cdef const uint8_t[::1] mask
        cdef list objects
        cdef Written made
        if field.kind == FLOAT:
            floats = values
            for i in range(n):
                field.bits[slots[i]] = float_bits(floats[i])
        elif field.kind == INT:
            ints = values
            for i in range(n):
                field.bits[slots[i]] = ints[i]
        elif field.kind == BOOL:
            flags = values.view(np.uint8)
            for i in range(n):
                field.bits[slots[i]] = flags[i] != 0
        elif field.kind == HELD:
            made = (<Form>self.forms[f]).write(values)
            check_length(n, made.held.size())
            for i in range(n):
                kept_drop(field.held[slots[i]])
                field.held[slots[i]] = made.held[i]
                made.held[i] = <Kept*>NULL
                field.bits[slots[i]] = made.prints[i]
        else:
            objects = self.objects[f]
            for i in range(n):
                objects[slots[i]] = values[i]
                field.bits[slots[i]] = fingerprint(values[i])
        if field.nullable:
            if valid is None:
                for i in range(n):
                    field.valid[slots[i]] = 1
            else:
                mask = valid.view(np.uint8)
                for i in range(n):
                    field.valid[slots[i]] = mask[i]
                # Afterwards: of a slot that is there twice, the last value may not be null.
                for i in range(n):
                    if not field.valid[slots[i]]:
                        field.bits[slots[i]] = 0
                        self.forget_other(f, slots[i])
        elif valid is not None and not valid.all():
            raise ValueError(f"the field {self.names[f]!r} cannot be null")
        return 0

    cdef int erase_rows(self, const int64_t[::1] slots) except -1:
        cdef Py_ssize_t i
        assert self.side_fields == NULL, "rows of a linked column leave with their links"
        for i in range(slots.shape[0]):
            if self.present[slots[i]]:
                self.touch(slots[i])
                self.erase_one(slots[i])
        return 0

    cdef int erase_one(self, int64_t slot) except -1:
        cdef int f
        self.present[slot] = 0
        self.row_count -= 1
        for f in range(held_fields(self)):
            self.fields[f].bits[slot] = 0
            if self.fields[f].nullable:
                self.fields[f].valid[slot] = 0
            self.forget_other(f, slot)
        return 0

    cdef int forget_other(self, int f, int64_t slot) except -1:
        """Hold no value that is no number any more."""
        if self.fields[f].kind == HELD:
            kept_drop(self.fields[f].held[slot])
            self.fields[f].held[slot] = NULL
        elif self.fields[f].kind == OBJECT:
            self.objects[f][slot] = None
        return 0

    def retire(self, const int64_t[::1] slots not None):
        """Drop rows that are final without reporting a change: their slots will be reused.

        Dependents keep their own copies of them.
        """
        cdef Py_ssize_t i
        assert self.touched.size == 0, "rows are retired between stabilizes"
        self.cover(slots)
        for i in range(slots.shape[0]):
            if self.present[slots[i]]:
                self.erase_one(slots[i])

    # --- stabilizing ---

    cdef bint settle_changes(self) except -1:
        """Find the touched rows that really differ; true when there are any."""
        cdef int64_t at, n = 0, written = self.touched.size
        cdef const int64_t* slots = self.touched._slots
        if self.side_fields != NULL:
            for at in range(written):
                if not self.same_linked(at, slots[at]):
                    self.changed[n] = at
                    n += 1
        else:
            for at in range(written):
                if not same_row(self, at, slots[at]):
                    self.changed[n] = at
                    n += 1
        self.changed_count = n
        self.rows_in += written
        self.rows_out += n
        return n > 0

    cdef bint recompute(self) except -1:
        if self.settle_changes():
            return True
        self.settled()
        return False

    cdef void settled(self) noexcept:
        cdef int64_t at, saved = self.touched.size
        cdef Field* field
        cdef int f
        self.touched.empty()
        self.changed_count = 0
        if self.is_plain:
            return
        for f in range(self.field_count):
            field = &self.fields[f]
            if field.kind == HELD:
                for at in range(saved):
                    kept_drop(field.old_held[at])
                    field.old_held[at] = NULL
            elif field.kind == OBJECT:
                (<list>self.old_objects[f]).clear()

    # --- reading ---

    def changes(self):
        """Return (slots int64[n], was uint8[n], now uint8[n]) of the rows that changed.

        was, now: whether there was and is a row. Valid while the dependents recompute.
        """
        cdef int64_t i, n = self.changed_count
        slots = np.empty(n, np.int64)
        was = np.empty(n, np.uint8)
        now = np.empty(n, np.uint8)
        cdef int64_t[::1] slot_out = slots
        cdef uint8_t[::1] was_out = was
        cdef uint8_t[::1] now_out = now
        for i in range(n):
            slot_out[i] = self.touched._slots[self.changed[i]]
            was_out[i] = self.old_present[self.changed[i]]
            now_out[i] = self.present[slot_out[i]]
        return slots, was, now

    def rows(self, const int64_t[::1] slots not None, fields=None):
        """Return the present rows at ``slots``: per field (values, valid or None).

        fields: the places of those to read, all by default.
        """
        cdef Places room = Places()
        cdef list found = []
        cdef int f
        self.cover(slots)
        if fields is None:
            fields = range(self.field_count)
        for f in fields:
            if not 0 <= f < self.field_count:
                raise IndexError(f"field {f} of {self.field_count}")
            found.append(self._gather(f, slots, room))
        return found

    def old_rows(self):
        """Return the changed rows as they were: per field (values, valid or None)."""
        cdef int f
        return [self._gather_old(f) for f in range(self.field_count)]

    cdef object _gather(self, int f, const int64_t[::1] slots, Places room):
        cdef Field* own = &self.fields[f]
        cdef const Field* field = self.face(f)
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef const int64_t* at = self.where(f, &slots[0], n, room) if n else NULL
        cdef int64_t[::1] bits
        cdef uint8_t[::1] flags
        if field.kind == HELD:
            values = (<Form>self.forms[f]).read(field.held, at, n, NULL, NULL).arrow()
        elif field.kind == OBJECT:
            values = [self.objects[f][slots[i]] for i in range(n)]
        else:
            values = bits = np.empty(n, np.int64)
            for i in range(n):
                bits[i] = field.bits[at[i]]
        valid = None
        if own.nullable:
            valid = flags = np.ones(n, np.uint8)
            for i in range(n if field.nullable else 0):
                flags[i] = field.valid[at[i]]
        return self._typed(field.kind, values), valid

    cdef object _gather_old(self, int f):
        cdef Field* field = &self.fields[f]
        cdef int64_t i, n = self.changed_count
        cdef const int64_t* at = self.changed
        cdef int64_t[::1] bits
        cdef uint8_t[::1] flags
        if field.kind == HELD:
            values = (<Form>self.forms[f]).read(field.old_held, at, n, NULL, NULL).arrow()
        elif field.kind == OBJECT:
            values = [self.old_objects[f][at[i]] for i in range(n)]
        else:
            values = bits = np.empty(n, np.int64)
            for i in range(n):
                bits[i] = field.old_bits[at[i]]
        valid = None
        if field.nullable:
            valid = flags = np.empty(n, np.uint8)
            for i in range(n):
                flags[i] = field.old_valid[at[i]]
        return self._typed(field.kind, values), valid

    cdef object _typed(self, Kind kind, object values):
        if kind == FLOAT:
            return values.view(np.float64)
        if kind == BOOL:
            return values.astype(np.bool_)
        return values

    def present_slots(self):
        """Return the slots that have a row, ascending: int64[row_count]."""
        cdef int64_t slot, n = 0
        slots = np.empty(self.row_count, np.int64)
        cdef int64_t[::1] out = slots
        for slot in range(self.room):
            if self.present[slot]:
                out[n] = slot
                n += 1
        return slots

    def has_rows(self, const int64_t[::1] slots not None):
        """Return whether each slot has a row: bool[n]."""
        cdef Py_ssize_t i
        out = np.zeros(slots.shape[0], np.bool_)
        cdef uint8_t[::1] flags = out.view(np.uint8)
        self.cover(slots)
        for i in range(slots.shape[0]):
            flags[i] = self.present[slots[i]]
        return out

    def digest_changes(self, const uint64_t[::1] key_hashes not None):
        """Return what the changes add to the table's digest, modulo 2^64.

        The digest of a table is the sum of its rows' hashes, so it does not depend on their
        order. key_hashes: uint64 of each changed row's key, in the order of ``changes()``.
        """
        cdef int64_t i
        cdef int64_t[::1] slots = np.empty(max(1, self.changed_count), np.int64)
        for i in range(self.changed_count):
            slots[i] = self.touched._slots[self.changed[i]]
        if self.changed_count == 0:
            return 0
        return (
            self.hash_rows(&key_hashes[0], &slots[0], self.changed_count, False)
            - self.hash_rows(&key_hashes[0], self.changed, self.changed_count, True)
        )

    def digest_rows(self, const int64_t[::1] slots not None, const uint64_t[::1] key_hashes not None):
        """Return the sum of the present rows' hashes, modulo 2^64."""
        self.cover(slots)
        if slots.shape[0] == 0:
            return 0
        return self.hash_rows(&key_hashes[0], &slots[0], slots.shape[0], False)

    cdef uint64_t hash_rows(
        self, const uint64_t* key_hashes, const int64_t* places, Py_ssize_t n, bint old
    ) except? 0:
        """Return the sum, modulo 2^64, of the hashes of those rows that there are.

        places: slots, or where old rows are.
        """
        cdef uint64_t[HASHED_TOGETHER] hashes
        cdef const uint8_t* present = self.old_present if old else self.present
        cdef const int64_t* bits
        cdef const uint8_t* valid
        cdef const Field* field
        cdef uint64_t total = 0
        cdef const int64_t* there
        cdef Py_ssize_t first = 0, i, count
        cdef bint is_linked = self.side_fields != NULL and not old
        cdef Places room = Places() if is_linked else None
        cdef int f
        while first < n:
            count = min(<Py_ssize_t>HASHED_TOGETHER, n - first)
            memcpy(hashes, key_hashes + first, count * sizeof(uint64_t))
            for f in range(self.field_count):
                field = self.face(f) if is_linked else &self.fields[f]
                there = (self.where(f, places, n, room) if is_linked else places) + first
                bits = field.old_bits if old else field.bits
                valid = field.old_valid if old else field.valid
                if valid == NULL:
                    mix_at(hashes, <const uint64_t*>bits, there, count)
                    continue
                for i in range(count):
                    hashes[i] = mix(
                        hashes[i],
                        <uint64_t>bits[there[i]] if valid[there[i]] else RIPPLE_NULL_HASH,
                    )
            for i in range(count):
                if present[places[first + i]]:
                    total += hashes[i]
            first += count
        return total

    cpdef str kind(self):
        return "column"

    cpdef object check(self):
        """Raise AssertionError when the column contradicts itself."""
        cdef int64_t slot, count = 0
        cdef int f
        for slot in range(self.room):
            count += self.present[slot]
            for f in range(held_fields(self)):
                if not self.present[slot] or (
                    self.fields[f].nullable and not self.fields[f].valid[slot]
                ):
                    assert self.fields[f].bits[slot] == 0, (self.names[f], slot)
                    assert self.fields[f].held == NULL or self.fields[f].held[slot] == NULL
        assert count == self.row_count
        assert self.dirty or self.touched.size == 0
        return None


cdef class InputColumn(Column):
    """A column that is written from outside: whole rows at slots of its key space."""

    def write(self, const int64_t[::1] slots not None, list values not None, list valid not None):
        """Put rows at distinct ``slots``; see ``rows`` for the form of values and valid."""
        self.graph.refuse_while_busy("write a column")
        self.cover(slots)
        self.write_rows(slots, values, valid)
        if self.touched.size:
            self.graph.mark_dirty(self)

    def erase(self, const int64_t[::1] slots not None):
        """Remove the rows at ``slots``, where there are any."""
        self.graph.refuse_while_busy("erase rows of a column")
        self.cover(slots)
        self.erase_rows(slots)
        if self.touched.size:
            self.graph.mark_dirty(self)


cdef class DerivedColumn(Column):
    """A column with rows that a Python subclass computes from its parents' changes."""

    def parent_changed_now(self, parent):
        """Note what a parent changed; called before ``recompute_now``, once per parent."""

    def recompute_now(self):
        """Bring the rows up to date with ``put`` and ``drop``."""
        raise NotImplementedError(type(self).__name__)

    cdef int parent_changed(self, Node parent) except -1:
        self.parent_changed_now(parent)
        return 0

    cdef bint recompute(self) except -1:
        self.recompute_now()
        return Column.recompute(self)

    def set_dirty(self):
        """Have the next stabilize recompute the column although no parent changed."""
        self.graph.refuse_while_busy("make a column dirty")
        self.graph.mark_dirty(self)

    def put(self, const int64_t[::1] slots not None, list values not None, list valid not None):
        """Put rows at distinct slots, while recomputing."""
        self.cover(slots)
        self.write_rows(slots, values, valid)

    def drop(self, const int64_t[::1] slots not None):
        """Remove rows, while recomputing."""
        self.cover(slots)
        self.erase_rows(slots)


cdef class Tap(Node):
    """A node that hands its column's changes on, as soon as they are known."""

    cdef object receive

    def __init__(self, Column column not None, receive):
        self.receive = receive
        column.graph.attach(self, [column])

    cdef int parent_changed(self, Node parent) except -1:
        self.receive(parent)
        return 0

    cdef bint recompute(self) except -1:
        return False

    cpdef str kind(self):
        return "tap"
