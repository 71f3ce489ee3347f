# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Rows of two columns side by side in a third one, copied as the columns hold them."""

from libc.stdint cimport int64_t

from ripple.engine.graph.column cimport OBJECT, Column, Field
from ripple.model.keys.checked cimport check_length


def lay_beside(
    Column joined not None,
    Column left not None,
    Column right not None,
    const int64_t[::1] rows not None,
    const int64_t[::1] left_slots not None,
    const int64_t[::1] right_slots not None,
    *,
    bint needs_left,
    bint needs_right,
):
    """Write the rows at ``rows`` of ``joined``, or take them away, while it is recomputed.

    Its fields are those of ``left``, then those of ``right``, and may be null where those may not.
    left_slots, right_slots: of the present rows on either side, -1 where there is none. needs_left,
    needs_right: a row without that side is none; nor is one without both.
    """
    cdef Py_ssize_t i
    cdef int64_t row, mine, theirs
    check_length(rows.shape[0], left_slots.shape[0])
    check_length(rows.shape[0], right_slots.shape[0])
    assert joined.field_count == left.field_count + right.field_count
    joined.cover(rows)
    for i in range(rows.shape[0]):
        if left_slots[i] >= left.room or right_slots[i] >= right.room:
            raise IndexError(f"a slot of row {i} is beyond its column")
    for i in range(rows.shape[0]):
        row, mine, theirs = rows[i], left_slots[i], right_slots[i]
        if (mine < 0 and (needs_left or theirs < 0)) or (theirs < 0 and needs_right):
            if joined.present[row]:
                joined.touch(row)
                joined.erase_one(row)
            continue
        joined.touch(row)
        joined.row_count += not joined.present[row]
        joined.present[row] = 1
        copy(joined, 0, row, left, mine)
        copy(joined, left.field_count, row, right, theirs)


cdef int copy(Column into, int first, int64_t row, Column side, int64_t slot) except -1:
    """Copy the fields at a slot, nulls for -1, to those of a row from ``first`` on."""
    cdef int f
    cdef bint valid
    cdef Field* field
    cdef Field* of
    for f in range(side.field_count):
        field, of = &into.fields[first + f], &side.fields[f]
        valid = slot >= 0 and (not of.nullable or of.valid[slot])
        field.bits[row] = of.bits[slot] if valid else 0
        if field.nullable:
            field.valid[row] = valid
        if field.kind == OBJECT:
            (<list>into.objects[first + f])[row] = (
                (<list>side.objects[f])[slot] if valid else None
            )
    return 0
