# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Which rows name which other row: lists by the row that is named, linked through arrays."""

from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length, check_slots


cdef class Postings:
    """Rows by the link that they have, each in at most one list.

    Invariants: rows and links are kept as their numbers and one, in 32 bits as those of a KeyIndex;
    0 is none. first[k] is a row with link k; after[r] and before[r] are its neighbours in the list;
    counts[k] is the length of the list; links[r] is the link of row r.
    """

    cdef vector[uint32_t] first, counts, after, before, links

    def reserve(self, int64_t rows, int64_t links):
        """Make room for rows and links below these."""
        if rows > <int64_t>self.after.size():
            self.after.resize(rows)
            self.before.resize(rows)
            self.links.resize(rows)
        if links > <int64_t>self.first.size():
            self.first.resize(links)
            self.counts.resize(links)

    def put(self, const int64_t[::1] rows not None, const int64_t[::1] links not None):
        """Give rows these links, -1 for none; return those that rows had before and lost."""
        cdef Py_ssize_t i
        cdef int64_t row
        cdef uint32_t link, old, next_row
        cdef vector[int64_t] left
        check_length(rows.shape[0], links.shape[0])
        check_slots(rows, self.after.size())
        for i in range(rows.shape[0]):
            if not -1 <= links[i] < <int64_t>self.first.size():
                raise IndexError(f"link {links[i]} is beyond {self.first.size()}")
        for i in range(rows.shape[0]):
            row, link, old = rows[i], <uint32_t>(links[i] + 1), self.links[rows[i]]
            if link == old:
                continue
            if old:
                self.take_out(row, old - 1)
                left.push_back(<int64_t>old - 1)
            self.links[row] = link
            if link:
                next_row = self.first[link - 1]
                self.after[row], self.before[row] = next_row, 0
                if next_row:
                    self.before[next_row - 1] = <uint32_t>(row + 1)
                self.first[link - 1] = <uint32_t>(row + 1)
                self.counts[link - 1] += 1
        return int64s(left)

    cdef void take_out(self, int64_t row, int64_t link) noexcept:
        if self.before[row]:
            self.after[self.before[row] - 1] = self.after[row]
        else:
            self.first[link] = self.after[row]
        if self.after[row]:
            self.before[self.after[row] - 1] = self.before[row]
        self.counts[link] -= 1

    def links_of(self, const int64_t[::1] rows not None):
        """Return the links of rows, -1 for none: int64[n]."""
        cdef Py_ssize_t i
        check_slots(rows, self.links.size())
        out = np.empty(rows.shape[0], np.int64)
        cdef int64_t[::1] found = out
        for i in range(rows.shape[0]):
            found[i] = <int64_t>self.links[rows[i]] - 1
        return out

    def rows_of(self, const int64_t[::1] links not None):
        """Return the rows with these links, link by link: int64[m]."""
        cdef Py_ssize_t i
        cdef uint32_t row
        cdef vector[int64_t] found
        check_slots(links, self.first.size())
        for i in range(links.shape[0]):
            row = self.first[links[i]]
            while row:
                found.push_back(<int64_t>row - 1)
                row = self.after[row - 1]
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
        return <int64_t>(4 * (self.first.capacity() * 2 + self.after.capacity() * 3))
