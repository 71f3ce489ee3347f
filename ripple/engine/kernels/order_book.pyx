# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The order books of slots, and what messages in order show of them."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t
from libcpp.vector cimport vector

from ripple.core.int64s cimport int64s
from ripple.model.keys.checked cimport check_length, check_slots

cdef extern from "order_book.hpp" namespace "ripple" nogil:
    const int64_t ADD, MODIFY, TAKE, SET, CLEAR, BEGIN, FINISH, NOTHING, ACTIONS
    const int64_t FINE, BAD_ACTION, BAD_SIDE, BAD_PRICE, BAD_SIZE, NO_ORDER, NO_SEQUENCE
    const int64_t NONE, LINKED, RANGE

    cppclass Message:
        int64_t action, side, price, size, order, sequence, previous, last
        int64_t has_checksum, checksum

    cppclass Settings:
        int64_t depth, rule, by_order, begins_empty, strict, kept_max, shows_levels
        int64_t size_most, rows_most, checks, price_scale, size_scale, venue_depth

    cppclass Found:
        vector[int64_t] rows, words, failed, faults

    cppclass Orders:
        void prefetch(int64_t)

    cppclass Book:
        Orders orders

    cppclass CBooks "ripple::Books":
        vector[Book] books
        Settings settings
        Found found
        void start() except +
        void take(int64_t, Message&, int64_t, bint, int64_t, int64_t) except +
        void begin(Book&) except +
        void dump(
            const Book&, vector[int64_t]&, vector[int64_t]&, vector[int64_t]&, vector[int64_t]&
        ) except +
        void load(
            int64_t, const int64_t*, const int64_t*, int64_t, const int64_t*, int64_t,
            const int64_t*, int64_t,
        ) except +
        int64_t nbytes()


cdef enum:
    AHEAD = 8  # so many messages later an order is looked for

cdef int64_t META = 8  # words of a book beside its levels, kept messages and what it shows


cdef class Messages:
    """Messages in their order, as columns: numbers, and which of them are there."""

    cdef const uint8_t[::1] actions, sides, lasts, has_price, has_size, has_order, has_sequence
    cdef const uint8_t[::1] has_previous, has_checksum
    cdef const int64_t[::1] prices, sizes, orders, sequences, previous, checksums

    def __init__(
        self,
        const uint8_t[::1] actions not None,
        const uint8_t[::1] sides not None,
        const uint8_t[::1] lasts not None,
        list numbers not None,
        list there not None,
    ):
        """Take columns. actions, sides: their numbers, others for texts that mean none.

        numbers, there: of prices, sizes, orders, sequence numbers, numbers of messages before and
        checksums.
        """
        self.actions, self.sides, self.lasts = actions, sides, lasts
        self.prices, self.sizes, self.orders, self.sequences, self.previous, self.checksums = numbers
        self.has_price, self.has_size, self.has_order, self.has_sequence = there[:4]
        self.has_previous, self.has_checksum = there[4:]
        count = actions.shape[0]
        for one in (sides, lasts, *numbers, *there):
            check_length(count, one.shape[0])


