# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""bin_prot: the binary encoding of the original's records, byte for byte.

A codec is a tree of compiled nodes; ``dumps`` and ``loads`` walk it once without looking up a
type or a name. The format is Jane Street's bin_prot (https://github.com/janestreet/bin_prot),
little-endian: integers take 1, 2, 3, 5 or 9 bytes by size, strings and lists are preceded by
their length, the fields of a record follow one another without names.

Writing always takes the shortest form. Reading accepts a longer form of a small number, as the
original does, and refuses what the original refuses: a "negative byte" that is not negative, a
63-bit integer that needs 64, a flag that is neither 0 nor 1, an unknown tag.

Nothing is allocated on the word of a length: a string must fit into the rest of the buffer,
and so must a list with the smallest possible items. Decoded values take at most about a hundred
times their bytes (the worst are records of absent fields). Recursion ends at ``DEPTH_MAX``.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_SetItem
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

import dataclasses
from inspect import getattr_static
from operator import index

from ripple.core.errors import RippleError
from ripple.core.sexp import DEPTH_MAX as _DEPTH_MAX
from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    void* PyUnicode_1BYTE_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    int64_t PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1
    object PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)
    int PyObject_GenericSetAttr(object value, object name, object item) except -1
    PyObject* PyDict_GetItemWithError(object mapping, object key) except? NULL

# The offset of a slot inside an instance, from the public layout of a member descriptor; and
# calls of a class without a dict of keywords.
cdef extern from *:
    """
    #include <structmember.h>
    static Py_ssize_t ripple_slot_offset(PyObject* descriptor) {
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return -1;
        PyMemberDef* member = ((PyMemberDescrObject*)descriptor)->d_member;
        return member->type == T_OBJECT_EX ? member->offset : -1;
    }
    static PyObject* ripple_allocate(PyObject* cls) {
        return ((PyTypeObject*)cls)->tp_alloc((PyTypeObject*)cls, 0);
    }
    static PyObject* ripple_call(PyObject* cls, PyObject* items, PyObject* names) {
        return PyObject_Vectorcall(cls, ((PyTupleObject*)items)->ob_item, 0, names);
    }
    /* Most strings are short and ASCII: those need no decoder. */
    static inline PyObject* ripple_text(const char* data, Py_ssize_t size) {
        unsigned char all = 0;
        if (size <= 32) {
            for (Py_ssize_t i = 0; i < size; i++) all |= (unsigned char)data[i];
            if (size > 1 && all < 128) {
                PyObject* text = PyUnicode_New(size, 127);
                if (text != NULL) memcpy(PyUnicode_1BYTE_DATA(text), data, size);
                return text;
            }
        }
        return PyUnicode_DecodeUTF8(data, size, NULL);
    }
    static inline PyObject** ripple_slot(PyObject* value, Py_ssize_t offset) {
        return (PyObject**)((char*)value + offset);
    }
    """
    Py_ssize_t ripple_slot_offset(object descriptor)
    object ripple_allocate(object cls)
    object ripple_call(object cls, tuple items, tuple names)
    PyObject** ripple_slot(PyObject* value, Py_ssize_t offset) noexcept
    object ripple_text(const char* data, Py_ssize_t size)

Buffer = bytes | bytearray | memoryview

DEPTH_MAX = _DEPTH_MAX
INT_MAX = 2**62 - 1
INT_MIN = -(2**62)

cdef int sexp_depth_max = _DEPTH_MAX
cdef int64_t int_max = (<int64_t>1 << 62) - 1
cdef int64_t int_min = -(<int64_t>1 << 62)

# Codes before an integer that does not fit into one byte.
cdef enum:
    CODE_INT64 = 0xFC
    CODE_INT32 = 0xFD
    CODE_INT16 = 0xFE
    CODE_NEGATIVE = 0xFF

# What a node does; scalars are handled in place, without a virtual call.
cdef enum Kind:
    KIND_INT, KIND_INT64, KIND_FLOAT, KIND_BOOL, KIND_STRING, KIND_BYTES, KIND_OTHER

cdef enum:
    STACK_BYTES = 512


# --- The two ends -------------------------------------------------------------------------------
# Reader: start <= at <= end. Writer: used <= capacity; data is the caller's stack until it grows.

cdef struct Reader:
    const uint8_t* start
    const uint8_t* at
    const uint8_t* end
    int depth

cdef struct Writer:
    uint8_t* data
    size_t used
    size_t capacity
    bint on_heap
    int depth


cdef object malformed(Reader* r, str what):
    return RemoteProtocolError(f"malformed bin_prot at byte {r.at - r.start}: {what}")


