# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Rows of two columns side by side in a third one: copied as the columns hold them, or linked."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc
from libcpp.vector cimport vector

from ripple.engine.graph.column cimport HELD, Column, Field
from ripple.core.kept cimport Kept, kept_again, kept_drop
from ripple.engine.kernels.states cimport listed
from ripple.model.keys.checked cimport check_length, check_range, check_slots
from ripple.model.keys.slots cimport SlotSet


def link_sides(
    Column joined not None,
    Column left not None,
    Column right not None,
    const int64_t[::1] right_fields not None,
):
    """Have ``joined``, which has no rows yet, read its rows where ``left`` and ``right`` have them.

    So it must have no row without both, and be recomputed, by ``lay_beside``, with each change of a
    row on either side. None of these leaves its side without a change, and neither is linked.
    """
    cdef int f
    check_slots(right_fields, right.field_count)
    assert joined.field_count == left.field_count + right_fields.shape[0]
    assert joined.room == 0 and left.side_fields == NULL and right.side_fields == NULL
    joined.side_fields = <int*>calloc(max(1, joined.field_count), sizeof(int))
    if not joined.side_fields:
        raise MemoryError
    joined.left_side, joined.right_side, joined.left_count = left, right, left.field_count
    for f in range(joined.field_count):
        joined.side_fields[f] = (
            f if f < left.field_count else <int>right_fields[f - left.field_count]
        )


def follow(
    Column side not None,
    const int64_t[::1] place_of not None,
    SlotSet touched not None,
    int64_t capacity,
):
    """Insert the places of the changed rows of ``side``, by slot, which are below ``capacity``.

    Only if each of them is there now and has a place, which is not -1; returns whether it is so.
    """
    cdef int64_t i, slot, n = side.changed_count, known = place_of.shape[0]
    cdef const int64_t* slots = side.touched._slots
    cdef vector[int64_t] places
    places.resize(n)
    for i in range(n):
        slot = slots[side.changed[i]]
        if slot >= known or not side.present[slot] or place_of[slot] < 0:
            return False
        places[i] = place_of[slot]
    check_range(places.data(), n, capacity)
    touched.reserve(capacity)
    touched.push_all(places.data(), n)
    return True


def unplaced(Column side not None, const int64_t[::1] place_of not None):
    """Return the changed slots of ``side`` that have no place, in order: int64[n].

    None unless each changed row is there now.
    """
    cdef int64_t i, slot, n = side.changed_count, known = place_of.shape[0]
    cdef const int64_t* slots = side.touched._slots
    cdef vector[int64_t] found
    for i in range(n):
        slot = slots[side.changed[i]]
        if not side.present[slot]:
            return None
        if slot >= known or place_of[slot] < 0:
            found.push_back(slot)
    return listed(found.data(), found.size())


def lay_touched(
    Column joined not None,
    Column left not None,
    Column right not None,
    const int64_t[::1] right_fields not None,
    SlotSet touched not None,
    const int64_t[::1] left_at not None,
    const int64_t[::1] right_at not None,
    *,
    bint needs_left,
    bint needs_right,
):
    """Do as ``lay_beside`` with the rows in ``touched``, and empty it.

    left_at, right_at: by row of ``joined``, the slot on either side, or -1. Returns those of the
    rows that have neither: int64[n].
    """
    cdef Py_ssize_t i, n = touched.size
    cdef const int64_t* rows = touched._slots
    cdef vector[int64_t] lefts, rights, none
    check_range(rows, n, min(left_at.shape[0], right_at.shape[0]))
    lefts.resize(n)
    rights.resize(n)
    for i in range(n):
        lefts[i], rights[i] = left_at[rows[i]], right_at[rows[i]]
        if lefts[i] < 0 and rights[i] < 0:
            none.push_back(rows[i])
    lay(
        joined, left, right, right_fields, rows, lefts.data(), rights.data(), n,
        needs_left, needs_right,
    )
    touched.empty()
    return listed(none.data(), none.size())


def lay_beside(
    Column joined not None,
    Column left not None,
    Column right not None,
    const int64_t[::1] right_fields not None,
    const int64_t[::1] rows not None,
    const int64_t[::1] left_slots not None,
    const int64_t[::1] right_slots not None,
    *,
    bint needs_left,
    bint needs_right,
):
    """Write the rows at ``rows``, which are distinct, of ``joined``, or take them away.

    To be called while it is recomputed. Its fields are those of ``left``, then ``right_fields`` of
    ``right``, and may be null where those may not. left_slots, right_slots: of the present rows on
    either side, -1 where there is none. needs_left, needs_right: a row without that side is none;
    nor is one without both.
    """
    cdef Py_ssize_t n = rows.shape[0]
    check_length(n, left_slots.shape[0])
    check_length(n, right_slots.shape[0])
    if n:
        lay(
            joined, left, right, right_fields, &rows[0], &left_slots[0], &right_slots[0], n,
            needs_left, needs_right,
        )


