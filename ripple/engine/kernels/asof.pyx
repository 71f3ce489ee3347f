# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The matches of an as-of join: of each row that leaves the left side, that of the right side."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.engine.kernels.stored cimport Beside, Stored, StoredColumn, Waiting, clear_room
from ripple.model.keys.index cimport KeyIndex
from ripple.model.schema.exported cimport Made

cdef extern from "runs.hpp" namespace "ripple" nogil:
    cppclass RunRow:
        int64_t time, number

    cppclass Run:
        vector[RunRow] rows
        const RunRow* first_from "from"(int64_t)
        const RunRow* end()

cdef int64_t NONE = INT64_MIN, END = INT64_MAX  # the watermarks before and after all times
cdef dict STRATEGIES = {"backward": 0, "forward": 1, "nearest": 2}


cdef class Taken:
    """Rows of the left side that were taken out last, with their matches.

    Until the next ones are taken, or rows are dropped, these can be asked for.
    """

    # Invariant: `rows` has their numbers, and `at` those of the matches, -1 for none.

    cdef Waiting left
    cdef Beside beside
    cdef vector[int64_t] rows, at
    cdef readonly int64_t count
    cdef readonly int64_t unmatched     # how many had no match, also of those that were left out

    def batch(self, int64_t first, int64_t end):
        """Return the rows from ``first`` to before ``end``, each beside its match (Made)."""
        cdef vector[const int64_t*] numbers
        self.check(first, end)
        numbers.push_back(self.rows.data() + first)
        numbers.push_back(self.at.data() + first)
        return self.beside.made(numbers, end - first)

    def times(self, int64_t first, int64_t end):
        """Return their times: int64[n]."""
        return self.words(self.left.time, first, end)

    def places(self, int64_t first, int64_t end):
        """Return their places: int64[n]."""
        return self.words(self.left.place, first, end)

    def numbers(self, int64_t first, int64_t end):
        """Return their numbers on the left side: int64[n]."""
        cdef vector[int64_t] found
        self.check(first, end)
        found.assign(self.rows.begin() + first, self.rows.begin() + end)
        return int64s(found)

    cdef words(self, size_t column, int64_t first, int64_t end):
        cdef const int64_t* words = self.left.rows.columns[column].words.data()
        cdef vector[int64_t] found
        cdef int64_t i
        self.check(first, end)
        found.reserve(end - first)
        for i in range(first, end):
            found.push_back(words[self.rows[i]])
        return int64s(found)

    cdef int check(self, int64_t first, int64_t end) except -1:
        if not 0 <= first <= end <= self.count:
            raise IndexError(f"rows {first} to {end} of {self.count}")
        return 0


