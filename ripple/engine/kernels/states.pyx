# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""The accumulators of one fold, compiled from its aggregates: their inputs and their results.

Sums and counts lie side by side in one record a slot, and those that take the same in are one. A
batch is added to all of them in one call, and its rows are read and shown in another. Other
aggregates (ordered ones, users' own) keep their state by slot and are called once a batch. The column
that shows results holds its values, and is never linked.
"""

from cpython.buffer cimport PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.integers cimport Counts
from ripple.model.aggregate.part cimport PLAIN, PRODUCT, SQUARE, How, KeptRows, Operand, Part, Read, Records, check_memory
from ripple.engine.kernels.columns cimport Columns
from ripple.model.keys.checked cimport check_length, check_range, check_slots
from ripple.model.keys.slots cimport SlotSet
from ripple.model.schema.exported cimport ArrowArray, values_of
from ripple.core.kept cimport Kept, kept_again, kept_bytes, kept_drop, print_of
from ripple.engine.graph.column cimport FLOAT, HELD, Column, Field, float_bits

from ripple.model.aggregate import AggregateError
from ripple.model.aggregate.parts import SummedState
from ripple.core.errors import is_of_machine
from ripple.model.expression.bound import Values
from ripple.engine.graph.column import InputColumn

cdef extern from *:
    """
    #define prefetch(address) __builtin_prefetch(address)
    """
    void prefetch(const void* address) noexcept nogil

cdef enum:
    CACHE_LINE_BYTES = 64

cdef int64_t CACHED_BYTES = 1 << 15  # so much is in a fast cache anyway

cdef dict NOTHING = {}
cdef dict HOWS = {"": PLAIN, "square": SQUARE, "product": PRODUCT}


cdef class States:
    # Invariant: all parts and all states have room for `room` slots.

    def __init__(self, aggregates, *, retractable, members=None):
        self.aggregates = list(aggregates)
        self.states = [one.bound.state(retractable=retractable) for one in self.aggregates]
        self.retractable = retractable
        self.inputs, self.nullable, self.parts = [], [], []
        self.others, self.one_rows, self.named, self.shown = [], [], [], []
        known = {}
        for aggregate, state in zip(self.aggregates, self.states, strict=True):
            at = [self.input_at(bound) for bound in aggregate.inputs]
            if isinstance(state, SummedState):
                self.compile(state, at, known)
                found = [(read, 0, 0) for read in state.reads()]
            else:
                found = [(None, len(self.others), k) for k in range(len(aggregate.bound.results))]
                self.others.append((aggregate, state, at))
                self.one_rows.append((state.one_row, self.columns_of(aggregate)))
            names = aggregate.aggregate.result_names(aggregate.name, aggregate.bound)
            self.named.extend(zip(names, found, strict=True))
        if members is not None:
            self.compile_one(members, PLAIN, (), self.nulls_at(()))
        self.records = Records(self.parts)
        looked_at = {at for nulls in self.nullable for at in nulls}
        self.summed = [
            bound if at in looked_at else None for at, bound in enumerate(self.inputs)
        ]
        self.columns = [
            bound.tree.value if bound is not None and bound.tree.operation == "col" else None
            for bound in self.summed
        ]
        self.computed = [bound for bound in self.inputs if bound.tree.operation != "col"]
        for at in range(len(self.inputs)):
            self.is_taken.push_back(
                any([self.adds[i].inputs[k] == at for i in range(self.adds.size()) for k in range(2)])
            )
        self.may_fail = bool(self.computed) or (
            self.retractable and any([state.may_refuse for _, state, _ in self.others])
        )

    cdef list columns_of(self, aggregate):
        """Return the columns that an aggregate by place takes as they came, None for any other."""
        if aggregate.aggregate.by_value or not aggregate.aggregate.ordered:
            return None
        trees = [bound.tree for bound in aggregate.inputs]
        return [one.value for one in trees] if all([one.operation == "col" for one in trees]) else None

    cdef int input_at(self, bound) except -1:
        for at, one in enumerate(self.inputs):
            if one.canonical == bound.canonical:
                return at
        self.inputs.append(bound)
        return len(self.inputs) - 1

    cdef int compile(self, state, list inputs, dict known) except -1:
        """List the inputs of a state's parts; existing parts with the same inputs become its."""
        nulls = tuple(sorted(set(inputs)))
        for name, (how, places) in state.adds.items():
            taken = tuple([inputs[place] for place in places])
            # Which rows are left out is part of an input, unless none can be.
            apart = tuple([at for at in nulls if self.may_be_null(at)])
            key = type(state.parts[name]), how, taken, apart
            if key in known:
                state.parts[name] = known[key]
                continue
            known[key] = state.parts[name]
            self.compile_one(state.parts[name], HOWS[how], taken, self.nulls_at(nulls))
        return 0

    cdef int nulls_at(self, tuple nulls) except -1:
        if nulls not in self.nullable:
            self.nullable.append(nulls)
        return self.nullable.index(nulls)

    cdef int compile_one(self, part, How how, tuple taken, int nulls) except -1:
        cdef Add add
        add.part, add.how, add.nulls = <PyObject*>part, how, nulls
        add.inputs[0] = taken[0] if len(taken) > 0 else -1
        add.inputs[1] = taken[1] if len(taken) > 1 else -1
        self.parts.append(part)
        self.adds.push_back(add)
        return 0

    cdef bint may_be_null(self, int at) except -1:
        from ripple.model.expression.typed import kind_of

        return kind_of(self.inputs[at].type)[1]

    cpdef reserve(self, int64_t slots):
        """Make room for slots below ``slots``."""
        if slots <= self.room:
            return
        self.records.resize(slots)
        for _, state, _ in self.others:
            state.resize(slots)
        self.room = slots

    def failed(self, rows):
        """Return the rows, with the reason, for which an input cannot be computed.

        If rows can be removed again, also those that a user's aggregate refuses to add to an empty
        state: whether a row is folded must not depend on which others are there.
        """
        failed = {}
        for bound in self.computed:
            failed.update(rows.evaluate(bound).failed)
        if self.retractable:
            for aggregate, state, _ in self.others:
                if state.may_refuse:
                    arguments = [rows.evaluate(bound) for bound in aggregate.inputs]
                    at, *values = without_nulls(np.arange(rows.count), arguments, None)
                    refused = state.refused(len(at), *values)
                    failed.update({int(at[row]): reason for row, reason in refused.items()})
        return dict(sorted(failed.items())) if failed else failed

    def add(self, slots not None, rows, index):
        """Add events to slots; ``index`` says which row each slot gets, None for the same one."""
        self.fold_checked(slots, rows, index, 1)
        self.add_to_others(slots, rows, index)

    cdef int add_found(self, const int64_t* slots, Py_ssize_t n, rows) except -1:
        """Add an event to each of the slots, for which there is room."""
        cdef Py_ssize_t at
        self.fold_in(slots, n, rows, NULL, 1)
        given = None
        for at in range(len(self.others)):
            if not self.took_columns(at, slots, n, rows):
                given = listed(slots, n) if given is None else given
                self.add_to_other(at, given, rows, None)
        return 0

    cdef bint took_columns(
        self, Py_ssize_t at, const int64_t* slots, Py_ssize_t n, rows
    ) except -1:
        """Add rows to a state with one row a slot, if it takes columns and they are as they came."""
        cdef Columns columns = rows.columns
        cdef const int64_t[::1] offsets, times_ns
        cdef const int64_t* times = NULL
        cdef char kind
        cdef Py_ssize_t f
        one, names = self.one_rows[at]
        if one is None or names is None or n == 0 or n != rows.count:
            return False
        self.taken.resize(len(names))
        self.kinds.resize(len(names))
        for f, name in enumerate(names):
            self.taken[f] = columns.whole(name, &kind)
            if self.taken[f] == NULL:
                return False
            self.kinds[f] = kind
        offsets = rows.offsets
        check_length(n, offsets.shape[0])
        if rows.times_ns is not None and not self.others[at][0].aggregate.by_offset:
            times_ns = rows.times_ns
            check_length(n, times_ns.shape[0])
            times = &times_ns[0]
        (<KeptRows>one).add_columns(
            slots, n, self.taken.data(), self.kinds.data(), times, &offsets[0]
        )
        return True

    cdef int add_to_others(self, slots, rows, index) except -1:
        cdef Py_ssize_t at
        for at in range(len(self.others)):
            self.add_to_other(at, slots, rows, index)
        return 0

    cdef int add_to_other(self, Py_ssize_t k, slots, rows, index) except -1:
        """Add events to the slots of a state that is no sum and no count."""
        aggregate, state, at = self.others[k]
        arguments = arguments_of(self, aggregate, at, rows)
        if aggregate.aggregate.ordered:
            times = np.zeros(rows.count, np.int64) if rows.times_ns is None else rows.times_ns
            arguments += [Values(np.asarray(times)), Values(rows.offsets)]
        state.add(*without_nulls(slots, arguments, index))
        return 0

    def change(self, slots not None, rows, *, remove):
        """Add rows to slots, or remove them; for aggregates that need no place in time."""
        self.fold_checked(slots, rows, None, -1 if remove else 1)
        for aggregate, state, at in self.others:
            arguments = arguments_of(self, aggregate, at, rows)
            (state.remove if remove else state.add)(*without_nulls(slots, arguments, None))

    cdef int fold_checked(self, const int64_t[::1] slots, rows, index, int64_t direction) except -1:
        """Add the values of rows to sums and counts, if slots and index are in range."""
        cdef const int64_t[::1] chosen
        cdef const int64_t* row = NULL
        cdef Py_ssize_t n = slots.shape[0]
        if n == 0:
            return 0
        check_slots(slots, self.room)
        if index is not None:
            chosen = index
            check_length(n, chosen.shape[0])
            check_slots(chosen, rows.count)
            row = &chosen[0]
        return self.fold_in(&slots[0], n, rows, row, direction)

    cdef int fold_in(
        self, const int64_t* slots, Py_ssize_t n, rows, const int64_t* row, int64_t direction
    ) except -1:
        """Add the values of rows to sums and counts; row: as ``fold_given`` has it."""
        cdef int64_t count = rows.count
        cdef Columns columns = rows.columns
        cdef vector[Operand] operands
        cdef vector[const uint8_t*] chosen
        cdef vector[Py_buffer] held
        cdef const ArrowArray* array
        cdef const uint8_t* mask
        cdef bint is_float = False
        cdef size_t i
        cdef int f
        cdef list masks = None
        if n == 0 or self.adds.size() == 0:
            return 0
        if row == NULL:
            check_length(n, count)
        operands.resize(len(self.inputs))
        try:
            for f in range(len(self.summed)):
                bound = self.summed[f]
                if bound is None:
                    continue
                array = NULL
                if self.columns[f] is not None:
                    array = columns.as_it_came(self.columns[f], &is_float)
                if array != NULL:
                    check_length(count, array.length)
                    operands[f].values = values_of(array, 8)
                    operands[f].is_integer = not is_float
                    continue
                if masks is None:
                    masks = [None] * len(self.inputs)
                values = rows.evaluate(bound)
                masks[f] = values.valid
                if self.is_taken[f]:
                    operands[f].values = hold(
                        held, values.values, 8 * count, &operands[f].is_integer
                    )
            for nulls in self.nullable:
                mask = NULL
                valid = None if masks is None else valid_of([masks[at] for at in nulls])
                if valid is not None:
                    mask = <const uint8_t*>hold(held, valid, count, NULL)
                chosen.push_back(mask)
            return self.fold_given(slots, n, row, operands, chosen, direction)
        finally:
            for i in range(held.size()):
                PyBuffer_Release(&held[i])

    cdef int fold_given(
        self,
        const int64_t* slots,
        Py_ssize_t n,
        const int64_t* row,
        const vector[Operand]& operands,
        const vector[const uint8_t*]& chosen,
        int64_t direction,
    ) except -1:
        """Add ``operands``, one for each input, in one loop for each sum and count.

        slots: in range. row: as Part.fold_in has it; its entries are in range. chosen: a mask for each of
        ``nullable``.
        """
        cdef Operand[2] two
        cdef const Add* add
        cdef size_t i
        cdef int k, failed = 0
        with nogil:
            self.fetch(slots, n)
            for i in range(self.adds.size()):
                add = &self.adds[i]
                for k in range(2):
                    if add.inputs[k] >= 0:
                        two[k] = operands[add.inputs[k]]
                failed |= (<Part>add.part).fold_in(
                    slots, n, row, chosen[add.nulls], two, add.how, direction
                )
        return check_memory(failed)

    cdef void fetch(self, const int64_t* slots, Py_ssize_t n) noexcept nogil:
        """Let the records of slots come into the cache, all of them at a time."""
        cdef int64_t stride = self.records.stride
        cdef const char* record
        cdef Py_ssize_t i
        if self.room * stride <= CACHED_BYTES:
            return
        for i in range(n):
            record = self.records.block + slots[i] * stride
            prefetch(record)
            if stride > CACHE_LINE_BYTES:
                prefetch(record + CACHE_LINE_BYTES)

    def results(self, slots):
        """Return (slots that can be read, every result column of them by name, why not the others).

        The reasons are by slot.
        """
        try:
            return slots, self.read(slots), {}
        except AggregateError:
            failed = {}
            for aggregate, state in zip(self.aggregates, self.states, strict=True):
                for slot, reason in unreadable(state, slots):
                    failed.setdefault(slot, f"{aggregate.name!r}: {reason}")
            kept = slots[np.isin(slots, list(failed), invert=True)]
            return kept, self.read(kept), failed

    cdef dict read(self, slots):
        others = [state.results(slots) for _, state, _ in self.others]
        return {
            name: Values(*(others[at][k] if read is None else (<Read>read).column(slots)))
            for name, (read, at, k) in self.named
        }

    def lay_out(self, names, typed):
        """Say which fields rows have, by name: results, or the other fields given to ``show``.

        typed: called with a field's position, values and mask, for results that are not compiled:
        returns them as the column takes them.
        """
        self.typed = typed
        results = dict(self.named)
        self.shown = [results.get(name, name) for name in names]

    def show(self, Column column not None, slots not None, dict beside):
        """Write the results of ``slots`` to a column, as they are.

        beside: the rows' other fields: int64[n] by name. Raises AggregateError, with nothing
        written, when one of them cannot be read.
        """
        cdef const int64_t[::1] at = slots
        if at.shape[0]:
            check_slots(at, self.room)
            column.cover(at)
            self.show_found(column, &at[0], at.shape[0], beside)

    def show_touched(self, Column column not None, SlotSet touched not None, Counts members=None):
        """Do the same with those slots of ``touched`` and empty it, if all of them have members.

        Returns whether they had.
        """
        cdef const int64_t* slots = touched._slots
        cdef Py_ssize_t i, n = touched.size
        check_range(slots, n, self.room)
        if members is not None:
            for i in range(n):
                if members.at(slots[i])[0] == 0:
                    return False
        if n:
            if column.room < self.room:
                column.reserve(column.space.capacity)
            check_range(slots, n, column.room)
            self.show_found(column, slots, n, NOTHING)
            touched.empty()
        return True

    cdef int show_found(
        self, Column column, const int64_t* slots, Py_ssize_t n, dict beside
    ) except -1:
        cdef const int64_t[::1] given
        cdef int64_t* bits
        cdef uint8_t* valid
        cdef uint8_t* present
        cdef Py_ssize_t i
        cdef int64_t new = 0
        cdef int f, fields = len(self.shown)
        self.fetch(slots, n)
        if <Py_ssize_t>self.bits.size() < n * fields:
            self.bits.resize(n * fields)
            self.valid.resize(n * fields)
        bits, valid = self.bits.data(), self.valid.data()
        at = None
        others = [None] * len(self.others)
        for i in range(len(self.others)):
            if self.one_rows[i][0] is None:
                at = listed(slots, n) if at is None else at
                others[i] = self.others[i][1].results(at)
        made = [None] * fields
        for f, source in enumerate(self.shown):
            if isinstance(source, str):
                given = beside[source]
                check_length(n, given.shape[0])
                for i in range(n):
                    bits[f * n + i] = given[i]
                memset(valid + f * n, 1, n)
            elif source[0] is not None:
                (<Read>source[0]).read(slots, n, bits + f * n, valid + f * n)
            elif others[source[1]] is None:
                (<KeptRows>self.one_rows[source[1]][0]).show(
                    slots, n, source[2], bits + f * n, valid + f * n
                )
            else:
                made[f] = self.typed(f, *others[source[1]][source[2]])
        if isinstance(column, InputColumn):
            column.graph.refuse_while_busy("write a column")
        column.touch_all(slots, n)
        present = column.present
        for i in range(n):
            new += not present[slots[i]]
            present[slots[i]] = 1
        column.row_count += new
        for f in range(fields):
            if made[f] is not None:
                column.write_field(f, at, made[f][0], made[f][1])
            elif column.fields[f].kind == HELD:
                write_texts(&column.fields[f], slots, n, bits + f * n, valid + f * n)
            else:
                write_bits(&column.fields[f], slots, n, bits + f * n, valid + f * n)
        if isinstance(column, InputColumn):
            column.graph.mark_dirty(column)
        return 0

    def merge(self, into, source):
        """Move what the source slots hold to their partners."""
        for part in self.parts:
            part.merge(into, source)
        for _, state, _ in self.others:
            state.merge(into, source)

    def clear(self, slots):
        """Empty the slots."""
        for part in self.parts:
            part.clear(slots)
        for _, state, _ in self.others:
            state.clear(slots)

    def dump(self, slots):
        """Return the accumulators as Arrow columns named ``aggregate.part``."""
        return {
            f"{aggregate.name}.{part}": array
            for aggregate, state in zip(self.aggregates, self.states, strict=True)
            for part, array in state.dump(slots).items()
        }

    def dump_partial(self, slots):
        """Return what these slots contribute to a whole: as States that are not retractable dump.

        Of aggregates that decompose, in the form that ``load`` of such States takes.
        """
        return {
            f"{aggregate.name}.{part}": array
            for aggregate, state in zip(self.aggregates, self.states, strict=True)
            for part, array in state.dump_partial(slots).items()
        }

    def load(self, slots, table):
        """Take over what ``dump`` wrote."""
        for aggregate, state in zip(self.aggregates, self.states, strict=True):
            prefix = f"{aggregate.name}."
            state.load(
                slots,
                {
                    name.removeprefix(prefix): table.column(name).combine_chunks()
                    for name in table.column_names
                    if name.startswith(prefix)
                },
            )

    @property
    def nbytes(self):
        """Bytes held."""
        others = sum([state.nbytes for _, state, _ in self.others])
        between = self.records.stride - sum([(<Part>part).width() for part in self.parts])
        return others + sum([part.nbytes for part in self.parts]) + between * self.room


cdef object listed(const int64_t* slots, Py_ssize_t n):
    made = np.empty(n, np.int64)
    cdef int64_t[::1] out = made
    if n:
        memcpy(&out[0], slots, n * sizeof(int64_t))
    return made


cdef const void* hold(
    vector[Py_buffer]& held, array, int64_t nbytes, bint* is_integer
) except? NULL:
    """Return where an array's values are, which stay there until the buffer is released."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_FORMAT)
    held.push_back(buffer)
    if is_integer != NULL:
        is_integer[0] = buffer.format[0] != b"d"
    if buffer.len != nbytes:
        raise ValueError(f"a column of {buffer.len} bytes where there are rows for {nbytes}")
    return buffer.buf


cdef int write_bits(
    Field* field, const int64_t* slots, Py_ssize_t n, const int64_t* bits, const uint8_t* valid
) except -1:
    """Write one field of rows: the value's 64 bits, zero where it is null."""
    cdef int64_t* into = field.bits
    cdef Py_ssize_t i
    cdef uint8_t all_valid = 1
    if field.kind == FLOAT:
        for i in range(n):
            into[slots[i]] = float_bits((<const double*>bits)[i]) & -<int64_t>valid[i]
    else:
        for i in range(n):
            into[slots[i]] = bits[i] & -<int64_t>valid[i]
    if field.nullable:
        for i in range(n):
            field.valid[slots[i]] = valid[i]
        return 0
    for i in range(n):
        all_valid &= valid[i]
    if not all_valid:
        raise ValueError("a field that cannot be null is")
    return 0


cdef int write_texts(
    Field* field, const int64_t* slots, Py_ssize_t n, const int64_t* addresses, const uint8_t* valid
) except -1:
    """Hold texts that a state keeps, no address for null, here as well."""
    cdef Py_ssize_t i
    cdef int64_t slot
    cdef Kept* kept
    for i in range(n):
        slot, kept = slots[i], <Kept*>addresses[i]
        if field.nullable:
            field.valid[slot] = valid[i]
        elif not valid[i]:
            raise ValueError("a field that cannot be null is")
        if kept != field.held[slot]:
            kept_drop(field.held[slot])
            field.held[slot] = kept_again(kept)
            field.bits[slot] = 0 if kept == NULL else print_of(kept_bytes(kept), kept.size)
    return 0


def unreadable(state, slots):
    """Yield the slots with results that raise, and the errors: by halves, for they are few."""
    try:
        state.results(slots)
    except AggregateError as error:
        if is_of_machine(error):
            raise
        if len(slots) == 1:
            yield int(slots[0]), str(error)
            return
        middle = len(slots) // 2
        yield from unreadable(state, slots[:middle])
        yield from unreadable(state, slots[middle:])


cdef object valid_of(list masks):
    """Return which rows are in all masks, bool[n]; None for all, as in a mask."""
    valid = None
    for mask in masks:
        if mask is not None:
            valid = mask if valid is None else valid & mask
    return valid


cdef list without_nulls(slots, list arguments, index):
    """Return slots and values for the rows in which no argument is null."""
    valid = valid_of([argument.valid for argument in arguments])
    if valid is not None and valid.all():
        valid = None
    values = [argument.values for argument in arguments]
    if index is not None:
        values = [take(column, index) for column in values]
        valid = None if valid is None else valid[index]
    if valid is not None:
        slots = slots[valid]
        values = [take(column, valid) for column in values]
    return [slots, *values]


cdef list arguments_of(States states, aggregate, list at, rows):
    """Return the inputs of an aggregate; those that a row need not have hold their nulls."""
    arguments = [rows.evaluate(states.inputs[place]) for place in at]
    for k in range(aggregate.aggregate.needed, len(aggregate.aggregate.inputs)):
        if arguments[k].valid is not None:
            arguments[k] = Values(with_nulls(arguments[k].values, arguments[k].valid))
    return arguments


cdef object with_nulls(column, valid):
    """Return a column with a null where ``valid`` is false, as an Arrow array or a list."""
    if isinstance(column, list):
        return [value if there else None for value, there in zip(column, valid.tolist())]
    if isinstance(column, pa.Array):
        if column.null_count:
            return column
        import pyarrow.compute as pc  # slow to import, and seldom needed


        return pc.if_else(pa.array(valid), column, pa.scalar(None, column.type))
    return pa.array(column, mask=~valid)


cdef object take(column, index):
    if isinstance(column, pa.Array):
        return column.filter(pa.array(index)) if index.dtype == bool else column.take(index)
    if isinstance(column, list):
        return [column[i] for i in (np.flatnonzero(index) if index.dtype == bool else index)]
    return column[index]
