# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
# distutils: include_dirs = ripple/engine/graph ripple/engine/kernels
"""The rows of an as-of join that are not final, each shown with its match so far.

Their column holds its values: it is never linked.
"""

from libc.stdint cimport int64_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from ripple.core.int64s cimport int64s
from ripple.engine.graph.column cimport FLOAT, HELD, Column, Field, float_bits
from ripple.core.kept cimport Kept, kept_bytes, kept_drop, kept_text, print_of
from ripple.engine.kernels.arrow_batch cimport BATCH_MADE, BATCH_TEXT
from ripple.engine.kernels.row_order cimport CRowOrder, Near, Nearness, OrderKey, OrderRow
from ripple.engine.kernels.stored cimport Stored, StoredColumn
from ripple.model.keys.checked cimport check_length, check_slots
from ripple.model.keys.index cimport KeyIndex

cdef extern from *:
    """
    #include <algorithm>
    #include <vector>
    static void sort_distinct(std::vector<int64_t>& numbers)
    {
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    }
    """
    void sort_distinct(vector[int64_t]& numbers) noexcept nogil


cdef struct Place:
    size_t slot, time, place    # the columns of a side


cdef class OpenRows:
    """Rows of both sides, numbered as they come, and the slots that show those of the left side."""

    # Invariants between calls: `waiting` has the rows of `left` with a key by it, their times and
    # places, and `others` those of `right`; `ends` has the slots of rows that are not final, by
    # their times. `slot_of` has the slot of each row of `left`, -1 once it left; `number_of` the row
    # of each slot, -1 for none. `touched` has the rows that may have another match than they show.

    cdef readonly Stored left, right
    cdef Place mine, theirs
    cdef CRowOrder waiting, others, ends
    cdef Nearness near
    cdef Py_ssize_t deleted     # the column of `right`, or -1
    cdef bint is_inner
    cdef int64_t newest         # rows of `right` from here on are not looked at
    cdef vector[int64_t] slot_of, number_of, touched
    cdef vector[char] are_mine  # of each field shown: whether it is of `left`
    cdef vector[size_t] shown   # its column there
    cdef object typed

    def __init__(
        self, Stored left not None, Stored right not None, tuple own not None, Near near not None, *,
        bint is_inner, deleted, list shown not None, typed,
    ):
        """Have no rows; left, right: will have them, in the columns in which the join holds them.

        own: the names of the columns of slots, times and places. is_inner: whether rows without a
        match are not shown. deleted: a column of flags of ``right``: where it is true, a match
        counts as none; or None. shown: of each field, whether it is of the left side, and its
        column. typed: returns values and masks of a field that is not read here, as a column takes
        them, for the numbers of rows.
        """
        self.left, self.right, self.near = left, right, near.near
        self.mine, self.theirs = place_in(left, own), place_in(right, own)
        self.deleted = -1 if deleted is None else right.places[deleted]
        self.is_inner, self.typed = is_inner, typed
        for is_mine, name in shown:
            self.are_mine.push_back(is_mine)
            self.shown.push_back((left if is_mine else right).places[name])

    # --- rows that come ---

    def take(self, bint right, Stored held not None, int64_t count, KeyIndex of, KeyIndex into, slots):
        """Take the last rows of those that a side holds.

        of, into: the keys of their slots there and here, of one field each; or ``slots``: those
        here, -1 for a row without a key.
        """
        cdef Stored rows = self.right if right else self.left
        cdef size_t at = self.theirs.slot if right else self.mine.slot
        cdef const int64_t[::1] given
        cdef int64_t* found
        cdef int64_t i, slot
        if not 0 <= count <= held.count:
            raise IndexError(f"{count} rows of {held.count}")
        if slots is None and (of is None or into is None):
            raise TypeError("rows need the keys of their slots, or slots")
        if slots is not None:
            given = slots
            check_length(count, given.shape[0])
        rows.add_last(held, count)
        found = rows.columns[at].words.data() + rows.count - count
        for i in range(count):
            slot = found[i]
            if slots is not None:
                found[i] = given[i]
            elif slot >= 0:
                if slot >= of._top:
                    raise IndexError(f"slot {slot} is outside 0..{of._top - 1}")
                found[i] = into.find_or_add(of.bytes_of(slot), of._keys[slot].length)
        if right:
            self.order(self.others, rows, self.theirs, rows.count - count)

    cdef int order(self, CRowOrder& rows, Stored of, Place place, int64_t first) except -1:
        """Put the rows from one on in order; those without a key are left out."""
        cdef vector[OrderRow] new
        cdef OrderRow row
        cdef int64_t number
        for number in range(first, of.count):
            row = row_at(of, place, number)
            if row.key.slot >= 0:
                new.push_back(row)
        rows.add(new)
        return 0

    def places(self):
        """Return the places of the rows of the left side that have no slot yet: int64[n]."""
        return self.left.words_from(self.mine.place, self.slot_of.size())

    def show_by_origin(
        self, bytes name not None, KeyIndex names not None, KeyIndex records not None,
        KeyIndex rows not None, int64_t base, int64_t inputs, int64_t indexes,
    ):
        """Give the rows of the left side without a slot those of their origins, all of one input.

        names, records, rows: the keys of inputs, of these with offsets, and of these with indexes.
        The rest as in ``identities_of``.
        """
        cdef vector[int64_t] slots
        cdef int64_t i, number, record, offset, input_slot, slot
        cdef int64_t first = self.slot_of.size(), n = self.left.count - first
        cdef const int64_t* places = self.left.columns[self.mine.place].words.data() + first
        if not n:
            return
        input_slot = names.find_or_add(<const uint8_t*><const char*>name, len(name))
        for i in range(n):
            number = places[i] - base
            record = floored(number, indexes)
            offset = record if inputs == 1 else floored(record, inputs)
            slot = adopted_pair(records, names, input_slot, offset)
            slots.push_back(adopted_pair(rows, records, slot, number - record * indexes))
        self.give(slots, rows.capacity)

    def show_at(self, const int64_t[::1] slots not None, int64_t capacity):
        """Give the rows of the left side without a slot these ones, below ``capacity``."""
        cdef vector[int64_t] found
        cdef int64_t i
        check_length(self.left.count - self.slot_of.size(), slots.shape[0])
        check_slots(slots, capacity)
        for i in range(slots.shape[0]):
            found.push_back(slots[i])
        self.give(found, capacity)

    cdef int give(self, const vector[int64_t]& slots, int64_t capacity) except -1:
        cdef vector[OrderRow] ends
        cdef OrderRow end
        cdef int64_t first = self.slot_of.size(), i, number
        if <int64_t>self.number_of.size() < capacity:
            self.number_of.resize(capacity, -1)
        for i in range(<int64_t>slots.size()):
            number = first + i
            self.slot_of.push_back(slots[i])
            self.number_of[slots[i]] = number
            self.touched.push_back(number)
            end = row_at(self.left, self.mine, number)
            end.key.slot, end.number = 0, slots[i]
            ends.push_back(end)
        self.ends.add(ends)
        self.order(self.waiting, self.left, self.mine, first)
        return 0

    def look(self):
        """Touch the rows of the left side that may match new ones of the right side."""
        cdef OrderRow row
        for number in range(self.newest, self.right.count):
            row = row_at(self.right, self.theirs, number)
            self.others.touched(row.key, self.near, self.waiting, self.touched)
        self.newest = self.right.count

    # --- rows as they are ---

    def changed(self):
        """Return the slots of the touched rows, of which there are none then: int64[n]."""
        cdef vector[int64_t] slots
        self.take_touched(slots)
        return int64s(slots)

    cdef int take_touched(self, vector[int64_t]& slots) except -1:
        cdef size_t i
        if self.touched.size() > 1:
            sort_distinct(self.touched)
        for i in range(self.touched.size()):
            if self.slot_of[self.touched[i]] >= 0:
                slots.push_back(self.slot_of[self.touched[i]])
        self.touched.clear()
        return 0

    def matched(self, const int64_t[::1] slots not None):
        """Return those of the slots that have a row, and their rows of both sides, -1 for none."""
        cdef vector[int64_t] all_slots, kept, numbers, matches, gone
        cdef int64_t i
        check_slots(slots, self.number_of.size())
        for i in range(slots.shape[0]):
            all_slots.push_back(slots[i])
        self.match(all_slots, kept, numbers, matches, gone)
        return int64s(kept), int64s(numbers), int64s(matches)

    cdef int match(
        self, const vector[int64_t]& slots, vector[int64_t]& kept, vector[int64_t]& numbers,
        vector[int64_t]& matches, vector[int64_t]& gone,
    ) except -1:
        cdef const int64_t* keys = self.left.columns[self.mine.slot].words.data()
        cdef const int64_t* times = self.left.columns[self.mine.time].words.data()
        cdef StoredColumn* marks = NULL
        cdef int64_t number, found
        cdef size_t i
        if self.deleted >= 0:
            marks = &self.right.columns[self.deleted]
        for i in range(slots.size()):
            number = self.number_of[slots[i]]
            if number < 0:
                raise IndexError(f"slot {slots[i]} shows no row")
            found = self.others.match(keys[number], times[number], self.near)
            if found >= 0 and marks != NULL and marks.has(found) and marks.words[found]:
                found = -1
            if found < 0 and self.is_inner:
                gone.push_back(slots[i])
                continue
            kept.push_back(slots[i])
            numbers.push_back(number)
            matches.push_back(found)
        return 0

    def show(self, Column column not None):
        """Let a column show the touched rows, of which there are none then."""
        cdef vector[int64_t] slots, kept, numbers, matches, gone
        cdef size_t i
        cdef int f
        check_length(column.field_count, self.shown.size())
        self.take_touched(slots)
        if slots.empty():
            return
        column.graph.refuse_while_busy("write a column")
        column.reserve(column.space.capacity)
        if column.room < <int64_t>self.number_of.size():
            raise IndexError(f"slots up to {self.number_of.size()} are outside 0..{column.room}")
        self.match(slots, kept, numbers, matches, gone)
        for i in range(gone.size()):
            if column.present[gone[i]]:
                column.touch(gone[i])
                column.erase_one(gone[i])
        if kept.size():
            column.touch_all(kept.data(), kept.size())
        for i in range(kept.size()):
            column.row_count += not column.present[kept[i]]
            column.present[kept[i]] = 1
        for f in range(column.field_count):
            if self.are_mine[f]:
                self.write(column, f, kept, self.left, numbers)
            else:
                self.write(column, f, kept, self.right, matches)
        if column.touched.size:
            column.graph.mark_dirty(column)

    cdef int write(
        self, Column column, int f, const vector[int64_t]& slots, Stored rows,
        const vector[int64_t]& at,
    ) except -1:
        """Write a field of rows."""
        cdef StoredColumn* of = &rows.columns[self.shown[f]]
        cdef Field* field = &column.fields[f]
        cdef Kept* kept
        cdef int64_t slot, begin, bits
        cdef bint there
        cdef size_t i
        if of.kind == BATCH_MADE:
            values, valid = self.typed(f, int64s(at))
            column.write_field(f, int64s(slots), values, valid)
            return 0
        for i in range(slots.size()):
            slot, there, bits = slots[i], of.has(at[i]), 0
            kept = NULL
            if not there and not field.nullable:
                raise ValueError(f"the field {column.names[f]!r} cannot be null")
            if there and of.kind == BATCH_TEXT:
                begin = of.begin(at[i])
                kept = kept_text(of.bytes.data() + begin, <size_t>(of.words[at[i]] - begin))
                if not kept:
                    raise MemoryError
                bits = print_of(kept_bytes(kept), kept.size)
            elif there:
                bits = of.words[at[i]]
                if field.kind == FLOAT:
                    bits = float_bits((<double*>&of.words[at[i]])[0])
            if field.kind == HELD:
                kept_drop(field.held[slot])
                field.held[slot] = kept
            field.bits[slot] = bits
            if field.nullable:
                field.valid[slot] = there
        return 0

    # --- rows that leave ---

    def end_below(self, int64_t mark_ns, bint ends):
        """Return the slots of the rows before a mark, once, in their order: int64[n].

        ends: of all rows.
        """
        cdef vector[int64_t] found, times, numbers
        if not ends:
            self.ends.take_below(mark_ns, found)
        elif self.ends.count:
            found.resize(self.ends.count)
            times.resize(self.ends.count)
            numbers.resize(self.ends.count)
            self.ends.dump(times.data(), times.data(), numbers.data())
            found.swap(numbers)
            self.ends = CRowOrder()
        slots = int64s(found)
        if found.size() > 1:
            slots = slots[np.argsort(self.numbers_of(slots))]
        return slots

    cdef object numbers_of(self, const int64_t[::1] slots):
        cdef vector[int64_t] found
        cdef int64_t i
        for i in range(slots.shape[0]):
            found.push_back(self.number_of[slots[i]])
        return int64s(found)

    def leave(self, const int64_t[::1] slots not None):
        """Let the rows of these slots leave."""
        cdef int64_t i
        check_slots(slots, self.number_of.size())
        for i in range(slots.shape[0]):
            if self.number_of[slots[i]] < 0:
                raise IndexError(f"slot {slots[i]} shows no row")
            self.slot_of[self.number_of[slots[i]]] = -1
            self.number_of[slots[i]] = -1

    def drop(self, int64_t oldest_ns, int64_t known_ns, bint is_backward, int64_t capacity):
        """Drop the rows that left, and those of the right side that match nothing any more.

        These are before ``oldest_ns``; and where ``is_backward`` all before ``known_ns`` but the
        last one of each slot. capacity: above all slots of keys. Returns which of them have rows on
        either side: bool[capacity].
        """
        cdef vector[int64_t] kept, renumbered, slots, times, numbers
        cdef int64_t i, n = self.left.count
        cdef uint8_t[::1] is_used
        renumbered.resize(n, -1)
        for i in range(n):
            if self.slot_of[i] >= 0:
                renumbered[i] = kept.size()
                self.number_of[self.slot_of[i]] = kept.size()
                slots.push_back(self.slot_of[i])
                kept.push_back(i)
        self.slot_of.swap(slots)
        if n:
            self.waiting = self.waiting.renumbered(renumbered.data())
        self.left.keep_at(kept.data(), kept.size())
        n = self.others.count
        slots.resize(n)
        times.resize(n)
        numbers.resize(n)
        self.others.dump(slots.data(), times.data(), numbers.data())
        kept.clear()
        for i in range(n):
            if times[i] >= oldest_ns and (
                not is_backward or times[i] >= known_ns
                or i + 1 == n or slots[i + 1] != slots[i] or times[i + 1] >= known_ns
            ):
                kept.push_back(numbers[i])
        sort_distinct(kept)
        renumbered.assign(self.right.count, -1)
        for i in range(<int64_t>kept.size()):
            renumbered[kept[i]] = i
        if n:
            self.others = self.others.renumbered(renumbered.data())
        self.right.keep_at(kept.data(), kept.size())
        self.newest = self.right.count
        found = np.zeros(capacity, np.bool_)
        is_used = found.view(np.uint8)
        self.note_used(self.left, self.mine, is_used)
        self.note_used(self.right, self.theirs, is_used)
        return found

    cdef int note_used(self, Stored rows, Place place, uint8_t[::1] is_used) except -1:
        cdef const int64_t* slots = rows.columns[place.slot].words.data()
        cdef int64_t i
        for i in range(rows.count):
            if slots[i] >= is_used.shape[0]:
                raise IndexError(f"slot {slots[i]} is outside 0..{is_used.shape[0] - 1}")
            if slots[i] >= 0:
                is_used[slots[i]] = True
        return 0

    @property
    def nbytes(self):
        """Bytes held."""
        orders = self.waiting.nbytes() + self.others.nbytes() + self.ends.nbytes()
        numbers = self.slot_of.capacity() + self.number_of.capacity() + self.touched.capacity()
        return orders + self.left.nbytes + self.right.nbytes + numbers * sizeof(int64_t)


cdef Place place_in(Stored rows, tuple own) except *:
    cdef Place place
    slot, time, at = own
    place.slot, place.time, place.place = rows.place(slot), rows.place(time), rows.place(at)
    return place


cdef inline OrderRow row_at(Stored rows, Place place, int64_t number) noexcept:
    cdef OrderRow row
    row.key.slot = rows.columns[place.slot].words[number]
    row.key.time = rows.columns[place.time].words[number]
    row.key.place = rows.columns[place.place].words[number]
    row.number = number
    return row


cdef inline int64_t adopted_pair(
    KeyIndex keys, KeyIndex left, int64_t slot, int64_t number
) except -1:
    """Return the slot of a pair of a slot of ``left`` and a number; a new one uses the former."""
    cdef int64_t found = keys.find_or_add_pair(slot, number)
    if not keys._uses[found] & 1:
        keys._uses[found] |= 1
        left._uses[slot] += 2
    return found


cdef inline int64_t floored(int64_t number, int64_t by) noexcept:
    return number // by - (number % by < 0)