cdef int grow(Writer* w, size_t need) except -1:
    cdef size_t capacity = w.capacity * 2
    cdef uint8_t* data
    if capacity < w.used + need:
        capacity = w.used + need
    data = <uint8_t*>PyMem_Realloc(w.data if w.on_heap else NULL, capacity)
    if data == NULL:
        raise MemoryError
    if not w.on_heap:
        memcpy(data, w.data, w.used)
    w.data, w.capacity, w.on_heap = data, capacity, True
    return 0


cdef inline int reserve(Writer* w, size_t need) except -1:
    if w.capacity - w.used < need:
        return grow(w, need)
    return 0


cdef inline int require(Reader* r, uint64_t need) except -1:
    if need > <uint64_t>(r.end - r.at):
        raise malformed(r, f"{need} bytes wanted, {r.end - r.at} left")
    return 0


# --- Numbers ------------------------------------------------------------------------------------

cdef inline int put_byte(Writer* w, uint8_t byte) except -1:
    reserve(w, 1)
    w.data[w.used] = byte
    w.used += 1
    return 0


cdef inline int put_coded(Writer* w, uint8_t code, const void* number, size_t size) except -1:
    reserve(w, 1 + size)
    w.data[w.used] = code
    memcpy(w.data + w.used + 1, number, size)
    w.used += 1 + size
    return 0


cdef inline int take_coded(Reader* r, void* number, size_t size) except -1:
    require(r, 1 + size)
    memcpy(number, r.at + 1, size)
    r.at += 1 + size
    return 0


cdef inline int put_integer(Writer* w, int64_t n) except -1:
    cdef int8_t byte
    cdef int16_t short_
    cdef int32_t word
    if 0 <= n < 128:
        return put_byte(w, <uint8_t>n)
    if -128 <= n < 0:
        byte = <int8_t>n
        return put_coded(w, CODE_NEGATIVE, &byte, 1)
    if -32768 <= n < 32768:
        short_ = <int16_t>n
        return put_coded(w, CODE_INT16, &short_, 2)
    if -2147483648 <= n < 2147483648:
        word = <int32_t>n
        return put_coded(w, CODE_INT32, &word, 4)
    return put_coded(w, CODE_INT64, &n, 8)


cdef inline int take_integer(Reader* r, int64_t* out) except -1:
    cdef uint8_t code
    cdef int16_t short_
    cdef int32_t word
    require(r, 1)
    code = r.at[0]
    if code < 128:
        r.at += 1
        out[0] = code
    elif code == CODE_NEGATIVE:
        require(r, 2)
        if <int8_t>r.at[1] >= 0:
            raise malformed(r, "a negative byte that is not negative")
        out[0] = <int8_t>r.at[1]
        r.at += 2
    elif code == CODE_INT16:
        take_coded(r, &short_, 2)
        out[0] = short_
    elif code == CODE_INT32:
        take_coded(r, &word, 4)
        out[0] = word
    elif code == CODE_INT64:
        take_coded(r, out, 8)
    else:
        raise malformed(r, f"0x{code:02x} does not begin an integer")
    return 0


cdef inline int put_length(Writer* w, uint64_t n) except -1:
    cdef uint16_t short_
    cdef uint32_t word
    if n < 128:
        return put_byte(w, <uint8_t>n)
    if n < 65536:
        short_ = <uint16_t>n
        return put_coded(w, CODE_INT16, &short_, 2)
    if n < 4294967296:
        word = <uint32_t>n
        return put_coded(w, CODE_INT32, &word, 4)
    return put_coded(w, CODE_INT64, &n, 8)


cdef inline int take_length(Reader* r, uint64_t* out) except -1:
    cdef uint8_t code
    cdef uint16_t short_
    cdef uint32_t word
    require(r, 1)
    code = r.at[0]
    if code < 128:
        r.at += 1
        out[0] = code
    elif code == CODE_INT16:
        take_coded(r, &short_, 2)
        out[0] = short_
    elif code == CODE_INT32:
        take_coded(r, &word, 4)
        out[0] = word
    elif code == CODE_INT64:
        take_coded(r, out, 8)
    else:
        raise malformed(r, f"0x{code:02x} does not begin a length")
    return 0


cdef inline int put_raw(Writer* w, const char* data, Py_ssize_t size) except -1:
    put_length(w, size)
    reserve(w, size)
    memcpy(w.data + w.used, data, size)
    w.used += size
    return 0


cdef inline int take_raw(Reader* r, const char** data, Py_ssize_t* size) except -1:
    cdef uint64_t length
    take_length(r, &length)
    require(r, length)
    data[0] = <const char*>r.at
    size[0] = <Py_ssize_t>length
    r.at += length
    return 0


