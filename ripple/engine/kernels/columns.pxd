from ripple.model.schema.exported cimport ArrowArray, Lent, Whole


cdef class Columns:
    cdef object batch           # what came as one record batch, or a part of one, or None
    cdef dict places            # of its columns
    cdef dict kinds             # of those that can be lent
    cdef frozenset flags        # those of bools
    cdef Whole exported
    cdef list layers
    cdef dict read

    cpdef Lent lent(self, str name)
    cdef str kind_as_it_came(self, str name)
    cdef const ArrowArray* as_it_came(self, str name, bint* is_float) except? NULL
    cdef const ArrowArray* whole(self, str name, char* kind) except? NULL
    cdef Lent borrow(self, str name, str kind)
    cdef Whole lender(self)
    cpdef key(self, str name)
    cdef tuple layer(self, str name)
    cdef object came(self, str name, tuple layer)
    cdef bint may_have_nulls(self, str name) except -1
