"""The join of two tables, checked: by the key of both, of the right one, or of neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import (
    check_distinct,
    check_new_field,
    check_result_field,
    check_suffix,
    field_name,
    type_text,
)
from ripple.model.pipeline.draft import refusal, window_below
from ripple.model.pipeline.nodes import SIDES, Fields, TableJoin, type_of, types_of
from ripple.model.schema.types import KEY_TYPES, Field, Float, Int, Int64, Option, bare_type
from ripple.model.window.spec import Session

if TYPE_CHECKING:
    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft

    Keys = Operand | Sequence[Operand]

HOWS = ("inner", "left", "right", "full")


def table_join_of(
    name: str,
    left: Draft,
    right: Draft,
    *,
    on: Keys,
    left_on: Keys,
    right_on: Keys,
    how: Any,
    suffix: Any,
) -> TableJoin:
    """Return the join of the tables of two drafts. Raises PlanError, naming field and remedy."""
    why_not = refusal(right, "join")
    if why_not is not None:
        raise PlanError(f"on the right, {why_not}")
    if not isinstance(how, str) or how not in HOWS:
        raise PlanError(f"how is {shown(how)}: it must be one of {', '.join(HOWS)}")
    check_suffix(suffix)
    mine, theirs = left.fold, right.fold
    assert mine is not None, "there are results"
    assert theirs is not None, "there are results"
    pairs = _pairs(left, right, on, left_on, right_on)
    for pair in pairs:
        check_compared(pair, left, right)
    names = [one for one, _ in pairs]
    is_by_key = set(names) == _key_names(left)
    if {one for _, one in pairs} != _key_names(right):
        _check_many(left, right)
        key, fields = _fields_of_pairs(left, right, pairs, how, suffix)
    else:
        _check_ends(left, right, pairs)
        key, fields = mine.row_key, _fields(left, right, pairs, how, suffix)
        if not is_by_key and how not in ("inner", "left"):
            raise PlanError(
                f"how={how!r} needs the key of both, and a row of {right.at!r} may be named by "
                f"several of {left.at!r}: take 'inner' or 'left', or fold {left.at!r} by "
                f"{', '.join(names)} first"
            )
    return TableJoin(
        name,
        mine.name,
        "",
        key,
        None,
        (),
        (),
        fields,
        fields,
        left.below(name),
        left.at,
        right=theirs.name,
        reads_right=right.at,
        right_key=theirs.row_key,
        pairs=pairs,
        how=how,
    )


def named_pairs(
    left: Draft, right: Draft, on: Keys, left_on: Keys, right_on: Keys
) -> tuple[list[str], list[str]]:
    """Return the names of the compared fields, of the left and of the right. Raises PlanError."""
    if on is not None:
        if left_on is not None or right_on is not None:
            raise PlanError("on= names the fields of both sides: leave left_on= and right_on= out")
        left_on = right_on = on
    whats = ("left_on", "right_on") if on is None else ("on", "on")
    mine, theirs = _names(left_on, left, whats[0]), _names(right_on, right, whats[1])
    if not mine or not theirs:
        raise PlanError(
            "it says not by which fields rows belong together: name them with on=, or with "
            "left_on= and right_on=; tables are not crossed"
        )
    if len(mine) != len(theirs):
        raise PlanError(
            f"left_on= names {len(mine)} fields and right_on= {len(theirs)}: name them in pairs"
        )
    return mine, theirs


def _pairs(
    left: Draft, right: Draft, on: Keys, left_on: Keys, right_on: Keys
) -> tuple[tuple[str, str], ...]:
    """Return the names of the compared fields, in the order of the right key if they are it."""
    mine, theirs = named_pairs(left, right, on, left_on, right_on)
    by_right = dict(zip(theirs, mine, strict=True))
    assert right.fold is not None, "there are results"
    key = [field.name for field in right.fold.row_key]
    if set(theirs) == set(key):
        return tuple((by_right[one], one) for one in key)
    if set(mine) == _key_names(left):
        raise PlanError(
            f"the key of {right.at!r} is {', '.join(key) or '()'}, and the join names "
            f"{', '.join(theirs)}: name the whole key on the right, change sides, since the fields "
            f"on the left are its key, or fold {right.at!r} by {', '.join(theirs)} first"
        )
    return tuple(zip(mine, theirs, strict=True))


def _key_names(draft: Draft) -> set[str]:
    assert draft.fold is not None, "there are results"
    return {field.name for field in draft.fold.row_key}


def _check_many(left: Draft, right: Draft) -> None:
    """Raise PlanError for rows that a join by the key of neither side has not."""
    assert right.fold is not None, "there are results"
    key = ", ".join(field.name for field in right.fold.row_key)
    many = f"the join names the whole key of neither {left.at!r} nor {right.at!r}"
    for side in (left, right):
        if window_below(side) is not None:
            raise PlanError(
                f"rows of {side.at!r} leave when their windows are over, and {many}: name the "
                f"whole key of {right.at!r}, {key or '()'}; or have the final rows as events, with "
                ".finals(...), and match those by event time, with .join_interval(...)"
            )


def _names(keys: Keys, draft: Draft, what: str) -> list[str]:
    chosen = keys if isinstance(keys, (tuple, list)) else () if keys is None else (keys,)
    types = types_of(draft.fields)
    names = [field_name(one, types, f"{what} of {draft.at!r}") for one in chosen]
    check_distinct(names, what)
    return names


def check_compared(pair: tuple[str, str], left: Draft, right: Draft) -> None:
    """Raise PlanError for fields of other types, or of types that are not compared."""
    sides = zip((left, right), pair, strict=True)
    types = [bare_type(types_of(side.fields)[name]) for side, name in sides]
    for of, name in zip(types, pair, strict=True):
        if isinstance(of, Float):
            raise PlanError(
                f"{name!r} is a float, and floats are compared bit by bit here, and NaN with NaN: "
                "use text or integers"
            )
        if not isinstance(of, KEY_TYPES):
            raise PlanError(f"{name!r} is {type_text(of)}: use text, integers or bools")
    if types[0] != types[1] and not all(isinstance(of, Int | Int64) for of in types):
        one, other = (f"{name!r} is {type_text(of)}" for of, name in zip(types, pair, strict=True))
        raise PlanError(
            f"{one} in {left.at!r} and {other} in {right.at!r}, and they are never equal: .cast "
            "one of them"
        )


def _fields(
    left: Draft, right: Draft, pairs: Sequence[tuple[str, str]], how: str, suffix: str
) -> Fields:
    """Return the fields of a row: the key, the other fields of the left, and those of the right."""
    assert left.fold is not None, "there are results"
    names = [field.name for field in left.fold.row_key]
    key = tuple(replace(field, optional=False) for field in left.fold.row_key)
    others = [field for field in left.fields if field.name not in names]
    fields = [*key, *(shown_side(field, maybe=how in ("right", "full")) for field in others)]
    for _, field in renamed(right, pairs, [one.name for one in fields], suffix):
        fields.append(shown_side(field, maybe=how in ("left", "full")))
    return tuple(fields)


def _fields_of_pairs(
    left: Draft, right: Draft, pairs: Sequence[tuple[str, str]], how: str, suffix: str
) -> tuple[Fields, Fields]:
    """Return the key of a pair of rows, and all its fields.

    Of the key on the right it has the fields that are not compared: the others follow from the
    left, unless rows of the right without a partner are there. Where there are any without, the
    last field of the key tells them from pairs.
    """
    assert left.fold is not None, "there are results"
    mine, theirs = left.fold.row_key, _key_names(right)
    outer = how in ("right", "full")
    others = [
        shown_side(field, maybe=outer)
        for field in left.fields
        if field.name not in _key_names(left)
    ]
    names, told = [one.name for one in left.fields], () if how == "inner" else (SIDES,)
    for field in told:
        if field.name in names:
            raise PlanError(
                f"{field.name!r} is the name of a field of the left side, and of the key of these "
                f"rows with how={how!r}: call it otherwise there, or change sides"
            )
    taken = [*names, *(field.name for field in told)]
    rights = renamed(right, () if outer else pairs, taken, suffix)
    rest = [field for name, field in rights if name in theirs]
    key = tuple(replace(field, optional=False) for field in (*mine, *rest, *told))
    added = [
        shown_side(field, maybe=how in ("left", "full"))
        for name, field in rights
        if name not in theirs
    ]
    return key, (*key, *others, *added)


def renamed(
    right: Draft, pairs: Sequence[tuple[str, str]], names: Sequence[str], suffix: str
) -> list[tuple[str, Field]]:
    """Return the fields of the right that are not compared, under new names, each by its old one.

    names: of the fields before them.
    """
    matched = {name for _, name in pairs}
    taken, found = [*names], []
    for field in right.fields:
        if field.name in matched:
            continue
        name = f"{field.name}{suffix}" if field.name in taken else field.name
        try:
            check_new_field(name, taken, is_path=True)
        except PlanError as error:
            raise PlanError(f"{error}: suffix= ends the names of fields of the right") from error
        check_result_field(name)
        taken.append(name)
        found.append((field.name, replace(field, name=name)))
    return found


def shown_side(field: Field, *, maybe: bool) -> Field:
    """Return a field of one side, null where that side has no row."""
    if maybe and not isinstance(type_of(field), Option):
        return replace(field, optional=True)
    return field


def _check_ends(left: Draft, right: Draft, pairs: Sequence[tuple[str, str]]) -> None:
    """Raise PlanError unless rows of both sides leave with one window, or none by windows."""
    ending = [window_below(side) for side in (left, right)]
    if ending[0] is None and ending[1] is None:
        return
    if ending[0] is None or ending[1] is None:
        goes, stays = (left, right) if ending[1] is None else (right, left)
        raise PlanError(
            f"rows of {goes.at!r} leave when their windows are over, those of {stays.at!r} do not: "
            "fold both in the same windows, and name window_start_ns in on=; or have the final "
            f"rows of {goes.at!r} as events, with .finals(...), and match those by event time, "
            "with .join_asof(...)"
        )
    for side, fold in zip((left, right), ending, strict=True):
        assert fold.window is not None, "it has windows"
        if isinstance(fold.window.assigner, Session):
            raise PlanError(
                f"the sessions of {side.at!r} move when they merge: use Tumbling or Sliding windows"
            )
    one, other = ending
    if ("window_start_ns", "window_start_ns") not in pairs:
        raise PlanError(
            f"rows of {left.at!r} and {right.at!r} leave when their windows are over, so that they "
            "must be of one window: name window_start_ns in on=, too"
        )
    spans = [(each.input, each.window.assigner, each.window.lateness_ns) for each in ending]
    if spans[0] != spans[1]:
        raise PlanError(
            f"the windows of {one.name!r} and {other.name!r} are over at other times, and rows "
            "would leave one side before the other: fold the same stream, as of rp.union(...), in "
            "windows of the same size and lateness"
        )