cdef inline int take_flag(Reader* r, str wanted) except -1:
    cdef uint8_t flag
    require(r, 1)
    flag = r.at[0]
    if flag > 1:
        raise malformed(r, f"0x{flag:02x} is not {wanted}")
    r.at += 1
    return flag


cdef object mistyped(str wanted, object value):
    # Of anything else the text may be without end, or raise.
    shown = f" {value!r:.60}" if isinstance(value, (str, bytes, bool, float)) else ""
    return LocalProtocolError(f"{wanted} wanted, not {type(value).__name__}{shown}")


cdef inline int64_t integer_of(object value) except? -1:
    cdef int overflow = 0
    cdef int64_t n
    if type(value) is not int:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise mistyped("an integer", value)
        value = index(value)
    n = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        raise LocalProtocolError(
            f"an integer of {value.bit_length()} bits does not fit into 64 with its sign"
        )
    return n


cdef int put_text(Writer* w, object value) except -1:
    cdef const char* data
    cdef Py_ssize_t size
    try:
        data = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:
        raise LocalProtocolError(f"{value!r:.60} holds a lone surrogate, not text") from None
    return put_raw(w, data, size)


# --- Scalars, by kind ---------------------------------------------------------------------------

cdef int put_scalar(Writer* w, Kind kind, object value) except -1:
    cdef int64_t n
    cdef double x
    if kind == KIND_STRING:
        if type(value) is not str and not isinstance(value, str):
            raise mistyped("a string", value)
        if PyUnicode_IS_COMPACT_ASCII(value):
            put_raw(w, <const char*>PyUnicode_1BYTE_DATA(value), PyUnicode_GET_LENGTH(value))
        else:
            put_text(w, value)
    elif kind == KIND_FLOAT:
        if type(value) is float:
            x = PyFloat_AS_DOUBLE(value)
        elif isinstance(value, float) or (isinstance(value, int) and type(value) is not bool):
            try:
                x = value
            except OverflowError:
                raise LocalProtocolError(
                    f"an integer of {value.bit_length()} bits does not fit into a double"
                ) from None
        else:
            raise mistyped("a number", value)
        reserve(w, 8)
        memcpy(w.data + w.used, &x, 8)
        w.used += 8
    elif kind == KIND_INT64:
        put_integer(w, integer_of(value))
    elif kind == KIND_INT:
        n = integer_of(value)
        if n > int_max or n < int_min:
            raise LocalProtocolError(f"{n} does not fit into 63 bits; declare the field Int64")
        put_integer(w, n)
    elif kind == KIND_BOOL:
        if value is not True and value is not False:
            raise mistyped("a bool", value)
        put_byte(w, value is True)
    else:
        put_buffer(w, value)
    return 0


