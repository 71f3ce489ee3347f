# cython: language_level=3, boundscheck=False, wraparound=False
"""One call of a user's function with a state and a row, whose values are put in and taken out."""

from cpython.dict cimport PyDict_Check, PyDict_Clear, PyDict_GetItem, PyDict_SetItem, PyDict_Size
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM

import numpy as np
from libc.stdint cimport int64_t, uint8_t

from ripple.model.keys.checked cimport check_length, check_slots


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1
    double PyFloat_AS_DOUBLE(object value)
    object PyObject_GenericGetDict(object one, void* context)
    bint PyUnicode_IS_ASCII(object text)
    bint PyLong_CheckExact(object value)
    bint PyUnicode_CheckExact(object value)
    bint PyFloat_CheckExact(object value)
    bint PyBool_Check(object value)
    bint PyObject_IS_GC(object value)
    void PyObject_GC_UnTrack(void* one)


# What values of a field are stored as they are: of one class, and maybe None.
cdef enum:
    LOOKED_AT = 0
    OF_FLOAT = 1
    OF_INT = 2
    OF_TEXT = 3
    OF_BOOL = 4
    OR_NONE = 8

_CODES = {None: LOOKED_AT, float: OF_FLOAT, int: OF_INT, str: OF_TEXT, bool: OF_BOOL}


cdef bytes codes_of(tuple kinds):
    return bytes([_CODES[kind] | (OR_NONE if optional else 0) for kind, optional in kinds])


cdef inline bint is_plain(object value, unsigned char code) except -1:
    """Whether a value is stored as it is: of exactly this type, and within it, or None."""
    cdef int overflow = 0
    if value is None:
        return code & OR_NONE
    code &= ~OR_NONE
    if code == OF_FLOAT:
        return PyFloat_CheckExact(value)
    if code == OF_INT:
        if not PyLong_CheckExact(value):
            return False
        PyLong_AsLongLongAndOverflow(value, &overflow)
        return not overflow
    if code == OF_TEXT:
        return PyUnicode_CheckExact(value) and PyUnicode_IS_ASCII(value)
    return code == OF_BOOL and PyBool_Check(value)


cdef tuple leave_out(tuple values):
    """Leave values out of the collector of garbage at once, as its first run would.

    They are many, and in no cycle if none of them can be.
    """
    cdef Py_ssize_t i
    for i in range(PyTuple_GET_SIZE(values)):
        if PyObject_IS_GC(<object>PyTuple_GET_ITEM(values, i)):
            return values
    if PyTuple_GET_SIZE(values):
        PyObject_GC_UnTrack(<void*>values)
    return values


cdef class GivenRows:
    """Rows by their columns, lists of one length; a row is a tuple."""

    def __init__(self, list columns not None):
        cdef list column
        self.columns, self.count = columns, len(columns[0])
        for column in columns:
            check_length(self.count, len(column))

    def __len__(self):
        return self.count

    def __getitem__(self, Py_ssize_t i):
        if not 0 <= i < self.count:
            raise IndexError(f"row {i} of {self.count}")
        return self.row(i)

    cdef tuple row(self, Py_ssize_t i):
        cdef Py_ssize_t at, width = len(self.columns)
        cdef tuple row = PyTuple_New(width)
        cdef object value
        for at in range(width):
            value = (<list>PyList_GET_ITEM(self.columns, at))[i]
            Py_INCREF(value)
            PyTuple_SET_ITEM(row, at, value)
        return row


