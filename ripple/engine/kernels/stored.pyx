# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""Rows in columns of memory that grow at the end, and those of them that wait in an order."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

import numpy as np
import pyarrow as pa

from ripple.core.int64s cimport int64s
from ripple.engine.kernels.arrow_batch cimport (
    BATCH_FLAG, BATCH_MADE, BATCH_NUMBER, BATCH_TEXT, BATCH_TEXT_BYTES_MAX, BatchColumn, batch_make,
)
from ripple.model.keys.checked cimport check_length
from ripple.model.schema.exported cimport ArrowArray, Exported, Lent, Made

from ripple.model.schema.exported import KINDS as LETTERS

cdef dict KINDS = {
    pa.int64(): BATCH_NUMBER, pa.float64(): BATCH_NUMBER, pa.bool_(): BATCH_FLAG,
    pa.string(): BATCH_TEXT,
}
cdef dict LENT = {kind: ord(letter) for kind, letter in LETTERS.items()}
cdef int64_t[2] NOTHING     # what a row without values has: a word, or BATCH_SHORT bytes


cdef class Stored:
    """Rows numbered from 0 in the order in which they came."""

    # Invariant: `columns` have `count` rows each; one of another type is in `others` instead. Some
    # have more if `is_torn`: there was no memory for all of them.

    def __init__(self, schema not None, make):
        """Have no rows; schema: of those to come. make: an empty column of another type."""
        cdef StoredColumn column
        self.schema, self.make, self.types = schema, make, schema.types
        self.places = {name: at for at, name in enumerate(schema.names)}
        self.others = {}
        for at, kind in enumerate(self.types):
            column.kind = KINDS.get(kind, BATCH_MADE)
            self.columns.push_back(column)
            self.letters.push_back(LENT.get(kind, 0))
            self.are_ints.push_back(kind == pa.int64())
            if column.kind == BATCH_MADE:
                self.others[at] = make(kind)

    def add(self, list columns not None, int64_t count):
        """Add so many rows, as a column each: one of Arrow's, lent by it, or int64[n]."""
        cdef list alive = []
        cdef const int64_t[::1] values
        cdef vector[const ArrowArray*] arrays
        cdef vector[const int64_t*] words
        cdef const ArrowArray* array
        cdef const int64_t* word
        cdef size_t at
        self.check_whole()
        check_length(self.columns.size(), len(columns))
        for at in range(self.columns.size()):
            column = columns[at]
            array = NULL
            word = NULL
            check_length(count, len(column))
            if isinstance(column, np.ndarray):
                is_right = self.are_ints[at] and column.dtype == np.int64
                if is_right and count:
                    values = column
                    word = &values[0]
            elif isinstance(column, Lent):
                array = (<Lent>column).array
                is_right = self.letters[at] == (<Lent>column).kind[0]
            else:
                is_right = self.types[at] == column.type
                if self.columns[at].kind != BATCH_MADE:
                    alive.append(Exported(column))
                    array = &(<Exported>alive[len(alive) - 1]).whole
            if not is_right:
                raise TypeError(f"a column is no {self.types[at]}")
            arrays.push_back(array)
            words.push_back(word)
        self.put(arrays, words, columns, count)

    cdef int put(
        self, const vector[const ArrowArray*]& arrays, const vector[const int64_t*]& words,
        list columns, int64_t count,
    ) except -1:
        """Add rows of checked columns: each is an array, or numbers, or of another type."""
        cdef size_t at
        self.is_torn = True
        for at in range(self.columns.size()):
            if self.columns[at].kind == BATCH_MADE:
                self.others[at].add(columns[at])
            elif arrays[at] != NULL:
                self.columns[at].add(arrays[at][0])
            else:
                self.columns[at].add_words(words[at], count)
        self.count += count
        self.added += count
        self.is_torn = False
        return 0

    cdef int check_whole(self) except -1:
        if self.is_torn:
            raise RuntimeError("rows were added without memory for all columns: none can follow")
        return 0

    def add_made(self, Made rows not None):
        """Add the rows of a batch with these columns."""
        cdef size_t at
        cdef list columns = []
        if not rows.schema.equals(self.schema):
            raise TypeError(f"a batch has the columns {rows.schema}, not {self.schema}")
        for at in range(self.columns.size()):
            if self.letters[at]:
                columns.append(rows.lend(at, self.letters[at]))
            else:
                columns.append(rows.arrow().column(at))
        self.add(columns, rows.num_rows)

    cdef int add_last(self, Stored of, int64_t n) except -1:
        """Add the last rows of others with the same columns."""
        cdef size_t at
        cdef int64_t first = of.count - n
        check_length(self.columns.size(), of.columns.size())
        self.check_whole()
        of.check_whole()
        self.is_torn = True
        for at in range(self.columns.size()):
            if self.columns[at].kind == BATCH_MADE:
                self.others[at].add(of.others[at].take(np.arange(first, of.count)))
            else:
                self.columns[at].add_from(of.columns[at], first, n)
        self.count += n
        self.added += n
        self.is_torn = False
        return 0

    def add_some(self, Stored rows not None, const int64_t[::1] numbers not None):
        """Add some rows of another, which has the columns of these, and maybe others."""
        cdef Py_ssize_t n = numbers.shape[0]
        cdef vector[size_t] of
        cdef size_t at
        self.check_whole()
        rows.check_whole()
        rows.check(numbers, 0)
        for name, kind in zip(self.schema.names, self.types):
            of.push_back(<size_t>rows.places[name])
            if rows.types[of.back()] != kind:
                raise TypeError(f"column {name!r} is {rows.types[of.back()]}, no {kind}")
        if rows is self:
            raise ValueError("rows of others are added")
        if not n:
            return
        self.is_torn = True
        for at in range(self.columns.size()):
            if self.columns[at].kind == BATCH_MADE:
                self.others[at].add(rows.others[of[at]].take(np.asarray(numbers)))
            else:
                self.columns[at].add_some(rows.columns[of[at]], &numbers[0], n)
        self.count += n
        self.added += n
        self.is_torn = False

    def first_from(self, str name not None, int64_t number):
        """Return the first row with a number or a greater one, in a column of rising ones."""
        cdef StoredColumn* column = &self.columns[self.place(name)]
        cdef int64_t first = 0, count = self.count, half
        while count:
            half = count // 2
            if column.words[first + half] < number:
                first, count = first + half + 1, count - half - 1
            else:
                count = half
        return first

    def words(self, str name not None, const int64_t[::1] numbers=None):
        """Return numbers of some rows, or of all: int64[n]. Raises TypeError for another column."""
        cdef StoredColumn* column = &self.columns[self.place(name)]
        cdef int64_t i, n = self.count if numbers is None else numbers.shape[0]
        found = np.empty(n, np.int64)
        cdef int64_t[::1] out = found
        if numbers is None:
            if n:
                memcpy(&out[0], column.words.data(), n * sizeof(int64_t))
            return found
        self.check(numbers, 0)
        for i in range(n):
            out[i] = column.words[numbers[i]]
        return found

    cdef words_from(self, size_t at, int64_t first):
        """Return the numbers of the rows from one on, of a column of numbers: int64[n]."""
        cdef vector[int64_t] found
        found.assign(self.columns[at].words.begin() + first, self.columns[at].words.end())
        return int64s(found)

    def values(self, str name not None, const int64_t[::1] numbers not None):
        """Return (values, which are there) of some rows, of a column of numbers or flags.

        values: int64[n], float64[n] or bool[n]; of -1 there is none. The other is bool[n], or None
        if all are. Returns None for another column.
        """
        cdef Py_ssize_t i, n = numbers.shape[0], missing = 0
        cdef StoredColumn* column = &self.columns[<Py_ssize_t>self.places[name]]
        cdef uint8_t[::1] there
        cdef int64_t[::1] out
        if column.kind != BATCH_NUMBER and column.kind != BATCH_FLAG:
            return None
        self.check(numbers, -1)
        found, valid = np.empty(n, np.int64), None
        out = found
        for i in range(n):
            out[i] = 0
            if column.has(numbers[i]):
                out[i] = column.words[numbers[i]]
            else:
                missing += 1
        if missing:
            valid = np.empty(n, np.uint8)
            there = valid
            for i in range(n):
                there[i] = column.has(numbers[i])
        if column.kind == BATCH_FLAG:
            found = found != 0
        elif not self.are_ints[<Py_ssize_t>self.places[name]]:
            found = found.view(np.float64)
        return found, valid.view(np.bool_) if missing else None

    cdef Py_ssize_t place(self, str name) except -1:
        """Return where a column of numbers is."""
        cdef Py_ssize_t at = self.places[name]
        if self.columns[at].kind != BATCH_NUMBER:
            raise TypeError(f"column {name!r} is {self.types[at]}, no number")
        return at

    cdef int check(self, const int64_t[::1] numbers, int64_t least) except -1:
        cdef Py_ssize_t i
        for i in range(numbers.shape[0]):
            if not least <= numbers[i] < self.count:
                raise IndexError(f"row {numbers[i]} of {self.count}")
        return 0

    def keep(self, const int64_t[::1] numbers not None):
        """Keep some rows alone, whose numbers rise; they are numbered anew."""
        cdef Py_ssize_t i, n = numbers.shape[0]
        self.check(numbers, 0)
        for i in range(1, n):
            if numbers[i] <= numbers[i - 1]:
                raise ValueError("the numbers of rows to keep do not rise")
        self.keep_at(&numbers[0] if n else NULL, n)

    cdef int keep_at(self, const int64_t* numbers, int64_t n) except -1:
        cdef size_t at
        cdef vector[int64_t] some
        for at in range(self.columns.size()):
            if self.columns[at].kind == BATCH_MADE:
                some.assign(numbers, numbers + n)
                kept = self.make(self.types[at])
                kept.add(self.others[at].take(int64s(some)))
                self.others[at] = kept
            else:
                self.columns[at].keep(numbers, n)
        self.count = n
        return 0

    @property
    def nbytes(self):
        """Bytes held."""
        cdef size_t at
        held = sum([one.nbytes for one in self.others.values()])
        for at in range(self.columns.size()):
            held += self.columns[at].nbytes()
        return held