cdef int put_buffer(Writer* w, object value) except -1:
    cdef Py_buffer view
    if type(value) is bytes:
        put_raw(w, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        return 0
    try:
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        raise mistyped("contiguous bytes", value) from None
    try:
        put_raw(w, <const char*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef object take_scalar(Reader* r, Kind kind):
    cdef int64_t n
    cdef double x
    cdef const char* data
    cdef Py_ssize_t size
    if kind == KIND_STRING:
        take_raw(r, &data, &size)
        try:
            return ripple_text(data, size)
        except UnicodeDecodeError:
            raise malformed(r, "a string that is not UTF-8 ends here") from None
    if kind == KIND_FLOAT:
        require(r, 8)
        memcpy(&x, r.at, 8)
        r.at += 8
        return x
    if kind == KIND_INT64:
        take_integer(r, &n)
        return n
    if kind == KIND_INT:
        take_integer(r, &n)
        if n > int_max or n < int_min:
            raise malformed(r, f"{n} does not fit into 63 bits")
        return n
    if kind == KIND_BOOL:
        return take_flag(r, "a bool") == 1
    take_raw(r, &data, &size)
    return PyBytes_FromStringAndSize(data, size)


# --- Codecs -------------------------------------------------------------------------------------

cdef class Codec:
    """One type's encoding; immutable and safe to share between threads.

    ``size_min`` is the least number of bytes that any value takes.
    """

    cdef Kind kind
    cdef readonly str name
    cdef readonly Py_ssize_t size_min

    def dumps(self, value) -> bytes:
        """Encode ``value``; raises :class:`LocalProtocolError` naming the field at fault."""
        cdef uint8_t stack[STACK_BYTES]
        cdef Writer w
        w.data, w.used, w.capacity, w.on_heap, w.depth = stack, 0, STACK_BYTES, False, 0
        try:
            self.put(&w, value)
            return PyBytes_FromStringAndSize(<char*>w.data, w.used)
        finally:
            if w.on_heap:
                PyMem_Free(w.data)

    def loads(self, data):
        """Decode all of ``data``; raises :class:`RemoteProtocolError`, also for leftovers."""
        cdef Py_buffer view
        cdef Reader r
        cdef object value
        if type(data) is bytes:
            open_reader(&r, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), 0)
            value = self.take(&r)
            if r.at != r.end:
                raise leftovers(&r)
            return value
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            open_reader(&r, <const char*>view.buf, view.len, 0)
            value = self.take(&r)
            if r.at != r.end:
                raise leftovers(&r)
            return value
        finally:
            PyBuffer_Release(&view)

    def read(self, data, Py_ssize_t offset=0):
        """Decode one value at ``offset`` and return it with the offset after it."""
        cdef Py_buffer view
        cdef Reader r
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= offset <= view.len:
                raise LocalProtocolError(f"offset {offset} lies outside {view.len} bytes")
            open_reader(&r, <const char*>view.buf, view.len, offset)
            value = self.take(&r)
            return value, r.at - r.start
        finally:
            PyBuffer_Release(&view)

    def __repr__(self) -> str:
        return f"<bin_prot {self.name}>"

    cdef int put(self, Writer* w, object value) except -1:
        return put_scalar(w, self.kind, value)

    cdef object take(self, Reader* r):
        return take_scalar(r, self.kind)


cdef inline void open_reader(Reader* r, const char* data, Py_ssize_t size, Py_ssize_t offset):
    r.start = <const uint8_t*>data
    r.at = r.start + offset
    r.end = r.start + size
    r.depth = 0


cdef object leftovers(Reader* r):
    return malformed(r, f"{r.end - r.at} bytes are left over")


cdef inline int put_item(Writer* w, Codec codec, object value) except -1:
    if codec.kind == KIND_OTHER:
        return codec.put(w, value)
    return put_scalar(w, codec.kind, value)


cdef inline object take_item(Reader* r, Codec codec):
    if codec.kind == KIND_OTHER:
        return codec.take(r)
    return take_scalar(r, codec.kind)


cdef Codec scalar(Kind kind, str name, Py_ssize_t size_min):
    cdef Codec codec = Codec.__new__(Codec)
    codec.kind, codec.name, codec.size_min = kind, name, size_min
    return codec


INT = scalar(KIND_INT, "int", 1)
INT64 = scalar(KIND_INT64, "int64", 1)
FLOAT = scalar(KIND_FLOAT, "float", 8)
BOOL = scalar(KIND_BOOL, "bool", 1)
STRING = scalar(KIND_STRING, "string", 1)
BYTES = scalar(KIND_BYTES, "bytes", 1)


cdef class _Unit(Codec):
    cdef int put(self, Writer* w, object value) except -1:
        if value is not None:
            raise mistyped("None", value)
        put_length(w, 0)
        return 0

    cdef object take(self, Reader* r):
        require(r, 1)
        if r.at[0] != 0:
            raise malformed(r, f"0x{r.at[0]:02x} is not a unit")
        r.at += 1
        return None


cdef class _Sexp(Codec):
    # Atom = tag 0 and a string; List = tag 1, a count and the items. Atoms may hold any bytes,
    # so those that are not UTF-8 survive as surrogate escapes, as in ripple.core.sexp.
    cdef int put(self, Writer* w, object value) except -1:
        cdef object raw
        if isinstance(value, str):
            put_byte(w, 0)
            try:
                raw = value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:
                raise LocalProtocolError(f"{value!r:.60} holds a lone surrogate") from None
            return put_raw(w, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw))
        if not isinstance(value, (list, tuple)):
            raise mistyped("an S-expression", value)
        put_deeper(w, sexp_depth_max)
        put_byte(w, 1)
        put_length(w, len(value))
        for item in value:
            self.put(w, item)
        w.depth -= 1
        return 0

    cdef object take(self, Reader* r):
        cdef const char* data
        cdef Py_ssize_t size, i
        cdef uint64_t count
        cdef object item
        cdef list items
        require(r, 1)
        if r.at[0] == 0:
            r.at += 1
            take_raw(r, &data, &size)
            return PyUnicode_DecodeUTF8(data, size, "surrogateescape")
        if r.at[0] != 1:
            raise malformed(r, f"0x{r.at[0]:02x} is neither an atom nor a list")
        r.at += 1
        take_deeper(r, sexp_depth_max)
        take_length(r, &count)
        require_items(r, count, 2)
        items = PyList_New(<Py_ssize_t>count)
        for i in range(<Py_ssize_t>count):
            item = self.take(r)
            Py_INCREF(item)
            PyList_SET_ITEM(items, i, item)
        r.depth -= 1
        return items


