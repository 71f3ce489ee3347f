# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Whether a whole batch counts: all required values are there, and all checks pass."""

from ripple.engine.kernels.columns cimport Columns
from ripple.model.schema.exported cimport ArrowArray
from ripple.model.schema.inside cimport floats_are_inside, integers_are_inside, texts_are_inside


cdef class Screen:
    """Compiled from a source's fields: one pass over each column, for batches with one layout."""

    def __init__(self, layout, required, checks):
        """Take the names of required fields, and by name (kind, lowest, highest) of checks."""
        cdef Look look
        self.places = len(layout.places)
        for name, place in layout.places.items():
            look.place, look.required, look.kind = place, name in required, 0
            if name in checks:
                kind, low, high = checks[name]
                assert layout.kinds[name] == kind, name
                look.kind = ord(kind)
                if kind == "d":
                    look.low_float, look.high_float = low, high
                else:
                    look.low, look.high = low, high
            if look.required or look.kind:
                self.looks.push_back(look)

    def passes(self, Columns columns not None):
        """Tell whether all rows of a batch, none of which was dropped, count.

        The bytes under a null may be taken for a value that fails.
        """
        cdef const ArrowArray* whole = &columns.lender().whole
        if whole.n_children != self.places:
            raise ValueError(f"{whole.n_children} columns, not {self.places}")
        return self.all_pass(whole)

    cdef bint all_pass(self, const ArrowArray* whole) noexcept nogil:
        cdef const Look* look
        cdef const ArrowArray* column
        cdef size_t i
        cdef bint passes = True
        for i in range(self.looks.size()):
            look = &self.looks[i]
            column = whole.children[look.place]
            if look.required and column.null_count and (
                column.n_buffers == 0 or column.buffers[0] != NULL
            ):
                return False
            if look.kind == b"d":
                passes = floats_are_inside(column, look.low_float, look.high_float)
            elif look.kind == b"q":
                passes = integers_are_inside(column, look.low, look.high)
            elif look.kind == b"s":
                passes = texts_are_inside(column, look.low, look.high)
            if not passes:
                return False
        return True
