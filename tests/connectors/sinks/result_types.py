"""A pipeline with results of a type, for each type."""

from __future__ import annotations

import dataclasses
import enum
from decimal import Decimal
from typing import Any, Literal

import ripple as rp


class Side(enum.Enum):
    """An enumeration, whose values are texts in columns."""

    BUY = 1
    SELL = 2


@dataclasses.dataclass
class Level:
    """A record within a record."""

    price: float
    venue: str | None


@rp.record(version=1)
class Seen:
    """What is read: which value the result of a key has."""

    k: str
    i: int


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type, two values of it as a function returns them, and the same as columns have them."""

    type: Any
    values: tuple[Any, Any]
    stored: tuple[Any, Any]

    @classmethod
    def plain(cls, type_: Any, *values: Any) -> Kind:
        """Return one whose values are in columns what they are in Python."""
        return cls(type_, values, values)


LEVEL = {"price": 1.5, "venue": None}
KINDS = {
    "text": Kind.plain(str, "ä\x7f", 'q",\n'),
    "int": Kind.plain(int, 2**63 - 1, -(2**63)),
    "float": Kind.plain(float, 5e-324, -0.0),
    "bool": Kind.plain(bool, True, False),
    "optional_text": Kind.plain(str | None, None, "x"),
    "time": Kind.plain(rp.Timestamp, 0, 1_700_000_000_000_000_001),
    "list": Kind.plain(list[int], [1, -2], []),
    "optional_list": Kind.plain(list[str] | None, None, ["", "ä"]),
    "list_of_options": Kind.plain(list[float | None], [None, 0.1], [-0.0]),
    "record": Kind(
        Level, (Level(1.5, None), Level(0.1, "X")), (LEVEL, {"price": 0.1, "venue": "X"})
    ),
    "list_of_records": Kind(list[Level], ([Level(1.5, None)], []), ([LEVEL], [])),
    "enumeration": Kind(Side, (Side.BUY, Side.SELL), ("BUY", "SELL")),
    "literal": Kind.plain(Literal["a", "b c"], "a", "b c"),
    "either": Kind.plain(
        int | str,
        {"case": "int", "int": {"0": 1}, "str": None},
        {"case": "str", "int": None, "str": {"0": "x"}},
    ),
    "optional_enumeration": Kind(Side | None, (None, Side.SELL), (None, "SELL")),
}
# Types that no result can have, which the pipeline says before anything is opened.
REFUSED = (set, Decimal, dict, complex, object)


def pipeline_of(**types: Any) -> rp.Pipeline:
    """Return a pipeline whose rows have a field of each type; values: the ``i``-th of a kind."""
    made = dataclasses.make_dataclass("Made", [("k", str), *types.items()])
    kinds = {
        name: next((k for k in KINDS.values() if k.type is of), None) for name, of in types.items()
    }

    def make(row: Any) -> dict[str, Any]:
        given = {name: kind.values[row.i] for name, kind in kinds.items() if kind is not None}
        return {"k": row.k, **given}

    rows = rp.Pipeline("types").source("seen", Seen).partition("by", key="k")
    return rows.fold("f", i=rp.max("i")).map("made", make, into=made).sink("o")


EVENTS = [{"k": "a", "i": 0}, {"k": "b", "i": 1}]
