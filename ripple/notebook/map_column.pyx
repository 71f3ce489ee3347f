# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""A column computed from columns of the same keys, and cells: only for the slots that changed.

Values are read where those columns have them: a notebook has no linked ones.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from ripple.model.expression.program cimport INPUTS_MAX, REGISTERS_MAX, Cell as Register, Program
from ripple.engine.graph.cell cimport Cell
from ripple.engine.graph.column cimport BOOL, FLOAT, INT, Column, Field, float_bits, saved_at, seen
from ripple.notebook.directory cimport Directory
from ripple.notebook.keyed cimport KeyedColumn
from ripple.engine.graph.node cimport COMPUTING, STABILIZING, Graph, Node, Phase
from ripple.model.keys.slots cimport SlotSet

from ripple.core.errors import NodeError
from ripple.model.expression.program import FAILURES, NULL_STATE
from ripple.model.schema.types import Bool, Float, Int64
from ripple.model.schema.values import value_of

cdef enum:
    CHUNK = 256

cdef dict CELL_TYPES = {FLOAT: Float(), INT: Int64(), BOOL: Bool()}
cdef dict INPUT_KINDS = {"float": FLOAT, "int": INT, "bool": BOOL}
cdef int NULL_ROW = NULL_STATE


@cython.final
cdef class MapColumn(KeyedColumn):
    """One row per key that has a row in all parent columns."""

    # Invariants: a slot that changed in a parent since this column's rows were last brought up to
    # date is in `due`, or `everything` is set; both are only emptied by a recomputation that
    # succeeded.

    def __init__(
        self, Graph graph not None, list parents not None, row_type, function, name=None,
        program=None, inputs=(), masked=False, blamed=None,
    ):
        """Add the column to ``graph``; ripple.notebook.columns says what the arguments are made of.

        function: (per parent column its gathered fields, values of the cells, n) to (values per
        field, valid per field). program: the same, compiled, with inputs as (kind, column or -1,
        field or cell) each.
        """
        cdef int k
        self.columns = [parent for parent in parents if isinstance(parent, KeyedColumn)]
        self.cells = [parent for parent in parents if not isinstance(parent, KeyedColumn)]
        self.function = function
        self.program = program
        self.masked = masked
        self.blamed = blamed
        self.due = SlotSet()
        self.everything = True
        self.input_count = len(inputs)
        self.inputs = <Input*>calloc(self.input_count + 1, sizeof(Input))
        if not self.inputs:
            raise MemoryError
        for k, (kind, column, place) in enumerate(inputs):
            self.inputs[k] = Input(column, place, INPUT_KINDS[kind], NULL)
            if column >= 0:
                self.inputs[k].source = <PyObject*>self.columns[column]
        read = {column for _, column, _ in inputs}
        self.is_scalar = (
            program is not None and self.program.is_scalar and read == set(range(len(self.columns)))
        )
        self.configure(graph, parents, (<KeyedColumn>self.columns[0]).directory, row_type, name)
        self.start()

    def __dealloc__(self):
        free(self.inputs)

    cdef int start(self) except -1:
        """Compute all rows, or have the running stabilize do it in the node's turn.

        Raises NodeError, with the node out of the graph again, when the function fails.
        """
        cdef Graph graph = self.graph
        cdef Phase phase = graph.phase
        if phase == STABILIZING:
            return graph.mark_dirty(self)
        graph.phase = COMPUTING
        try:
            self.recompute()
        except BaseException as error:
            text = f"the function of the new {self!r} raised {type(error).__name__}: {error}"
            graph.detach(self)
            if not isinstance(error, Exception):
                raise
            raise NodeError(text) from error
        finally:
            graph.phase = phase
        self.settled()
        return 0

    cdef int parent_changed(self, Node parent) except -1:
        cdef Column column
        cdef int64_t i
        if self.everything:
            return 0
        if isinstance(parent, Column):
            column = <Column>parent
            if self.due._room < self.directory.index.capacity:
                self.due.reserve(self.directory.index.capacity)
            for i in range(column.changed_count):
                self.due.push(column.touched._slots[column.changed[i]])
        else:
            self.everything = True
        return 0

    cdef bint row_changed(self, int64_t slot, int64_t was, int64_t now) except -1:
        cdef Field* field = &self.fields[0]
        cdef int64_t old, new
        cdef bint followed = False
        if self.everything or self.position >= 0 or self.is_output or len(self.dependents) != 1:
            return False
        if slot >= self.room or not self.present[slot] or field.nullable:
            return False
        if not self.compute_row(slot, &new):
            return False
        old = field.bits[slot]
        if old == new:
            self.count_cutoff()
        else:
            field.bits[slot] = new
            try:
                followed = (<Node>self.dependents[0]).row_changed(slot, old, new)
            finally:
                if not followed:
                    field.bits[slot] = old
            if not followed:
                return False
            self.count_change()
            self.rows_out += 1
        self.rows_in += 1
        return True

    cdef bint recompute(self) except -1:
        cdef bint changed
        if self.everything:
            self.make_everything_due()
        if self.room < self.directory.index.capacity:
            self.reserve(self.directory.index.capacity)
        if self.program is not None:
            self.run_program()
        else:
            self.run_function()
        self.due.empty()
        self.everything = False
        changed = self.settle_changes()
        if changed and self.is_output:
            self.note_report()
        if not changed:
            self.settled()
        return changed

    cdef void settled(self) noexcept:
        KeyedColumn.settled(self)
        if self.room == 0 and self.due.size == 0:
            self.due.shed()

    cdef int removed(self) except -1:
        self.function = None
        self.columns = []
        self.cells = []
        self.due.shed()
        return KeyedColumn.removed(self)

    cdef bint alive(self, int64_t slot) noexcept:
        """Return whether all parent columns have a row at ``slot``."""
        cdef Py_ssize_t k
        for k in range(len(self.columns)):
            if not seen(<Column>self.columns[k], slot):
                return False
        return True

    cdef int make_everything_due(self) except -1:
        cdef int64_t slot
        self.due.reserve(self.directory.index.capacity)
        for slot in range(self.directory.index.capacity):
            if self.alive(slot) or (slot < self.room and self.present[slot]):
                self.due.push(slot)
        return 0

    # --- the compiled way: chunks of gathered inputs, nothing written before all are computed ---

    cdef int run_program(self) except -1:
        cdef int64_t few_cells[INPUTS_MAX]
        cdef uint8_t few_masks[INPUTS_MAX]
        cdef int64_t one
        cdef uint8_t state = 0
        cdef int64_t* block
        cdef int64_t* live
        cdef int64_t* out
        cdef uint8_t* states
        cdef int64_t i, n = 0, rows, width = max(1, self.input_count) * CHUNK
        if self.due.size == 1:
            i = self.due._slots[0]
            if self.compute_row(i, &one):
                self.store(i, one, True)
                return 0
            if self.alive(i):
                self.run_chunk(&i, 1, few_cells, few_masks, &one, &state)
                self.store(i, one, state == 0)
            elif self.present[i]:
                self.touch(i)
                self.erase_one(i)
            return 0
        block = <int64_t*>malloc((2 * self.due.size + width) * 8 + self.due.size + width)
        if not block:
            raise MemoryError
        live = block
        out = live + self.due.size
        states = <uint8_t*>(out + self.due.size + width)
        try:
            for i in range(self.due.size):
                if self.alive(self.due._slots[i]):
                    live[n] = self.due._slots[i]
                    n += 1
            for i in range(0, n, CHUNK):
                rows = n - i if n - i < CHUNK else CHUNK
                self.run_chunk(
                    live + i, rows, out + self.due.size, states + self.due.size, out + i, states + i
                )
            for i in range(n):
                self.store(live[i], out[i], states[i] == 0)
            if n < self.due.size:
                for i in range(self.due.size):
                    one = self.due._slots[i]
                    if self.present[one] and not self.alive(one):
                        self.touch(one)
                        self.erase_one(one)
        finally:
            free(block)
        return 0

    cdef bint compute_row(self, int64_t slot, int64_t* bits) noexcept:
        """Compute one row from values that are there, in registers; False if it is not so simple."""
        cdef Register row[REGISTERS_MAX]
        cdef const Field* field
        cdef PyObject* column
        cdef int k
        if not self.is_scalar:
            return False
        for k in range(self.input_count):
            column = self.inputs[k].source
            if (<Column>column).position >= 0 or slot >= (<Column>column).room:
                return False
            field = (<Column>column).fields + self.inputs[k].place
            if not (<Column>column).present[slot] or field.nullable and not field.valid[slot]:
                return False
            row[k].i = field.bits[slot]
        if not self.program.evaluate_row(row):
            return False
        bits[0] = row[self.program.result].i
        if self.fields[0].kind == FLOAT:
            bits[0] = float_bits(row[self.program.result].f)
        return True

    cdef int run_chunk(
        self, const int64_t* slots, Py_ssize_t n, int64_t* cells, uint8_t* masks, int64_t* out,
        uint8_t* states
    ) except -1:
        """Compute n rows' bits and whether each is null; raises for a row that failed."""
        cdef const void* values[INPUTS_MAX]
        cdef const uint8_t* valid[INPUTS_MAX]
        cdef Column column
        cdef Field* field
        cdef int64_t* into
        cdef uint8_t* flags
        cdef int64_t bits, saved
        cdef double number
        cdef Py_ssize_t i
        cdef int k, status
        for k in range(self.input_count):
            into = cells + k * n
            flags = masks + k * n
            values[k] = into
            valid[k] = NULL
            if self.inputs[k].column < 0:
                bits = self.cell_bits(k)
                for i in range(n):
                    into[i] = bits
            else:
                column = <Column>self.columns[self.inputs[k].column]
                field = &column.fields[self.inputs[k].place]
                if column.position < 0:
                    for i in range(n):
                        into[i] = field.bits[slots[i]]
                else:
                    for i in range(n):
                        saved = saved_at(column, slots[i])
                        into[i] = field.bits[slots[i]] if saved < 0 else field.old_bits[saved]
                if field.nullable:
                    valid[k] = flags
                    for i in range(n):
                        saved = saved_at(column, slots[i])
                        flags[i] = field.valid[slots[i]] if saved < 0 else field.old_valid[saved]
            if self.inputs[k].kind == BOOL:
                for i in range(n):  # in place: byte i is never ahead of cell i
                    bits = into[i]
                    (<uint8_t*>into)[i] = bits != 0
        status = self.program.evaluate(values, valid if self.masked else NULL, NULL, n, out, states)
        if status < 0:
            raise MemoryError
        if status == 0:
            for i in range(n):
                states[i] = 0
        else:
            for i in range(n):
                if states[i] > NULL_ROW:
                    self.raise_failure(slots[i], states[i])
        if self.fields[0].kind == BOOL:
            for i in range(n - 1, -1, -1):
                bits = (<uint8_t*>out)[i]
                out[i] = bits
        elif self.fields[0].kind == FLOAT:
            for i in range(n):
                if states[i] == 0:
                    memcpy(&number, &out[i], 8)
                    out[i] = float_bits(number)
        return 0

    def cell_bits(self, int k):
        """Return the 64 bits of a cell's value; raises SchemaError if its type changed."""
        cdef Cell cell = <Cell>self.cells[self.inputs[k].place]
        kind = self.inputs[k].kind
        value = value_of(cell.current, CELL_TYPES[kind], f"the value of {cell!r}")
        return float_bits(value) if kind == FLOAT else int(value)

    cdef int store(self, int64_t slot, int64_t bits, bint valid) except -1:
        """Put a row of one field."""
        cdef Field* field = &self.fields[0]
        self.touch(slot)
        if not self.present[slot]:
            self.present[slot] = 1
            self.row_count += 1
        field.bits[slot] = bits
        if field.nullable:
            field.valid[slot] = valid
        return 0

    cdef int raise_failure(self, int64_t slot, int state) except -1:
        key = self.directory.key_at(slot)
        raise ArithmeticError(f"{FAILURES[state]} in {self.blamed!r} for the key {key!r}")

    # --- the other way: arrays to the function ---

    cdef int run_function(self) except -1:
        cdef int64_t i, slot, n = 0
        slots = np.empty(self.due.size, np.int64)
        cdef int64_t[::1] live = slots
        for i in range(self.due.size):
            if self.alive(self.due._slots[i]):
                live[n] = self.due._slots[i]
                n += 1
        if n:
            values, valid = self.evaluate(slots[:n])
            self.write_rows(slots[:n], values, valid)
        for i in range(self.due.size):
            slot = self.due._slots[i]
            if self.present[slot] and not self.alive(slot):
                self.touch(slot)
                self.erase_one(slot)
        return 0

    cdef object evaluate(self, slots):
        """Return (values per field, valid per field) of rows at slots where all parents have one."""
        cdef KeyedColumn column
        cdef Cell cell
        gathered = [column.gathered(slots) for column in self.columns]
        return self.function(gathered, [cell.current for cell in self.cells], len(slots))

    cpdef str kind(self):
        return "column_map"

    cpdef object check(self):
        """Raise AssertionError unless every row follows from its parents' rows, to the bit."""
        cdef int64_t slot
        cdef int f
        Column.check(self)
        self.due.check_invariants()
        assert self.due.size == 0 and not self.everything, f"{self!r} forgot rows that are due"
        cdef Column again = Column(Graph(), (), self.space, self.row_type.storage)
        alive = [slot for slot in range(self.directory.index.capacity) if self.alive(slot)]
        slots = np.array(alive, np.int64)
        again.reserve(self.directory.index.capacity)
        if alive:
            values, valid = self.evaluate(slots)
            again.write_rows(slots, values, valid)
        for slot in range(max(self.room, again.room)):
            assert seen(self, slot) == seen(again, slot), (
                f"{self!r} has a row too many or too few at slot {slot}"
            )
            if not seen(self, slot):
                continue
            for f in range(self.field_count):
                assert self.fields[f].bits[slot] == again.fields[f].bits[slot] and (
                    not self.fields[f].nullable
                    or self.fields[f].valid[slot] == again.fields[f].valid[slot]
                ), f"{self!r} holds {self.row_at(slot, -1)!r} for {self.directory.key_at(slot)!r}"