cdef class Filled:
    """An object that is filled anew for each use: its dict, or one by one if it has none."""

    def __init__(self, one, tuple names not None):
        self.one, self.has_dict, self.names = one, hasattr(one, "__dict__"), names

    cdef int fill(self, tuple values) except -1:
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.names)
        cdef dict fields
        if PyTuple_GET_SIZE(values) != n:
            raise ValueError(f"{n} fields, but {PyTuple_GET_SIZE(values)} values")
        if not self.has_dict:
            for i in range(n):
                setattr(self.one, self.names[i], values[i])
            return 0
        fields = PyObject_GenericGetDict(self.one, NULL)
        for i in range(n):
            PyDict_SetItem(
                fields,
                <object>PyTuple_GET_ITEM(self.names, i),
                <object>PyTuple_GET_ITEM(values, i),
            )
        if PyDict_Size(fields) != n:  # the function set others, maybe in place of these
            PyDict_Clear(fields)
            fields.update(zip(self.names, values))
        return 0

    cdef int fill_at(self, GivenRows rows, Py_ssize_t i) except -1:
        """Fill it with one of rows; as ``fill``, without a tuple."""
        cdef Py_ssize_t at, n = PyTuple_GET_SIZE(self.names)
        cdef dict fields
        if not self.has_dict or len(rows.columns) != n:
            return self.fill(rows.row(i))
        fields = PyObject_GenericGetDict(self.one, NULL)
        for at in range(n):
            PyDict_SetItem(
                fields,
                <object>PyTuple_GET_ITEM(self.names, at),
                (<list>PyList_GET_ITEM(rows.columns, at))[i],
            )
        return 0 if PyDict_Size(fields) == n else self.fill(rows.row(i))


cdef class StateCall:
    """Calls the function, and checks what it stores and returns.

    Invariant: ``state`` and ``row`` are used by no other call at the same time. result: of the last
    call.
    """

    def __init__(
        self, function, Filled state not None, row, tuple state_kinds not None,
        tuple row_names not None, tuple row_kinds not None, fit_state, fit_row, result_of,
    ):
        """Make a call of ``function``.

        row: a Filled, or a function from a row's values to an object. state_kinds, row_kinds: per
        field the class of the values that are stored as they are, None where each is looked at, and
        whether None is one of them. row_names: the fields of a result. fit_state, fit_row: return
        the values of fields as they are stored, or raise TypeError. result_of: the values of a
        result that is no object with these attributes.
        """
        self.function, self.state = function, state
        self.row = row if isinstance(row, Filled) else None
        self.instance = row
        self.state_names, self.state_kinds = state.names, codes_of(state_kinds)
        self.row_names, self.row_kinds = row_names, codes_of(row_kinds)
        self.fit_state, self.fit_row, self.result_of = fit_state, fit_row, result_of
        if len(state_kinds) != len(state.names) or len(row_kinds) != len(row_names):
            raise ValueError("there is a kind for each field")

    def __call__(self, tuple before not None, tuple row not None):
        """Return the state after a row, and the values of its result, None for no row."""
        return self.after(before, row), self.result

    cdef tuple after(self, tuple before, tuple row):
        """Return the state after a row; its result is in ``result``."""
        self.state.fill(before)
        if self.row is None:
            return self.called(self.instance(row))
        self.row.fill(row)
        return self.called(self.row.one)

    cdef tuple after_at(self, tuple before, GivenRows rows, Py_ssize_t i):
        """Return the state after one of rows, likewise."""
        self.state.fill(before)
        if self.row is None:
            return self.called(self.instance(rows.row(i)))
        self.row.fill_at(rows, i)
        return self.called(self.row.one)

    cdef tuple called(self, object row):
        """Call the function with the state that was filled in, and a row."""
        cdef object result = self.function(self.state.one, row)
        cdef tuple after = self.stored()
        self.result = None if result is None else self.made(result)
        return after

    cdef tuple stored(self):
        """Return the values of the state now."""
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.state_names)
        cdef const unsigned char* kinds = self.state_kinds
        cdef dict fields = None
        cdef PyObject* found = NULL
        cdef bint plain = True
        cdef object name, value
        cdef list values = None
        cdef tuple after
        if self.state.has_dict:
            fields = PyObject_GenericGetDict(self.state.one, NULL)
            if PyDict_Size(fields) > n:
                extra = next(name for name in fields if name not in self.state_names)
                raise TypeError(f"the step sets {extra!r}, which the state does not declare")
        after = PyTuple_New(n)
        for i in range(n):
            name = <object>PyTuple_GET_ITEM(self.state_names, i)
            if fields is None:
                value = getattr(self.state.one, name)
            else:
                found = <PyObject*>PyDict_GetItem(fields, name)
                if found == NULL:
                    raise TypeError(f"the step deletes {name!r} of the state")
                value = <object>found
            plain = plain and is_plain(value, kinds[i])
            Py_INCREF(value)
            PyTuple_SET_ITEM(after, i, value)
        return leave_out(after) if plain else self.fit_state(after)

    cdef tuple made(self, object result):
        """Return the values of a result."""
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.row_names)
        cdef const unsigned char* kinds = self.row_kinds
        cdef bint plain = True
        cdef object value
        cdef tuple values
        if PyDict_Check(result):
            return self.fit_row(self.result_of(result))
        values = PyTuple_New(n)
        for i in range(n):
            try:
                value = getattr(result, <object>PyTuple_GET_ITEM(self.row_names, i))
            except AttributeError:
                return self.fit_row(self.result_of(result))
            plain = plain and is_plain(value, kinds[i])
            Py_INCREF(value)
            PyTuple_SET_ITEM(values, i, value)
        return leave_out(values) if plain else self.fit_row(values)


