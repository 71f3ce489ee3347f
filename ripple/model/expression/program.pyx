# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Expressions over numbers and bools as straight-line code on chunks of rows.

A register machine: inputs, then constants, then temporaries, each a chunk of 8-byte cells with a
state per row. An instruction is one loop over the chunk, so that its dispatch is paid once per 256
rows and its operands stay in the nearest cache, and no fused or reordered arithmetic can occur.
States are only looked at from the first row in a chunk on that is null or failed.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.math cimport NAN, ceil, copysign, fabs, floor, fmod, isfinite, rint, signbit, sqrt
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from *:
    """
    static inline int multiply_overflows(long long a, long long b, long long *out) {
        return __builtin_mul_overflow(a, b, out);
    }
    """
    const int64_t INT64_MIN
    bint multiply_overflows(long long a, long long b, long long* out) noexcept nogil

cdef enum:
    CHUNK = 256
    STACK_CELLS = 640       # a call that needs no more allocates nothing

# The states of a row. Their order is their rank: a strict operation has the worst of its operands'.
cdef enum:
    GOOD = 0
    NULL_ROW = 1
    OVERFLOW = 2
    DIVISION = 3
    CONVERSION = 4
    # Of functions, which the machine is given.
    NOT_NUMBER = 5
    LONG_TEXT = 6
    TOO_MANY_DIGITS = 7
    NOT_JSON = 8
    NOT_DATE = 9
    NOT_TIME = 10
    NOT_UUID = 11
    NOT_ENCODED = 12

NULL_STATE, OVERFLOWN, ZERO_DIVISION = NULL_ROW, OVERFLOW, DIVISION
NO_NUMBER, TOO_LONG, NO_ROOM, NO_JSON = NOT_NUMBER, LONG_TEXT, TOO_MANY_DIGITS, NOT_JSON
NO_DATE, NO_TIME = NOT_DATE, NOT_TIME
NO_UUID, NO_BYTES = NOT_UUID, NOT_ENCODED
FAILURES = {
    OVERFLOW: "integer overflow",
    DIVISION: "integer division by zero",
    CONVERSION: "a float that has no 64-bit integer",
    NOT_NUMBER: "a text that is not a number",
    LONG_TEXT: "a text of more than 1 MiB",
    TOO_MANY_DIGITS: "a value that does not fit the rp.Decimal",
    NOT_JSON: "a text that is not JSON, or has over 64 levels",
    NOT_DATE: "a text that is no date of ISO 8601 such as 2026-01-31",
    NOT_TIME: "a text that is no time of ISO 8601 such as 2026-01-31T09:30:00Z",
    NOT_UUID: "a text that is no UUID such as 123e4567-e89b-12d3-a456-426614174000",
    NOT_ENCODED: "a text that is not of the encoding",
}

cdef enum:
    KIND_FLOAT = 0
    KIND_INT = 1
    KIND_BOOL = 2

_KINDS = {"float": KIND_FLOAT, "int": KIND_INT, "bool": KIND_BOOL}
_DTYPES = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))
cdef object FLOAT64 = _DTYPES[0], INT64 = _DTYPES[1], BOOL = _DTYPES[2], empty = np.empty

cdef enum Opcode:
    FADD, FSUB, FMUL, FDIV, FFLOORDIV, FMOD, FLEAST, FGREATEST
    FNEG, FABS, FSQRT, FFLOOR, FCEIL, FROUND, FISNAN, FISFINITE
    FEQ, FNE, FLT, FLE
    IADD, ISUB, IMUL, IFLOORDIV, IMOD, ILEAST, IGREATEST, INEG, IABS
    IEQ, INE, ILT, ILE
    INT_FLOAT_SIGN, FLOAT_INT_SIGN
    INT_TO_FLOAT, FLOAT_TO_INT
    AND, OR, NOT
    IS_NULL, FILL_NULL, WHEN

