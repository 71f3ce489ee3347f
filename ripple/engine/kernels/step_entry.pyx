# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The rows of a scan that are not final, by key and in their order, with the state after each."""

cimport cython
from libc.stdint cimport INT64_MIN, int64_t

from ripple.model.keys.checked cimport check_length


@cython.no_gc  # it is in no cycle, and there are many
cdef class Entry:
    """A row of a log.

    number: by which its owner knows it. of: the value that its versions share, None for none.
    result: the values of ``into``, None for no row, or why the step failed. after: the state of its
    key after it. last: the newest result of the key then.
    """

    cdef public object after, last
    cdef readonly object key, number, of, result, row
    cdef int64_t time_ns, place
    cdef Py_ssize_t log


cdef inline bint is_before(Entry one, int64_t time_ns, int64_t place):
    return one.time_ns < time_ns or (one.time_ns == time_ns and one.place < place)


cdef class Log:
    """The rows of a key. state, last, last_ns: of the key before them; None without one.

    since: from where on they are to be run again, or a place behind them. ended: how many of the
    first are final, and about to leave.
    """

    cdef list entries
    cdef object key, state, last, last_ns
    cdef Py_ssize_t since, ended

    cdef Py_ssize_t place_of(self, int64_t time_ns, int64_t place):
        """Return where a row stands, or would."""
        cdef Py_ssize_t low = 0, high = len(self.entries), middle
        if high and is_before(<Entry>self.entries[high - 1], time_ns, place):
            return high
        while low < high:
            middle = (low + high) // 2
            if is_before(<Entry>self.entries[middle], time_ns, place):
                low = middle + 1
            else:
                high = middle
        return low

    cdef int add(self, Entry entry) except -1:
        """Take a row where it belongs; it, or the first version of it, is run again."""
        cdef Py_ssize_t at = self.place_of(entry.time_ns, entry.place)
        if at == len(self.entries):
            self.entries.append(entry)
        else:
            self.entries.insert(at, entry)
        if entry.of is not None:
            at = self.place_of(entry.time_ns, INT64_MIN)
        self.since = min(self.since, at)
        return 0

    cdef int drop(self) except -1:
        """Forget the first, final rows."""
        cdef Entry entry = self.entries[self.ended - 1]
        self.state, self.last, self.last_ns = entry.after, entry.last, entry.time_ns
        del self.entries[:self.ended]
        self.since, self.ended = len(self.entries), 0
        return 0


