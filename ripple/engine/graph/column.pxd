from libc.stdint cimport int64_t, uint8_t, uint64_t

from libc.math cimport isnan
from libc.string cimport memcpy

from ripple.core.kept cimport Kept
from ripple.engine.graph.node cimport Node
from ripple.model.keys.slots cimport SlotSet


cdef enum Kind:
    FLOAT
    INT
    BOOL
    HELD        # in a Form: texts, lists and records
    OBJECT      # of Python


cdef struct Field:
    Kind kind
    bint nullable
    int64_t* bits       # by slot: the value's 64 bits; of another value, its fingerprint
    uint8_t* valid      # by slot, NULL unless nullable
    Kept** held         # by slot, NULL unless HELD; a value counts this place
    int64_t* old_bits   # by position in `touched`
    uint8_t* old_valid
    Kept** old_held


cdef extern from *:
    """
    #define RIPPLE_NAN_BITS 0x7FF8000000000000LL
    """
    const int64_t RIPPLE_NAN_BITS


cdef inline int64_t float_bits(double value) noexcept nogil:
    """Return the bits of a number; every NaN is the same one."""
    cdef int64_t bits
    if isnan(value):
        return RIPPLE_NAN_BITS
    memcpy(&bits, &value, 8)
    return bits


cdef class Places:
    # Where some rows of a linked column are on either side, once that was asked for.
    cdef int64_t* left
    cdef int64_t* right


cdef class Column(Node):
    cdef object space                   # names the slots: shared by columns of the same keys
    cdef readonly tuple names
    cdef int field_count
    cdef Field* fields
    cdef bint is_plain                  # whether all fields are numbers and truth values
    cdef list objects                   # per field: None, or a list of objects by slot
    cdef list forms                     # per field: None, or the Form in which values are held
    cdef list old_objects               # per field: None, or a list by position in `touched`
    cdef uint8_t* present               # by slot: there is a row
    cdef readonly int64_t row_count
    cdef int64_t room                   # slots that the arrays cover
    cdef SlotSet touched                # slots written since the last stabilize, with their old rows
    cdef uint8_t* old_present           # by position in `touched`
    cdef int64_t old_room
    cdef int64_t* changed               # positions in `touched` of rows that really differ
    cdef readonly int64_t changed_count
    cdef readonly int64_t rows_in       # written, over all stabilizes
    cdef readonly int64_t rows_out      # of these, those that really differed
    # Of a linked column, whose present rows are read where its two sides have them:
    cdef Column left_side
    cdef Column right_side
    cdef int left_count                 # of the fields, which are all of the left side's
    cdef int* side_fields               # per field: which it is of its side; NULL unless linked
    cdef int64_t* left_slots            # by slot of a present row: where it is on either side
    cdef int64_t* right_slots

    cdef Column side_of(self, int f)
    cdef Field* face(self, int f) noexcept
    cdef const int64_t* where(
        self, int f, const int64_t* slots, Py_ssize_t n, Places room
    ) except? NULL
    cdef int save_linked(self, int64_t first, int64_t end) except -1
    cdef bint same_linked(self, int64_t at, int64_t slot) noexcept
    cdef int reserve(self, int64_t slots) except -1
    cdef int cover(self, const int64_t[::1] slots) except -1

    cdef inline int touch(self, int64_t slot) except -1:
        """Save the slot's row unless this stabilize has it already."""
        cdef int64_t at = self.touched.size
        cdef Field* field = self.fields
        cdef Field* end = field + self.field_count
        if self.touched._place[slot]:
            return 0
        if at == self.old_room:
            self.make_room_for_saved(at + 1)
        self.touched.push(slot)
        self.old_present[at] = self.present[slot]
        while field < end:
            field.old_bits[at] = field.bits[slot]
            if field.nullable:
                field.old_valid[at] = field.valid[slot]
            field += 1
        if not self.is_plain:
            self.save_others(slot, at)
        return 0

    cdef int save_others(self, int64_t slot, int64_t at) except -1
    cdef int touch_all(self, const int64_t* slots, Py_ssize_t n) except -1
    cdef int make_room_for_saved(self, int64_t count) except -1
    cdef void shed(self) noexcept
    cdef void free_all(self) noexcept
    cdef int write_rows(self, const int64_t[::1] slots, list values, list valid) except -1
    cdef int write_field(self, int f, const int64_t[::1] slots, object values, object valid) except -1
    cdef int erase_rows(self, const int64_t[::1] slots) except -1
    cdef int erase_one(self, int64_t slot) except -1
    cdef int forget_other(self, int f, int64_t slot) except -1
    cdef bint settle_changes(self) except -1
    cdef object _gather(self, int f, const int64_t[::1] slots, Places room)
    cdef object _gather_old(self, int f)
    cdef object _typed(self, Kind kind, object values)
    cdef uint64_t hash_rows(
        self, const uint64_t* key_hashes, const int64_t* places, Py_ssize_t n, bint old
    ) except? 0


# Readers of a column that was written since the last stabilize still see the rows of then, which
# are saved in `touched`: so that the graph shows one consistent state.

cdef inline int64_t saved_at(Column column, int64_t slot) noexcept:
    """Return where the row that readers see is saved, or -1: it is the present one."""
    if column.position < 0 or column.touched.size == 0:
        return -1
    return <int64_t>column.touched._place[slot] - 1


cdef inline bint seen(Column column, int64_t slot) noexcept:
    """Return whether readers see a row at any ``slot``."""
    cdef int64_t at
    if slot < 0 or slot >= column.room:
        return False
    at = saved_at(column, slot)
    return column.present[slot] if at < 0 else column.old_present[at]