cdef int put_deeper(Writer* w, int depth_max) except -1:
    w.depth += 1
    if w.depth > depth_max:
        raise LocalProtocolError(f"nested deeper than {depth_max} levels")
    return 0


cdef int take_deeper(Reader* r, int depth_max) except -1:
    r.depth += 1
    if r.depth > depth_max:
        raise malformed(r, f"nested deeper than {depth_max} levels")
    return 0


cdef int require_items(Reader* r, uint64_t count, Py_ssize_t size_min) except -1:
    if count > <uint64_t>(r.end - r.at) // <uint64_t>size_min:
        raise malformed(r, f"{count} items announced, {r.end - r.at} bytes left")
    return 0


cdef Codec named(Codec codec, str name, Py_ssize_t size_min):
    codec.kind, codec.name, codec.size_min = KIND_OTHER, name, size_min
    return codec


UNIT = named(_Unit.__new__(_Unit), "unit", 1)
SEXP = named(_Sexp.__new__(_Sexp), "sexp", 2)


cdef class _Option(Codec):
    cdef Codec of

    cdef int put(self, Writer* w, object value) except -1:
        put_byte(w, value is not None)
        if value is not None:
            put_item(w, self.of, value)
        return 0

    cdef object take(self, Reader* r):
        return take_item(r, self.of) if take_flag(r, "an option") else None


cdef class _List(Codec):
    cdef Codec of
    cdef bint frozen

    cdef int put(self, Writer* w, object value) except -1:
        cdef Py_ssize_t i = 0
        if not isinstance(value, (list, tuple)):
            raise mistyped("a list or tuple", value)
        put_length(w, len(value))
        try:
            for item in value:
                put_item(w, self.of, item)
                i += 1
        except LocalProtocolError as error:
            raise located(error, f"[{i}]") from None
        return 0

    cdef object take(self, Reader* r):
        cdef uint64_t count
        cdef Py_ssize_t i
        cdef object items, item
        take_length(r, &count)
        require_items(r, count, self.of.size_min)
        if self.frozen:
            items = PyTuple_New(<Py_ssize_t>count)
            for i in range(<Py_ssize_t>count):
                item = take_item(r, self.of)
                Py_INCREF(item)
                PyTuple_SET_ITEM(items, i, item)
        else:
            items = PyList_New(<Py_ssize_t>count)
            for i in range(<Py_ssize_t>count):
                item = take_item(r, self.of)
                Py_INCREF(item)
                PyList_SET_ITEM(items, i, item)
        return items


cdef class _Tuple(Codec):
    cdef tuple of

    cdef int put(self, Writer* w, object value) except -1:
        cdef Py_ssize_t i
        if not isinstance(value, tuple) or len(value) != len(self.of):
            raise mistyped(f"a tuple of {len(self.of)}", value)
        for i in range(len(self.of)):
            put_item(w, <Codec>PyTuple_GET_ITEM(self.of, i), value[i])
        return 0

    cdef object take(self, Reader* r):
        cdef Py_ssize_t i
        cdef object item
        cdef tuple items = PyTuple_New(len(self.of))
        for i in range(len(self.of)):
            item = take_item(r, <Codec>PyTuple_GET_ITEM(self.of, i))
            Py_INCREF(item)
            PyTuple_SET_ITEM(items, i, item)
        return items


cdef object located(error, str step):
    """The same complaint, one step further out: ``legs[3].price: a number wanted, not ...``."""
    path = getattr(error, "path", "")
    text = str(error)[len(path) + 2 :] if path else str(error)
    path = step + path if not path or path.startswith("[") else f"{step}.{path}"
    outer = LocalProtocolError(f"{path}: {text}")
    outer.path = path
    return outer


# How a record is held in Python.
cdef enum Shape:
    SHAPE_DICT   # a dict; an optional field that is absent is left out
    SHAPE_SLOTS  # a class with a constructor that only fills its fields, and these are all slots
    SHAPE_FILL   # the same, but they live in the instance's __dict__
    SHAPE_CALL   # any other class: built by keyword


