# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Whether all values of a column pass, which is how it nearly always is.

Values at nulls count, though they are meaningless: they can only make an answer False.
"""

from libc.stdint cimport int64_t

from ripple.model.schema.exported cimport Lent


def floats_inside(Lent column not None, double low, double high) -> bool:
    """Tell whether all of float64 are in [low, high]; NaN is not."""
    return floats_are_inside(column.array, low, high)


def integers_inside(Lent column not None, int64_t low, int64_t high) -> bool:
    """Tell whether all of int64 are in [low, high]."""
    return integers_are_inside(column.array, low, high)


def texts_inside(Lent column not None, int64_t shortest, int64_t longest) -> bool:
    """Tell whether all of these texts have so many characters."""
    return texts_are_inside(column.array, shortest, longest)
