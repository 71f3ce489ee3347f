# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
# distutils: include_dirs = ripple/engine/graph ripple/engine/kernels
"""An output of the engine: the changes of one fold's rows between two cuts, and their digest."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

import pyarrow as pa

from ripple.engine.kernels.arrow_batch cimport (
    BATCH_FLAG, BATCH_MADE, BATCH_NUMBER, BATCH_OP, BATCH_SHORT, BATCH_TEXT, BATCH_TEXT_BYTES_MAX,
    BatchColumn, batch_make,
)
from ripple.engine.kernels.key_fields cimport KeyFields
from ripple.engine.graph.canonical cimport Form, Read
from ripple.engine.graph.column cimport BOOL, HELD, Column, Field, Places
from ripple.model.keys.index cimport Key, KeyIndex
from ripple.engine.graph.node cimport Node
from ripple.model.schema.exported cimport Made

from ripple.core.row_ops import OP
from ripple.model.schema.types import Bool


cdef class View(Node):
    """Listens to a column: collects its changes and keeps the digest of its table.

    The digest is the sum, modulo 2^64, of the hashes of all rows that the table ever showed and
    did not withdraw. A row that became final counts although its memory was freed.

    Invariant between stabilizes: digest == final_digest + live_digest(), modulo 2^64.
    """

    cdef readonly Column column
    cdef readonly object schema
    cdef public uint64_t digest
    cdef public uint64_t final_digest
    cdef KeyFields keys
    cdef bint keeps_retractions, in_order
    cdef object row_schema          # without the op
    cdef Made no_changes, changed
    cdef object none_retracted, retracted
    cdef readonly int64_t removed   # how many of the changes that were taken last take a row away
    cdef int64_t removing
    # Of the batch at hand: kept, so that room for them is found once.
    cdef vector[BatchColumn] columns
    cdef vector[vector[const uint8_t*]] texts
    cdef vector[vector[uint32_t]] lengths
    cdef vector[int64_t] slots, ids
    cdef vector[uint64_t] hashes
    cdef vector[char] are_flags     # by field of the key: whether it is a bool

    def __init__(self, Column column not None, fields, *, retractions, in_order):
        """Listen to ``column``; ``fields``: those of its key and its others, as in Arrow.

        retractions: also keep changed rows as they were. in_order: hand changes out in the order in
        which the column's rows were touched, else in that of :meth:`KeyFields.order`.
        """
        self.column = column
        self.keys = KeyFields(column.keys)
        for field in self.keys.fields:
            self.are_flags.push_back(isinstance(field.type, Bool))
        self.keeps_retractions, self.in_order = retractions, in_order
        key_fields, value_fields = fields
        self.row_schema = pa.schema([*key_fields, *value_fields])
        op = pa.field(OP, pa.int8(), nullable=False)
        self.schema = pa.schema([*key_fields, op, *value_fields])
        self.changed = self.no_changes = self.batch(
            0, vector[int64_t](), NULL, False, vector[uint8_t](), True
        )
        self.retracted = self.none_retracted = pa.RecordBatch.from_pylist([], self.row_schema)
        column.graph.attach(self, [column])

    cdef int parent_changed(self, Node parent) except -1:
        """Take the changes of the column over: their digest, and their rows as Arrow has them."""
        cdef Column column = self.column
        cdef int64_t i, now = 0, n = column.changed_count
        cdef vector[int64_t] order
        cdef vector[uint8_t] present
        cdef int64_t* slots                         # in the order of the changes, then in ours
        self.slots.resize(n)
        self.ids.resize(n * self.keys.count)
        self.hashes.resize(n)
        slots = self.slots.data()
        for i in range(n):
            slots[i] = column.touched._slots[column.changed[i]]
        self.keys.read(slots, n, self.ids.data())
        self.keys.hash_into(self.ids.data(), n, self.hashes.data())
        self.digest += column.hash_rows(self.hashes.data(), slots, n, False)
        self.digest -= column.hash_rows(self.hashes.data(), column.changed, n, True)
        if not self.in_order:
            order.resize(n)
            self.keys.order(self.ids.data(), self.hashes.data(), n, order.data())
        if self.keeps_retractions:
            self.retracted = self.as_they_were(self.slots, order)
        if not self.in_order:
            for i in range(n):
                order[i] = slots[order[i]]
            self.slots.swap(order)
            slots = self.slots.data()
            self.keys.read(slots, n, self.ids.data())
        for i in range(n):
            now += column.present[slots[i]]
        self.removing = n - now
        if now < n:
            present.resize(n)
            for i in range(n):
                present[i] = column.present[slots[i]]
        self.changed = self.batch(n, self.ids, slots, False, present, True)
        return 0

    cdef object as_they_were(self, const vector[int64_t]& slots, const vector[int64_t]& order):
        """Return the changed rows that there were, in this order, or else in that of the changes."""
        cdef Column column = self.column
        cdef vector[int64_t] places, gone, ids
        cdef int64_t i, at
        for i in range(<int64_t>slots.size()):
            at = i if order.empty() else order[i]
            if column.old_present[column.changed[at]]:
                places.push_back(column.changed[at])
                gone.push_back(slots[at])
        ids.resize(gone.size() * self.keys.count)
        self.keys.read(gone.data(), gone.size(), ids.data())
        return self.batch(gone.size(), ids, places.data(), True, vector[uint8_t](), False).arrow()

    cdef Made batch(
        self,
        int64_t n,
        const vector[int64_t]& ids,
        const int64_t* places,
        bint old,
        const vector[uint8_t]& present,
        bint with_op,
    ):
        """Return n rows as a record batch, read at ``places``: slots, or where old rows are.

        present: by row, 0 if it has no values but its key; empty if all rows have.
        """
        cdef Column column = self.column
        cdef BatchColumn* one
        cdef const Key* key
        cdef const uint8_t** text
        cdef uint32_t* length
        cdef Made made = Made.__new__(Made, self.schema if with_op else self.row_schema)
        cdef KeyIndex index
        cdef const Field* field
        cdef Places room = Places() if column.side_fields != NULL else None
        cdef int f, k, failed
        cdef int64_t i
        cdef const uint8_t* shown = NULL
        cdef list alive = None
        if present.size():
            shown = present.data()
        self.texts.resize(self.keys.count)
        self.lengths.resize(self.keys.count)
        self.columns.clear()
        self.columns.resize(with_op + self.keys.count + column.field_count)
        one = self.columns.data()
        for k in range(self.keys.count):
            one.kind = BATCH_FLAG if self.are_flags[k] else BATCH_NUMBER
            one.bits = ids.data() + k * n
            index = self.keys.texts[k]
            if index is not None:
                one.kind = BATCH_TEXT
                self.texts[k].resize(n)
                self.lengths[k].resize(n)
                text, length = self.texts[k].data(), self.lengths[k].data()
                for i in range(n):
                    key = index._keys + one.bits[i]
                    # Short ones, which are nearly all, are there: a call for each costs more.
                    text[i] = (
                        <const uint8_t*>&key.low if key.length <= BATCH_SHORT
                        else index.bytes_of(one.bits[i])
                    )
                    length[i] = key.length
                    one.text_bytes += key.length
                if one.text_bytes > BATCH_TEXT_BYTES_MAX:
                    raise OverflowError("the keys of one batch exceed 2 GiB")
                one.texts, one.lengths = text, length
            one += 1
        if with_op:
            one.kind = BATCH_OP
            one.present = shown
            one += 1
        for f in range(column.field_count):
            field = &column.fields[f] if old else column.face(f)
            one.kind = BATCH_FLAG if field.kind == BOOL else BATCH_NUMBER
            one.at = places if old else column.where(f, places, n, room)
            one.bits = field.old_bits if old else field.bits
            one.present = shown
            if field.nullable:
                one.valid = field.old_valid if old else field.valid
            if field.kind == HELD:
                one.kind = BATCH_MADE
                if alive is None:
                    alive = []
                alive.append((<Form>column.forms[f]).read(
                    field.old_held if old else field.held, one.at, n, one.present, one.valid
                ))
            one += 1
        if alive is not None:
            for f in range(<int>self.columns.size()):
                if self.columns[f].kind == BATCH_MADE:
                    (<Read>alive.pop(0)).hand_out(&self.columns[f].made)
        with nogil:
            failed = batch_make(self.columns.data(), <int>self.columns.size(), n, &made.whole)
        if failed:
            raise MemoryError
        return made

    cdef bint recompute(self) except -1:
        return False

    cpdef str kind(self):
        return "tap"

    def take_retracted(self):
        """Return the rows that were shown and have changed since the last call, as they were."""
        retracted, self.retracted = self.retracted, self.none_retracted
        return retracted

    def take(self):
        """Return the changes since the last call: at most one per key."""
        changed, self.changed = self.changed, self.no_changes
        self.removed, self.removing = self.removing, 0
        return changed

    def finalize(self, const int64_t[::1] slots not None):
        """Note that the rows of ``slots`` will not change any more and are about to be freed."""
        self.final_digest += self.digest_of(slots)

    def live_digest(self):
        """Return the digest of the rows in memory alone, computed afresh."""
        return self.digest_of(self.column.present_slots())

    cdef uint64_t digest_of(self, const int64_t[::1] slots) except? 0:
        cdef vector[int64_t] ids
        cdef vector[uint64_t] hashes
        cdef int64_t n = slots.shape[0]
        if n == 0:
            return 0
        self.column.cover(slots)
        ids.resize(n * self.keys.count)
        hashes.resize(n)
        self.keys.read(&slots[0], n, ids.data())
        self.keys.hash_into(ids.data(), n, hashes.data())
        return self.column.hash_rows(hashes.data(), &slots[0], n, False)

    def table(self):
        """Return the rows in memory: every row of the view that can still change."""
        return pa.Table.from_batches([self.rows(self.column.present_slots())])

    def rows(self, const int64_t[::1] slots not None):
        """Return the rows at ``slots``, all of which have one, as a record batch."""
        cdef vector[int64_t] ids
        cdef int64_t n = slots.shape[0]
        if n == 0:
            return self.none_retracted
        self.column.cover(slots)
        ids.resize(n * self.keys.count)
        self.keys.read(&slots[0], n, ids.data())
        return self.batch(n, ids, &slots[0], False, vector[uint8_t](), False).arrow()