cdef class Waiting:
    """Which of stored rows wait, taken out by their times, and of one time by their places."""

    def __init__(self, Stored rows not None, str time, str place):
        """Rows of ``rows``, from now on; time, place: the columns."""
        self.rows, self.time, self.place = rows, rows.place(time), rows.place(place)
        self.add()

    cdef Less less(self):
        cdef Less less
        less.time = self.rows.columns[self.time].words.data()
        less.place = self.rows.columns[self.place].words.data()
        return less

    @property
    def count(self):
        """The number of rows."""
        return self.order.count

    def add(self):
        """Let the rows wait that were added since the last call."""
        self.order.add_below(self.rows.count, self.less())

    def take_below(self, int64_t mark_ns):
        """Take out the rows with times below a mark; return their numbers in the order: int64[n]."""
        cdef vector[int64_t] taken
        self.order.take_below(mark_ns, self.less(), taken)
        return int64s(taken)

    def numbers(self):
        """Return the numbers of all in the order: int64[n]."""
        cdef vector[int64_t] found
        self.order.all(self.less(), found)
        return int64s(found)

    def cut(self):
        """Return the numbers of all that wait now, to be asked for by and by."""
        cdef Cut cut = Cut.__new__(Cut)
        cut.waiting, cut.order = self, OrderCut(self.order)
        return cut

    def keep(self, const int64_t[::1] numbers not None):
        """Keep those rows alone that wait, and these; return which they were, rising: int64[n]."""
        cdef vector[int64_t] kept
        cdef int64_t n = numbers.shape[0]
        self.rows.check(numbers, 0)
        self.keep_some(&numbers[0] if n else NULL, n, kept)
        return int64s(kept)

    cdef vector[int64_t] keep_some(
        self, const int64_t* numbers, int64_t n, vector[int64_t]& kept
    ) except *:
        """Do so, with rows that are there; return the new number of each row, -1 for none."""
        cdef vector[int64_t] anew = self.order.add_to(numbers, n, self.rows.count, kept)
        self.rows.keep_at(kept.data(), kept.size())
        self.order.renumber(anew, kept.size())
        return anew

    @property
    def nbytes(self):
        """Bytes held beside the rows."""
        return self.order.nbytes()


