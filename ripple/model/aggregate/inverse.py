"""Does remove undo add? A search for the smallest sequence that shows it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.arguments import need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.model.aggregate.errors import AggregateError, InverseError
from ripple.model.aggregate.single import Accumulator, need_aggregate, need_types, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.aggregate.contract import Aggregate
    from ripple.model.schema.types import FieldType

# Steps in order: (+1, row) adds the row of that number, (-1, row) removes it again.
Steps: TypeAlias = "list[tuple[int, int]]"

ROWS_MAX = 12  # of one sequence: mistakes that need more are rare, and hard to read


@called("rp.check_inverse", 'rp.sum("FIELD")', "[1, 2]")
def check_inverse(
    aggregate: Aggregate,
    values: Sequence[Any],
    *,
    types: tuple[FieldType, ...] | None = None,
    rounds: int = 500,
    seed: int = 0,
) -> None:
    """Add and remove ``values`` in many orders; the rest must read as if fresh.

    ``values`` are rows of the aggregate's inputs: tuples, or plain values for one input. Take
    awkward ones: very large, very small, equal, NaN. For an ordered aggregate the row's number
    is its time. Raises :class:`InverseError` with the smallest counterexample found; the search
    is the same for the same ``seed``. Results are compared exactly, all NaNs alike.
    """
    need_aggregate("check_inverse: aggregate", aggregate)
    need_types("check_inverse: types", types)
    rounds = need_whole("check_inverse: rounds", rounds, 1)
    seed = need_whole("check_inverse: seed", seed, 0)
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        raise PlanError(f"check_inverse: values must be a list of rows, not {shown(values)}")
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    types = types or tuple(type_of(value) for value in (rows or [()])[0])
    for number in range(rounds):
        size = 1 + number * ROWS_MAX // rounds
        steps = _sequence(_draws(seed + number), min(size, len(rows)), len(rows))
        if _differs(aggregate, types, rows, steps):
            raise InverseError(
                _report(aggregate, types, rows, _shrunk(aggregate, types, rows, steps))
            )


def _draws(seed: int) -> Iterator[int]:
    """Splitmix64 (Steele, Lea, Flood 2014): the search must repeat, here and elsewhere."""
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        yield mixed ^ (mixed >> 31)


def _sequence(draws: Iterator[int], size: int, rows: int) -> Steps:
    """Add some rows in any order, and remove about half of them somewhere afterwards."""
    steps: Steps = []
    left = list(range(rows))
    for _ in range(size):
        row = left.pop(next(draws) % len(left))
        place = next(draws) % (len(steps) + 1)
        steps.insert(place, (1, row))
        if next(draws) % 2:
            steps.insert(place + 1 + next(draws) % (len(steps) - place), (-1, row))
    return steps


def _shrunk(aggregate: Aggregate, types: Any, rows: Any, steps: Steps) -> Steps:
    """Leave out rows as long as the rest still differs."""
    for row in {row: None for _, row in steps}:
        fewer = [step for step in steps if step[1] != row]
        if _differs(aggregate, types, rows, fewer):
            return _shrunk(aggregate, types, rows, fewer)
    return steps


def _differs(aggregate: Aggregate, types: Any, rows: Any, steps: Steps) -> bool:
    kept = _run(aggregate, types, rows, steps)
    return not _same(kept, _run(aggregate, types, rows, _left(steps)))


def _left(steps: Steps) -> Steps:
    gone = {row for direction, row in steps if direction < 0}
    return [(1, row) for row in sorted({row for _, row in steps} - gone)]


def _run(aggregate: Aggregate, types: Any, rows: Any, steps: Steps) -> Any:
    accumulator = Accumulator(aggregate, types)
    try:
        for direction, row in steps:
            place = (row, row) if aggregate.ordered else ()
            act = accumulator.add if direction > 0 else accumulator.remove
            act(*rows[row], *place)
        return accumulator.result()
    except AggregateError as error:
        return error


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return False
    # The text of a float distinguishes -0.0 from 0.0, and not NaN from NaN.
    return type(one) is type(other) and repr(one) == repr(other)


def _report(aggregate: Aggregate, types: Any, rows: Any, steps: Steps) -> str:
    shown = ", ".join(
        f"{'add' if direction > 0 else 'remove'}({', '.join(map(repr, rows[row]))})"
        for direction, row in steps
    )
    fresh = ", ".join(f"add({', '.join(map(repr, rows[row]))})" for _, row in _left(steps))
    return (
        f"{aggregate}: after {shown} the result is {_run(aggregate, types, rows, steps)!r}, "
        f"but after {fresh or 'nothing'} it is {_run(aggregate, types, rows, _left(steps))!r}: "
        "remove must undo add exactly"
    )
