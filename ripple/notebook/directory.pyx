# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Keys as users write them, to slots; shared by the columns that have the same keys.

A slot of a removed row must keep its key until all that depends on the row has seen the
removal: it is freed when no node of the graph is dirty, which is the end of every stabilize that
did not fail. Then the key is forgotten, and its slot given to the next new key.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ripple.engine.graph.column cimport Column
from ripple.model.keys.index cimport KeyIndex
from ripple.engine.graph.node cimport Graph
from ripple.model.keys.slots cimport SlotSet

from ripple.core.errors import SchemaError
from ripple.model.keys.space import PairKeys
from ripple.model.schema.columns import fitted
from ripple.model.schema.types import Bool, Int64, String, TEXTS
from ripple.core.arguments import shown
from ripple.model.schema.values import value_of

cdef extern from "Python.h":
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    void* PyUnicode_1BYTE_DATA(object text)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL

cdef int64_t BYTES_MAX = 1 << 30
cdef str WHAT = "a key"
cdef tuple TEXT_ARRAYS = (pa.string(), pa.large_string())
cdef object BOOL = Bool(), INT = Int64(), TEXT_TYPE = String()


@cython.final
cdef class Directory:
    # Invariants: a slot with a row in one of `leaves` is live; a live slot without any is in
    # `vacated`.

    def __init__(self, space):
        self.space = space
        self.index = space.index
        self.leaves = []
        self.vacated = SlotSet()
        self.parts = len(space.fields)
        last = space.fields[self.parts - 1].type
        self.shape = TEXT if isinstance(last, TEXTS) else BOOLEAN if isinstance(last, Bool) else INTEGER
        if isinstance(space, PairKeys):
            self.left = Directory(space.left)
            self.right = None if space.right is None else space.right.index

    def __len__(self):
        return len(self.index)

    @property
    def nbytes(self):
        """Bytes held for keys."""
        total = self.index.nbytes + self.vacated.nbytes
        if self.left is not None:
            total += self.left.nbytes + (0 if self.right is None else self.right.nbytes)
        return total

    cdef int64_t find(self, object key) except -2:
        """Return the slot of a key, or -1; raises SchemaError for what cannot be a key."""
        cdef const char* data
        cdef Py_ssize_t size
        if self.left is not None:
            if type(key) is not tuple or len(key) != self.parts:
                raise SchemaError(f"a key is a tuple of {self.parts} parts, not {shown(key)}")
            return self.find_parts(key)
        if self.shape == TEXT:
            data = utf8_of(key, &size)
            return self.index.find(<const uint8_t*>data, <unsigned int>size)
        return self.index.find_pair(self.find_part(key), 0)

    cdef int64_t find_or_add(self, object key, Graph graph) except -1:
        """Return the slot of a key, adding it when it is new."""
        cdef const char* data
        cdef Py_ssize_t size
        cdef int64_t slot = self.find(key)
        if slot >= 0:
            return slot
        self.reclaim(graph)
        if self.left is not None:
            return self.add_parts(key)
        if self.shape == TEXT:
            data = utf8_of(key, &size)
            return self.index.find_or_add(<const uint8_t*>data, <unsigned int>size)
        return self.index.find_or_add_pair(self.find_part(key), 0)

    cdef int64_t find_part(self, object part) except? -2:
        """Return an integer or boolean part as the index has it."""
        return value_of(part, BOOL if self.shape == BOOLEAN else INT, WHAT)

    cdef int64_t find_parts(self, tuple key) except -2:
        """Return the slot of the first ``parts`` parts of a key, or -1."""
        cdef const char* data
        cdef Py_ssize_t size
        cdef int64_t left, right
        part = key[self.parts - 1]
        if self.shape == TEXT:
            data = utf8_of(part, &size)
            if self.left is None:
                return self.index.find(<const uint8_t*>data, <unsigned int>size)
            right = self.right.find(<const uint8_t*>data, <unsigned int>size)
            left = self.left.find_parts(key)
            return -1 if left < 0 or right < 0 else self.index.find_pair(left, right)
        right = self.find_part(part)
        if self.left is None:
            return self.index.find_pair(right, 0)
        left = self.left.find_parts(key)
        return -1 if left < 0 else self.index.find_pair(left, right)

    cdef int64_t add_parts(self, tuple key) except -1:
        slots = self.slots([key])
        return slots[0]

    def slots(self, keys):
        """Return the slot of each key, int64[n], adding the new ones.

        keys: a list, NumPy or Arrow array; of tuples, also one array per part, in a tuple.
        Raises SchemaError for what cannot be a key; none is added then.
        """
        arrays = self.arrays(keys)
        slots = self.space.slots(arrays)
        self.space.adopt(slots)
        return slots

    def arrays(self, keys):
        """Return keys as Arrow arrays, one per part."""
        fields = self.space.fields
        if self.left is None:
            columns = [keys]
        elif isinstance(keys, tuple):
            columns = keys
        else:
            if not isinstance(keys, Iterable):
                raise SchemaError(f"keys are a list or an array, not {shown(keys)}")
            for key in keys:
                if type(key) is not tuple or len(key) != self.parts:
                    raise SchemaError(f"a key is a tuple of {self.parts} parts, not {shown(key)}")
            columns = list(zip(*keys)) or [()] * self.parts
        if len(columns) != self.parts:
            raise SchemaError(f"a key has {self.parts} parts, but {len(columns)} arrays were given")
        arrays = [key_array(given, field.type) for given, field in zip(columns, fields)]
        if len({len(array) for array in arrays}) != 1:
            raise SchemaError("the arrays of the parts of keys have different lengths")
        return arrays

    cdef int vacate(self, int64_t slot) except -1:
        """Note that a row at ``slot`` went."""
        if slot >= self.vacated._room:
            self.vacated.reserve(self.index.capacity)
        self.vacated.push(slot)
        return 0

    cdef int reclaim(self, Graph graph) except -1:
        """Free the slots of removed rows, if all nodes have seen the removal."""
        cdef Column leaf
        cdef int64_t i, slot, n = 0
        cdef bint held
        if self.vacated.size == 0 or graph.heap.size > 0:
            return 0
        gone = np.empty(self.vacated.size, np.int64)
        cdef int64_t[::1] out = gone
        for i in range(self.vacated.size):
            slot = self.vacated._slots[i]
            held = False
            for leaf in self.leaves:
                if slot < leaf.room and leaf.present[slot]:
                    held = True
                    break
            if not held:
                out[n] = slot
                n += 1
        self.vacated.empty()
        self.space.release(gone[:n])
        if len(self.index) == 0:
            self.space.trim()
            self.vacated.shed()
        return 0

    cdef object key_at(self, int64_t slot):
        return self.keys_at(np.array([slot], np.int64))[0]

    def keys_at(self, slots):
        """Return the keys of ``slots`` as Python values."""
        parts = [array.to_pylist() for array in self.space.arrays(slots)]
        return parts[0] if self.left is None else list(zip(*parts))

    def check(self):
        """Raise AssertionError when live slots, rows and vacated slots contradict each other."""
        cdef Column leaf
        self.index.check_invariants()
        self.vacated.check_invariants()
        held = set()
        for leaf in self.leaves:
            held.update(leaf.present_slots().tolist())
        live = set(self.index.live_slots().tolist())
        assert held <= live, "a row without a key"
        waiting = {self.vacated._slots[i] for i in range(self.vacated.size)}
        assert live - held <= waiting, "a key without rows would never be freed"


