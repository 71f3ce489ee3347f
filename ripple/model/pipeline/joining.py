"""Joins of two streams by keys and event time: ``.join_asof(...)``, ``.join_interval(...)``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.pipeline.checks import (
    blaming_field,
    check_distinct,
    check_new_field,
    check_suffix,
    field_name,
    type_text,
)
from ripple.model.pipeline.draft import Stage, need_time, united
from ripple.model.pipeline.nodes import PAIR_KEY, ROW_KEY, RowTable, type_of, types_of
from ripple.model.pipeline.row_table import row_table
from ripple.model.pipeline.table_join import HOWS
from ripple.model.pipeline.union import finals_of
from ripple.model.pipeline.waiting_nodes import AsofJoin, IntervalJoin
from ripple.model.schema.types import KEY_TYPES, Field, Float, Int, Int64, Option, bare_type
from ripple.model.window.duration import duration_ns, signed_duration_ns
from ripple.model.window.spec import LATENESS_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft
    from ripple.model.pipeline.nodes import Fields

    Keys = Operand | Sequence[Operand]
    Pairs = tuple[tuple[Field, Field], ...]
_STRATEGIES = ("backward", "forward", "nearest")


@frozen
class Sides:
    """Two branches, the pairs of key fields by which they are joined, and both as one draft."""

    left: Draft
    right: Draft
    pairs: Pairs
    both: Draft

    def of_both(self, finals: str) -> Draft:
        """Return both as one draft whose rows have their identities from either side."""
        read = {source.name for side in (self.left, self.right) for source in side.read}
        return replace(
            self.both,
            read=tuple(source for source in self.both.sources if source.name in read),
            origins=tuple(dict.fromkeys((*self.left.origins, *self.right.origins))),
            finals=finals,
        )


def checked_sides(
    verb: str, left: Draft, right: Draft, *, on: Keys, left_on: Keys, right_on: Keys
) -> Sides:
    """Return the sides of a join of two streams. Raises PlanError where they cannot be joined."""
    _check_right(right, verb)
    both = united(left, right)
    for draft in (left, right):
        need_time(draft, "rows are matched by event time")
    return Sides(left, right, _key_pairs(left, right, on, left_on, right_on), both)


def asof_of(
    name: str,
    sides: Sides,
    *,
    strategy: Any,
    tolerance: str | int | None,
    allow_exact_matches: Any,
    how: Any,
    lateness: str | int | None,
    emit: Any,
    suffix: Any,
) -> AsofJoin:
    """Return the node of a ``.join_asof(...)``. Raises PlanError."""
    if not isinstance(how, str) or how not in ("left", "inner"):
        raise PlanError(f"how is {shown(how)}: it must be 'left' or 'inner'")
    is_eager = _is_eager(emit)
    need_bool("allow_exact_matches", allow_exact_matches)
    if not isinstance(strategy, str) or strategy not in _STRATEGIES:
        raise PlanError(
            f"strategy is {shown(strategy)}: it must be 'backward', 'forward' or 'nearest'"
        )
    if strategy != "backward" and tolerance is None:
        raise PlanError(
            f"{strategy}: a row could wait for ever for a later one: say how long with tolerance="
        )
    return AsofJoin(
        **_common(name, sides, how, lateness, suffix),
        strategy=strategy,
        tolerance_ns=None if tolerance is None else duration_ns(tolerance, "tolerance"),
        is_strict=not allow_exact_matches,
        is_eager=is_eager,
    )


def row_table_of(node: AsofJoin | IntervalJoin) -> RowTable:
    """Return the table of a join's rows from their reading on. Raises PlanError."""
    key = PAIR_KEY if isinstance(node, IntervalJoin) else ROW_KEY
    return row_table(node, key, "emit='eager'", "emit='final'")


def interval_of(
    name: str,
    sides: Sides,
    *,
    within: Any,
    how: Any,
    lateness: str | int | None,
    emit: Any,
    suffix: Any,
) -> IntervalJoin:
    """Return the node of a ``.join_interval(...)``. Raises PlanError."""
    if not isinstance(how, str) or how not in HOWS:
        raise PlanError(f"how is {shown(how)}: it must be one of {', '.join(HOWS)}")
    is_eager = _is_eager(emit)
    lo_ns, hi_ns = _bounds(within)
    if sides.right.deleted:
        raise PlanError(
            f"the rows of {sides.right.at!r} are versions of a table, each counts until the next "
            "one: take .join_asof(...)"
        )
    return IntervalJoin(
        **_common(name, sides, how, lateness, suffix),
        lo_ns=lo_ns,
        hi_ns=hi_ns,
        is_eager=is_eager,
        right_finals=sides.right.finals if is_eager else "",
    )


