"""From a checked tree over numbers and bools to the register machine's straight-line code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.expression.program import Program
from ripple.model.expression.typed import Kind, Literal, Typed

if TYPE_CHECKING:
    from collections.abc import Sequence

INPUTS_MAX = 64
CONSTANTS_MAX = 128
TEMPORARIES_MAX = 128

_MACHINE_KINDS = {Kind.FLOAT: "float", Kind.INT: "int", Kind.BOOL: "bool"}

# Operation and kind of the first operand to opcode.
_OPCODES = {
    ("+", Kind.FLOAT): "FADD", ("+", Kind.INT): "IADD",
    ("-", Kind.FLOAT): "FSUB", ("-", Kind.INT): "ISUB",
    ("*", Kind.FLOAT): "FMUL", ("*", Kind.INT): "IMUL",
    ("/", Kind.FLOAT): "FDIV",
    ("//", Kind.FLOAT): "FFLOORDIV", ("//", Kind.INT): "IFLOORDIV",
    ("%", Kind.FLOAT): "FMOD", ("%", Kind.INT): "IMOD",
    ("least", Kind.FLOAT): "FLEAST", ("least", Kind.INT): "ILEAST",
    ("greatest", Kind.FLOAT): "FGREATEST", ("greatest", Kind.INT): "IGREATEST",
    ("neg", Kind.FLOAT): "FNEG", ("neg", Kind.INT): "INEG",
    ("abs", Kind.FLOAT): "FABS", ("abs", Kind.INT): "IABS",
    ("sqrt", Kind.FLOAT): "FSQRT", ("floor", Kind.FLOAT): "FFLOOR",
    ("ceil", Kind.FLOAT): "FCEIL", ("round", Kind.FLOAT): "FROUND",
    ("is_nan", Kind.FLOAT): "FISNAN", ("is_finite", Kind.FLOAT): "FISFINITE",
    ("==", Kind.FLOAT): "FEQ", ("==", Kind.INT): "IEQ", ("==", Kind.BOOL): "IEQ",
    ("!=", Kind.FLOAT): "FNE", ("!=", Kind.INT): "INE", ("!=", Kind.BOOL): "INE",
    ("<", Kind.FLOAT): "FLT", ("<", Kind.INT): "ILT",
    ("<=", Kind.FLOAT): "FLE", ("<=", Kind.INT): "ILE",
    ("float", Kind.INT): "INT_TO_FLOAT", ("float", Kind.BOOL): "INT_TO_FLOAT",
    ("int", Kind.FLOAT): "FLOAT_TO_INT",
    ("&", Kind.BOOL): "AND", ("|", Kind.BOOL): "OR", ("~", Kind.BOOL): "NOT",
}  # fmt: skip
_SWAPPED = {">": "<", ">=": "<="}
_COMPARISONS = frozenset({"==", "!=", "<", "<="})


@frozen
class Compiled:
    """A program and its inputs: columns, and tests that the machine cannot do."""

    program: Program
    inputs: tuple[Typed, ...]


def is_input(tree: Typed) -> bool:
    """Return whether the machine is given this value instead of computing it."""
    if tree.operation == "col" or isinstance(tree.value, tuple):  # the options of a function
        return True
    return any(arg.kind not in _MACHINE_KINDS for arg in tree.args)


def compile_tree(tree: Typed) -> Compiled:
    """Return the program for a float, int or bool ``tree``; raises ``PlanError`` if too large."""
    draft = _Draft()
    result = draft.place(tree)
    if len(draft.inputs) > INPUTS_MAX or len(draft.constants) > CONSTANTS_MAX:
        raise PlanError(
            f"an expression reads {len(draft.inputs)} columns and {len(draft.constants)} "
            f"constants, more than {INPUTS_MAX} or {CONSTANTS_MAX}: use a .map(..., batch=True)"
        )
    return draft.finish(result, _MACHINE_KINDS[tree.kind])


@frozen
class _Step:
    """One instruction in single-assignment form: its operands are places."""

    opcode: str
    operands: tuple[_Place, ...]


@frozen
class _Place:
    """Where a value stands: the index-th of the inputs, constants or steps."""

    group: str
    index: int


@dataclass(slots=True)
class _Draft:
    # Each maps a computation to its index, so that equal parts are computed once. A part of the
    # tree is placed once.
    places: dict[Typed, _Place] = field(default_factory=dict)
    inputs: dict[Typed, int] = field(default_factory=dict)
    constants: dict[Typed, int] = field(default_factory=dict)
    steps: dict[_Step, int] = field(default_factory=dict)

    def place(self, tree: Typed) -> _Place:
        place = self.places.get(tree)
        if place is not None:
            return place
        if is_input(tree):
            place = _Place("input", self.inputs.setdefault(tree, len(self.inputs)))
        elif tree.operation == "scaled":
            place = self.place(tree.args[0])
        elif tree.operation in ("lit", "null"):
            place = _Place("constant", self.constants.setdefault(tree, len(self.constants)))
        elif tree.operation == "float" and tree.args[0].operation == "lit":
            value = Literal(float(tree.args[0].value.value))
            place = self.place(Typed("lit", Kind.FLOAT, nullable=False, value=value))
        else:
            place = self.operation(tree.operation, tree.args)
        self.places[tree] = place
        return place

    def operation(self, operation: str, args: Sequence[Typed]) -> _Place:
        if operation in _SWAPPED:
            return self.operation(_SWAPPED[operation], args[::-1])
        kinds = {arg.kind for arg in args}
        if operation in _COMPARISONS and kinds == {Kind.FLOAT, Kind.INT}:
            # Converting the integer could round it onto the float: compare exactly instead.
            opcode = "INT_FLOAT_SIGN" if args[0].kind is Kind.INT else "FLOAT_INT_SIGN"
            sign = self.step(opcode, *map(self.place, args))
            zero = Typed("lit", Kind.INT, nullable=False, value=Literal(0))
            return self.step(_OPCODES[operation, Kind.INT], sign, self.place(zero))
        if operation == "int" and args[0].kind is Kind.BOOL:
            return self.place(args[0])
        named = {"is_null": "IS_NULL", "fill_null": "FILL_NULL", "when": "WHEN"}
        opcode = named.get(operation) or _OPCODES[operation, args[0].kind]
        return self.step(opcode, *map(self.place, args))

    def step(self, opcode: str, *operands: _Place) -> _Place:
        return _Place("step", self.steps.setdefault(_Step(opcode, operands), len(self.steps)))

    def finish(self, result: _Place, result_kind: str) -> Compiled:
        base = {"input": 0, "constant": len(self.inputs)}
        first = len(self.inputs) + len(self.constants)
        registers, used = _allocated(list(self.steps), result)

        def register(place: _Place) -> int:
            if place.group == "step":
                return first + registers[place.index]
            return base[place.group] + place.index

        code = []
        for index, step in enumerate(self.steps):
            places = [register(operand) for operand in step.operands]
            # Operands that an instruction does not have repeat its first one.
            a, b, c = (*places, *[places[0]] * 2)[:3]
            code.append((step.opcode, first + registers[index], a, b, c))
        program = Program(
            tuple(_MACHINE_KINDS[tree.kind] for tree in self.inputs),
            tuple((_MACHINE_KINDS[tree.kind], _constant(tree)) for tree in self.constants),
            tuple(code),
            first + used,
            register(result),
            result_kind,
        )
        return Compiled(program, tuple(self.inputs))


def _constant(tree: Typed) -> float | int | bool | None:
    value: float | int | bool | None = tree.value.value if tree.operation == "lit" else None
    return value


def _allocated(steps: list[_Step], result: _Place) -> tuple[list[int], int]:
    """Return a temporary for each step, reused after its last reader, and how many there are."""
    last_reader = list(range(len(steps)))
    for index, step in enumerate(steps):
        for operand in step.operands:
            if operand.group == "step":
                last_reader[operand.index] = index
    if result.group == "step":
        last_reader[result.index] = len(steps)
    free: list[int] = []
    registers: list[int] = []
    used = 0
    for index, step in enumerate(steps):
        # Taken before the operands are given back: a result never overwrites what it reads.
        if free:
            registers.append(free.pop())
        else:
            registers.append(used)
            used += 1
        operands = {operand.index for operand in step.operands if operand.group == "step"}
        free.extend(registers[k] for k in sorted(operands) if last_reader[k] == index)
    if used > TEMPORARIES_MAX:
        raise PlanError(
            f"an expression needs {used} intermediate values at a time, more than "
            f"{TEMPORARIES_MAX}: compute a part of it in an earlier .derive(...)"
        )
    return registers, used