def called(
    call not None,
    list states not None,
    const int64_t[::1] slots not None,
    const uint8_t[::1] begins not None,
    tuple initial not None,
    given,
    uint8_t[::1] kept not None,
):
    """Call a function with each row and the state of its slot; return (results, errors by row).

    call: takes a state and a row's values; returns the state after it, and a result. begins: the
    rows that begin with ``initial``. given: the values of rows, None where another version counts.
    kept: 0 for each row; 1 afterwards for those with a result.
    """
    cdef Py_ssize_t i, n = slots.shape[0], slot, count = len(states)
    cdef StateCall fast = call if type(call) is StateCall else None
    cdef GivenRows many = given if type(given) is GivenRows else None
    cdef list listed = None if many is not None else list(given)
    cdef list made = []
    cdef dict failed = {}
    cdef object before, result, row = None
    check_length(n, begins.shape[0])
    check_length(n, kept.shape[0])
    check_length(n, len(listed) if many is None else many.count)
    check_slots(slots, count)
    for i in range(n):
        if len(states) != count:
            raise ValueError(f"there are {count} states")
        slot = slots[i]
        if begins[i]:
            states[slot] = initial
        if many is None:
            row = listed[i]
            if row is None:
                continue
        before = states[slot]
        try:
            if fast is None:
                states[slot], result = call(before, row if many is None else many.row(i))
            else:
                if many is None:
                    states[slot] = fast.after(before, row)
                else:
                    states[slot] = fast.after_at(before, many, i)
                result = fast.result
        except (Exception, SystemExit) as error:  # any error of a user's function
            states[slot] = before
            failed[i] = error
        else:
            if result is not None:
                made.append(result)
                kept[i] = 1
    return made, failed


def column_of(list made not None, Py_ssize_t at, kind not None):
    """Return (values, valid) of a field of results, valid None without a None; None if it cannot.

    at: its place in each. kind: the class of its values; texts are a list. It cannot where some
    values are not stored as they are.
    """
    cdef Py_ssize_t i, n = len(made)
    cdef unsigned char code = _CODES[kind]
    cdef bint has_none = False
    cdef object value
    cdef tuple row
    if code == OF_TEXT:
        texts = []
        for row in made:
            value = row[at]
            if not is_plain(value, code | OR_NONE):
                return None
            texts.append(value)
        return texts, None
    valid = np.ones(n, np.bool_)
    values = np.zeros(n, np.float64 if code == OF_FLOAT else np.int64 if code == OF_INT else np.bool_)
    cdef uint8_t[::1] is_valid = valid.view(np.uint8)
    cdef int64_t[::1] ints
    cdef double[::1] floats
    cdef uint8_t[::1] bools
    if code == OF_FLOAT:
        floats = values
    elif code == OF_INT:
        ints = values
    else:
        bools = values.view(np.uint8)
    for i in range(n):
        row = made[i]
        value = row[at]
        if value is None:
            is_valid[i], has_none = 0, True
        elif not is_plain(value, code):
            return None
        elif code == OF_FLOAT:
            floats[i] = PyFloat_AS_DOUBLE(value)
        elif code == OF_INT:
            ints[i] = value
        else:
            bools[i] = value is True
    return values, valid if has_none else None
