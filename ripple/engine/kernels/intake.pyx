# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Batches of a source on their way to the one node that holds their rows, in one call each."""

from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from ripple.engine.kernels.columns cimport Columns
from ripple.engine.kernels.screen cimport Screen
from ripple.engine.kernels.stored cimport Stored, Waiting
from ripple.model.keys.index cimport KeyIndex
from ripple.model.schema.exported cimport ArrowArray, valid_bits, values_of
from ripple.model.window.watermark cimport Verdicts, on_time, weigh


cdef enum:
    PLACE = -1
    SLOT = -2


cdef class Intake:
    """Takes a batch if all of its records count, and are neither very late nor without a key.

    The result is that of the screen, the verdicts, the lookup of keys and the holder in turn.
    """

    # Invariant: `places` has a place in a batch for each column held, or where its numbers are from.
    # `own` and `slots` are room for the numbers of one batch, kept from one to the next.

    cdef Screen screen
    cdef Stored rows
    cdef Waiting waiting
    cdef KeyIndex index         # of the slots held; None where none are
    cdef bint texts             # whether the keys of `index` are texts, else integers
    cdef vector[int] places
    cdef vector[int] keys       # the places of the keys' fields
    cdef vector[int64_t] own, slots
    cdef int time
    cdef uint64_t lateness_ns, future_ns, future_ns_max

    def __init__(
        self, Screen screen not None, dict places not None, Stored rows not None,
        Waiting waiting not None, *, str time not None, str own_time not None,
        str own_place not None, str own_slot not None, list keys not None, KeyIndex index,
        bint texts, uint64_t lateness_ns, uint64_t future_ns, uint64_t future_ns_max,
    ):
        """Hold rows in ``rows``, where those that are new begin to wait in ``waiting``.

        places: of the columns of a batch, among which are ``time`` and ``keys``. own_time,
        own_place, own_slot: the columns of ``rows`` that a batch has not. index: of the keys, if
        slots are held. lateness_ns: no row that is later is taken.
        """
        self.screen, self.rows, self.waiting, self.index, self.texts = (
            screen, rows, waiting, index, texts
        )
        own = {own_time: places[time], own_place: PLACE, own_slot: SLOT}
        for name in rows.schema.names:
            self.places.push_back(own[name] if name in own else places[name])
        for name in keys:
            self.keys.push_back(places[name])
        self.time = places[time]
        self.lateness_ns, self.future_ns, self.future_ns_max = (
            lateness_ns, future_ns, future_ns_max
        )

    def take(
        self, Columns columns not None, int64_t first, int64_t step, int64_t watermark_ns,
        int64_t out_of_order_ns,
    ):
        """Hold the rows of a batch, at the places ``first``, ``first + step`` and so on.

        Returns (the watermark after them, how many are late, and how many future), or None: then
        nothing was done, and each row must be looked at.
        """
        cdef const ArrowArray* whole = &columns.lender().whole
        cdef const ArrowArray* column
        cdef const int64_t* times
        cdef int64_t* own
        cdef Py_ssize_t i, n = whole.length, seen
        cdef size_t at
        cdef Verdicts found
        cdef vector[const ArrowArray*] arrays
        cdef vector[const int64_t*] words
        if whole.n_children != self.screen.places:
            raise ValueError(f"{whole.n_children} columns, not {self.screen.places}")
        self.rows.check_whole()
        if not self.screen.all_pass(whole) or valid_bits(whole.children[self.time]):
            return None
        for at in range(self.keys.size()):
            if valid_bits(whole.children[self.keys[at]]):
                return None
        found.late = found.future = 0
        times = <const int64_t*>values_of(whole.children[self.time], 8)
        with nogil:
            seen = on_time(
                times, n, &watermark_ns, out_of_order_ns, min(self.future_ns, self.future_ns_max)
            )
            if seen < n:
                found = weigh(
                    times, seen, n, &watermark_ns, out_of_order_ns, self.lateness_ns,
                    self.future_ns, self.future_ns_max, NULL,
                )
        if seen < n and (found.very_late or found.refused):
            return None
        if not n:
            return watermark_ns, 0, 0
        if <size_t>n > self.own.size():
            self.own.resize(n)
            self.slots.resize(n)
        own = self.own.data()
        for i in range(n):
            own[i] = first + i * step
        if self.index is not None:
            column = whole.children[self.keys[0]]
            with nogil:
                self.find(column, n, self.slots.data())
        for at in range(self.places.size()):
            arrays.push_back(whole.children[self.places[at]] if self.places[at] >= 0 else NULL)
            words.push_back(self.slots.data() if self.places[at] == SLOT else self.own.data())
        self.rows.put(arrays, words, None, n)
        self.waiting.order.add_below(self.rows.count, self.waiting.less())
        return watermark_ns, found.late, found.future

    cdef int find(self, const ArrowArray* column, Py_ssize_t n, int64_t* slots) except -1 nogil:
        """Find the slots of keys, with new ones for new keys."""
        cdef const int64_t* keys
        cdef Py_ssize_t i
        if self.texts:
            return self.index.find_texts(column, NULL, n, slots)
        keys = <const int64_t*>values_of(column, 8)
        for i in range(n):
            slots[i] = self.index.find_or_add_pair(keys[i], 0)
        return 0