cdef class _Record(Codec):
    # len(names) == len(codecs) == number of offsets. An offset is where an instance of exactly
    # cls holds the field, or -1 when the attribute is not a plain slot.
    cdef tuple names
    cdef tuple codecs
    cdef tuple optional
    cdef object cls
    cdef object make
    cdef Shape shape
    cdef Py_ssize_t* offsets

    def __dealloc__(self):
        PyMem_Free(self.offsets)

    cdef int put(self, Writer* w, object value) except -1:
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t count = len(self.names)
        cdef Codec codec
        cdef PyObject* held
        if self.shape == SHAPE_DICT:
            if type(value) is dict or isinstance(value, dict):
                return self.put_dict(w, value)
            if not is_instance_of_record(value):
                raise mistyped("a dict or an instance of a record class", value)
        elif type(value) is not self.cls and not isinstance(value, self.cls):
            raise mistyped(f"a {self.cls.__name__}", value)
        try:
            while i < count:
                codec = <Codec>PyTuple_GET_ITEM(self.codecs, i)
                if self.offsets[i] > 0 and type(value) is self.cls:
                    held = ripple_slot(<PyObject*>value, self.offsets[i])[0]
                    if held == NULL:
                        raise LocalProtocolError("the field is not set")
                    put_item(w, codec, <object>held)
                else:
                    put_item(w, codec, getattr(value, self.names[i]))
                i += 1
        except LocalProtocolError as error:
            raise located(error, self.names[i]) from None
        except AttributeError:
            raise located(LocalProtocolError("the field is not set"), self.names[i]) from None
        return 0

    cdef int put_dict(self, Writer* w, object value) except -1:
        cdef Py_ssize_t i = 0
        cdef Py_ssize_t found = 0
        cdef PyObject* held
        try:
            while i < len(self.names):
                held = PyDict_GetItemWithError(value, <object>PyTuple_GET_ITEM(self.names, i))
                if held != NULL:
                    found += 1
                    self.put_present(w, i, <object>held)
                elif self.optional[i]:
                    put_item(w, <Codec>self.codecs[i], None)
                else:
                    raise LocalProtocolError("the field is missing")
                i += 1
        except LocalProtocolError as error:
            raise located(error, self.names[i]) from None
        if found != len(value):
            unknown = sorted([str(name) for name in value if name not in self.names])
            raise LocalProtocolError(f"unknown fields: {', '.join(unknown)}")
        return 0

    cdef int put_present(self, Writer* w, Py_ssize_t i, object value) except -1:
        # An optional field that may itself be none: present with None is some none.
        cdef Codec codec = <Codec>PyTuple_GET_ITEM(self.codecs, i)
        if self.optional[i] and type((<_Option>codec).of) is _Option:
            put_byte(w, 1)
            codec = (<_Option>codec).of
        return put_item(w, codec, value)

    cdef object take(self, Reader* r):
        if self.shape == SHAPE_SLOTS:
            return self.take_slots(r)
        if self.shape == SHAPE_FILL:
            return self.take_fill(r)
        if self.shape == SHAPE_DICT:
            return self.take_dict(r)
        return self.take_call(r)

    cdef object take_slots(self, Reader* r):
        cdef object item
        cdef Py_ssize_t i
        cdef PyObject** slot
        cdef object value = ripple_allocate(self.cls)
        for i in range(len(self.codecs)):
            item = take_item(r, <Codec>PyTuple_GET_ITEM(self.codecs, i))
            slot = ripple_slot(<PyObject*>value, self.offsets[i])
            Py_INCREF(item)
            slot[0] = <PyObject*>item
        return value

    cdef object take_fill(self, Reader* r):
        cdef Py_ssize_t i
        cdef object item
        cdef object value = ripple_allocate(self.cls)
        for i in range(len(self.codecs)):
            item = take_item(r, <Codec>PyTuple_GET_ITEM(self.codecs, i))
            # Not through the class's own __setattr__, which refuses when it is frozen.
            PyObject_GenericSetAttr(value, <object>PyTuple_GET_ITEM(self.names, i), item)
        return value

    cdef object take_dict(self, Reader* r):
        cdef Py_ssize_t i
        cdef dict value = {}
        for i in range(len(self.codecs)):
            if self.optional[i]:
                if take_flag(r, "an option"):
                    PyDict_SetItem(
                        value, self.names[i], take_item(r, (<_Option>self.codecs[i]).of)
                    )
            else:
                PyDict_SetItem(
                    value,
                    <object>PyTuple_GET_ITEM(self.names, i),
                    take_item(r, <Codec>PyTuple_GET_ITEM(self.codecs, i)),
                )
        return value

    cdef object take_call(self, Reader* r):
        cdef Py_ssize_t i
        cdef object item
        cdef tuple items = PyTuple_New(len(self.codecs))
        for i in range(len(self.codecs)):
            item = take_item(r, <Codec>PyTuple_GET_ITEM(self.codecs, i))
            Py_INCREF(item)
            PyTuple_SET_ITEM(items, i, item)
        try:
            return ripple_call(self.make, items, self.names)
        except (TypeError, ValueError, RippleError) as error:
            raise malformed(r, f"{self.cls.__name__} refuses its fields: {error}") from error


