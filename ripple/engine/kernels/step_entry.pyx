# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The rows of a scan that are not final, by key and in their order, with the state after each."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport INT64_MIN, int64_t

import numpy as np

from ripple.engine.kernels.state_call cimport GivenRows, StateCall
from ripple.model.keys.checked cimport check_length, check_slots


@cython.no_gc  # it is in no cycle, and there are many
cdef class Entry:
    """A row of a log.

    number: by which its owner knows it. slot: of its key. of: the value that its versions share,
    None for none. row: its values, or rows with its index ``at``. result: the values of ``into``,
    None for no row, or the reason of the step's failure. after: its key's state after it. last:
    its key's newest result then. before, behind: its neighbours in the log, which does not own
    them.
    """

    cdef public object after, last
    cdef readonly object of, result
    cdef readonly int64_t number, slot
    cdef object row
    cdef int64_t time_ns, place, at
    cdef PyObject* before
    cdef PyObject* behind


EMPTY_ENDS = 16  # calls of ``end`` that keep an empty log: most keys have a new row soon


cdef inline object values_of(Entry entry):
    if type(entry.row) is GivenRows:
        return (<GivenRows>entry.row).row(entry.at)
    return entry.row


cdef inline bint is_before(PyObject* one, int64_t time_ns, int64_t place):
    cdef int64_t own_ns = (<Entry>one).time_ns
    return own_ns < time_ns or (own_ns == time_ns and (<Entry>one).place < place)


@cython.no_gc  # as a row is
cdef class Log:
    """The rows of a key, linked. state, last, last_ns: of the key before them.

    since: the first one to be run again, NULL for none. late: the row taken last before others.
    empty_since: the number of the call of ``Logs.end`` that emptied it.
    """

    cdef object state, last
    cdef bint has_last_ns
    cdef int64_t last_ns, empty_since
    cdef PyObject* head
    cdef PyObject* tail
    cdef PyObject* since
    cdef PyObject* late

    cdef int add(self, Entry entry) except -1:
        """Take a row where it belongs; it, or the first version of it, is run again."""
        cdef PyObject* new = <PyObject*>entry
        cdef PyObject* at = self.tail
        cdef PyObject* behind = NULL
        if at != NULL and not is_before(at, entry.time_ns, entry.place):
            at = self.before(entry)
        if at == NULL:
            behind, self.head = self.head, new
        else:
            behind = (<Entry>at).behind
            (<Entry>at).behind = new
        entry.before, entry.behind = at, behind
        if behind == NULL:
            self.tail = new
        else:
            (<Entry>behind).before = new
            self.late = new
        if entry.of is not None:
            while new != self.head and (<Entry>(<Entry>new).before).time_ns == entry.time_ns:
                new = (<Entry>new).before
        entry = <Entry>new
        if self.since == NULL or not is_before(self.since, entry.time_ns, entry.place):
            self.since = new
        return 0

    cdef PyObject* before(self, Entry entry):
        """Return the row before the place of one that is not the last; NULL for none.

        The late rows of a batch come in their order, so no row is passed often.
        """
        cdef PyObject* at = self.late
        if at == NULL or not is_before(at, entry.time_ns, entry.place):
            at = self.tail
            while at != NULL and not is_before(at, entry.time_ns, entry.place):
                at = (<Entry>at).before
            return at
        while is_before((<Entry>at).behind, entry.time_ns, entry.place):
            at = (<Entry>at).behind
        return at

    cdef int drop(self, Entry entry) except -1:
        """Forget the first row, a final one."""
        self.state, self.last = entry.after, entry.last
        self.last_ns, self.has_last_ns = entry.time_ns, True
        self.head = entry.behind
        if self.head == NULL:
            self.tail = NULL
        else:
            (<Entry>self.head).before = NULL
        entry.before = entry.behind = NULL
        return 0


