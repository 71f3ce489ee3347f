# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Values that are no numbers in canonical form: bytes that are equal exactly for equal values.

So a column holds them, and their hash stands for them where rows are compared.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.kept cimport Kept, kept_bytes, kept_drop, kept_letters, kept_new, kept_text, print_of
from ripple.model.schema.exported cimport ArrowArray, Exported

cdef extern from "Python.h":
    int PyUnicode_IS_COMPACT_ASCII(object text)
    void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)

cdef extern from "canonical.hpp" namespace "ripple" nogil:
    void write_number(string& out, char kind, int64_t number, char end) except +
    void write_text(string& out, const char* text, size_t size) except +
    void write_float(string& out, double value) except +
    void write(string& out, const Shape& shape, const ArrowArray* array, int64_t row) except +

cdef extern from *:
    """
    #define prefetch(address) __builtin_prefetch(address)
    """
    void prefetch(const void* address) noexcept nogil

cdef enum:
    AHEAD = 8   # values that are fetched from memory before they are read


def canonical(value):
    """Return bytes that are equal exactly for equal values: text, numbers, lists, none."""
    cdef string out
    write_value(out, value)
    return PyBytes_FromStringAndSize(out.data(), out.size())


def fingerprint(value):
    """Return 63 bits that stand for a value that is not a number: equal values, equal bits."""
    cdef string out
    write_value(out, value)
    return print_of(out.data(), out.size())