def _common(
    name: str, sides: Sides, how: str, lateness: str | int | None, suffix: Any
) -> dict[str, Any]:
    """Return the fields that the nodes of all joins of streams have."""
    left, right = sides.left, sides.right
    right_fields, added = _added_fields(sides, how, suffix)
    return {
        "name": name,
        "left": left.at,
        "right": right.at,
        "on": sides.pairs,
        "how": how,
        "latenesses_ns": _latenesses_ns(left, right, lateness),
        "left_fields": left.fields,
        "left_shown": left.fields if how in ("inner", "left") else _without_left(sides),
        "right_fields": right_fields,
        "added": added,
        "node_key": left.below(name),
        "finals": left.finals if how in ("inner", "left") else finals_of([left, right]),
        "deleted": next((one for one in right.fields if one.name == right.deleted), None),
    }


def _bounds(within: Any) -> tuple[int, int]:
    """Return how far before and after a left row its partners are."""
    if not isinstance(within, (tuple, list)) or len(within) != 2:
        raise PlanError(
            f"within is {shown(within)}: name how far before and after a row of the left side its "
            "partners are, such as within=('-5s', '5s')"
        )
    if any(bound is None for bound in within):
        side = "lower" if within[0] is None else "upper"
        raise PlanError(
            f"within has no {side} bound, and rows would be kept for ever: name both, or fold both "
            "sides into tables and .join them"
        )
    lo_ns, hi_ns = (signed_duration_ns(bound, "within") for bound in within)
    if lo_ns > hi_ns:
        raise PlanError(
            f"within is {shown(within)}, which no span of time is: name the earlier bound first"
        )
    return lo_ns, hi_ns


def _check_right(draft: Draft, verb: str) -> None:
    """Raise PlanError unless a draft has the rows of a stream, for the right side of a join."""
    if draft.stage is Stage.EMPTY:
        raise PlanError("the right side has nothing to read yet: start it with .source(...)")
    if draft.stage in (Stage.KEYED, Stage.WINDOWED, Stage.REKEYED):
        raise PlanError(
            "rows on their way into a fold are not joined: name the right side before its "
            ".partition(...)"
        )
    if draft.is_table:
        raise PlanError(
            f"{draft.at!r} is of a table, and {verb} joins streams: take the changes of the table, "
            "with .versions(name) and time="
        )
    if draft.stage is Stage.RESULTS:
        if isinstance(draft.fold, RowTable):
            raise PlanError(
                f"the rows of {draft.fold.input!r} are a table, since they may be corrected: say "
                "emit='final' there"
            )
        raise PlanError(
            f"{draft.at!r} is a table: which row it has when a row of the left side is read "
            "depends on how the inputs interleave. Join by event time: the final rows of its "
            "windows, with .finals(name), or its events before the fold"
        )


def _is_eager(emit: Any) -> bool:
    """Return whether rows are asked for at once, rather than once they are final."""
    if emit is None:
        raise PlanError(
            "emit is missing: say 'eager', a row at once, with corrections until it is final, or "
            "'final', each row once"
        )
    if not isinstance(emit, str) or emit not in ("eager", "final"):
        raise PlanError(f"emit is {shown(emit)}: it must be 'eager' or 'final'")
    return emit == "eager"


def _key_pairs(left: Draft, right: Draft, on: Any, left_on: Any, right_on: Any) -> Pairs:
    """Return the pairs of key fields of two sides, named by ``on`` or one by one."""
    if on is not None and (left_on is not None or right_on is not None):
        raise PlanError("on= names the keys of both sides: leave left_on= and right_on= out")
    given = [left_on, right_on] if on is None else [on, on]
    if any(keys is None for keys in given):
        raise PlanError("keys are missing: name them with on=, or with left_on= and right_on=")
    whats = ("left_on", "right_on") if on is None else ("on", "on")
    mine, theirs = (
        _keys(keys, draft, what)
        for keys, draft, what in zip(given, (left, right), whats, strict=True)
    )
    if len(mine) != len(theirs):
        raise PlanError(
            f"left_on names {len(mine)} fields and right_on {len(theirs)}: name them in pairs"
        )
    for one, other in zip(mine, theirs, strict=True):
        _check_alike(one, other, left, right)
    return tuple(zip(mine, theirs, strict=True))