def key_array(given, of):
    """Return one part of keys as an Arrow array without nulls; raises SchemaError."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(of, TEXTS) and isinstance(given, pa.Array) and given.type in TEXT_ARRAYS:
        array = given.cast(pa.string())
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise SchemaError("a key is not UTF-8") from None
        if array.null_count:
            raise SchemaError("a key is null")
        return array
    found = fitted(given, of, WHAT)
    for reason in found.misfits.values():
        raise SchemaError(reason)
    if found.valid is not None and not found.valid.all():
        raise SchemaError("a key is null")
    return pa.array(found.values, pa.string() if isinstance(of, TEXTS) else None)


cdef inline const char* utf8_of(object key, Py_ssize_t* size) except NULL:
    """Return the bytes of a text key, which holds them; raises SchemaError for any other."""
    if type(key) is str and PyUnicode_IS_COMPACT_ASCII(key):
        size[0] = PyUnicode_GET_LENGTH(key)
        if size[0] <= BYTES_MAX:
            return <const char*>PyUnicode_1BYTE_DATA(key)
    return any_utf8_of(key, size)


cdef const char* any_utf8_of(object key, Py_ssize_t* size) except NULL:
    cdef const char* data
    if type(key) is not str:
        key_text(key)
    try:
        data = PyUnicode_AsUTF8AndSize(key, size)
    except UnicodeEncodeError:
        key_text(key)
        raise
    if size[0] > BYTES_MAX:
        raise SchemaError(f"a key of {size[0]} bytes is too long")
    return data


cdef object key_text(object key):
    return value_of(key, TEXT_TYPE, WHAT)