cdef int write_value(string& out, value) except -1:
    cdef bytes text
    if value is None:
        out.push_back(b"n")
    elif isinstance(value, str):
        if PyUnicode_IS_COMPACT_ASCII(value):
            write_text(out, <const char*>PyUnicode_DATA(value), PyUnicode_GET_LENGTH(value))
        else:
            text = value.encode("utf-8", "surrogatepass")
            write_text(out, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    elif isinstance(value, bool):
        out.push_back(b"t" if value else b"f")
    elif isinstance(value, int):
        text = b"i%d;" % value
        out.append(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    elif isinstance(value, float):
        write_float(out, value)
    elif isinstance(value, bytes):
        text = value
        write_number(out, b"b", PyBytes_GET_SIZE(text), b":")
        out.append(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    elif isinstance(value, (list, tuple)):
        write_number(out, b"l", len(value), b":")
        for item in value:
            write_value(out, item)
    elif isinstance(value, dict):
        write_number(out, b"m", len(value), b":")
        for name in sorted(value):
            write_value(out, name)
            write_value(out, value[name])
    else:
        raise TypeError(f"a column cannot hold {type(value).__name__}: {value!r}")
    return 0


cdef class Form:
    """How values of one type of Arrow's are held: each as bytes, in canonical form; None for null.

    type: texts, lists, records and what is in them.
    """

    def __init__(self, of not None):
        self.type = of
        self.shape = shape_of(of)

    def written(self, values):
        """Return a column, a list or an array of Arrow's, as columns hold it: a Written."""
        return self.write(values)

    def arrow(self, Written written not None):
        """Return the written values as an array of Arrow's."""
        cdef vector[int64_t] places
        cdef int64_t i, n = written.held.size()
        for i in range(n):
            places.push_back(i)
        return self.read(written.held.data(), places.data(), n, NULL, NULL).arrow()

    cdef Written write(self, values):
        """Return a column, a list or an array of Arrow's, as columns hold it."""
        cdef Py_ssize_t i, n = len(values)
        cdef Written made = Written.__new__(Written)
        cdef string out
        cdef Exported array
        cdef Shape shape
        cdef Kept* kept
        cdef bint is_arrow = isinstance(values, pa.Array)
        if is_arrow:
            try:
                shape = self.shape if values.type == self.type else shape_of(values.type)
                array = Exported(values)
            except TypeError:  # such as a dictionary
                values, is_arrow = values.to_pylist(), False
        made.held.resize(n)
        made.prints.resize(n)
        if is_arrow and shape.kind == b"s":
            keep_texts(shape.wide, &array.whole, made)
            return made
        for i in range(n):
            out.clear()
            if is_arrow:
                write(out, shape, &array.whole, i)
            else:
                write_value(out, values[i])
            made.prints[i] = print_of(out.data(), out.size())
            if out.size() == 1 and out[0] == <char>b"n":
                continue
            kept = kept_new(out.size())
            if not kept:
                raise MemoryError
            memcpy(kept_bytes(kept), out.data(), out.size())
            made.held[i] = kept
        return made

    cdef Read read(
        self,
        Kept** held,
        const int64_t* places,
        Py_ssize_t n,
        const uint8_t* present,
        const uint8_t* valid,
    ):
        """Return the n held values at ``places`` as a Read.

        present: by row, 0 for null, or NULL. valid: likewise, by place.
        """
        cdef Read made = Read.__new__(Read, self)
        cdef Py_ssize_t i
        cdef size_t nbytes = 0
        cdef const Kept* one
        cdef const char* begin
        for i in range(n):
            if i + AHEAD < n:
                prefetch(held[places[i + AHEAD]])
            nbytes += 0 if held[places[i]] == NULL else held[places[i]].size
        made.column.reserve(n, nbytes)
        if self.shape.kind == b"s":
            read_texts(made.column[0], held, places, n, present, valid)
            return made
        for i in range(n):
            one = held[places[i]]
            if one == NULL or (present != NULL and not present[i]) or (
                valid != NULL and not valid[places[i]]
            ):
                made.column.append_null()
                continue
            begin = kept_bytes(one)
            made.column.append(begin, begin + one.size)
        return made


cdef class Written:
    """A column of values on their way into places, and their fingerprints."""

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.held.size()):
            kept_drop(self.held[i])

    @property
    def values(self):
        """The values as they are held: bytes, None for null."""
        cdef list found = []
        cdef const Kept* one
        cdef size_t i
        for i in range(self.held.size()):
            one = self.held[i]
            found.append(None if one == NULL else PyBytes_FromStringAndSize(kept_bytes(one), one.size))
        return found

    @property
    def fingerprints(self):
        """The numbers by which values are compared: a list of integers."""
        return list(self.prints)


cdef int keep_texts(bint wide, const ArrowArray* texts, Written made) except -1:
    """Keep texts, of which the offsets have 64 bits if they are wide."""
    cdef int64_t i, at, begin, end
    cdef Kept* kept
    cdef const char* base = <const char*>texts.buffers[2]
    cdef const uint8_t* there = <const uint8_t*>texts.buffers[0]
    cdef int64_t null_print = print_of(b"n", 1)
    if texts.null_count == 0:
        there = NULL
    for i in range(texts.length):
        at = texts.offset + i
        if there != NULL and not there[at >> 3] >> (at & 7) & 1:
            made.prints[i] = null_print
            continue
        if wide:
            begin, end = (<const int64_t*>texts.buffers[1])[at], (<const int64_t*>texts.buffers[1])[at + 1]
        else:
            begin, end = (<const int32_t*>texts.buffers[1])[at], (<const int32_t*>texts.buffers[1])[at + 1]
        kept = kept_text(base + begin, <size_t>(end - begin))
        if not kept:
            raise MemoryError
        made.held[i] = kept
        made.prints[i] = print_of(kept_bytes(kept), kept.size)
    return 0


cdef int read_texts(
    Growing& column,
    Kept** held,
    const int64_t* places,
    Py_ssize_t n,
    const uint8_t* present,
    const uint8_t* valid,
) except -1:
    """Append held texts, as Form.read has them."""
    cdef Py_ssize_t i
    cdef const Kept* one
    cdef const char* begin
    for i in range(n):
        one = held[places[i]]
        if one == NULL or (present != NULL and not present[i]) or (
            valid != NULL and not valid[places[i]]
        ):
            column.append_null()
            continue
        begin = kept_bytes(one)
        if begin[0] == b"s":
            column.append_text(kept_letters(one), begin + one.size)
        else:
            column.append(begin, begin + one.size)
    return 0


cdef class Read:
    """A column of values that were held, to be handed out once."""

    def __cinit__(self, Form form not None):
        self.form = form
        self.column = new Growing(&form.shape)

    def __dealloc__(self):
        del self.column

    cdef int hand_out(self, ArrowArray* out) except -1:
        self.column.release_to(out)
        return 0

    def arrow(self):
        """Return it as an array of Arrow's."""
        cdef ArrowArray out
        self.hand_out(&out)
        return pa.Array._import_from_c(<uintptr_t>&out, self.form.type)


cdef Shape shape_of(type) except *:
    cdef Shape shape
    if kinds.is_string(type) or kinds.is_large_string(type):
        shape.kind, shape.wide = b"s", kinds.is_large_string(type)
    elif kinds.is_list(type) or kinds.is_large_list(type):
        shape.kind, shape.wide = b"l", kinds.is_large_list(type)
        shape.parts.push_back(shape_of(type.value_type))
    elif kinds.is_struct(type):
        shape.kind = b"r"
        members = [type.field(at) for at in range(type.num_fields)]
        for member in members:
            shape.parts.push_back(shape_of(member.type))
        for at in sorted(range(len(members)), key=lambda at: members[at].name):
            shape.order.push_back(<size_t>at)
            shape.heads.push_back(canonical(members[at].name))
    elif kinds.is_float64(type):
        shape.kind = b"d"
    elif kinds.is_int64(type):
        shape.kind = b"i"
    elif kinds.is_boolean(type):
        shape.kind = b"b"
    else:
        raise TypeError(f"a column cannot hold {type}")
    return shape
