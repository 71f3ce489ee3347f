"""The functions of expressions: an entry each, found by name.

function    an entry: operands, result, compiled form, plain Python twin
formula     functions as formulas of the machine's operations; numbers: those of numbers
maths       logarithms, exponentials and powers; exact: of one float
hashes      hashes of values
text        functions of texts, over columns; pattern: regular expressions; letters: their cases
json_path   paths in texts of JSON; json_paths: the loop, compiled
time        functions of times, most of them formulas
growth      the bytes of texts made longer, known before the texts
decimals    functions of decimals, over columns; wide_decimals: of over 18 digits; logical: of dates
strings     loops over columns of texts, compiled; scaled: over decimals; rounded: over floats
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.model.expression.functions.function import Function


def find(name: str) -> Function:
    """Return the entry of a function; raises KeyError."""
    if name.startswith("str.json"):
        from ripple.model.expression.functions.json_path import JSON  # noqa: PLC0415

        return JSON[name]
    if name.startswith("str."):
        from ripple.model.expression.functions.text import TEXTS  # noqa: PLC0415

        return TEXTS[name]
    if name.startswith("dt."):
        from ripple.model.expression.functions.time import TIMES  # noqa: PLC0415

        return TIMES[name]
    if name.startswith("decimal."):
        from ripple.model.expression.functions.decimals import DECIMALS  # noqa: PLC0415

        return DECIMALS[name]
    if name.startswith("wide."):
        from ripple.model.expression.functions.wide_decimals import WIDE  # noqa: PLC0415

        return WIDE[name]
    if name.startswith("hash."):
        from ripple.model.expression.functions.hashes import HASHES  # noqa: PLC0415

        return HASHES[name]
    if name.startswith(("list.", "dict.")):
        from ripple.model.expression.functions.maps import ITEMS  # noqa: PLC0415

        return ITEMS[name]
    if name.startswith(("logical.", "bin.")):
        from ripple.model.expression.functions.logical import LOGICAL  # noqa: PLC0415

        return LOGICAL[name]
    from ripple.model.expression.functions.numbers import NUMBERS  # noqa: PLC0415

    if name in NUMBERS:
        return NUMBERS[name]
    from ripple.model.expression.functions.maths import MATHS  # noqa: PLC0415

    return MATHS[name]