cdef class Cut:
    """The numbers of rows that waited at one moment. No row may be dropped while some are left."""

    cdef Waiting waiting
    cdef OrderCut order

    @property
    def count(self):
        """How many are left."""
        return self.order.count

    def next(self, int64_t most):
        """Return the next numbers in the order, at most so many: int64[n]."""
        cdef vector[int64_t] found
        self.order.next(most, self.waiting.less(), found)
        return int64s(found)


cdef class Beside:
    """Columns of stored rows side by side: how batches are made of them."""

    # Invariant: of each column, `of` has the part that it is from, and `at` where it is there.

    def __init__(self, schema not None, list parts not None):
        """Make batches (Made) with a schema; parts: (rows, names of columns) each."""
        cdef Stored rows
        self.schema, self.parts = schema, [rows for rows, _ in parts]
        for number, (rows, names) in enumerate(parts):
            for name in names:
                self.of.push_back(number)
                self.at.push_back(<size_t>rows.places[name])
        self.picked.resize(len(self.parts))
        self.texts.resize(self.of.size())

    cdef Made made(self, const vector[const int64_t*]& numbers, int64_t count):
        """Return a batch of so many rows: of each part those of its numbers, of -1 nulls."""
        cdef vector[BatchColumn] columns
        cdef vector[int64_t] some
        cdef BatchColumn* one
        cdef StoredColumn* column
        cdef Stored rows
        cdef Made made = Made.__new__(Made, self.schema)
        cdef Exported other
        cdef list others = []
        cdef size_t i
        cdef int failed
        for i in range(numbers.size()):
            self.picked[i].pick(numbers[i], count)
        columns.resize(self.of.size())
        for i in range(self.of.size()):
            rows, one = self.parts[self.of[i]], &columns[i]
            column = &rows.columns[self.at[i]]
            one.kind, one.at = column.kind, self.picked[self.of[i]].places
            if one.kind == BATCH_MADE:
                some.assign(numbers[self.of[i]], numbers[self.of[i]] + count)
                others.append(Exported(rows.others[self.at[i]].take(int64s(some))))
                continue
            one.bits = column.words.data() if column.words.size() else NOTHING
            one.present = NULL
            if self.picked[self.of[i]].present.size():
                one.present = self.picked[self.of[i]].present.data()
            one.valid = column.valid.data() if column.valid.size() else NULL
            if one.kind == BATCH_TEXT:
                one.text_bytes = self.texts[i].point(
                    column[0], self.picked[self.of[i]], count, <const uint8_t*>NOTHING
                )
                if one.text_bytes > BATCH_TEXT_BYTES_MAX:
                    raise OverflowError("the texts of one batch exceed 2 GiB")
                one.texts, one.lengths = self.texts[i].texts.data(), self.texts[i].lengths.data()
        for i in range(columns.size()):
            if columns[i].kind == BATCH_MADE:
                other = others.pop(0)
                columns[i].made = other.whole
                other.whole.release = NULL      # it belongs to the batch now
        with nogil:
            failed = batch_make(columns.data(), <int>columns.size(), count, &made.whole)
        if failed:
            raise MemoryError
        return made


cpdef Made gathered(schema, int64_t count, list parts):
    """Return a batch (Made) of so many rows: columns of stored rows side by side.

    parts: (rows, names of columns, numbers int64[n]) each; of -1 there are nulls.
    """
    cdef vector[const int64_t*] at
    cdef const int64_t[::1] some
    cdef list alive = []
    for rows, _, numbers in parts:
        check_length(count, len(numbers))
        some = numbers
        (<Stored>rows).check(some, -1)
        alive.append(some)
        at.push_back(&some[0] if count else NULL)
    return (<Beside>Beside(schema, [(rows, names) for rows, names, _ in parts])).made(at, count)
