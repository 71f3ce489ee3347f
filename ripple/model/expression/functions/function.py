"""An entry of the table of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ripple.core.frozen import frozen
from ripple.model.expression.typed import Kind, Typed

Formula: TypeAlias = Callable[..., Typed]


# Invariants: a null operand makes the result null, and a failed one fails it, before any form is
# asked. Both forms give the same for every other row. Nothing else knows the function, so that an
# entry and the method of ``Expr`` that spells it are all there is to write.
@frozen
class Function:
    """What is known of a function.

    name: as it is written behind its first operand, and in canonical texts: a function that
    computes something else needs another. takes: for each operand the kinds that it may have;
    further arguments are options, plain values. gives: the kind of the result, None for that of
    the first operand. plain: of one row, called with the operands and options; raises
    OverflowError for a result beyond 64 bits, and ValueError with a text of ``FAILURES``. None for
    those of decimals, which the reference computes as fractions.

    formula: a tree of the machine's operations, from operands and options. columns: over whole
    columns, instead of a formula: called with an Arrow array a text and a NumPy array a number,
    and the options. sizes: where texts can become longer the bytes of each result, int64[n], called
    like ``columns`` and before it. may_be_null: also where no operand is null. check: raises
    PlanError for options that do not fit.
    """

    name: str
    takes: tuple[tuple[Kind, ...], ...]
    gives: Kind | None
    plain: Callable[..., Any] | None = None
    formula: Formula | None = None
    columns: Callable[..., Any] | None = None
    sizes: Callable[..., Any] | None = None
    may_be_null: bool = False
    check: Callable[..., None] | None = None

    def typed(self, operands: tuple[Typed, ...], options: tuple[Any, ...]) -> Typed:
        """Return the checked tree over operands of the right kinds."""
        if self.check is not None:
            self.check(*options)
        if self.formula is not None:
            return self.formula(*operands, *options)
        nullable = self.may_be_null or any(operand.nullable for operand in operands)
        return Typed(self.name, self.gives or operands[0].kind, nullable, operands, options)


def table(*functions: Function) -> dict[str, Function]:
    """Return functions by name."""
    return {function.name: function for function in functions}
