"""Logarithms, exponentials, powers and decimal rounding of columns of floats, correctly rounded.

``rounded`` computes a result as the sum of two floats, head and tail, with a bound of its error.
Where all numbers within it are rounded alike, that is the result. Few operations decide nearly all
rows of a column (``quick.h``, with their bounds), and sums and products of pairs nearly all of the
rest (``rounded.h``). ``exact`` computes rows that are still undecided. So a result is the float
nearest to the exact one, and the same on each processor with sums, differences and products of
IEEE; the tables are made of correctly rounded decimals.

The errors of pairs. A product of two errs by 2^-101 at most, a sum of two by 2^-103.

- *Logarithm*: x = 2^k (1 + z) / i with i of 10 bits out of 256, so that z is exact as a pair, and
  |z| < 2^-8. The two i around 1 are 1, with a logarithm of 0: elsewhere a result with k = 0 is at
  least 2^-9. The terms up to z^7 are pairs, those behind err by 2^-112 of z, z^14 / 14 on is left
  out, 2^-107 of z; six products and the sums make 2^-97. k log 2 has three parts, of which the
  first two are exact products, and leaves 2^-127 off.
- *Exponential*: x = n log 2 / 128 + r with |r| < 2^-8.5, r with an error below 2^-108: n has 18
  bits, the first two parts of log 2 / 128 have 34. e^x = 2^k t e^r with t < 2 a pair of a table.
  Terms up to r^5 are pairs, r^11 / 11! on is left out, 2^-120; the product with t errs by 2^-109
  and t by 2^-106, in all less than 2^-104. ``expm1`` has -2^-k in the first sum, exactly; where n
  is 0 its bound is relative to r, as of a logarithm.
- *Power*: y times a logarithm, |y log x| < 2^9.6: the error of the logarithm counts that often.

ERROR in ``rounded.h`` is at least twice these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ripple.model.expression.functions import exact
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.rounded import compute
from ripple.model.expression.typed import Kind, Typed

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]


def _correct(name: str, alone: Callable[..., float]) -> Callable[..., Floats]:
    """Return the function of columns: the results that are sure, else the exact ones."""

    def of_columns(*operands: Floats) -> Floats:
        columns = [np.ascontiguousarray(operand) for operand in operands]
        results, undecided = compute(name, *columns)
        for row in undecided.tolist():
            results[row] = alone(*(float(column[row]) for column in columns))
        return results

    return of_columns


def _round(values: Floats, decimals: int) -> Floats:
    values = np.ascontiguousarray(values)
    results, undecided = compute("round", values, np.array([10.0**decimals]))
    for row in undecided.tolist():
        results[row] = round(float(values[row]), decimals)
    return results


def _of_floats(name: str, operands: int, alone: Callable[..., float]) -> Function:
    def converted(*args: Typed) -> Typed:
        floats = tuple(
            x if x.kind is Kind.FLOAT else Typed("float", Kind.FLOAT, x.nullable, (x,))
            for x in args
        )
        return Typed(name, Kind.FLOAT, any(x.nullable for x in args), floats, ())

    return Function(
        name,
        ((Kind.FLOAT, Kind.INT),) * operands,
        Kind.FLOAT,
        lambda *args: alone(*map(float, args)),
        formula=converted,
        columns=_correct(name, alone),
    )


MATHS = table(
    Function("round.decimals", ((Kind.FLOAT,),), Kind.FLOAT, round, columns=_round),
    _of_floats("log", 1, exact.log),
    _of_floats("log2", 1, exact.log2),
    _of_floats("log10", 1, exact.log10),
    _of_floats("log1p", 1, exact.log1p),
    _of_floats("exp", 1, exact.exp),
    _of_floats("exp2", 1, exact.exp2),
    _of_floats("expm1", 1, exact.expm1),
    _of_floats("pow", 2, exact.power),
)