cdef int lay(
    Column joined,
    Column left,
    Column right,
    const int64_t[::1] right_fields,
    const int64_t* rows,
    const int64_t* left_slots,
    const int64_t* right_slots,
    Py_ssize_t count,
    bint needs_left,
    bint needs_right,
) except -1:
    cdef Py_ssize_t i, n = 0
    cdef int64_t mine, theirs, added = 0
    cdef bint none, there, is_part = False, lacks_left = False, lacks_right = False
    cdef uint64_t outside = 0, room = joined.room
    cdef uint8_t* present
    cdef int f
    cdef vector[int64_t] at, of_left, of_right
    check_slots(right_fields, right.field_count)
    assert joined.field_count == left.field_count + right_fields.shape[0]
    for i in range(count):
        outside |= <uint64_t>rows[i] >= room
    if outside:
        joined.reserve(joined.space.capacity)
        check_range(rows, count, joined.room)
    for i in range(count):
        mine, theirs = left_slots[i], right_slots[i]
        if mine >= left.room or theirs >= right.room:
            raise IndexError(f"a slot of row {i} is beyond its column")
        lacks_left |= mine < 0
        lacks_right |= theirs < 0
        is_part |= (mine < 0 and (needs_left or theirs < 0)) or (theirs < 0 and needs_right)
    present = joined.present
    if is_part:
        at.resize(count)
        of_left.resize(count)
        of_right.resize(count)
        for i in range(count):
            mine, theirs = left_slots[i], right_slots[i]
            none = (mine < 0 and (needs_left or theirs < 0)) or (theirs < 0 and needs_right)
            at[n], of_left[n], of_right[n] = rows[i], -1 if none else mine, -1 if none else theirs
            n += not none or present[rows[i]]
        rows, left_slots, right_slots, count = at.data(), of_left.data(), of_right.data(), n
        lacks_left = lacks_right = True
    if not count:
        return 0
    joined.touch_all(rows, count)
    for i in range(count):
        there = left_slots[i] >= 0 or right_slots[i] >= 0
        added += there - <int64_t>present[rows[i]]
        present[rows[i]] = there
    joined.row_count += added
    if joined.side_fields:
        for i in range(count):
            joined.left_slots[rows[i]] = left_slots[i]
            joined.right_slots[rows[i]] = right_slots[i]
        return 0
    for f in range(left.field_count):
        copy(joined, f, rows, left, f, left_slots, count, lacks_left)
    for f in range(<int>right_fields.shape[0]):
        copy(
            joined, left.field_count + f, rows, right, <int>right_fields[f], right_slots, count,
            lacks_right,
        )
    return 0


cdef int copy(
    Column into, int f, const int64_t* rows, Column side, int g, const int64_t* slots,
    Py_ssize_t n, bint lacks_some,
) except -1:
    """Copy a field at slots, nulls for -1, to that of rows; lacks_some: there may be a -1."""
    cdef Field* field = &into.fields[f]
    cdef const Field* of = &side.fields[g]
    cdef int64_t* bits = field.bits
    cdef const int64_t* of_bits = of.bits
    cdef uint8_t* valid = field.valid if field.nullable else NULL
    cdef const uint8_t* of_valid = of.valid if of.nullable else NULL
    cdef Py_ssize_t i
    cdef Kept* kept
    if lacks_some:
        for i in range(n):
            bits[rows[i]] = of_bits[slots[i]] if slots[i] >= 0 else 0
    else:
        for i in range(n):
            bits[rows[i]] = of_bits[slots[i]]
    if valid != NULL and lacks_some:
        for i in range(n):
            valid[rows[i]] = slots[i] >= 0 and (of_valid == NULL or of_valid[slots[i]])
    elif valid != NULL and of_valid != NULL:
        for i in range(n):
            valid[rows[i]] = of_valid[slots[i]]
    elif valid != NULL:
        for i in range(n):
            valid[rows[i]] = 1
    if field.kind == HELD:
        for i in range(n):
            kept = kept_again(of.held[slots[i]]) if slots[i] >= 0 else NULL
            kept_drop(field.held[rows[i]])
            field.held[rows[i]] = kept
    return 0
