"""Errors of aggregates at run time; a type that does not fit is a ``PlanError``."""

from __future__ import annotations

from ripple.core.errors import RippleError


class AggregateError(RippleError):
    """An aggregate failed; the message says the value seen and the change to make."""


class IntegerRangeError(AggregateError):
    """An exact integer result does not fit a 64-bit integer column.

    ``position`` is the place of the offending accumulator among the slots that were read.
    Nothing is lost: the sum itself is still exact, and removals can bring it back into range.
    """

    def __init__(self, value: int, position: int) -> None:
        super().__init__(
            f"the exact integer sum {value} does not fit 64 bits: "
            "cast the input to float, or sum in a coarser unit"
        )
        self.value = value
        self.position = position


class WideRangeError(IntegerRangeError):
    """The same of a decimal of more than 38 digits."""

    def __init__(self, value: int, position: int) -> None:
        super().__init__(value, position)
        self.args = (
            f"the exact decimal sum of {len(str(abs(value)))} digits does not fit in 38: "
            "sum in a coarser unit, as of .round(2)",
        )


class StateError(AggregateError):
    """A dumped state is not this aggregate's: a checkpoint of something else."""


class InsertOnlyError(AggregateError):
    """A row was to be removed from a state that keeps no others to show in its place."""

    def __init__(self) -> None:
        super().__init__(
            "this state was made for a stream that only grows: ask for retractable=True"
        )


class InverseError(AggregateError):
    """A user's ``remove`` does not undo its ``add``; the message holds the counterexample."""