def _keys(keys: Keys, draft: Draft, what: str) -> list[Field]:
    chosen = keys if isinstance(keys, (tuple, list)) else (keys,)
    if not chosen:
        raise PlanError(f"{what} names no field: name the keys, of which rows must have the same")
    with blaming_field(what):
        types = types_of(draft.fields)
        names = [field_name(key, types, "a key") for key in chosen]
        check_distinct(names, "key")
    times = {source.time_field for source in draft.read}
    found = []
    for name in names:
        if name in times:
            raise PlanError(
                f"{what} names {name!r}, the event time of {draft.at!r}: {what}= are the keys, "
                "and rows are matched by event time in any case"
            )
        bare = bare_type(types[name])
        if isinstance(bare, Float):
            raise PlanError(
                f"{what} names {name!r}, a float, and floats are compared bit by bit here, NaN "
                "with NaN: use a text or an integer"
            )
        if not isinstance(bare, KEY_TYPES):
            raise PlanError(
                f"{what} names {name!r}, which is {type_text(bare)}: use a text, an integer or a "
                "bool"
            )
        found.append(Field(name, bare))
    return found


def _check_alike(one: Field, other: Field, left: Draft, right: Draft) -> None:
    kinds = [
        "an integer" if isinstance(key.type, Int | Int64) else f"a {_word(key)}"
        for key in (one, other)
    ]
    if kinds[0] != kinds[1]:
        raise PlanError(
            f"{one.name!r} is {kinds[0]} in {left.at!r}, and {other.name!r} is {kinds[1]} in "
            f"{right.at!r}, and they would never be equal: .cast one of them"
        )


def _word(key: Field) -> str:
    return {"string": "text"}.get(type_text(key.type), type_text(key.type))


def _latenesses_ns(left: Draft, right: Draft, lateness: str | int | None) -> tuple[int, int]:
    """Return how late rows of each side may be: rows in watermark order never are."""
    if left.is_settled and right.is_settled and lateness is not None:
        raise PlanError(
            f"the rows of {left.root!r} and {right.root!r} are never late: leave lateness= out"
        )
    late_ns = duration_ns(LATENESS_DEFAULT if lateness is None else lateness, "lateness")
    return (0 if left.is_settled else late_ns, 0 if right.is_settled else late_ns)


def _without_left(sides: Sides) -> Fields:
    """Return the fields of the left side, null where it has no row: the keys are then the others'.

    A key is an Int64 unless it is of one type on both sides.
    """
    keys = {mine.name: (mine.type, theirs) for mine, theirs in sides.pairs}
    theirs_all = types_of(sides.right.fields)
    found = []
    for field in sides.left.fields:
        kind, is_optional = bare_type(type_of(field)), True
        if field.name in keys:
            mine, theirs = keys[field.name]
            kind = mine if mine == theirs.type else Int64()
            types = (type_of(field), theirs_all[theirs.name])
            is_optional = any(isinstance(of, Option) for of in types)
        found.append(replace(field, type=kind, optional=is_optional))
    return tuple(found)


def _added_fields(sides: Sides, how: str, suffix: Any) -> tuple[Fields, Fields]:
    """Return the fields of the right side but its keys, and how they are called in the result.

    Versions of a table show no mark of deletions: a deleted one matches as no row.
    """
    ending = check_suffix(suffix)
    left_out = {other.name for _, other in sides.pairs} | {sides.right.deleted}
    fields = tuple(field for field in sides.right.fields if field.name not in left_out)
    taken = {field.name for field in sides.left.fields}
    added: list[Field] = []
    for field in fields:
        name = field.name + ending if field.name in taken else field.name
        if name in taken or any(name == one.name for one in added):
            raise PlanError(
                f"two fields would be called {name!r}: choose another suffix=, or rename one with "
                ".map(..., into=...)"
            )
        check_new_field(name, (), is_path=True)
        kind = type_of(field)
        is_optional = how in ("left", "full") or isinstance(kind, Option)
        added.append(Field(name, bare_type(kind), optional=is_optional))
    return fields, tuple(added)
