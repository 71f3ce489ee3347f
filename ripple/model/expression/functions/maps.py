"""Functions of maps, over their stored texts."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.list_folds import LIST_FOLDS
from ripple.model.expression.functions.lists import LISTS
from ripple.model.expression.functions.lists import name_of_get as list_get
from ripple.model.expression.typed import Kind
from ripple.model.schema.map_columns import keys_in, members_of, values_in

_TEXT = ((Kind.TEXT,),)
_KINDS = (Kind.FLOAT, Kind.INT, Kind.BOOL, Kind.TEXT)


def name_of_get(kind: Kind) -> str:
    """Return the name of the function that takes a value of a kind."""
    return list_get(kind).replace("list.", "dict.")


def _lengths(maps: Any) -> Any:
    return members_of(maps).counts


def _places(maps: Any, key: str) -> tuple[Any, Any]:
    """Return the members of all maps, and of each row the one with a key, -1 without it."""
    found = members_of(maps)
    at = np.flatnonzero(np.asarray(pc.equal(keys_in(found), key)))
    rows = np.repeat(np.arange(len(maps)), found.counts)[at]
    places = np.full(len(maps), -1)
    places[rows] = at
    return found, places


def _contains(maps: Any, key: str) -> Any:
    return pa.array(_places(maps, key)[1] >= 0)


def _taken(values: Any, places: Any) -> Any:
    return values.take(pa.array(np.maximum(places, 0), mask=places < 0))


def _get(kind: Kind) -> Function:
    def values(maps: Any, key: str) -> Any:
        found, places = _places(maps, key)
        return values_in(_taken(found.values, places), kind.name.lower())

    def plain(text: str, key: str) -> Any:
        return json.loads(text).get(key)

    return Function(name_of_get(kind), _TEXT, kind, plain, columns=values, may_be_null=True)


def _key(maps: Any, index: int) -> Any:
    found = members_of(maps)
    ends = np.cumsum(found.counts)
    at = index if index >= 0 else found.counts + index
    missing = (at < 0) | (at >= found.counts)
    return _taken(keys_in(found), np.where(missing, -1, ends - found.counts + at))


def _plain_key(text: str, index: int) -> str | None:
    keys = [*json.loads(text)]
    return keys[index] if -len(keys) <= index < len(keys) else None


def _size(text: str) -> int:
    return len(json.loads(text))


def _has(text: str, key: str) -> bool:
    return key in json.loads(text)


ITEMS = (
    LISTS
    | LIST_FOLDS
    | table(
        Function("dict.len", _TEXT, Kind.INT, _size, columns=_lengths),
        Function("dict.contains", _TEXT, Kind.BOOL, _has, columns=_contains),
        Function("dict.key", _TEXT, Kind.TEXT, _plain_key, columns=_key, may_be_null=True),
        *map(_get, _KINDS),
    )
)
"""Functions of lists and of maps."""
