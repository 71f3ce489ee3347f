# cython: language_level=3
"""A row of a scan that is not final, with the state after it."""

cimport cython


@cython.no_gc  # it is in no cycle, and there are many
cdef class Entry:
    """A row of a log.

    number: by which its owner knows it. of: the value that its versions share, None for none.
    result: the values of ``into``, None for no row, or why the step failed. after: the state of its
    key after it. last: the newest result of the key then.
    """

    cdef public object after, key, last, number, of, result, row

    def __init__(self, number, tuple key not None, tuple row not None, of):
        self.number, self.key, self.row, self.of = number, key, row, of
        self.after = ()
