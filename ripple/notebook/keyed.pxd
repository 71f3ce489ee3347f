cimport cython
from libc.stdint cimport int64_t, uint8_t

from ripple.engine.graph.column cimport Column
from ripple.notebook.directory cimport Directory
from ripple.engine.graph.node cimport Graph


cdef class KeyedColumn(Column):
    cdef readonly Directory directory
    cdef readonly object row_type       # ripple.notebook.rows.RowType
    cdef bint is_single
    cdef object make
    cdef dict reported_old              # of an output: changed key -> row before, if it had one
    cdef dict reported_keys             # changed keys that were not reported yet

    cdef int configure(self, Graph graph, list parents, Directory directory, row_type, name) except -1
    cdef object value_at(self, int f, int64_t slot, int64_t saved)
    cdef object row_at(self, int64_t slot, int64_t saved)
    cdef object seen_slots(self)
    cdef int64_t seen_count(self) noexcept
    cdef list gathered(self, const int64_t[::1] slots)
    cdef int note_report(self) except -1


@cython.final
cdef class LeafColumn(KeyedColumn):
    cdef int64_t stable_count           # rows at the last stabilize
    cdef int64_t* staged_bits           # per field: a row on its way in
    cdef uint8_t* staged_valid
    cdef list staged_objects
    cdef list converters                # per field: ripple.model.schema.values.converter of its type

    cdef int stage(self, int f, object value) except -1
    cdef int commit(self, object key) except -1
    cdef int open_row(self, int64_t slot) except -1
    cdef bint take_out(self, int64_t slot) except -1
    cdef int put(self, object key, object row) except -1
    cdef int refuse_write(self) except -1