OPCODES = {
    "FADD": FADD, "FSUB": FSUB, "FMUL": FMUL, "FDIV": FDIV, "FFLOORDIV": FFLOORDIV, "FMOD": FMOD,
    "FLEAST": FLEAST, "FGREATEST": FGREATEST, "FNEG": FNEG, "FABS": FABS, "FSQRT": FSQRT,
    "FFLOOR": FFLOOR, "FCEIL": FCEIL, "FROUND": FROUND, "FISNAN": FISNAN, "FISFINITE": FISFINITE,
    "FEQ": FEQ, "FNE": FNE, "FLT": FLT, "FLE": FLE,
    "IADD": IADD, "ISUB": ISUB, "IMUL": IMUL, "IFLOORDIV": IFLOORDIV, "IMOD": IMOD,
    "ILEAST": ILEAST, "IGREATEST": IGREATEST, "INEG": INEG, "IABS": IABS,
    "IEQ": IEQ, "INE": INE, "ILT": ILT, "ILE": ILE,
    "INT_FLOAT_SIGN": INT_FLOAT_SIGN, "FLOAT_INT_SIGN": FLOAT_INT_SIGN,
    "INT_TO_FLOAT": INT_TO_FLOAT, "FLOAT_TO_INT": FLOAT_TO_INT,
    "AND": AND, "OR": OR, "NOT": NOT,
    "IS_NULL": IS_NULL, "FILL_NULL": FILL_NULL, "WHEN": WHEN,
}

# The operations of one row without nulls; rows that fail there are left to the loops.
cdef set SCALAR = {
    FADD, FSUB, FMUL, FDIV, FNEG, FABS, FSQRT, FISNAN, FISFINITE, FEQ, FNE, FLT, FLE,
    IADD, ISUB, IMUL, IEQ, INE, ILT, ILE, INT_TO_FLOAT, AND, OR, NOT, WHEN,
}

# Invariant: where clean is set every state is GOOD and the states are not written.
ctypedef struct Register:
    Cell* cells
    uint8_t* states
    bint clean


