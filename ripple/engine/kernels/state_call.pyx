# cython: language_level=3, boundscheck=False, wraparound=False
"""One call of a user's function with a state and a row, whose values are put in and taken out."""

from cpython.dict cimport PyDict_Clear, PyDict_GetItem, PyDict_SetItem, PyDict_Size
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE


cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1
    bint PyUnicode_IS_ASCII(object text)
    bint PyLong_CheckExact(object value)
    bint PyUnicode_CheckExact(object value)
    bint PyFloat_CheckExact(object value)
    bint PyBool_Check(object value)


cdef inline bint is_plain(object value, object kind, bint optional):
    """Whether a value is stored as it is: of exactly this type, and within it, or None."""
    cdef int overflow = 0
    if value is None:
        return optional
    if kind is float:
        return PyFloat_CheckExact(value)
    if kind is int:
        if not PyLong_CheckExact(value):
            return False
        PyLong_AsLongLongAndOverflow(value, &overflow)
        return not overflow
    if kind is str:
        return PyUnicode_CheckExact(value) and PyUnicode_IS_ASCII(value)
    return kind is bool and PyBool_Check(value)


cdef class Filled:
    """An object that is filled anew for each use: its dict, or one by one if it has none."""

    cdef object one
    cdef bint has_dict
    cdef tuple names

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
        fields = self.one.__dict__
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


cdef class StateCall:
    """Calls the function, and checks what it stores and returns.

    Invariant: ``state`` and ``row`` are used by no other call at the same time.
    """

    cdef object function, instance, fit_state, fit_row, result_of
    cdef Filled state, row
    cdef tuple state_names, state_kinds, row_names, row_kinds

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
        self.state_names, self.state_kinds = state.names, state_kinds
        self.row_names, self.row_kinds = row_names, row_kinds
        self.fit_state, self.fit_row, self.result_of = fit_state, fit_row, result_of
        if len(state_kinds) != len(state.names) or len(row_kinds) != len(row_names):
            raise ValueError("there is a kind for each field")

    def __call__(self, tuple before not None, tuple row not None):
        """Return the state after a row, and the values of its result, None for no row."""
        cdef object result
        self.state.fill(before)
        if self.row is None:
            result = self.function(self.state.one, self.instance(row))
        else:
            self.row.fill(row)
            result = self.function(self.state.one, self.row.one)
        after = self.stored()
        if result is None:
            return after, None
        return after, self.made(result)

    cdef tuple stored(self):
        """Return the values of the state now."""
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.state_names)
        cdef dict fields = self.state.one.__dict__ if self.state.has_dict else None
        cdef PyObject* found = NULL
        cdef bint plain = True
        cdef object value
        if fields is not None and PyDict_Size(fields) > n:
            extra = next(name for name in fields if name not in self.state_names)
            raise TypeError(f"the step sets {extra!r}, which the state does not declare")
        values = []
        for i in range(n):
            name = <object>PyTuple_GET_ITEM(self.state_names, i)
            if fields is not None:
                found = <PyObject*>PyDict_GetItem(fields, name)
                if found == NULL:
                    raise TypeError(f"the step deletes {name!r} of the state")
            value = getattr(self.state.one, name) if found == NULL else <object>found
            kind, optional = <tuple>PyTuple_GET_ITEM(self.state_kinds, i)
            plain = plain and is_plain(value, kind, optional)
            values.append(value)
        return tuple(values) if plain else self.fit_state(tuple(values))

    cdef tuple made(self, object result):
        """Return the values of a result."""
        cdef Py_ssize_t i, n = PyTuple_GET_SIZE(self.row_names)
        cdef bint plain = True
        cdef object value
        if isinstance(result, dict):
            return self.fit_row(self.result_of(result))
        values = []
        for i in range(n):
            try:
                value = getattr(result, <object>PyTuple_GET_ITEM(self.row_names, i))
            except AttributeError:
                return self.fit_row(self.result_of(result))
            kind, optional = <tuple>PyTuple_GET_ITEM(self.row_kinds, i)
            plain = plain and is_plain(value, kind, optional)
            values.append(value)
        return tuple(values) if plain else self.fit_row(tuple(values))
