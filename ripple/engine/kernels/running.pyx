# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Running values of rows by slot: arrays of state, and loops that change them.

``valid`` marks rows with a value; the others leave state and result. A ring is a circular buffer
of a slot's last values; ``counts`` tells how many came, so the oldest is at ``counts % width`` once
it is full.
"""

from libc.math cimport fabs, isnan
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from ripple.model.aggregate.exact cimport ExactSums
from ripple.model.aggregate.integers cimport Counts
from ripple.model.aggregate.part cimport PLAIN, SQUARE, Operand, Read, check_memory
from ripple.model.keys.checked cimport check_length, check_slots

cdef enum:
    COUNTED_MAX = 64    # values that are compared one and all, without a branch

ctypedef fused number:
    double
    int64_t


cdef extern from "rounding.h" nogil:
    ctypedef long i128  # really 128 bits: all arithmetic on it stays in C


cdef extern from "integers.h" nogil:
    int integer_read(const i128* total, int64_t* out)


cdef extern from "accumulator.h" nogil:
    ctypedef struct Slot:
        pass
    ctypedef struct Accumulators:
        char* slots
        int64_t stride
    void accumulators_open(Accumulators* a)
    void accumulators_close(Accumulators* a)
    void open_slot(Accumulators* a, int64_t slot)
    void clear_slot(Accumulators* a, int64_t slot)
    int add_double(Accumulators* a, int64_t slot, double value, int64_t direction)
    int replace_double(Accumulators* a, int64_t slot, double old, double value)
    int add_integer(Accumulators* a, int64_t slot, int64_t value, int64_t direction)
    double slot_sum(const Accumulators* a, int64_t slot)
    double slot_quotient(const Accumulators* a, int64_t slot, int64_t divisor)
    int64_t quantile_rank(
        int64_t size, uint64_t numerator, uint64_t denominator, int64_t* remainder
    )


cdef class RowsBySlot:
    """Rows sorted by slot, of a slot in their order, with their event times.

    ``begins`` marks rows at which the state of a slot begins anew.
    """

    cdef const int64_t[::1] slots
    cdef const uint8_t[::1] begins
    cdef const int64_t[::1] times

    def __init__(
        self, const int64_t[::1] slots not None, const uint8_t[::1] begins not None,
        const int64_t[::1] times not None,
    ):
        check_length(slots.shape[0], begins.shape[0])
        check_length(slots.shape[0], times.shape[0])
        self.slots, self.begins, self.times = slots, begins, times

    cdef int check(
        self, Py_ssize_t values, Py_ssize_t valid, Py_ssize_t out, Py_ssize_t room
    ) except -1:
        """Raise IndexError or ValueError unless arrays fit the rows, and states their slots."""
        check_slots(self.slots, room)
        for length in (values, valid, out):
            check_length(self.slots.shape[0], length)
        return 0


cdef inline int64_t entered(RowsBySlot rows, Py_ssize_t i, int64_t* counts) noexcept nogil:
    """Return the slot of a row, with a count of 0 where its state begins anew."""
    cdef int64_t slot = rows.slots[i]
    if rows.begins[i]:
        counts[slot] = 0
    return slot


def lag(
    RowsBySlot rows not None,
    const int64_t[::1] values not None,
    const uint8_t[::1] valid not None,
    int64_t[::1] counts not None,
    int64_t[:, ::1] ring not None,
    uint8_t[:, ::1] ring_valid not None,
    int64_t[::1] out not None,
    uint8_t[::1] out_valid not None,
):
    """Give each row the value, or the null, that came ring.shape[1] rows before it; else null."""
    cdef Py_ssize_t i
    cdef int64_t slot, at, width = ring.shape[1]
    rows.check(values.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(rows.slots.shape[0], out_valid.shape[0])
    check_length(counts.shape[0], ring.shape[0])
    check_length(counts.shape[0], ring_valid.shape[0])
    check_length(width, ring_valid.shape[1])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            at = counts[slot] % width
            out_valid[i] = counts[slot] >= width and ring_valid[slot, at]
            out[i] = ring[slot, at] if out_valid[i] else 0
            ring[slot, at], ring_valid[slot, at] = values[i], valid[i]
            counts[slot] += 1


def gaps(
    RowsBySlot rows not None,
    const uint8_t[::1] valid not None,
    int64_t[::1] counts not None,
    int64_t[::1] lasts not None,
    int64_t[::1] out not None,
):
    """Give each row the time since the value before it; -1 where there is none before."""
    cdef Py_ssize_t i
    cdef int64_t slot
    rows.check(rows.times.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(counts.shape[0], lasts.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            out[i] = -1
            if valid[i]:
                if counts[slot]:
                    out[i] = rows.times[i] - lasts[slot]
                counts[slot] = 1
                lasts[slot] = rows.times[i]


def ema(
    RowsBySlot rows not None,
    const double[::1] values not None,
    const uint8_t[::1] valid not None,
    const double[::1] weights not None,
    int64_t[::1] counts not None,
    double[::1] means not None,
    double[::1] out not None,
):
    """Move the mean of a slot towards each value by the row's weight: y + w (x - y)."""
    cdef Py_ssize_t i
    cdef int64_t slot
    rows.check(values.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(rows.slots.shape[0], weights.shape[0])
    check_length(counts.shape[0], means.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            if valid[i]:
                if counts[slot]:
                    means[slot] += weights[i] * (values[i] - means[slot])
                else:
                    counts[slot], means[slot] = 1, values[i]
            out[i] = means[slot] if valid[i] else 0.0


cdef inline bint beyond(number x, number most, bint largest) noexcept nogil:
    """Whether x is further out than ``most``; NaN is above every other number."""
    if number is double:
        if isnan(x) or isnan(most):
            return isnan(x) > isnan(most) if largest else isnan(x) < isnan(most)
    return x > most if largest else x < most


def extreme(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    bint largest,
    int64_t[::1] counts not None,
    number[::1] most not None,
    number[::1] out not None,
):
    """Give each row the largest value of its slot so far, or the smallest."""
    cdef Py_ssize_t i
    cdef int64_t slot
    rows.check(values.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(counts.shape[0], most.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            if valid[i] and (not counts[slot] or beyond(values[i], most[slot], largest)):
                counts[slot], most[slot] = 1, values[i] + <number>0
            out[i] = most[slot] if valid[i] else 0


def bar(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    number every,
    int64_t[::1] numbers not None,
    number[::1] filled not None,
    int64_t[::1] out not None,
):
    """Give each row the number of its bar, which the row that fills it closes.

    A row without a number is in the open bar. every: the size of a bar, above 0.
    """
    cdef Py_ssize_t i
    cdef int64_t slot
    cdef number more, least = -every
    rows.check(values.shape[0], valid.shape[0], out.shape[0], numbers.shape[0])
    check_length(numbers.shape[0], filled.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = rows.slots[i]
            if rows.begins[i]:
                numbers[slot], filled[slot] = 0, 0
            out[i] = numbers[slot]
            if not valid[i] or values[i] != values[i]:
                continue
            more = values[i]  # where a sum of integers would wrap, it is beyond any bar
            filled[slot] = filled[slot] + more if fits(filled[slot], more) else every
            if filled[slot] >= every or filled[slot] <= least:
                numbers[slot] += 1
                filled[slot] = 0


def part_counts(
    RowsBySlot rows not None,
    const int64_t[::1] values not None,
    const uint8_t[::1] valid not None,
    int64_t every,
    int64_t most,
    int64_t[::1] filled not None,
    int64_t[::1] counts not None,
):
    """Count the parts into which bars divide each row; 0 for ``most`` or more, which change none.

    filled: of the bars that are open, changed as ``bar_parts`` does. every: at most 2^61.
    """
    cdef Py_ssize_t i
    cdef int64_t slot
    cdef uint64_t rest, room
    rows.check(values.shape[0], valid.shape[0], counts.shape[0], filled.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = rows.slots[i]
            if rows.begins[i]:
                filled[slot] = 0
            counts[i] = 1
            if not valid[i]:
                continue
            room = <uint64_t>(every - filled[slot] if values[i] > 0 else every + filled[slot])
            rest = magnitude(values[i])
            if rest < room:
                filled[slot] += values[i]
                continue
            rest -= room
            if rest // <uint64_t>every >= <uint64_t>most - 1:
                counts[i] = 0
                continue
            counts[i] += <int64_t>(rest // <uint64_t>every) + (rest % <uint64_t>every > 0)
            filled[slot] = <int64_t>(rest % <uint64_t>every) * (1 if values[i] > 0 else -1)


def bar_parts(
    RowsBySlot rows not None,
    const int64_t[::1] values not None,
    int64_t every,
    const int64_t[::1] counts not None,
    int64_t[::1] numbers not None,
    int64_t[::1] filled not None,
    int64_t[::1] out not None,
    int64_t[::1] parts not None,
):
    """Divide rows where bars are full: give each part its bar and its share of the value.

    counts: of the parts of each row; out and parts are as long as their sum.
    """
    cdef Py_ssize_t i, j, n = 0
    cdef int64_t slot, share, rest
    rows.check(counts.shape[0], values.shape[0], counts.shape[0], numbers.shape[0])
    check_length(numbers.shape[0], filled.shape[0])
    check_length(out.shape[0], parts.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            n += counts[i]
    check_length(n, out.shape[0])
    n = 0
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = rows.slots[i]
            if rows.begins[i]:
                numbers[slot], filled[slot] = 0, 0
            rest = values[i]
            for j in range(counts[i]):
                share = rest
                if rest > 0 and rest >= every - filled[slot]:
                    share = every - filled[slot]
                elif rest < 0 and rest <= -every - filled[slot]:
                    share = -every - filled[slot]
                out[n], parts[n] = numbers[slot], share
                n += 1
                rest -= share
                filled[slot] += share
                if filled[slot] >= every or filled[slot] <= -every:
                    numbers[slot] += 1
                    filled[slot] = 0


cdef inline uint64_t magnitude(int64_t value) noexcept nogil:
    return 0 - <uint64_t>value if value < 0 else <uint64_t>value


cdef inline bint fits(number a, number b) noexcept nogil:
    if number is int64_t:
        if b > 0:
            return a <= <int64_t>0x7FFFFFFFFFFFFFFF - b
        return a >= -<int64_t>0x7FFFFFFFFFFFFFFF - b
    else:
        return True


def cum_sum(
    RowsBySlot rows not None,
    const int64_t[::1] values not None,
    const uint8_t[::1] valid not None,
    int64_t[::1] sums not None,
    int64_t[::1] out not None,
    uint8_t[::1] failed not None,
):
    """Give each row the sum so far; failed: where it has over 64 bits, and leaves the sum."""
    cdef Py_ssize_t i
    cdef int64_t slot
    rows.check(values.shape[0], valid.shape[0], out.shape[0], sums.shape[0])
    check_length(rows.slots.shape[0], failed.shape[0])
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &sums[0])
            failed[i] = valid[i] and not fits(sums[slot], values[i])
            if valid[i] and not failed[i]:
                sums[slot] += values[i]
            out[i] = sums[slot] if valid[i] else 0


cdef inline int add(
    Accumulators* sums, i128* total, number value, int64_t direction, bint divides
) noexcept nogil:
    """Add a value to a sum, or take it out; integers, unless their mean is wanted, in 128 bits."""
    if number is double:
        return add_double(sums, 0, value, direction)
    else:
        total[0] += <i128>value * direction
        return add_integer(sums, 0, value, direction) if divides else 0


def rolling_sum(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    bint divides,
    int64_t[::1] counts not None,
    number[:, ::1] ring not None,
    double[::1] out not None,
    int64_t[::1] whole not None,
    uint8_t[::1] failed not None,
):
    """Give each row the exact sum of the last ring.shape[1] values, or their mean, rounded once.

    whole: the sums of integers; failed: where such a sum has over 64 bits.
    """
    cdef Py_ssize_t i, j
    cdef int64_t slot, at, n, last = -1, width = ring.shape[1]
    cdef Accumulators sums
    cdef Slot* memory
    cdef int bad = 0
    cdef i128 total = 0
    rows.check(values.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(rows.slots.shape[0], whole.shape[0])
    check_length(rows.slots.shape[0], failed.shape[0])
    check_length(counts.shape[0], ring.shape[0])
    memory = <Slot*>malloc(sizeof(Slot))
    if memory == NULL:
        raise MemoryError
    accumulators_open(&sums)
    sums.slots, sums.stride = <char*>memory, sizeof(Slot)
    open_slot(&sums, 0)
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            if rows.begins[i] or slot != last:
                last = slot
                clear_slot(&sums, 0)
                open_slot(&sums, 0)
                total = 0
                for j in range(min(counts[slot], width)):
                    bad |= add(&sums, &total, ring[slot, j], 1, divides)
            out[i], whole[i], failed[i] = 0.0, 0, 0
            if not valid[i]:
                continue
            at = counts[slot] % width
            if number is double and counts[slot] >= width:
                bad |= replace_double(&sums, 0, ring[slot, at], values[i])
            else:
                if counts[slot] >= width:
                    bad |= add(&sums, &total, ring[slot, at], -1, divides)
                bad |= add(&sums, &total, values[i], 1, divides)
            ring[slot, at] = values[i]
            counts[slot] += 1
            if divides:
                out[i] = slot_quotient(&sums, 0, min(counts[slot], width))
            elif number is double:
                out[i] = slot_sum(&sums, 0)
            else:
                failed[i] = integer_read(&total, &whole[i]) != 0
    clear_slot(&sums, 0)
    accumulators_close(&sums)
    free(memory)
    if bad:
        raise MemoryError


cdef inline int64_t queued(
    int64_t* queue, int64_t head, int64_t tail, const number* ring, int64_t width, int64_t k,
    bint largest,
) noexcept nogil:
    """Add value ``k`` to the queue, and return its end.

    The queue is circular, and has the numbers of values that are the extreme of all after them.
    """
    while tail > head and not beyond(
        ring[queue[(tail - 1) % (width + 1)] % width], ring[k % width], largest
    ):
        tail -= 1
    queue[tail % (width + 1)] = k
    return tail + 1


def rolling_extreme(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    bint largest,
    int64_t[::1] counts not None,
    number[:, ::1] ring not None,
    number[::1] out not None,
):
    """Give each row the largest, or the smallest, of the last ring.shape[1] values."""
    cdef Py_ssize_t i
    cdef int64_t slot, k, head = 0, tail = 0, first, last = -1, width = ring.shape[1]
    cdef int64_t* queue
    rows.check(values.shape[0], valid.shape[0], out.shape[0], counts.shape[0])
    check_length(counts.shape[0], ring.shape[0])
    queue = <int64_t*>malloc((width + 1) * sizeof(int64_t))
    if queue == NULL:
        raise MemoryError
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            if rows.begins[i] or slot != last:
                last, head, tail = slot, 0, 0
                first = counts[slot] - min(counts[slot], width)
                for k in range(first, counts[slot]):
                    tail = queued(queue, head, tail, &ring[slot, 0], width, k, largest)
            if not valid[i]:
                out[i] = 0
                continue
            k = counts[slot]
            while tail > head and queue[head % (width + 1)] <= k - width:
                head += 1
            ring[slot, k % width] = values[i] + <number>0
            tail = queued(queue, head, tail, &ring[slot, 0], width, k, largest)
            counts[slot] = k + 1
            out[i] = ring[slot, queue[head % (width + 1)] % width]
    free(queue)


cdef inline int64_t place_of(const number* ordered, int64_t n, number x) noexcept nogil:
    """Return where the first value stands that is not below ``x``."""
    cdef int64_t low = 0, high = n, middle, i
    cdef bint is_number = True
    if number is double:
        is_number = not isnan(x)
    if n <= COUNTED_MAX and is_number:  # counting all is faster than a search's wrong branches
        for i in range(n):
            low += ordered[i] < x
        return low
    while low < high:
        middle = (low + high) // 2
        if beyond(x, ordered[middle], True):
            low = middle + 1
        else:
            high = middle
    return low


cdef inline void replace(number* ordered, int64_t n, number old, number new) noexcept nogil:
    """Replace a present value by another one, in order."""
    cdef int64_t gone = place_of(ordered, n, old), place = place_of(ordered, n, new)
    if place > gone:
        place -= 1
        memmove(ordered + gone, ordered + gone + 1, (place - gone) * sizeof(number))
    else:
        memmove(ordered + place + 1, ordered + place, (gone - place) * sizeof(number))
    ordered[place] = new


cdef inline void insert(number* ordered, int64_t n, number value) noexcept nogil:
    """Insert a value, in order."""
    cdef int64_t place = place_of(ordered, n, value)
    memmove(ordered + place + 1, ordered + place, (n - place) * sizeof(number))
    ordered[place] = value


def rolling_ranked(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    uint64_t numerator,
    uint64_t denominator,
    int64_t[::1] counts not None,
    number[:, ::1] ring not None,
    number[::1] lower not None,
    number[::1] upper not None,
    int64_t[::1] remainders not None,
):
    """Give each row the two of the last ring.shape[1] values between which a quantile lies.

    remainders: how far from the lower one, in parts of the denominator.
    """
    cdef Py_ssize_t i, j
    cdef int64_t slot, at, rank, n = 0, last = -1, width = ring.shape[1]
    cdef number value
    cdef number* ordered
    rows.check(values.shape[0], valid.shape[0], lower.shape[0], counts.shape[0])
    check_length(rows.slots.shape[0], upper.shape[0])
    check_length(rows.slots.shape[0], remainders.shape[0])
    check_length(counts.shape[0], ring.shape[0])
    ordered = <number*>malloc(width * sizeof(number))
    if ordered == NULL:
        raise MemoryError
    with nogil:
        for i in range(rows.slots.shape[0]):
            slot = entered(rows, i, &counts[0])
            if rows.begins[i] or slot != last:
                last, n = slot, 0
                for j in range(min(counts[slot], width)):
                    insert(ordered, n, ring[slot, j])
                    n += 1
            lower[i] = upper[i] = 0
            remainders[i] = 0
            if not valid[i]:
                continue
            at = counts[slot] % width
            value = values[i] + <number>0
            if n == width:
                replace(ordered, n, ring[slot, at], value)
            else:
                insert(ordered, n, value)
                n += 1
            ring[slot, at] = value
            counts[slot] += 1
            rank = quantile_rank(n, numerator, denominator, &remainders[i])
            lower[i] = ordered[rank]
            upper[i] = ordered[rank + 1 if rank + 1 < n else rank]
    free(ordered)


cdef int change(
    ExactSums sums, ExactSums squares, Counts tally, const number* value, int64_t direction
) except -1:
    """Add a value to the only slot, or take it out."""
    cdef int64_t slot = 0
    cdef Operand operand
    operand.values = value
    operand.is_integer = number is int64_t
    check_memory(
        sums.fold_in(&slot, 1, NULL, NULL, &operand, PLAIN, direction)
        | squares.fold_in(&slot, 1, NULL, NULL, &operand, SQUARE, direction)
    )
    tally.at(0)[0] += direction
    return 0


def rolling_spread(
    RowsBySlot rows not None,
    const number[::1] values not None,
    const uint8_t[::1] valid not None,
    ExactSums sums not None,
    ExactSums squares not None,
    Counts tally not None,
    Read read not None,
    int64_t[::1] counts not None,
    number[:, ::1] ring not None,
    int64_t[::1] bits not None,
    uint8_t[::1] found not None,
):
    """Give each row the spread of the last ring.shape[1] values, in 64 bits.

    sums, squares, tally: parts with one slot, from which ``read`` reads it.
    """
    cdef Py_ssize_t i, j
    cdef int64_t slot, at, only = 0, last = -1, width = ring.shape[1]
    rows.check(values.shape[0], valid.shape[0], bits.shape[0], counts.shape[0])
    check_length(rows.slots.shape[0], found.shape[0])
    check_length(counts.shape[0], ring.shape[0])
    for part in (sums, squares, tally):
        check_length(1, part.slots)
    for i in range(rows.slots.shape[0]):
        slot = entered(rows, i, &counts[0])
        if rows.begins[i] or slot != last:
            last = slot
            sums.shut(0)
            squares.shut(0)
            sums.open(0)
            squares.open(0)
            tally.open(0)
            for j in range(min(counts[slot], width)):
                change(sums, squares, tally, &ring[slot, j], 1)
        bits[i], found[i] = 0, 0
        if not valid[i]:
            continue
        at = counts[slot] % width
        if counts[slot] >= width:
            change(sums, squares, tally, &ring[slot, at], -1)
        ring[slot, at] = values[i]
        change(sums, squares, tally, &ring[slot, at], 1)
        counts[slot] += 1
        read.read(&only, 1, &bits[i], &found[i])
