# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Which rows name which other row: lists by the row that is named, linked through arrays."""

from libc.stdint cimport int64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length, check_slots


cdef class Postings:
    """Rows by the link that they have, each in at most one list.

    Invariants: first[k] is a row with link k, or -1; after[r] and before[r] are its neighbours in
    the list, or -1; counts[k] is the length of the list; links[r] is the link of row r, or -1.
    """

    cdef vector[int64_t] first, counts, after, before, links

    def reserve(self, int64_t rows, int64_t links):
        """Make room for rows and links below these."""
        if rows > <int64_t>self.after.size():
            self.after.resize(rows, -1)
            self.before.resize(rows, -1)
            self.links.resize(rows, -1)
        if links > <int64_t>self.first.size():
            self.first.resize(links, -1)
            self.counts.resize(links, 0)

    def put(self, const int64_t[::1] rows not None, const int64_t[::1] links not None):
        """Give rows these links, -1 for none; return those that rows had before and lost."""
        cdef Py_ssize_t i
        cdef int64_t row, link, old
        cdef vector[int64_t] left
        check_length(rows.shape[0], links.shape[0])
        check_slots(rows, self.after.size())
        for i in range(rows.shape[0]):
            if links[i] >= <int64_t>self.first.size():
                raise IndexError(f"link {links[i]} is beyond {self.first.size()}")
        for i in range(rows.shape[0]):
            row, link, old = rows[i], links[i], self.links[rows[i]]
            if link == old:
                continue
            if old >= 0:
                self.take_out(row, old)
                left.push_back(old)
            self.links[row] = link
            if link >= 0:
                self.after[row], self.before[row] = self.first[link], -1
                if self.first[link] >= 0:
                    self.before[self.first[link]] = row
                self.first[link] = row
                self.counts[link] += 1
        return int64s(left)

    cdef void take_out(self, int64_t row, int64_t link) noexcept:
        if self.before[row] >= 0:
            self.after[self.before[row]] = self.after[row]
        else:
            self.first[link] = self.after[row]
        if self.after[row] >= 0:
            self.before[self.after[row]] = self.before[row]
        self.counts[link] -= 1

    def links_of(self, const int64_t[::1] rows not None):
        """Return the links of rows, -1 for none: int64[n]."""
        cdef Py_ssize_t i
        check_slots(rows, self.links.size())
        out = np.empty(rows.shape[0], np.int64)
        cdef int64_t[::1] found = out
        for i in range(rows.shape[0]):
            found[i] = self.links[rows[i]]
        return out

    def rows_of(self, const int64_t[::1] links not None):
        """Return the rows with these links, link by link: int64[m]."""
        cdef Py_ssize_t i
        cdef int64_t row
        cdef vector[int64_t] found
        check_slots(links, self.first.size())
        for i in range(links.shape[0]):
            row = self.first[links[i]]
            while row >= 0:
                found.push_back(row)
                row = self.after[row]
        return int64s(found)

    def counts_of(self, const int64_t[::1] links not None):
        """Return how many rows have each link: int64[n]."""
        cdef Py_ssize_t i
        check_slots(links, self.counts.size())
        out = np.empty(links.shape[0], np.int64)
        cdef int64_t[::1] found = out
        for i in range(links.shape[0]):
            found[i] = self.counts[links[i]]
        return out

    @property
    def nbytes(self):
        """Bytes held."""
        return <int64_t>(8 * (self.first.capacity() * 2 + self.after.capacity() * 3))