cdef class Program:
    """Compiled straight-line code; immutable, so that any number of threads may run it.

    input_kinds: "float", "int" or "bool" for each input. constants: (kind, value) each, None for
    null. code: (opcode name, out, a, b, c) each, registers being inputs, constants, temporaries.
    Raises ValueError for code that names registers which are not there.
    """

    def __cinit__(self, tuple input_kinds, tuple constants, tuple code, int registers, int result,
                  str result_kind):
        self.input_kinds, self.result_kind = input_kinds, result_kind
        self.inputs, self.constants = len(input_kinds), len(constants)
        self.length, self.registers, self.result = len(code), registers, result
        self.kind = _KINDS[result_kind]
        if self.inputs > INPUTS_MAX or registers > REGISTERS_MAX:
            raise ValueError(f"{self.inputs} inputs or {registers} registers are too many")
        self.kinds = <int*>PyMem_Calloc(self.inputs + 1, sizeof(int))
        self.constant = <Constant*>PyMem_Calloc(self.constants + 1, sizeof(Constant))
        self.code = <Instruction*>PyMem_Calloc(self.length + 1, sizeof(Instruction))
        if self.kinds == NULL or self.constant == NULL or self.code == NULL:
            raise MemoryError
        cdef int k
        for k, kind in enumerate(input_kinds):
            self.kinds[k] = _KINDS[kind]
        for k, (kind, value) in enumerate(constants):
            self.constant[k].state = NULL_ROW if value is None else GOOD
            if value is not None and kind == "float":
                self.constant[k].cell.f = value
            elif value is not None:
                self.constant[k].cell.i = value
        for k, (opcode, out, a, b, c) in enumerate(code):
            if not all(0 <= register < registers for register in (out, a, b, c, result)):
                raise ValueError(f"instruction {k} ({opcode}) names a register that is not there")
            self.code[k] = Instruction(OPCODES[opcode], out, a, b, c)
        self.is_scalar = (
            all(OPCODES[opcode] in SCALAR for opcode, *_ in code)
            and all(value is not None for _, value in constants)
        )

    def __reduce__(self):
        """Pickle it as its constructor's arguments, each constant by its bits."""
        names = {code: name for name, code in OPCODES.items()}
        constants = [
            ("int", None if self.constant[k].state == NULL_ROW else self.constant[k].cell.i)
            for k in range(self.constants)
        ]
        code = [
            (names[self.code[k].opcode], self.code[k].out, self.code[k].a, self.code[k].b,
             self.code[k].c)
            for k in range(self.length)
        ]
        return Program, (self.input_kinds, tuple(constants), tuple(code), self.registers,
                         self.result, self.result_kind)

    def __dealloc__(self):
        PyMem_Free(self.kinds)
        PyMem_Free(self.constant)
        PyMem_Free(self.code)

    def run(self, inputs, Py_ssize_t n, valid=None):
        """Evaluate rows 0..n-1 of the arrays; returns (values, states).

        inputs: one C-contiguous float64, int64 or bool array for each input, at least n long.
        valid: None, or for each input None or a bool array, False for null; its bytes may also be
        keys of FAILURES, for rows that failed before. states: None when all
        rows are good, else uint8[n]: 0 good, 1 null, more a key of FAILURES.
        """
        return self._run(inputs, valid, None, n)

    def run_slots(self, inputs, slots, valid=None):
        """Evaluate row j on element slots[j] of each array, for int64 slots; returns as run.

        Raises IndexError for a slot that is outside of an array.
        """
        return self._run(inputs, valid, slots, len(slots))

    def run_each(self, inputs, slots):
        """As run_slots without nulls, one call of the C entry a slot, as a column node does."""
        if not self.inputs:
            raise ValueError("a constant has no slots")
        whole, _ = self._run(inputs, None, slots, len(slots))
        cdef Py_ssize_t j, n = len(slots)
        cdef Py_buffer views[INPUTS_MAX]
        cdef const void* pointers[INPUTS_MAX]
        cdef int opened = 0
        cdef const int64_t[::1] slot = slots
        cdef uint8_t[::1] out = whole.view(np.uint8)
        cdef uint8_t state
        cdef Py_ssize_t width = whole.itemsize
        try:
            for array in inputs:
                PyObject_GetBuffer(array, &views[opened], PyBUF_SIMPLE)
                pointers[opened] = views[opened].buf
                opened += 1
            with nogil:
                for j in range(n):
                    self.evaluate(pointers, NULL, &slot[j], 1, &out[j * width], &state)
        finally:
            for j in range(opened):
                PyBuffer_Release(&views[j])
        return whole

    cdef object _run(self, object inputs, object valid, object slots, Py_ssize_t n):
        cdef Py_buffer views[2 * INPUTS_MAX + 3]
        cdef const void* values[INPUTS_MAX]
        cdef const uint8_t* masks[INPUTS_MAX]
        cdef int opened = 0, k, status = 0
        cdef Py_ssize_t shortest = -1, length
        cdef const int64_t* at = NULL
        cdef bint masked = valid is not None
        cdef void* target
        if len(inputs) != self.inputs or (masked and len(valid) != self.inputs):
            raise ValueError(f"the program takes {self.inputs} inputs, not {len(inputs)}")
        cdef uint8_t few[CHUNK]
        cdef uint8_t* marks = few
        out = empty(n, FLOAT64 if self.kind == KIND_FLOAT else INT64 if self.kind == KIND_INT
                    else BOOL)
        states = None
        try:
            for k in range(self.inputs):
                length = _open(inputs[k], self.kinds[k], views, &opened)
                values[k] = views[opened - 1].buf
                shortest = length if shortest < 0 or length < shortest else shortest
                masks[k] = NULL
                if masked and valid[k] is not None:
                    length = _open(valid[k], KIND_BOOL, views, &opened)
                    masks[k] = <const uint8_t*>views[opened - 1].buf
                    shortest = length if length < shortest else shortest
            if slots is not None:
                _open(slots, KIND_INT, views, &opened)
                at = <const int64_t*>views[opened - 1].buf
                _check_slots(at, n, shortest)
            elif 0 <= shortest < n:
                raise ValueError(f"an input has {shortest} rows, {n} are to be evaluated")
            PyObject_GetBuffer(out, &views[opened], PyBUF_SIMPLE | PyBUF_WRITABLE)
            opened += 1
            target = views[opened - 1].buf
            if n <= CHUNK:
                status = self.evaluate(values, masks if masked else NULL, at, n, target, marks)
                if status > 0:
                    states = np.frombuffer(marks[:n], np.uint8)
            else:
                states = empty(n, BOOL)
                PyObject_GetBuffer(states, &views[opened], PyBUF_SIMPLE | PyBUF_WRITABLE)
                opened += 1
                marks = <uint8_t*>views[opened - 1].buf
                with nogil:
                    status = self.evaluate(values, masks if masked else NULL, at, n, target, marks)
                states = states.view(np.uint8) if status > 0 else None
        finally:
            for k in range(opened):
                PyBuffer_Release(&views[k])
        if status < 0:
            raise MemoryError
        return out, states

    cdef int evaluate(self, const void* const* values, const uint8_t* const* valid,
                      const int64_t* slots, Py_ssize_t n, void* out,
                      uint8_t* states) noexcept nogil:
        cdef Cell row[REGISTERS_MAX]
        if n == 1 and self.is_scalar and valid == NULL:
            self.load_row(row, values, 0 if slots == NULL else slots[0])
            if self.evaluate_row(row):
                if self.kind == KIND_BOOL:
                    (<uint8_t*>out)[0] = <uint8_t>row[self.result].i
                else:
                    (<Cell*>out)[0] = row[self.result]
                return 0
        return self.evaluate_rows(values, valid, slots, n, out, states)

    cdef void load_row(
        self, Cell* row, const void* const* values, int64_t slot
    ) noexcept nogil:
        cdef int k
        for k in range(self.inputs):
            if self.kinds[k] == KIND_BOOL:
                row[k].i = (<const uint8_t*>values[k])[slot] != 0
            else:
                row[k] = (<const Cell*>values[k])[slot]

    cdef bint evaluate_row(self, Cell* row) noexcept nogil:
        """Run the code on registers; the first ones are the inputs, all of them good.

        The result is in the register of that number then. False if an integer overflows.
        """
        cdef const Instruction* code = self.code
        cdef const Instruction* end = code + self.length
        cdef Cell* o
        cdef Cell a, b
        cdef int k
        for k in range(self.constants):
            row[self.inputs + k] = self.constant[k].cell
        while code < end:
            o = row + code.out
            a = row[code.a]
            b = row[code.b]
            if code.opcode == FADD:
                o.f = a.f + b.f
            elif code.opcode == FSUB:
                o.f = a.f - b.f
            elif code.opcode == FMUL:
                o.f = a.f * b.f
            elif code.opcode == FDIV:
                o.f = a.f / b.f
            elif code.opcode == FNEG:
                o.f = -a.f
            elif code.opcode == FABS:
                o.f = fabs(a.f)
            elif code.opcode == FSQRT:
                o.f = sqrt(a.f)
            elif code.opcode == FISNAN:
                o.i = a.f != a.f
            elif code.opcode == FISFINITE:
                o.i = isfinite(a.f) != 0
            elif code.opcode == FEQ:
                o.i = a.f == b.f
            elif code.opcode == FNE:
                o.i = a.f != b.f
            elif code.opcode == FLT:
                o.i = a.f < b.f
            elif code.opcode == FLE:
                o.i = a.f <= b.f
            elif code.opcode == IADD:
                o.i = <int64_t>(<uint64_t>a.i + <uint64_t>b.i)
                if ((a.i ^ o.i) & (b.i ^ o.i)) < 0:
                    return False
            elif code.opcode == ISUB:
                o.i = <int64_t>(<uint64_t>a.i - <uint64_t>b.i)
                if ((a.i ^ b.i) & (a.i ^ o.i)) < 0:
                    return False
            elif code.opcode == IMUL:
                if multiply_overflows(a.i, b.i, <long long*>&o.i):
                    return False
            elif code.opcode == IEQ:
                o.i = a.i == b.i
            elif code.opcode == INE:
                o.i = a.i != b.i
            elif code.opcode == ILT:
                o.i = a.i < b.i
            elif code.opcode == ILE:
                o.i = a.i <= b.i
            elif code.opcode == INT_TO_FLOAT:
                o.f = <double>a.i
            elif code.opcode == AND:
                o.i = a.i & b.i
            elif code.opcode == OR:
                o.i = a.i | b.i
            elif code.opcode == NOT:
                o.i = a.i == 0
            else:  # WHEN
                o[0] = b if a.i else row[code.c]
            code += 1
        # Processors differ in the sign and payload of the NaNs that they make.
        if self.kind == KIND_FLOAT and row[self.result].f != row[self.result].f:
            row[self.result].f = NAN
        return True

    cdef int evaluate_rows(self, const void* const* values, const uint8_t* const* valid,
                           const int64_t* slots, Py_ssize_t n, void* out,
                           uint8_t* states) noexcept nogil:
        cdef Register registers[REGISTERS_MAX]
        cdef Cell stack_cells[STACK_CELLS]
        cdef uint8_t stack_states[STACK_CELLS]
        cdef Cell* cells = stack_cells
        cdef uint8_t* marks = stack_states
        cdef void* heap = NULL
        cdef Py_ssize_t width = n if n < CHUNK else CHUNK
        cdef Py_ssize_t needed = width * self.registers, start = 0, rows
        cdef int k, flagged = 0
        # Results as wide as a cell are computed where they are to stand.
        cdef bint direct = self.kind != KIND_BOOL and self.result >= self.inputs + self.constants
        if needed > STACK_CELLS:
            heap = malloc(needed * (sizeof(Cell) + 1))
            if heap == NULL:
                return -1
            cells = <Cell*>heap
            marks = <uint8_t*>(cells + needed)
        for k in range(self.registers):
            registers[k].cells = cells + k * width
            registers[k].states = marks + k * width
            registers[k].clean = True
        for k in range(self.constants):
            fill(&registers[self.inputs + k], &self.constant[k], width)
        while start < n:
            rows = n - start if n - start < CHUNK else CHUNK
            for k in range(self.inputs):
                load(&registers[k], cells + k * width, values[k], self.kinds[k],
                     NULL if valid == NULL else valid[k], slots, start, rows)
            if direct:
                registers[self.result].cells = <Cell*>out + start
            for k in range(self.length):
                execute(&self.code[k], registers, rows)
            store(&registers[self.result], self.kind, out, start, rows)
            if not registers[self.result].clean:
                if not flagged:
                    memset(states, GOOD, n)
                flagged |= mark(&registers[self.result], self.kind, out, states, start, rows)
            start += CHUNK
        free(heap)
        return flagged