cdef class _Union(Codec):
    # The tag of the value's class, then the fields of that class.
    cdef tuple cases
    cdef dict tags

    cdef int put(self, Writer* w, object value) except -1:
        cdef object cls = type(value)
        if cls not in self.tags:
            raise mistyped(f"one of {', '.join([known.__name__ for known in self.tags])}", value)
        put_tag(w, self.tags[cls], len(self.cases))
        try:
            return (<Codec>self.cases[self.tags[cls]]).put(w, value)
        except LocalProtocolError as error:
            raise located(error, cls.__name__) from None

    cdef object take(self, Reader* r):
        cdef uint16_t tag
        take_tag(r, &tag, len(self.cases))
        return (<Codec>PyTuple_GET_ITEM(self.cases, tag)).take(r)


cdef class _Variant(Codec):
    # The tag of the case that the value names, then its arguments.
    cdef tuple cases
    cdef dict tags
    cdef object case_of

    cdef int put(self, Writer* w, object value) except -1:
        cdef object name, args
        if type(value) is tuple and value and type(value[0]) is str:
            name, args = value[0], value[1:]
        elif self.case_of is None:
            raise mistyped("a tuple (case, *args)", value)
        else:
            name, args = self.case_of(value)
        if name not in self.tags:
            raise mistyped(f"one of {', '.join(self.tags)}", value)
        put_tag(w, self.tags[name], len(self.cases))
        try:
            return (<Codec>self.cases[self.tags[name]]).put(w, args)
        except LocalProtocolError as error:
            raise located(error, name) from None

    cdef object take(self, Reader* r):
        cdef uint16_t tag
        cdef Codec case
        take_tag(r, &tag, len(self.cases))
        case = <Codec>PyTuple_GET_ITEM(self.cases, tag)
        return (case.name, *case.take(r))


cdef class _Enum(Codec):
    # A variant of cases without values: members of a Python enum, in order.
    cdef tuple members
    cdef dict tags

    cdef int put(self, Writer* w, object value) except -1:
        if value not in self.tags:
            raise mistyped(f"a {self.name}", value)
        return put_tag(w, self.tags[value], len(self.members))

    cdef object take(self, Reader* r):
        cdef uint16_t tag
        take_tag(r, &tag, len(self.members))
        return self.members[tag]


# Past 256 cases a tag takes two bytes.
cdef int put_tag(Writer* w, uint16_t tag, Py_ssize_t cases) except -1:
    reserve(w, 2)
    if cases > 256:
        memcpy(w.data + w.used, &tag, 2)
        w.used += 2
    else:
        w.data[w.used] = <uint8_t>tag
        w.used += 1
    return 0


cdef int take_tag(Reader* r, uint16_t* tag, Py_ssize_t cases) except -1:
    cdef int size = 2 if cases > 256 else 1
    require(r, size)
    tag[0] = 0
    memcpy(tag, r.at, size)
    if tag[0] >= cases:
        raise malformed(r, f"tag {tag[0]} where there are {cases} cases")
    r.at += size
    return 0


cdef class Later(Codec):
    """A codec that is named before it is defined: the knot of a recursive type."""

    cdef Codec of
    cdef int depth_max

    def define(self, Codec of not None):
        """Tie the knot; once."""
        if self.of is not None:
            raise LocalProtocolError(f"{self.name} is already defined")
        self.of = of

    cdef int put(self, Writer* w, object value) except -1:
        put_deeper(w, self.depth_max)
        self.of.put(w, value)
        w.depth -= 1
        return 0

    cdef object take(self, Reader* r):
        take_deeper(r, self.depth_max)
        value = self.of.take(r)
        r.depth -= 1
        return value


# --- Making codecs ------------------------------------------------------------------------------

def option(Codec of not None) -> Codec:
    """Encode ``None`` or a value of ``of``; ``None`` always means none, never some none."""
    cdef _Option codec = named(_Option.__new__(_Option), f"{of.name} option", 1)
    codec.of = of
    return codec


def list_of(Codec of not None) -> Codec:
    """Encode any number of values; reads a list."""
    return sequence(of, False)


def tuple_of(Codec of not None) -> Codec:
    """Encode any number of values exactly as :func:`list_of` does; reads a tuple."""
    return sequence(of, True)


cdef Codec sequence(Codec of, bint frozen):
    if of.size_min == 0:
        raise LocalProtocolError(
            f"a list of {of.name} cannot be bounded by its bytes: the items take none"
        )
    cdef _List codec = named(_List.__new__(_List), f"{of.name} list", 1)
    codec.of, codec.frozen = of, frozen
    return codec


