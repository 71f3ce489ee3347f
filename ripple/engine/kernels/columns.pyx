# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Columns of rows some of which were dropped: copied when they are read, not before."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np
import pyarrow as pa

from ripple.model.schema.exported cimport ArrowArray, Exported, Lent, Made, Whole, valid_bits

from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind
from ripple.model.keys.space import Picked
from ripple.model.schema.exported import KINDS, as_arrow

cdef list AS_IT_CAME = [(None, None)]  # shared, compared by identity: layers are replaced, not changed
cdef object FLAG = pa.bool_()
cdef dict NUMBERS = {pa.int64(): Kind.INT, pa.float64(): Kind.FLOAT, pa.bool_(): Kind.BOOL}


cdef class Layout:
    """Where which column of the record batches with one schema is."""

    cdef readonly dict places, kinds
    cdef readonly frozenset flags       # the columns of bools

    def __init__(self, schema):
        self.places = {name: at for at, name in enumerate(schema.names)}
        self.kinds = {field.name: KINDS[field.type] for field in schema if field.type in KINDS}
        self.flags = frozenset([field.name for field in schema if field.type == FLAG])


cdef class Columns:
    """Columns by name, in any form that an expression takes: a dict, or a record batch (or a part of
    one, or one that was made here) and its layout.

    A mapping.
    """

    # Invariant: each of `layers` has the columns that came at one time, None for the batch, and the
    # positions in them of the rows that are left, None for all; a name means its column in the last
    # layer that has it.

    def __init__(self, columns, Layout layout=None):
        self.read = {}
        if layout is None:
            self.layers = [(columns, None)]
        else:
            self.batch, self.places, self.kinds = columns, layout.places, layout.kinds
            self.flags = layout.flags
            self.layers = AS_IT_CAME

    cdef tuple layer(self, str name):
        cdef tuple layer
        cdef Py_ssize_t at
        for at in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[at]
            if name in (self.places if layer[0] is None else layer[0]):
                return layer
        raise KeyError(name)

    cdef object came(self, str name, tuple layer):
        return as_arrow(self.batch).column(self.places[name]) if layer[0] is None else layer[0][name]

    def __getitem__(self, str name):
        cdef tuple layer
        if name not in self.read:
            layer = self.layer(name)
            column = self.came(name, layer)
            self.read[name] = column if layer[1] is None else picked(column, layer[1])
        return self.read[name]

    def __iter__(self):
        names = {}
        for columns, _ in self.layers:
            names.update(dict.fromkeys(self.places if columns is None else columns))
        return iter(names)

    def __len__(self):
        return sum([1 for _ in self])

    def values(self):
        """Return all columns."""
        return [self[name] for name in self]

    cpdef Lent lent(self, str name):
        """Return a column as it came in a record batch, None if it did not or rows were dropped."""
        kind = self.kind_as_it_came(name)
        return None if kind is None else self.borrow(name, kind)

    def lent_each(self, list names not None):
        """Return columns as they came in a record batch, None for each other one."""
        return [self.lent(name) for name in names]

    def made(self, schema not None):
        """Return the batch of these columns, if it was made here, as it is, with this schema."""
        if self.layers is AS_IT_CAME and isinstance(self.batch, Made):
            made = (<Made>self.batch).schema
            return self.batch if made is schema or made.equals(schema) else None
        return None

    cdef str kind_as_it_came(self, str name):
        cdef tuple layer
        if self.layers is not AS_IT_CAME:
            layer = self.layer(name)
            if layer[0] is not None or layer[1] is not None:
                return None
        elif name not in self.places:
            raise KeyError(name)
        return self.kinds.get(name)

    cdef const ArrowArray* as_it_came(self, str name, bint* is_float) except? NULL:
        """Return a column of numbers without nulls as it came, NULL if it is none.

        It is there as long as these columns are.
        """
        cdef str kind = self.kind_as_it_came(name)
        cdef const ArrowArray* array
        cdef Whole lender
        if kind is None or kind == "s":
            return NULL
        lender = self.lender()
        array = lender.whole.children[<int>self.places[name]]
        is_float[0] = kind == "d"
        return NULL if valid_bits(array) else array

    cdef const ArrowArray* whole(self, str name, char* kind) except? NULL:
        """Return a column as it came, with its kind as of KINDS, or "?" of bools; NULL if it is none.

        It is there as long as these columns are.
        """
        cdef tuple layer
        if self.batch is None:
            return NULL
        layer = self.layer(name)
        if layer[0] is not None or layer[1] is not None:
            return NULL
        if name in self.kinds:
            kind[0] = ord(self.kinds[name])
        elif name in self.flags:
            kind[0] = b"?"
        else:
            return NULL
        return self.lender().whole.children[<int>self.places[name]]

    cdef Lent borrow(self, str name, str kind):
        return self.lender().lend(self.places[name], ord(kind))

    cdef Whole lender(self):
        """Return the record batch that came as the C data interface has it."""
        if self.exported is None:
            if isinstance(self.batch, Whole):
                self.exported = self.batch
            else:
                self.exported = Exported(self.batch)
        return self.exported

    cpdef key(self, str name):
        """Return a column as a key space takes it: text is not copied even then."""
        cdef tuple layer = self.layer(name)
        if layer[0] is None and name in self.kinds and (
            layer[1] is None or self.kinds[name] == "s"
        ):
            lent = self.borrow(name, self.kinds[name])
            return lent if layer[1] is None else Picked(lent, layer[1])
        if layer[1] is not None:
            column = self.came(name, layer)
            if isinstance(column, pa.Array) and column.type not in NUMBERS:
                return Picked(column, layer[1])
        column = self[name]
        if isinstance(column, pa.Array):
            return column
        return pa.array(getattr(column, "values", column))

    def nullable(self, names):
        """Return those of the columns in which there may be a null."""
        return [name for name in names if self.may_have_nulls(name)]

    cdef bint may_have_nulls(self, str name) except -1:
        cdef tuple layer = self.layer(name)
        if layer[0] is not None or name not in self.kinds:
            return True
        return self.borrow(name, self.kinds[name]).has_nulls

    def valid(self, str name):
        """Return which rows are not null, bool[n], None if all are."""
        cdef tuple layer = self.layer(name)
        column = self.came(name, layer)
        valid = None
        if isinstance(column, Values):
            valid = column.valid
        elif isinstance(column, pa.Array) and column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
        return valid if valid is None or layer[1] is None else valid[layer[1]]

    def any_true(self, str name):
        """Return whether a column of bools that came has a true."""
        cdef char kind
        cdef const ArrowArray* array = self.whole(name, &kind)
        cdef const uint8_t* bits
        cdef const uint8_t* valid
        cdef int64_t i
        if array == NULL or kind != b"?":
            column = self.arrow(name)
            return column.null_count < len(column) and column.true_count > 0
        if array.null_count == array.length:
            return False
        bits, valid = <const uint8_t*>array.buffers[1], valid_bits(array)
        for i in range(array.offset, array.offset + array.length):
            if bits[i >> 3] >> (i & 7) & 1 and (valid == NULL or valid[i >> 3] >> (i & 7) & 1):
                return True
        return False

    def arrow(self, str name):
        """Return a column that came as Arrow as such."""
        cdef tuple layer = self.layer(name)
        column = self.came(name, layer)
        return column if layer[1] is None else column.take(pa.array(layer[1]))

    def add(self, dict columns not None):
        """Add columns of the rows that are left, in the place of those of the same names."""
        self.layers = [*self.layers, (columns, None)]
        self.read.update(columns)

    def copy(self):
        """Return columns of the same values, of which other rows are dropped and other ones added."""
        cdef Columns made = Columns.__new__(Columns)
        made.batch, made.places, made.kinds = self.batch, self.places, self.kinds
        made.flags = self.flags
        made.exported, made.layers, made.read = self.exported, self.layers, dict(self.read)
        return made

    def keep(self, kept):
        """Drop the rows that are not at these positions, rising: int64[n]."""
        self.layers = [
            (columns, kept if left is None else left[kept]) for columns, left in self.layers
        ]
        self.read = {}


cdef class Held:
    """The attributes of ``Rows``: here, since every batch makes one."""

    cdef public Columns columns
    cdef public Py_ssize_t count
    cdef public object times_ns, offsets, origin
    cdef public list rejected
    cdef public dict seen

    def __cinit__(self, columns, Py_ssize_t count, offsets=None):
        self.columns = columns if isinstance(columns, Columns) else Columns(columns)
        self.count, self.offsets = count, offsets
        self.rejected, self.seen = [], {}


def picked(column, rows):
    """Return the rows of a column at these positions."""
    if isinstance(column, pa.Array) and column.type in NUMBERS:
        column = numbers(column, NUMBERS[column.type])  # faster to pick from
    if isinstance(column, Values):
        valid = None if column.valid is None else column.valid[rows]
        return Values(picked(column.values, rows), valid)
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.take(pa.array(rows))
    return [column[row] for row in rows]