cdef class Logs:
    """The rows of all keys.

    Invariants between calls: ``logs`` has a log at the place that ``places`` has of its key, and
    None at those in ``unused``; each has rows; ``entries`` has these by number.
    """

    cdef object call, initial, versions, reason_of
    cdef int64_t ttl_ns
    cdef list logs, unused
    cdef dict places
    cdef readonly dict entries

    def __init__(self, call not None, tuple initial not None, ttl_ns, versions, reason_of):
        """Have no rows yet.

        call: takes a state and a row's values; returns the state after it, and a result. initial:
        the values of a new state. ttl_ns: how long one lasts after a row, None for ever. versions:
        returns rows as they count, of rows, times and what their versions share; None where each
        counts. reason_of: of an error.
        """
        self.call, self.initial, self.versions, self.reason_of = call, initial, versions, reason_of
        self.ttl_ns = -1 if ttl_ns is None else ttl_ns
        self.logs, self.unused, self.places, self.entries = [], [], {}, {}

    def unknown(self, list keys not None):
        """Return the places of the keys without a log in a list of distinct ones."""
        return [at for at, key in enumerate(keys) if key not in self.places]

    def begin(self, tuple key not None, tuple state not None, last, last_ns):
        """Make a log for a key, with its state so far."""
        cdef Log log = Log.__new__(Log)
        log.entries, log.key, log.since, log.ended = [], key, 0, 0
        log.state, log.last, log.last_ns = state, last, last_ns
        if self.unused:
            self.places[key] = self.unused.pop()
            self.logs[self.places[key]] = log
        else:
            self.places[key] = len(self.logs)
            self.logs.append(log)

    def take(
        self,
        list keys not None,
        const int64_t[::1] which not None,
        const int64_t[::1] times not None,
        const int64_t[::1] places not None,
        list numbers not None,
        given,
        list of,
    ):
        """Take rows, and run their keys again; return the rows that were run.

        keys: distinct ones with logs. which: per row the place of its key there. given: the values
        of rows. of: what the versions of each share; None where each row counts.
        """
        cdef Py_ssize_t i = 0, n = which.shape[0]
        cdef list logs = [self.places[key] for key in keys], touched = []
        cdef Entry entry
        cdef Log log
        for length in (times.shape[0], places.shape[0], len(numbers), n if of is None else len(of)):
            check_length(n, length)
        for row in given:
            if i == n or not 0 <= which[i] < len(logs):
                raise ValueError(f"{n} rows of {len(logs)} keys, but others are given")
            entry = Entry.__new__(Entry)
            entry.log = logs[which[i]]
            log = self.logs[entry.log]
            entry.number, entry.key, entry.row = numbers[i], log.key, row
            entry.of, entry.after = None if of is None else of[i], ()
            entry.time_ns, entry.place = times[i], places[i]
            self.entries[entry.number] = entry
            log.add(entry)
            i += 1
        check_length(n, i)
        for at in logs:
            self.run(self.logs[at], touched)
        return touched

    cdef int run(self, Log log, list touched) except -1:
        """Run a key again."""
        cdef Py_ssize_t i, n = len(log.entries), start = log.since
        cdef object state = log.state, last = log.last, rows = None, row
        cdef int64_t last_ns = 0
        cdef bint has_last = log.last_ns is not None
        cdef Entry entry
        if start:
            entry = log.entries[start - 1]
            state, last, last_ns, has_last = entry.after, entry.last, entry.time_ns, True
        elif has_last:
            last_ns = log.last_ns
        log.since = n
        if self.versions is not None:
            some = log.entries[start:]
            times = [(<Entry>one).time_ns for one in some]
            shared = [(<Entry>one).of for one in some]
            rows = self.versions([(<Entry>one).row for one in some], times, shared)
        for i in range(start, n):
            entry = log.entries[i]
            row = entry.row if rows is None else rows[i - start]
            if self.ttl_ns >= 0 and has_last and entry.time_ns - last_ns >= self.ttl_ns:
                state, last = self.initial, None
            if row is None:
                entry.result = None
            else:
                try:
                    after, result = self.call(state, row)
                except Exception as error:  # any error of a user's function
                    entry.result = self.reason_of(error)
                else:
                    state, entry.result = after, result
                    if result is not None:
                        last = result
            entry.after, entry.last = state, last
            last_ns, has_last = entry.time_ns, True
            touched.append(entry)
        return 0

    def last_of(self, key):
        """Return the newest result of a key with rows here, and the time of its last row."""
        cdef Log log = self.logs[self.places[key]]
        cdef Entry entry = log.entries[len(log.entries) - 1]
        return entry.last, entry.time_ns

    def end(self, list numbers not None):
        """Forget the first rows of their keys, in the order of these; return them.

        They stay in ``entries``.
        """
        cdef list ended = [], logs = []
        cdef Entry entry
        cdef Log log
        for number in numbers:
            entry = self.entries[number]
            log = self.logs[entry.log]
            if log.entries[log.ended] is not entry:
                raise ValueError(f"row {number} is not the first one of its key")
            if not log.ended:
                logs.append(entry.log)
            log.ended += 1
            ended.append(entry)
        for at in logs:
            log = self.logs[at]
            log.drop()
            if not log.entries:
                del self.places[log.key]
                self.logs[at] = None
                self.unused.append(at)
        return ended

    def forget(self, list numbers not None):
        """Forget rows that ended."""
        for number in numbers:
            del self.entries[number]


def take_after(list states not None, list lasts, list slots not None, list ended not None):
    """Note the states, and unless None the newest results, after rows by their slots."""
    cdef Entry entry
    cdef Py_ssize_t i, slot, n = len(slots), count = len(states)
    check_length(n, len(ended))
    check_length(count, count if lasts is None else len(lasts))
    for i in range(n):
        entry, slot = ended[i], slots[i]
        if not 0 <= slot < count:
            raise ValueError(f"slot {slot} of {count}")
        states[slot] = entry.after
        if lasts is not None:
            lasts[slot] = entry.last


def failures(list ended not None):
    """Return the places of rows that failed, each with the reason."""
    return {i: one.result for i, one in enumerate(ended) if type(one.result) is str}


def made_of(dict entries not None, list slots not None):
    """Return (slots with a result, their keys, their results, the reasons of failed ones)."""
    cdef list kept = [], keys = [], made = []
    cdef dict failed = {}
    cdef Entry entry
    for slot in slots:
        entry = entries[slot]
        if type(entry.result) is str:
            failed[slot] = entry.result
        elif entry.result is not None:
            kept.append(slot)
            keys.append(entry.key)
            made.append(entry.result)
    return kept, keys, made, failed
