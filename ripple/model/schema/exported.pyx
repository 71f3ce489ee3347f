# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns by Arrow's C data interface: where their buffers are, without a Python object for each."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc

import pyarrow as pa

KINDS = {pa.int64(): "q", pa.float64(): "d", pa.string(): "s"}


cdef object import_batch = pa.RecordBatch._import_from_c


cdef class Whole:
    """A record batch, or an array, of which everything is there as long as this object is."""

    def __dealloc__(self):
        if self.whole.release:
            self.whole.release(&self.whole)

    cdef Lent lend(self, int64_t at, char kind):
        """Return a column of one of KINDS."""
        if not 0 <= at < self.whole.n_children:
            raise IndexError(f"column {at} of {self.whole.n_children}")
        return lent(self, self.whole.children[at], kind)


cdef class Exported(Whole):
    """One of Arrow's."""

    def __cinit__(self, what not None):
        what._export_to_c(<uintptr_t>&self.whole)


cdef class Lendable(Whole):
    """A record batch of Arrow's, of which compiled loops read parts without asking Arrow again."""

    def __cinit__(self, batch not None):
        self.batch = batch
        self.schema = batch.schema
        batch._export_to_c(<uintptr_t>&self.whole)


cdef class Part(Whole):
    """Rows of a record batch that follow each other; as one of Arrow's on demand."""

    # Its columns lie where those of `of` are, which is there as long as this object is.

    @staticmethod
    def of_all(rows not None):
        """Return all rows of a record batch, or of a part."""
        if isinstance(rows, Part):
            return rows
        return part(Lendable(rows), 0, rows.num_rows)

    @property
    def num_rows(self):
        """The number of rows."""
        return self.whole.length

    @property
    def schema(self):
        """That of the record batch."""
        return self.of.schema

    def slice(self, int64_t at, int64_t length):
        """Return so many rows from the one at ``at`` on."""
        if not (0 <= at and 0 <= length <= self.whole.length - at):
            raise IndexError(f"rows {at} to {at + length} of {self.whole.length}")
        return part(self.of, self.at + at, length)

    def arrow(self):
        """Return them as one of Arrow's."""
        if self.batch is None:
            self.batch = self.of.batch.slice(self.at, self.whole.length)
        return self.batch

    def __eq__(self, other):
        return isinstance(other, Part) and self.arrow().equals(other.arrow())

    __hash__ = None

    def __repr__(self):
        return f"<{self.whole.length} rows: {self.arrow()!r}>"


cdef Part part(Lendable of, int64_t at, int64_t length):
    cdef Part made = Part.__new__(Part)
    cdef const ArrowArray* all = &of.whole
    cdef Py_ssize_t count = all.n_children, i
    cdef ArrowArray** children = <ArrowArray**>malloc(count * (sizeof(void*) + sizeof(ArrowArray)))
    if children == NULL and count:
        raise MemoryError()
    made.of, made.at = of, at
    made.whole = all[0]
    made.whole.length, made.whole.children = length, children
    made.whole.private_data, made.whole.release = children, release_part
    for i in range(count):
        children[i] = <ArrowArray*>(children + count) + i
        children[i][0] = all.children[i][0]
        children[i].release = NULL
        children[i].offset += at
        children[i].length = length
        if children[i].null_count:
            children[i].null_count = -1     # not counted
    return made


cdef void release_part(ArrowArray* whole) noexcept:
    free(whole.private_data)
    whole.release = NULL


cdef class Made(Whole):
    """A record batch that was made here, and becomes one of Arrow's on demand."""

    def __cinit__(self, schema not None):
        self.schema = schema

    @property
    def num_rows(self):
        """The number of rows."""
        return self.whole.length

    def arrow(self):
        """Return it as Arrow's, which owns the memory from then on."""
        if self.batch is None:
            self.batch = import_batch(<uintptr_t>&self.whole, self.schema)
        return self.batch


def as_arrow(rows):
    """Return a record batch as one of Arrow's, whosever it was."""
    return rows.arrow() if isinstance(rows, (Made, Part)) else rows


cdef Lent lent(Whole owner, const ArrowArray* array, char kind):
    cdef Lent made = Lent.__new__(Lent)
    made.owner, made.array, made.length, made.width = owner, array, array.length, 8
    made.kind[0], made.kind[1] = kind, 0
    return made


cdef class Lent:
    """One column, int64, float64 or string, as compiled loops read it.

    Numbers are a buffer of Python's as well, with something at each null.
    """

    @staticmethod
    def of(array not None):
        """Return an array of Arrow's as one."""
        cdef Exported owner = Exported(array)
        return lent(owner, &owner.whole, ord(KINDS[array.type]))

    def __len__(self):
        return self.length

    @property
    def has_nulls(self):
        """Whether there may be a null among them."""
        return valid_bits(self.array) != NULL

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        if self.kind[0] == b"s" or flags & PyBUF_WRITABLE:
            raise BufferError("only numbers can be had as a buffer, to be read")
        buffer.buf = <void*>values_of(self.array, <int>self.width)
        buffer.obj = self
        buffer.len = self.length * self.width
        buffer.readonly = 1
        buffer.itemsize = self.width
        buffer.format = self.kind if flags & PyBUF_FORMAT else NULL
        buffer.ndim = 1
        buffer.shape = &self.length if flags & PyBUF_ND else NULL
        buffer.strides = &self.width if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        buffer.suboffsets = NULL
        buffer.internal = NULL
