# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The loops over columnar deltas: is each row sound, and where do its values go.

Validity comes as Arrow bitmaps, least significant bit first; an empty one means all ones, as in
Arrow, except for "cleared", where it means all zeros. Slots are int64; a row with the slot -1 is
skipped.
"""

from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.string cimport memcpy

cdef enum:  # those of ripple.core.row_ops: the tests say so
    SET = 0
    PATCH = 1
    REMOVE = 2
    FINAL = 3


cdef inline bint bit(const uint8_t* bitmap, int64_t i) noexcept nogil:
    return (bitmap[i >> 3] >> (i & 7)) & 1


def note_changes(
    const int8_t[::1] ops not None,
    const uint8_t[::1] valid not None,
    int64_t valid_offset,
    const uint8_t[::1] cleared not None,
    int64_t cleared_offset,
    bint required,
    uint8_t[::1] changed not None,
):
    """Check one column against the operations; raise ``changed[i]`` where a Patch touches it.

    Returns the first row that contradicts itself, or -1: a Set or Final without a required value,
    a value that is also cleared, a Remove with a value.
    """
    cdef Py_ssize_t i, bad = -1, n = ops.shape[0]
    cdef int8_t op
    cdef bint has, clear, wrong
    cdef const uint8_t* valid_bits = &valid[0] if valid.shape[0] else NULL
    cdef const uint8_t* cleared_bits = &cleared[0] if cleared.shape[0] else NULL
    with nogil:
        for i in range(n):
            op = ops[i]
            has = valid_bits == NULL or bit(valid_bits, valid_offset + i)
            clear = cleared_bits != NULL and bit(cleared_bits, cleared_offset + i)
            if op == PATCH:
                wrong = has and clear
                changed[i] |= has or clear
            elif op == SET or op == FINAL:
                wrong = clear or (required and not has)
            else:
                wrong = has or clear
            if wrong:
                bad = i
                break
    return bad


def place_rows(
    const int8_t[::1] ops not None,
    int64_t[::1] slots not None,
    const uint8_t[::1] changed not None,
    const uint8_t[::1] present not None,
    int64_t[::1] stamps not None,
    int64_t stamp,
):
    """Check each row against the table; rows that write nothing get slot -1.

    ``present[slot]`` tells which slots hold a row; ``stamps[slot]`` becomes ``stamp`` once the
    slot was met. Returns the first row that cannot be applied, or -1: an operation that does not
    exist, a key met before, a Patch with changes of an absent key.
    """
    cdef Py_ssize_t i, bad = -1, n = ops.shape[0]
    cdef int64_t slot
    with nogil:
        for i in range(n):
            slot = slots[i]
            if ops[i] < SET or ops[i] > FINAL or stamps[slot] == stamp:
                bad = i
                break
            stamps[slot] = stamp
            if ops[i] == REMOVE or ops[i] == FINAL:
                slots[i] = -1
            elif ops[i] == PATCH and not present[slot]:
                slots[i] = -1
                if changed[i]:
                    bad = i
                    break
    return bad


cdef inline void move(uint8_t* target, const uint8_t* source, int64_t width) noexcept nogil:
    # A copy of known width is one load and one store.
    if width == 8:
        memcpy(target, source, 8)
    elif width == 4:
        memcpy(target, source, 4)
    elif width == 1:
        target[0] = source[0]
    elif width == 2:
        memcpy(target, source, 2)
    else:
        memcpy(target, source, width)


def scatter(
    const int8_t[::1] ops not None,
    const int64_t[::1] slots not None,
    const uint8_t[::1] values not None,
    const uint8_t[::1] valid not None,
    int64_t valid_offset,
    const uint8_t[::1] cleared not None,
    int64_t cleared_offset,
    int64_t width,
    uint8_t[::1] held not None,
    uint8_t[::1] held_valid not None,
):
    """Write one column's new values, ``width`` bytes each, to their slots of ``held``."""
    cdef Py_ssize_t i, n = ops.shape[0]
    cdef int64_t slot
    cdef const uint8_t* valid_bits = &valid[0] if valid.shape[0] else NULL
    cdef const uint8_t* cleared_bits = &cleared[0] if cleared.shape[0] else NULL
    cdef const uint8_t* source = &values[0] if values.shape[0] else NULL
    cdef uint8_t* target = &held[0]
    assert values.shape[0] >= n * width, (values.shape[0], n, width)
    with nogil:
        for i in range(n):
            slot = slots[i]
            if slot < 0:
                continue
            if valid_bits == NULL or bit(valid_bits, valid_offset + i):
                move(target + slot * width, source + i * width, width)
                held_valid[slot] = 1
            elif ops[i] == SET or (
                cleared_bits != NULL and bit(cleared_bits, cleared_offset + i)
            ):
                held_valid[slot] = 0
