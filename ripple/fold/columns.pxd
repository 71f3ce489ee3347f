from ripple.schema.exported cimport Exported, Lent


cdef class Columns:
    cdef object batch           # what came as one record batch, or None
    cdef dict places            # of its columns
    cdef dict kinds             # of those that can be lent
    cdef Exported exported
    cdef list layers
    cdef dict read

    cpdef Lent lent(self, str name)
    cdef Lent borrow(self, str name, str kind)
    cdef Exported lender(self)
    cpdef key(self, str name)
    cdef tuple layer(self, str name)
    cdef object came(self, str name, tuple layer)
    cdef bint may_have_nulls(self, str name) except -1
