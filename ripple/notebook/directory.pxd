cimport cython
from libc.stdint cimport int64_t

from ripple.model.keys.index cimport KeyIndex
from ripple.engine.graph.node cimport Graph
from ripple.model.keys.slots cimport SlotSet


cdef enum Shape:
    TEXT
    INTEGER
    BOOLEAN


@cython.final
cdef class Directory:
    cdef readonly object space          # ripple.model.keys.space.KeySpace
    cdef KeyIndex index                 # of the whole key
    cdef Directory left                 # of all parts but the last; None for a key of one part
    cdef KeyIndex right                 # of the last part, if that is text and left is not None
    cdef Shape shape                    # of the last part
    cdef readonly Py_ssize_t parts
    cdef readonly list leaves           # the columns written from outside that have these keys
    cdef SlotSet vacated                # slots that lost a row: free once nothing needs them

    cdef int64_t find(self, object key) except -2
    cdef int64_t find_or_add(self, object key, Graph graph) except -1
    cdef int64_t find_part(self, object part) except? -2
    cdef int64_t find_parts(self, tuple key) except -2
    cdef int64_t add_parts(self, tuple key) except -1
    cdef int vacate(self, int64_t slot) except -1
    cdef int reclaim(self, Graph graph) except -1
    cdef object key_at(self, int64_t slot)