cdef class Logs:
    """The rows of all keys.

    Invariants between calls: ``logs`` has a log per slot of a key with rows, now or at one of the
    last calls of ``end``, else None; ``emptied`` has the slots emptied by each of these calls;
    ``entries`` has the rows by number, and owns them; no log has rows to be run again.
    """

    cdef object call, initial, versions, reason_of
    cdef StateCall fast
    cdef int64_t ttl_ns
    cdef list logs, emptied
    cdef int64_t ends
    cdef readonly dict entries
    cdef int64_t[::1] ran
    cdef Py_ssize_t ran_count

    def __init__(self, call not None, tuple initial not None, ttl_ns, versions, reason_of):
        """Have no rows yet.

        call: takes a state and a row's values; returns the state after it, and a result. initial:
        the values of a new state. ttl_ns: how long one lasts after a row, None for ever. versions:
        returns rows as they count, of rows, times and what their versions share; None where each
        counts. reason_of: of an error.
        """
        self.call, self.initial, self.versions, self.reason_of = call, initial, versions, reason_of
        self.fast = call if type(call) is StateCall else None
        self.ttl_ns = -1 if ttl_ns is None else ttl_ns
        self.logs, self.entries, self.emptied, self.ends = [], {}, [], 0
        self.ran, self.ran_count = np.empty(256, np.int64), 0

    def grow(self, Py_ssize_t capacity):
        """Have room for each slot below ``capacity``."""
        if capacity > len(self.logs):
            self.logs.extend([None] * (capacity - len(self.logs)))

    def begin(self, const int64_t[::1] slots not None):
        """Make logs of keys with an initial state where there are none; return their rows here."""
        cdef Py_ssize_t i
        cdef Log log
        cdef list new = []
        check_slots(slots, len(self.logs))
        for i in range(slots.shape[0]):
            if self.logs[slots[i]] is None:
                log = Log.__new__(Log)
                log.state, log.last, log.has_last_ns = self.initial, None, False
                self.logs[slots[i]] = log
                new.append(i)
        return np.array(new, np.int64)

    def set(
        self,
        const int64_t[::1] slots not None,
        list states not None,
        list lasts not None,
        const int64_t[::1] last_ns not None,
    ):
        """Set the states of keys with logs before their rows; last_ns: INT64_MIN for new ones."""
        cdef Py_ssize_t i
        cdef Log log
        check_slots(slots, len(self.logs))
        for length in (len(states), len(lasts), last_ns.shape[0]):
            check_length(slots.shape[0], length)
        for i in range(slots.shape[0]):
            log = self.logs[slots[i]]
            log.state, log.last = states[i], lasts[i]
            log.last_ns, log.has_last_ns = last_ns[i], last_ns[i] != INT64_MIN

    def take(
        self,
        const int64_t[::1] order not None,
        const int64_t[::1] slots not None,
        const int64_t[::1] times not None,
        const int64_t[::1] places not None,
        const int64_t[::1] numbers not None,
        given not None,
        list of,
    ):
        """Take rows of keys with logs, and run these again; return the numbers of all that ran.

        order: the rows by time and place. given: the values of rows, a list or GivenRows. of: the
        common value of each row's versions; None without versions.
        """
        cdef Py_ssize_t i, n = slots.shape[0]
        cdef list changed = [], listed = None if type(given) is GivenRows else given
        cdef Entry entry
        cdef Log log
        check_slots(slots, len(self.logs))
        check_slots(order, n)
        for length in (
            order.shape[0], times.shape[0], places.shape[0], numbers.shape[0], len(given),
            n if of is None else len(of),
        ):
            check_length(n, length)
        for i in order:
            entry = Entry.__new__(Entry)
            entry.number, entry.slot, entry.at = numbers[i], slots[i], i
            entry.row = given if listed is None else listed[i]
            entry.of, entry.after = None if of is None else of[i], ()
            entry.time_ns, entry.place = times[i], places[i]
            log = self.logs[entry.slot]
            self.entries[entry.number] = entry
            if log.since == NULL:
                changed.append(log)
            log.add(entry)
        self.ran_count = 0
        for log in changed:
            self.run(log)
        return np.array(self.ran[: self.ran_count])

    cdef list counted(self, Log log):
        """Return the rows to be run again as they count."""
        cdef PyObject* at = log.since
        cdef list rows = [], times = [], shared = []
        while at != NULL:
            rows.append(values_of(<Entry>at))
            times.append((<Entry>at).time_ns)
            shared.append((<Entry>at).of)
            at = (<Entry>at).behind
        return list(self.versions(rows, times, shared))

    cdef int run(self, Log log) except -1:
        """Run a key again."""
        cdef PyObject* at = log.since
        cdef Entry entry = <Entry>at
        cdef object state = log.state, last = log.last, row, after, result
        cdef list rows = None if self.versions is None else self.counted(log)
        cdef int64_t last_ns = log.last_ns
        cdef bint has_last = log.has_last_ns
        cdef Py_ssize_t i = 0
        if entry.before != NULL:
            entry = <Entry>entry.before
            state, last, last_ns, has_last = entry.after, entry.last, entry.time_ns, True
        log.since = log.late = NULL
        while at != NULL:
            entry = <Entry>at
            row = entry.row if rows is None else rows[i]
            if self.ttl_ns >= 0 and has_last and entry.time_ns - last_ns >= self.ttl_ns:
                state, last = self.initial, None
            if row is None:
                entry.result = None
            else:
                try:
                    if self.fast is None:
                        row = values_of(entry) if rows is None else row
                        after, result = self.call(state, row)
                    elif type(row) is GivenRows:
                        after = self.fast.after_at(state, <GivenRows>row, entry.at)
                        result = self.fast.result
                    else:
                        after = self.fast.after(state, row)
                        result = self.fast.result
                except (Exception, SystemExit) as error:  # any error of a user's function
                    entry.result = self.reason_of(error)
                else:
                    state, entry.result = after, result
                    if result is not None:
                        last = result
            entry.after, entry.last = state, last
            last_ns, has_last = entry.time_ns, True
            if self.ran_count == self.ran.shape[0]:
                self.ran = np.concatenate([self.ran, self.ran])
            self.ran[self.ran_count] = entry.number
            self.ran_count += 1
            at = entry.behind
            i += 1
        return 0

    def last_of(self, const int64_t[::1] slots not None):
        """Return the newest results of keys with rows here, and the times of their last rows."""
        cdef Py_ssize_t i
        cdef Log log
        cdef list lasts = []
        times = np.empty(slots.shape[0], np.int64)
        cdef int64_t[::1] last_ns = times
        check_slots(slots, len(self.logs))
        for i in range(slots.shape[0]):
            log = self.logs[slots[i]]
            lasts.append((<Entry>log.tail).last)
            last_ns[i] = (<Entry>log.tail).time_ns
        return lasts, times

    def states_of(self, const int64_t[::1] slots not None):
        """Return the states of keys with rows here, after their last rows."""
        cdef Py_ssize_t i
        cdef Log log
        cdef list states = []
        check_slots(slots, len(self.logs))
        for i in range(slots.shape[0]):
            log = self.logs[slots[i]]
            states.append((<Entry>log.tail).after)
        return states

    def end(self, const int64_t[::1] numbers not None):
        """Forget the first rows of their keys, in the order of these; return them.

        Returns also the slots of keys without rows since some calls. The rows stay in ``entries``.
        """
        cdef Py_ssize_t i
        cdef list ended = [], emptied = [], gone = []
        cdef Entry entry
        cdef Log log
        self.ends += 1
        for i in range(numbers.shape[0]):
            entry = self.entries[numbers[i]]
            log = self.logs[entry.slot]
            if log.head != <PyObject*>entry:
                raise ValueError(f"row {numbers[i]} is not the first one of its key")
            log.drop(entry)
            ended.append(entry)
            if log.head == NULL:
                log.empty_since = self.ends
                emptied.append(entry.slot)
        self.emptied.append(emptied)
        if len(self.emptied) > EMPTY_ENDS:
            for slot in self.emptied.pop(0):
                log = self.logs[slot]
                if log is None or log.head != NULL or log.empty_since != self.ends - EMPTY_ENDS:
                    continue
                self.logs[slot] = None
                gone.append(slot)
        return ended, np.array(gone, np.int64)

    def leave(self, const int64_t[::1] slots not None):
        """Forget keys without rows."""
        cdef Py_ssize_t i
        check_slots(slots, len(self.logs))
        for i in range(slots.shape[0]):
            self.logs[slots[i]] = None

    def forget(self, const int64_t[::1] numbers not None):
        """Forget rows that ended."""
        cdef Py_ssize_t i
        for i in range(numbers.shape[0]):
            del self.entries[numbers[i]]