cdef class Books:
    """A book by slot."""

    cdef CBooks held

    def __init__(
        self, int64_t depth, int64_t rule, bint by_order, bint begins_empty, bint strict,
        int64_t kept_max, bint shows_levels, int64_t size_most, int64_t rows_most,
        int64_t checks=0, int64_t price_scale=0, int64_t size_scale=0, int64_t venue_depth=0,
    ):
        """Have no books. checks: the number of a checksum, with the scales of its numbers."""
        self.held.settings.depth = depth
        self.held.settings.rule = rule
        self.held.settings.by_order = by_order
        self.held.settings.begins_empty = begins_empty
        self.held.settings.strict = strict
        self.held.settings.kept_max = kept_max
        self.held.settings.shows_levels = shows_levels
        self.held.settings.size_most = size_most
        self.held.settings.rows_most = rows_most
        self.held.settings.checks = checks
        self.held.settings.price_scale = price_scale
        self.held.settings.size_scale = size_scale
        self.held.settings.venue_depth = venue_depth

    @property
    def nbytes(self):
        """Bytes held."""
        return self.held.nbytes()

    def grow(self, int64_t capacity):
        """Have a book for each slot."""
        cdef int64_t before = self.held.books.size(), i
        if capacity > before:
            self.held.books.resize(capacity)
            for i in range(before, capacity):
                self.held.begin(self.held.books[i])

    def end(self, const int64_t[::1] slots not None):
        """Let the books of slots begin anew."""
        cdef Py_ssize_t i
        check_slots(slots, self.held.books.size())
        for i in range(slots.shape[0]):
            self.held.begin(self.held.books[slots[i]])

    def copy(
        self, const int64_t[::1] slots not None, Books to not None,
        const int64_t[::1] to_slots not None,
    ):
        """Copy the books of slots to those of others; a new one for a slot without a book."""
        cdef Py_ssize_t i
        check_length(slots.shape[0], to_slots.shape[0])
        check_slots(to_slots, to.held.books.size())
        for i in range(slots.shape[0]):
            if 0 <= slots[i] < <int64_t>self.held.books.size():
                to.held.books[to_slots[i]] = self.held.books[slots[i]]
            else:
                to.held.begin(to.held.books[to_slots[i]])

    def take(
        self, const int64_t[::1] slots not None, const uint8_t[::1] begins not None,
        Messages messages not None, const int64_t[::1] records=None,
    ):
        """Apply messages; return (rows to show, their words, messages not applied, the reasons).

        begins: marks messages before which the book of their slot begins anew. records: of each the
        number of its record, whose rows of levels are limited.
        """
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef Message one
        cdef int64_t fault, record = 0
        cdef bint names = records is not None, has_previous
        cdef bint reads = self.held.settings.rule == LINKED or self.held.settings.rule == RANGE
        check_slots(slots, self.held.books.size())
        check_length(n, begins.shape[0])
        check_length(n, messages.actions.shape[0])
        if records is not None:
            check_length(n, records.shape[0])
        self.held.start()
        with nogil:
            for i in range(n):
                if i + AHEAD < n:
                    self.held.books[slots[i + AHEAD]].orders.prefetch(messages.orders[i + AHEAD])
                if begins[i]:
                    self.held.begin(self.held.books[slots[i]])
                fault = self.read(messages, i, &one)
                has_previous = not reads or messages.has_previous[i]
                if names:
                    record = records[i]
                self.held.take(slots[i], one, fault, has_previous, i, record)
        return (
            int64s(self.held.found.rows), int64s(self.held.found.words),
            int64s(self.held.found.failed), int64s(self.held.found.faults),
        )

    cdef inline int64_t read(self, Messages of, Py_ssize_t i, Message* one) noexcept nogil:
        """Read a message; return what is wrong with it."""
        cdef int64_t action = of.actions[i], rule = self.held.settings.rule
        cdef bint by_order = self.held.settings.by_order
        one.action, one.last = action, of.lasts[i]
        one.side, one.price, one.size = of.sides[i], of.prices[i], of.sizes[i]
        one.order, one.sequence, one.previous = of.orders[i], of.sequences[i], of.previous[i]
        one.has_checksum, one.checksum = of.has_checksum[i], of.checksums[i]
        if rule != NONE and not of.has_sequence[i]:
            return NO_SEQUENCE
        if action >= ACTIONS or (action == SET and by_order) or (action < SET and not by_order):
            return BAD_ACTION
        if action == TAKE:
            one.side = 0
            if not of.has_order[i]:
                return NO_ORDER
            if not of.has_size[i]:
                one.size = INT64_MAX
            return BAD_SIZE if one.size <= 0 else FINE
        if action > SET:
            one.side = 0
            return FINE
        if one.side > 1:
            one.side = 0
            return BAD_SIDE
        if not of.has_price[i]:
            return BAD_PRICE
        if not of.has_size[i] or one.size < (action != SET):
            return BAD_SIZE
        if by_order and not of.has_order[i]:
            return NO_ORDER
        return FINE

    def dump(self, const int64_t[::1] slots not None):
        """Return the books of slots: per part its words, and where each slot's begin, and the end."""
        cdef vector[vector[int64_t]] parts, bounds
        cdef Py_ssize_t i
        cdef size_t part
        check_slots(slots, self.held.books.size())
        parts.resize(4)
        bounds.resize(4)
        for part in range(4):
            bounds[part].push_back(0)
        for i in range(slots.shape[0]):
            self.held.dump(self.held.books[slots[i]], parts[0], parts[1], parts[2], parts[3])
            for part in range(4):
                bounds[part].push_back(parts[part].size())
        return [(int64s(parts[part]), int64s(bounds[part])) for part in range(4)]

    def load(self, const int64_t[::1] slots not None, list parts not None):
        """Load the books of slots. Raises ValueError for words that are no books."""
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef int64_t width = 4 + 4 * self.held.settings.depth
        check_slots(slots, self.held.books.size())
        meta, resting, kept, shown = (_Words(n, *part) for part in parts)
        cdef _Words of_meta = meta, of_resting = resting, of_kept = kept, of_shown = shown
        for i in range(n):
            if of_meta.count(i) != META:
                raise ValueError(f"an order book begins with {META} words, not {of_meta.count(i)}")
            if not self.held.settings.shows_levels and of_shown.count(i) not in (0, width):
                raise ValueError(f"a row of tops has {width} words, not {of_shown.count(i)}")
            self.held.load(
                slots[i], of_meta.start(i), of_resting.start(i), of_resting.count(i),
                of_kept.start(i), of_kept.count(i), of_shown.start(i), of_shown.count(i),
            )


cdef class _Words:
    """Words of slots, one after the other."""

    cdef const int64_t[::1] words, bounds

    def __init__(self, Py_ssize_t slots, const int64_t[::1] words, const int64_t[::1] bounds):
        cdef Py_ssize_t i
        check_length(slots + 1, bounds.shape[0])
        for i in range(slots):
            if not 0 <= bounds[i] <= bounds[i + 1] <= words.shape[0]:
                raise ValueError("the words of order books have no such bounds")
        self.words, self.bounds = words, bounds

    cdef int64_t count(self, Py_ssize_t slot):
        return self.bounds[slot + 1] - self.bounds[slot]

    cdef const int64_t* start(self, Py_ssize_t slot):
        return &self.words[self.bounds[slot]] if self.count(slot) else NULL
