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


cdef Lendable lendable(batch):
    cdef Lendable made = Lendable.__new__(Lendable)
    made.batch, made.schema = batch, batch.schema
    batch._export_to_c(<uintptr_t>&made.whole)
    return made


cdef class Arranged(Lendable):
    """A batch with columns of two others, which are there as long as this object is."""

    cdef Lendable came, nulls
    cdef list places

    cdef int put_together(self) except -1:
        """Have it as Arrow does."""
        columns = [
            pa.nulls(self.whole.length, of) if at < 0 else self.came.batch.column(at)
            for at, of in zip(self.places, self.schema.types)
        ]
        self.batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        return 0


cdef class Arrangement:
    """Record batches of one schema with the columns of another one, without a copy of any.

    places: of each column, its position in what is given, or -1: it is null there.
    """

    cdef object schema
    cdef list places
    cdef Lendable nulls         # a column of nulls for each, of which the first ones are taken

    def __init__(self, schema not None, places):
        self.schema, self.places = schema, list(places)
        self.nulls = None

    def of(self, given not None):
        """Return a record batch of Arrow's as a Part with these columns."""
        cdef Lendable came = lendable(given)
        cdef Arranged made = Arranged.__new__(Arranged)
        cdef Py_ssize_t count = len(self.places), i, at
        cdef int64_t length = came.whole.length
        cdef ArrowArray** children = children_of(&made.whole, &came.whole, count)
        made.schema, made.came, made.places = self.schema, came, self.places
        if self.nulls is None or self.nulls.whole.length < length:
            self.nulls = lendable(nulls_of(self.schema, max(length, 1024)))
        made.nulls = self.nulls
        for i in range(count):
            at = self.places[i]
            if not -1 <= at < came.whole.n_children:
                raise IndexError(f"column {at} of {came.whole.n_children}")
            if at < 0:
                children[i][0] = self.nulls.whole.children[i][0]
                children[i].length = children[i].null_count = length
            else:
                children[i][0] = came.whole.children[at][0]
            children[i].release = NULL
        return part(made, 0, length)


def nulls_of(schema, rows):
    """Return a record batch of nulls."""
    return pa.RecordBatch.from_arrays([pa.nulls(rows, of) for of in schema.types], schema.names)


cdef class Part(Whole):
    """Rows of a record batch that follow each other; as one of Arrow's on demand."""

    # Its columns lie where those of `of` are, which is there as long as this object is.

    @staticmethod
    def of_all(rows not None):
        """Return all rows of a record batch, or of a part."""
        if isinstance(rows, Part):
            return rows
        return part(lendable(rows), 0, rows.num_rows)

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
            if self.of.batch is None:
                (<Arranged>self.of).put_together()
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
    cdef Py_ssize_t i
    cdef ArrowArray** children = children_of(&made.whole, all, all.n_children)
    made.of, made.at = of, at
    made.whole.length = length
    for i in range(all.n_children):
        children[i][0] = all.children[i][0]
        children[i].release = NULL
        children[i].offset += at
        children[i].length = length
        if children[i].null_count == all.length:
            children[i].null_count = length
        elif children[i].null_count:
            children[i].null_count = -1     # not counted
    return made


cdef ArrowArray** children_of(
    ArrowArray* made, const ArrowArray* of, Py_ssize_t count
) except NULL:
    """Let ``made`` be as ``of`` with so many columns of its own, and return them, to be written."""
    cdef Py_ssize_t i
    cdef ArrowArray** children = <ArrowArray**>malloc(
        max(1, count) * (sizeof(void*) + sizeof(ArrowArray))
    )
    if children == NULL:
        raise MemoryError()
    made[0] = of[0]
    made.n_children, made.children = count, children
    made.private_data, made.release = children, release_part
    for i in range(count):
        children[i] = <ArrowArray*>(children + count) + i
    return children


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