def tuple_as(*of: Codec) -> Codec:
    """Encode a tuple of fixed length, one codec a place."""
    cdef _Tuple codec = named(
        _Tuple.__new__(_Tuple), " * ".join([c.name for c in of]), sum([c.size_min for c in of])
    )
    codec.of = of
    return codec


def pair(Codec a not None, Codec b not None) -> Codec:
    """Encode a tuple of two."""
    return tuple_as(a, b)


def record(cls, fields, optional=(), make=None) -> Codec:
    """Encode a record: ``fields`` maps names to codecs, in wire order.

    ``cls`` is ``dict``, or a class that takes the fields by keyword and has them as attributes.
    With ``dict``, instances of record classes can be written too; they are read as dicts.
    The fields named in ``optional`` are encoded as options and may be missing from a dict.
    A dataclass without ``__post_init__`` is filled in place, without a Python call. ``make`` is
    called in the place of ``cls``, for instances that the class itself does not make.
    """
    cdef _Record codec = _Record.__new__(_Record)
    cdef Py_ssize_t i
    names = tuple(fields)
    codecs = tuple(option(c) if name in optional else c for name, c in fields.items())
    named(codec, cls.__name__, sum([(<Codec>c).size_min for c in codecs]))
    codec.cls, codec.names, codec.codecs = cls, names, codecs
    codec.make = cls if make is None else make
    codec.optional = tuple(name in optional for name in names)
    codec.offsets = <Py_ssize_t*>PyMem_Malloc(max(1, len(names)) * sizeof(Py_ssize_t))
    if codec.offsets == NULL:
        raise MemoryError
    for i in range(len(names)):
        # Looked up without running a descriptor: classes of records answer with expressions.
        codec.offsets[i] = ripple_slot_offset(getattr_static(cls, names[i], None))
    codec.shape = shape_of(codec)
    return codec


cdef bint is_instance_of_record(object value) except -1:
    cls = type(value)
    marks = ("__dataclass_fields__", "__struct_fields__", "__pydantic_fields__", "_fields")
    return any([hasattr(cls, mark) for mark in marks])


cdef Shape shape_of(_Record codec) except *:
    cdef Py_ssize_t i
    if codec.cls is dict:
        return SHAPE_DICT
    if codec.make is not codec.cls or not only_fills(codec.cls, codec.names):
        return SHAPE_CALL
    for i in range(len(codec.names)):
        if codec.offsets[i] < 0:
            return SHAPE_FILL
    return SHAPE_SLOTS


cdef bint only_fills(cls, names) except -1:
    """Is calling ``cls`` with these fields the same as allocating it and setting them?"""
    if "__dataclass_params__" not in cls.__dict__ or hasattr(cls, "__post_init__"):
        return False
    generated = getattr(getattr(cls.__init__, "__code__", None), "co_filename", "") == "<string>"
    frozen = cls.__dataclass_params__.frozen
    return (
        generated
        and cls.__new__ is object.__new__
        and (frozen or cls.__setattr__ is object.__setattr__)
        and {field.name for field in dataclasses.fields(cls) if field.init} == set(names)
        and all([field.init for field in dataclasses.fields(cls)])
    )


def union(*cases: Codec) -> Codec:
    """Encode a value of one of several record classes: a tag in the given order, its fields."""
    cdef _Union codec = _Union.__new__(_Union)
    named(codec, " | ".join([c.name for c in cases]), 1 + min([c.size_min for c in cases]))
    codec.cases = cases
    codec.tags = {(<_Record?>case).cls: tag for tag, case in enumerate(cases)}
    return codec


def variant(cases, case_of=None) -> Codec:
    """Encode ``(case, *args)``; ``cases`` maps names to the codecs of their arguments.

    ``case_of`` makes a name and a tuple of arguments out of any other value that is written.
    """
    cdef _Variant codec = _Variant.__new__(_Variant)
    bodies = tuple([named(tuple_as(*args), name, 0) for name, args in cases.items()])
    named(codec, " | ".join(cases), 1)
    codec.cases, codec.case_of = bodies, case_of
    codec.tags = {name: tag for tag, name in enumerate(cases)}
    return codec


def enumeration(cls) -> Codec:
    """Encode a member of the Python enum ``cls`` as its place in it."""
    cdef _Enum codec = _Enum.__new__(_Enum)
    named(codec, cls.__name__, 1)
    codec.members = tuple(cls)
    codec.tags = {member: tag for tag, member in enumerate(cls)}
    return codec


def later(str name, int depth_max=DEPTH_MAX) -> Later:
    """Return a codec to be defined later, for types that contain themselves ``depth_max`` deep."""
    cdef Later codec = named(Later.__new__(Later), name, 1)
    codec.depth_max = depth_max
    return codec