def take_after(
    list states not None, list lasts, const int64_t[::1] slots not None, list ended not None
):
    """Note the states, and unless None the newest results, after rows by their slots."""
    cdef Entry entry
    cdef Py_ssize_t i, n = slots.shape[0], count = len(states)
    check_length(n, len(ended))
    check_length(count, count if lasts is None else len(lasts))
    check_slots(slots, count)
    for i in range(n):
        entry = ended[i]
        states[slots[i]] = entry.after
        if lasts is not None:
            lasts[slots[i]] = entry.last


def failures(list ended not None):
    """Return the places of rows that failed, each with the reason."""
    return {i: one.result for i, one in enumerate(ended) if type(one.result) is str}


def made_of(dict entries not None, const int64_t[::1] numbers not None):
    """Return (rows with a result, the slots of their keys, the results, why others failed)."""
    cdef Py_ssize_t i, count = 0, n = numbers.shape[0]
    cdef list made = []
    cdef dict failed = {}
    cdef Entry entry
    found = np.empty((2, n), np.int64)
    cdef int64_t[:, ::1] kept = found
    for i in range(n):
        entry = entries[numbers[i]]
        if type(entry.result) is str:
            failed[numbers[i]] = entry.result
        elif entry.result is not None:
            kept[0, count], kept[1, count] = entry.number, entry.slot
            made.append(entry.result)
            count += 1
    return found[0, :count], found[1, :count], made, failed
