# cython: language_level=3
"""Integers that a compiled loop has found, for Python: one array, whoever found them."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector


cdef inline object int64s(const vector[int64_t]& found):
    """Return them as an array of its own."""
    import numpy as np  # a .pxd has no module to import it once
    cdef int64_t[::1] out
    made = np.empty(found.size(), np.int64)
    if found.size():
        out = made
        memcpy(&out[0], found.data(), found.size() * sizeof(int64_t))
    return made