cdef Py_ssize_t _open(object array, int kind, Py_buffer* views, int* opened) except -1:
    """Open the next view on an array of the kind; returns how many rows it has."""
    dtype = array.dtype
    expected = FLOAT64 if kind == KIND_FLOAT else INT64 if kind == KIND_INT else BOOL
    if dtype is not expected and dtype != expected:
        raise TypeError(f"an input has dtype {dtype}, expected {expected}")
    PyObject_GetBuffer(array, &views[opened[0]], PyBUF_SIMPLE)
    opened[0] += 1
    return views[opened[0] - 1].len // (1 if kind == KIND_BOOL else 8)


cdef int _check_slots(const int64_t* slots, Py_ssize_t n, Py_ssize_t shortest) except -1:
    cdef Py_ssize_t j
    for j in range(n):
        if slots[j] < 0 or slots[j] >= shortest >= 0:
            raise IndexError(f"slot {slots[j]} is outside of an input of {shortest} rows")
    return 0


cdef inline void fill(Register* register, const Constant* constant, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(n):
        register.cells[j] = constant.cell
    register.clean = constant.state == GOOD
    if not register.clean:
        memset(register.states, constant.state, n)


cdef inline void load(Register* register, Cell* own, const void* values, int kind,
                      const uint8_t* valid, const int64_t* slots, Py_ssize_t start,
                      Py_ssize_t n) noexcept nogil:
    """Point the register at the rows where they lie, or gather and widen them into its cells."""
    cdef Py_ssize_t j
    cdef uint8_t nulls = 0, byte
    if kind == KIND_BOOL:
        for j in range(n):
            own[j].i = (<const uint8_t*>values)[start + j if slots == NULL else slots[start + j]] != 0
    elif slots != NULL:
        for j in range(n):
            own[j] = (<const Cell*>values)[slots[start + j]]
    else:
        own = <Cell*>values + start
    register.cells = own
    register.clean = True
    if valid != NULL:
        for j in range(n):
            byte = valid[start + j if slots == NULL else slots[start + j]]
            register.states[j] = byte ^ (byte < 2)  # 1 is good, 0 null
            nulls |= register.states[j]
        register.clean = nulls == 0


cdef inline void store(const Register* register, int kind, void* out, Py_ssize_t start,
                       Py_ssize_t n) noexcept nogil:
    """Write the values of a chunk out."""
    cdef Py_ssize_t j
    cdef double value
    cdef Cell* target = <Cell*>out + start
    cdef uint8_t* narrow = <uint8_t*>out + start
    cdef const Cell* cells = register.cells
    if kind == KIND_FLOAT:
        # Processors differ in the sign and payload of the NaNs that they make.
        for j in range(n):
            value = cells[j].f
            target[j].f = value if value == value else NAN
    elif kind == KIND_BOOL:
        for j in range(n):
            narrow[j] = <uint8_t>cells[j].i
    elif cells != target:
        memcpy(target, cells, n * sizeof(Cell))


cdef inline int mark(const Register* register, int kind, void* out, uint8_t* states,
                     Py_ssize_t start, Py_ssize_t n) noexcept nogil:
    """Write the states of a chunk out, and zero where they are not good; returns if any is."""
    cdef Py_ssize_t j
    cdef uint8_t state, worst = 0
    for j in range(n):
        state = register.states[j]
        worst |= state
        states[start + j] = state
        if state != GOOD and kind == KIND_BOOL:
            (<uint8_t*>out)[start + j] = 0
        elif state != GOOD:
            (<Cell*>out)[start + j].i = 0
    return worst != 0


cdef void execute(const Instruction* code, Register* registers, Py_ssize_t n) noexcept nogil:
    cdef Register* out = &registers[code.out]
    cdef Register* first = &registers[code.a]
    cdef Register* second = &registers[code.b]
    cdef Cell* o = out.cells
    cdef const Cell* a = first.cells
    cdef const Cell* b = second.cells
    cdef int opcode = code.opcode
    cdef Py_ssize_t j
    cdef uint64_t bad = 0
    if opcode >= AND and (opcode != NOT):
        execute_with_states(opcode, out, first, second, &registers[code.c], n)
        return
    merge(out, first, second, n)
    if opcode == FADD:
        for j in range(n):
            o[j].f = a[j].f + b[j].f
    elif opcode == FSUB:
        for j in range(n):
            o[j].f = a[j].f - b[j].f
    elif opcode == FMUL:
        for j in range(n):
            o[j].f = a[j].f * b[j].f
    elif opcode == FDIV:
        for j in range(n):
            o[j].f = a[j].f / b[j].f
    elif opcode == FFLOORDIV:
        for j in range(n):
            o[j].f = floor_quotient(a[j].f, b[j].f)
    elif opcode == FMOD:
        for j in range(n):
            o[j].f = floor_remainder(a[j].f, b[j].f)
    elif opcode == FLEAST:
        for j in range(n):
            o[j].f = lesser(a[j].f, b[j].f)
    elif opcode == FGREATEST:
        for j in range(n):
            o[j].f = -lesser(-a[j].f, -b[j].f)
    elif opcode == FNEG:
        for j in range(n):
            o[j].f = -a[j].f
    elif opcode == FABS:
        for j in range(n):
            o[j].f = fabs(a[j].f)
    elif opcode == FSQRT:
        for j in range(n):
            o[j].f = sqrt(a[j].f)
    elif opcode == FFLOOR:
        for j in range(n):
            o[j].f = floor(a[j].f)
    elif opcode == FCEIL:
        for j in range(n):
            o[j].f = ceil(a[j].f)
    elif opcode == FROUND:
        for j in range(n):
            o[j].f = rint(a[j].f)
    elif opcode == FISNAN:
        for j in range(n):
            o[j].i = a[j].f != a[j].f
    elif opcode == FISFINITE:
        for j in range(n):
            o[j].i = isfinite(a[j].f) != 0
    elif opcode == FEQ:
        for j in range(n):
            o[j].i = a[j].f == b[j].f
    elif opcode == FNE:
        for j in range(n):
            o[j].i = a[j].f != b[j].f
    elif opcode == FLT:
        for j in range(n):
            o[j].i = a[j].f < b[j].f
    elif opcode == FLE:
        for j in range(n):
            o[j].i = a[j].f <= b[j].f
    elif opcode == IADD:
        for j in range(n):
            o[j].i = <int64_t>(<uint64_t>a[j].i + <uint64_t>b[j].i)
            bad |= <uint64_t>((a[j].i ^ o[j].i) & (b[j].i ^ o[j].i))
        bad >>= 63
    elif opcode == ISUB:
        for j in range(n):
            o[j].i = <int64_t>(<uint64_t>a[j].i - <uint64_t>b[j].i)
            bad |= <uint64_t>((a[j].i ^ b[j].i) & (a[j].i ^ o[j].i))
        bad >>= 63
    elif opcode == IMUL:
        for j in range(n):
            bad |= multiply_overflows(a[j].i, b[j].i, <long long*>&o[j].i)
    elif opcode == IFLOORDIV:
        for j in range(n):
            bad |= divide_fails(a[j].i, b[j].i)
            o[j].i = 0 if divide_fails(a[j].i, b[j].i) else integer_quotient(a[j].i, b[j].i)
    elif opcode == IMOD:
        for j in range(n):
            bad |= b[j].i == 0
            # -1 divides everything, but its remainder of the smallest integer traps.
            o[j].i = 0 if b[j].i == 0 or b[j].i == -1 else integer_remainder(a[j].i, b[j].i)
    elif opcode == ILEAST:
        for j in range(n):
            o[j].i = a[j].i if a[j].i < b[j].i else b[j].i
    elif opcode == IGREATEST:
        for j in range(n):
            o[j].i = a[j].i if a[j].i > b[j].i else b[j].i
    elif opcode == INEG:
        for j in range(n):
            o[j].i = <int64_t>(0 - <uint64_t>a[j].i)
            bad |= a[j].i == INT64_MIN
    elif opcode == IABS:
        for j in range(n):
            o[j].i = a[j].i if a[j].i >= 0 else <int64_t>(0 - <uint64_t>a[j].i)
            bad |= a[j].i == INT64_MIN
    elif opcode == IEQ:
        for j in range(n):
            o[j].i = a[j].i == b[j].i
    elif opcode == INE:
        for j in range(n):
            o[j].i = a[j].i != b[j].i
    elif opcode == ILT:
        for j in range(n):
            o[j].i = a[j].i < b[j].i
    elif opcode == ILE:
        for j in range(n):
            o[j].i = a[j].i <= b[j].i
    elif opcode == INT_FLOAT_SIGN:
        for j in range(n):
            o[j].i = sign_of_difference(a[j].i, b[j].f)
    elif opcode == FLOAT_INT_SIGN:
        for j in range(n):
            o[j].i = sign_of_difference(b[j].i, a[j].f)
            o[j].i = UNORDERED if o[j].i == UNORDERED else -o[j].i
    elif opcode == INT_TO_FLOAT:
        for j in range(n):
            o[j].f = <double>a[j].i
    elif opcode == FLOAT_TO_INT:
        for j in range(n):
            bad |= not fits(a[j].f)
            o[j].i = <int64_t>a[j].f if fits(a[j].f) else 0
    elif opcode == NOT:
        for j in range(n):
            o[j].i = a[j].i == 0
    if bad:
        mark_failures(opcode, out, a, b, n)


cdef inline void merge(Register* out, Register* first, Register* second, Py_ssize_t n) noexcept nogil:
    """Give each row the worst state of its operands."""
    cdef Py_ssize_t j
    cdef uint8_t x, y
    out.clean = first.clean and second.clean
    if out.clean:
        return
    for j in range(n):
        x, y = state_of(first, j), state_of(second, j)
        out.states[j] = x if x > y else y


cdef inline uint8_t state_of(const Register* register, Py_ssize_t j) noexcept nogil:
    return GOOD if register.clean else register.states[j]


cdef void mark_failures(int opcode, Register* out, const Cell* a, const Cell* b,
                        Py_ssize_t n) noexcept nogil:
    """Find the rows that a checked loop noticed; a row that is null already stays null."""
    cdef Py_ssize_t j
    cdef long long unused
    cdef int64_t value
    cdef uint8_t failure
    if out.clean:
        memset(out.states, GOOD, n)
        out.clean = False
    for j in range(n):
        failure = GOOD
        if opcode == IADD:
            value = <int64_t>(<uint64_t>a[j].i + <uint64_t>b[j].i)
            failure = OVERFLOW if ((a[j].i ^ value) & (b[j].i ^ value)) < 0 else GOOD
        elif opcode == ISUB:
            value = <int64_t>(<uint64_t>a[j].i - <uint64_t>b[j].i)
            failure = OVERFLOW if ((a[j].i ^ b[j].i) & (a[j].i ^ value)) < 0 else GOOD
        elif opcode == IMUL:
            failure = OVERFLOW if multiply_overflows(a[j].i, b[j].i, &unused) else GOOD
        elif opcode == IFLOORDIV:
            if divide_fails(a[j].i, b[j].i):
                failure = DIVISION if b[j].i == 0 else OVERFLOW
        elif opcode == IMOD:
            failure = DIVISION if b[j].i == 0 else GOOD
        elif opcode == FLOAT_TO_INT:
            failure = GOOD if fits(a[j].f) else CONVERSION
        else:
            failure = OVERFLOW if a[j].i == INT64_MIN else GOOD
        if out.states[j] == GOOD:
            out.states[j] = failure


cdef void execute_with_states(int opcode, Register* out, Register* first, Register* second,
                              Register* third, Py_ssize_t n) noexcept nogil:
    """Run the operations for which the state of an operand is more than passed on."""
    cdef Cell* o = out.cells
    cdef const Cell* a = first.cells
    cdef const Cell* b = second.cells
    cdef const Cell* c = third.cells
    cdef Py_ssize_t j
    cdef uint8_t x, y, seen = 0
    cdef int64_t decisive
    if opcode == IS_NULL:
        for j in range(n):
            x = state_of(first, j)
            o[j].i = x == NULL_ROW
            out.states[j] = GOOD if x == NULL_ROW else x
            seen |= out.states[j]
    elif opcode == FILL_NULL:
        for j in range(n):
            x = state_of(first, j)
            o[j] = b[j] if x == NULL_ROW else a[j]
            out.states[j] = state_of(second, j) if x == NULL_ROW else x
            seen |= out.states[j]
    elif opcode == WHEN and first.clean and second.clean and third.clean:
        for j in range(n):
            o[j].i = (b[j].i & -a[j].i) | (c[j].i & (a[j].i - 1))
    elif opcode == WHEN:
        for j in range(n):
            x = state_of(first, j)
            if x == GOOD and a[j].i:
                o[j], out.states[j] = b[j], state_of(second, j)
            elif x <= NULL_ROW:
                o[j], out.states[j] = c[j], state_of(third, j)
            else:
                o[j], out.states[j] = c[j], x
            seen |= out.states[j]
    else:
        # One operand that decides the outcome makes the other's state irrelevant.
        decisive = opcode == OR
        if first.clean and second.clean:
            for j in range(n):
                o[j].i = a[j].i | b[j].i if decisive else a[j].i & b[j].i
        else:
            for j in range(n):
                x, y = state_of(first, j), state_of(second, j)
                if (x == GOOD and a[j].i == decisive) or (y == GOOD and b[j].i == decisive):
                    o[j].i, out.states[j] = decisive, GOOD
                else:
                    o[j].i, out.states[j] = not decisive, x if x > y else y
                seen |= out.states[j]
    out.clean = seen == 0


cdef enum:
    UNORDERED = 2


cdef inline int64_t sign_of_difference(int64_t i, double f) noexcept nogil:
    """Return the sign of i - f compared exactly, or UNORDERED for NaN."""
    cdef int64_t whole
    cdef double rest
    if f != f:
        return UNORDERED
    if f >= 9223372036854775808.0:
        return -1
    if f < -9223372036854775808.0:
        return 1
    whole = <int64_t>f
    if i != whole:
        return -1 if i < whole else 1
    rest = f - <double>whole
    return -1 if rest > 0 else 1 if rest < 0 else 0


cdef inline bint fits(double value) noexcept nogil:
    return -9223372036854775808.0 <= value < 9223372036854775808.0


cdef inline bint divide_fails(int64_t a, int64_t b) noexcept nogil:
    return b == 0 or (b == -1 and a == INT64_MIN)


cdef inline int64_t integer_quotient(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t quotient = a // b
    # C rounds towards zero, Python down.
    return quotient - (a - quotient * b != 0 and (a < 0) != (b < 0))


cdef inline int64_t integer_remainder(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t remainder = a % b
    return remainder + b if remainder != 0 and (remainder < 0) != (b < 0) else remainder


cdef inline double floor_remainder(double a, double b) noexcept nogil:
    """Return the exact remainder with the divisor's sign, as Python's %; NaN for b = 0."""
    cdef double remainder = fmod(a, b)
    if remainder == 0:
        return copysign(0.0, b)
    return remainder + b if (remainder < 0) != (b < 0) else remainder


cdef inline double floor_quotient(double a, double b) noexcept nogil:
    """Return the quotient of a less its exact remainder, as Python's //; a / b for b = 0."""
    cdef double remainder, quotient, whole
    if b == 0:
        return a / b
    remainder = fmod(a, b)
    quotient = (a - remainder) / b
    if remainder != 0 and (remainder < 0) != (b < 0):
        quotient -= 1.0
    if quotient == 0:
        return copysign(0.0, a / b)
    # The division may have rounded away from the whole number that it is.
    whole = floor(quotient)
    return whole + 1.0 if quotient - whole > 0.5 else whole


cdef inline double lesser(double a, double b) noexcept nogil:
    if a != a or b != b:
        return NAN
    if a == b:
        return a if signbit(a) else b
    return a if a < b else b