cdef class Matches:
    """The rows of the right side that were taken out and may match, by the slots of their keys."""

    # Invariant: a backward join has in `last` the last one of each slot, -1 for none, and another one
    # in `runs` those of each slot, by (time, place).

    cdef Waiting left, right
    cdef KeyIndex keys
    cdef Taken taken
    cdef vector[int64_t] more       # room for the rows of the right side taken last
    cdef size_t my_slot, their_slot
    cdef uint64_t lateness_ns, their_lateness_ns
    cdef Py_ssize_t deleted         # -1 without such a column
    cdef int strategy
    cdef bint is_strict, is_inner
    cdef uint64_t tolerance
    cdef vector[int64_t] last
    cdef vector[Run] runs

    def __init__(
        self, Waiting left not None, Waiting right not None, str slot not None,
        KeyIndex keys not None, Beside beside not None, *, latenesses_ns,
        str strategy not None, bint is_strict, bint is_inner, tolerance_ns, deleted,
    ):
        """Match rows that wait, whose keys have slots in ``keys``, in the columns ``slot``.

        beside: makes batches of rows of the left side beside those of the right. latenesses_ns: how
        far below the watermark rows of each side still come. is_inner: whether rows without a match
        are left out. tolerance_ns: how far a match may be; None for any distance. deleted: of the
        right side, a column of flags: where it is true, a match counts as none; or None.
        """
        self.left, self.right, self.keys = left, right, keys
        self.taken = Taken.__new__(Taken)
        self.taken.left, self.taken.beside = left, beside
        self.lateness_ns, self.their_lateness_ns = latenesses_ns
        self.my_slot, self.their_slot = left.rows.place(slot), right.rows.place(slot)
        self.deleted = -1 if deleted is None else right.rows.places[deleted]
        self.strategy, self.is_strict, self.is_inner = STRATEGIES[strategy], is_strict, is_inner
        self.tolerance = <uint64_t>-1 if tolerance_ns is None else tolerance_ns

    def bounds(self, int64_t left_ns, int64_t right_ns):
        """Return up to where each side lets rows follow, by their watermarks."""
        left_ns, right_ns = settled(left_ns, self.lateness_ns), settled(right_ns, self.their_lateness_ns)
        return left_ns, self.bound(right_ns)

    def settle(self, int64_t left_ns, int64_t right_ns):
        """Take the rows out that are certain by the watermarks of both sides; see ``take``."""
        left_ns, right_ns = settled(left_ns, self.lateness_ns), settled(right_ns, self.their_lateness_ns)
        # A backward join looks at no row of the right side before it must: the last is enough then.
        return self.take(
            min(left_ns, self.bound(right_ns)),
            min(left_ns, right_ns) if self.strategy == 0 else right_ns,
        )

    cdef int64_t bound(self, int64_t right_ns) noexcept:
        """Return up to where the right side lets rows follow, by up to where it is settled."""
        if right_ns == NONE or right_ns == END:
            return right_ns
        if self.strategy == 0:
            return right_ns + self.is_strict    # strictly, a row at the mark itself would not match
        return before(right_ns, self.tolerance)

    cpdef Taken take(self, int64_t left_ns, int64_t right_ns):
        """Take the rows of both sides out that are below these times, and match those of the left.

        Returns None where there are none.
        """
        cdef Taken taken = self.taken
        cdef size_t capacity = self.keys.capacity
        cdef int64_t outside = -1
        taken.count = 0
        clear_room(taken.rows)
        clear_room(taken.at)
        self.left.order.take_below(left_ns, self.left.less(), taken.rows)
        self.right.order.take_below(right_ns, self.right.less(), self.more)
        if taken.rows.empty() and self.more.empty():
            return None
        taken.at.resize(taken.rows.size(), -1)
        if self.strategy != 0:
            self.check(self.left, self.my_slot, taken.rows)
            self.check(self.right, self.their_slot, self.more)
        with nogil:
            if self.strategy == 0:
                if capacity > self.last.size():
                    self.last.reserve(capacity)  # which grows by more than one at a time
                    self.last.resize(capacity, -1)
                outside = self.find_last(taken.rows, self.more, taken.at)
            else:
                if capacity > self.runs.size():
                    self.runs.resize(capacity)
                self.hold(self.more)
                self.find_near(taken.rows, taken.at)
            taken.unmatched = self.drop_unmatched(taken.rows, taken.at)
        if outside >= 0:
            raise IndexError(f"slot {outside} is outside 0..{self.last.size() - 1}")
        taken.count = taken.rows.size()
        clear_room(self.more)
        return taken

    cdef int check(self, Waiting side, size_t slot, const vector[int64_t]& rows) except -1:
        cdef const int64_t* slots = side.rows.columns[slot].words.data()
        cdef int64_t highest = -1, capacity = self.keys.capacity
        cdef size_t i
        for i in range(rows.size()):
            highest = max(highest, slots[rows[i]])
        if highest >= capacity:
            raise IndexError(f"slot {highest} is outside 0..{capacity - 1}")
        return 0

    cdef int64_t find_last(
        self, const vector[int64_t]& rows, const vector[int64_t]& more, vector[int64_t]& at
    ) noexcept nogil:
        """Find the last earlier rows, among the known ones and ``more``, which become known.

        Returns a slot beyond the capacity, of rows that were left out; -1 for none.
        """
        cdef const int64_t* times = self.left.rows.columns[self.left.time].words.data()
        cdef const int64_t* slots = self.left.rows.columns[self.my_slot].words.data()
        cdef const int64_t* their_times = self.right.rows.columns[self.right.time].words.data()
        cdef const int64_t* their_slots = self.right.rows.columns[self.their_slot].words.data()
        cdef const int64_t* next = more.data()
        cdef const int64_t* end = next + more.size()
        cdef int64_t* last = self.last.data()
        cdef int64_t time, slot, number, outside = -1, room = self.last.size()
        cdef bint has_time = not self.is_strict     # whether a row of the same time counts
        cdef size_t i
        for i in range(rows.size() + 1):
            time = times[rows[i]] if i < rows.size() else END  # after every row
            while next != end and (
                their_times[next[0]] < time or (their_times[next[0]] == time and has_time)
            ):
                slot = their_slots[next[0]]
                if <uint64_t>slot < <uint64_t>room:
                    last[slot] = next[0]
                else:
                    outside = slot
                next += 1
            if i == rows.size():
                break
            slot = slots[rows[i]]
            if slot < 0:
                continue
            if slot >= room:
                outside = slot
                continue
            number = last[slot]
            if number >= 0 and self.counts(their_times[number], time, number):
                at[i] = number
        return outside

    cdef void find_near(self, const vector[int64_t]& rows, vector[int64_t]& at) noexcept nogil:
        """Find the next rows that are known, or the nearest ones."""
        cdef const int64_t* times = self.left.rows.columns[self.left.time].words.data()
        cdef const int64_t* slots = self.left.rows.columns[self.my_slot].words.data()
        cdef const RunRow* before
        cdef const RunRow* after
        cdef const RunRow* found
        cdef size_t i
        cdef int64_t time
        cdef Run* run
        for i in range(rows.size()):
            if slots[rows[i]] < 0 or self.runs[slots[rows[i]]].rows.empty():
                continue
            run, time = &self.runs[slots[rows[i]]], times[rows[i]]
            found = NULL
            after = run.first_from(time + self.is_strict)
            if after != run.end() and self.is_near(after.time, time):
                found = after
            if self.strategy == 2:
                before = run.first_from(time + (not self.is_strict))
                if before != run.rows.data() and self.is_near((before - 1).time, time) and (
                    found == NULL
                    or not distance(found.time, time) < distance((before - 1).time, time)
                ):
                    found = before - 1
            if found != NULL and not self.is_deleted(found.number):
                at[i] = found.number

    cdef inline bint counts(self, int64_t theirs, int64_t time, int64_t number) noexcept nogil:
        return self.is_near(theirs, time) and not self.is_deleted(number)

    cdef inline bint is_near(self, int64_t theirs, int64_t time) noexcept nogil:
        return distance(theirs, time) <= self.tolerance

    cdef inline bint is_deleted(self, int64_t number) noexcept nogil:
        cdef StoredColumn* column
        if self.deleted < 0:
            return False
        column = &self.right.rows.columns[self.deleted]
        return column.words[number] and (column.valid.empty() or column.valid[number])

    cdef void hold(self, const vector[int64_t]& more) noexcept nogil:
        """Make rows known, after all others of their slots in ``runs``."""
        cdef const int64_t* times = self.right.rows.columns[self.right.time].words.data()
        cdef const int64_t* slots = self.right.rows.columns[self.their_slot].words.data()
        cdef size_t i
        cdef RunRow row
        for i in range(more.size()):
            row.time, row.number = times[more[i]], more[i]
            self.runs[slots[more[i]]].rows.push_back(row)

    cdef int64_t drop_unmatched(self, vector[int64_t]& rows, vector[int64_t]& at) noexcept nogil:
        """Count rows without a match; drop them where they are left out."""
        cdef size_t i, kept = 0
        cdef int64_t unmatched = 0
        for i in range(rows.size()):
            unmatched += at[i] < 0
            if at[i] >= 0 or not self.is_inner:
                rows[kept], at[kept] = rows[i], at[i]
                kept += 1
        rows.resize(kept)
        at.resize(kept)
        return unmatched

    def needed(self, int64_t oldest_ns):
        """Return the numbers of the known rows from a time on, in their order by slot: int64[n]."""
        cdef vector[int64_t] found
        self.find_needed(oldest_ns, found)
        return int64s(found)

    cdef int find_needed(self, int64_t oldest_ns, vector[int64_t]& found) except -1 nogil:
        cdef const int64_t* times = self.right.rows.columns[self.right.time].words.data()
        cdef const RunRow* row
        cdef size_t i
        for i in range(self.last.size()):
            if self.last[i] >= 0 and (oldest_ns == INT64_MIN or times[self.last[i]] >= oldest_ns):
                found.push_back(self.last[i])
        for i in range(self.runs.size()):
            if self.runs[i].rows.empty():
                continue
            row = self.runs[i].first_from(oldest_ns)
            while row != self.runs[i].end():
                found.push_back(row.number)
                row += 1
        return 0

    def drop(self, int64_t oldest_ns):
        """Drop the rows of the right side that do not wait, but for those known from a time on."""
        cdef vector[int64_t] known, kept, renumbered
        self.taken.count = 0
        clear_room(self.taken.rows)
        clear_room(self.taken.at)
        self.find_needed(oldest_ns, known)
        renumbered = self.right.keep_some(known.data(), known.size(), kept)
        with nogil:
            self.renumber(renumbered)

    def used(self):
        """Return which slots have rows on either side: bool[capacity]."""
        is_used = np.zeros(self.keys.capacity, np.bool_)
        self.note_used(self.right, self.their_slot, is_used)
        self.note_used(self.left, self.my_slot, is_used)
        return is_used

    cdef int renumber(self, const vector[int64_t]& renumbered) except -1 nogil:
        """Give known rows their new numbers; those without one are not known any more."""
        cdef vector[RunRow] rows
        cdef RunRow row
        cdef size_t i, at
        for i in range(self.last.size()):
            if self.last[i] >= 0:
                self.last[i] = renumbered[self.last[i]]
        for i in range(self.runs.size()):
            rows = vector[RunRow]()
            for at in range(self.runs[i].rows.size()):
                row.time = self.runs[i].rows[at].time
                row.number = renumbered[self.runs[i].rows[at].number]
                if row.number >= 0:
                    rows.push_back(row)
            self.runs[i].rows.swap(rows)
        return 0

    cdef int note_used(self, Waiting side, size_t slot, uint8_t[::1] is_used) except -1:
        cdef const vector[int64_t]* slots = &side.rows.columns[slot].words
        cdef size_t i
        for i in range(slots.size()):
            if slots[0][i] >= is_used.shape[0]:
                raise IndexError(f"slot {slots[0][i]} is outside 0..{is_used.shape[0] - 1}")
            if slots[0][i] >= 0:
                is_used[slots[0][i]] = True
        return 0

    @property
    def nbytes(self):
        """Bytes held."""
        cdef size_t i, held = self.last.capacity() * 8 + self.runs.capacity() * sizeof(Run)
        held += 8 * (self.more.capacity() + self.taken.rows.capacity() + self.taken.at.capacity())
        for i in range(self.runs.size()):
            held += self.runs[i].rows.capacity() * sizeof(RunRow)
        return held


cdef inline uint64_t distance(int64_t a, int64_t b) noexcept nogil:
    """As an unsigned number, which no span between two times exceeds."""
    return <uint64_t>a - <uint64_t>b if a > b else <uint64_t>b - <uint64_t>a


cdef inline int64_t settled(int64_t mark_ns, uint64_t lateness_ns) noexcept nogil:
    """Return up to where nothing comes any more, by a watermark."""
    return mark_ns if mark_ns == NONE or mark_ns == END else before(mark_ns, lateness_ns)


cdef inline int64_t before(int64_t time_ns, uint64_t span_ns) noexcept nogil:
    """Return a time less a span, at the least the first time."""
    if <uint64_t>time_ns - <uint64_t>NONE < span_ns:
        return NONE
    return <int64_t>(<uint64_t>time_ns - span_ns)
