"""The order book as a step of ``.scan``: which fields it reads, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, need_whole, shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.running.functions import Input
from ripple.model.schema.types import (
    Bool,
    Decimal,
    Field,
    Float,
    Int,
    Int64,
    Option,
    String,
    bare_type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.core.sexp import Sexp
    from ripple.model.schema.types import FieldType

TOPS_DEPTH_MAX = 100  # each level is four fields
LEVELS_DEPTH_MAX = 1_000  # a row for each level that comes or goes, of both sides
KEPT_MAX = 10_000  # messages of a book that wait for a snapshot

RULES = ("dense", "linked", "range", "channel")
CHECKSUMS = ("kraken", "okx", "bitfinex")
SIDES = {"B": 0, "bid": 0, "buy": 0, "A": 1, "ask": 1, "sell": 1}
ACTIONS = {"A": 0, "M": 1, "C": 2, "S": 3, "R": 4, "B": 5, "E": 6, "T": 7, "F": 7, "U": 7}
"""Add, modify and take off an order, set a level, clear; begin and end of a snapshot; no effect."""

STATUSES = ("new", "open", "loading", "gap", "locked", "crossed")

REASONS = (
    "",
    "the action is none of A, M, C, S, R, B, E, T, F and U, or not one of this kind of book",
    "the side is none of B, A, bid, ask, buy and sell",
    "the price is null, or not finite",
    "the size is null, below zero, not finite, or zero for an order",
    "the order is null",
    "the sequence number is null",
    "the number of the message before is null",
    "the order is in the book already",
    "the order is not in the book",
    "the sizes of a level add up to over 64 bits, or 18 digits",
    "a snapshot ends that has not begun",
    "a gap: the message does not follow the one before by its sequence number",
    "a gap: the snapshot is older than messages that could not be kept",
    "more than 10000 rows of the record: the next message of the key shows its levels",
    "the checksum is not that of the book: it is unknown until a snapshot",
)
"""Why a message was not applied, by its code in the compiled loop."""

_NUMBERS = (Int, Int64)
_ROLES: dict[str, tuple[tuple[type, ...], str]] = {
    "side": ((String,), "a text, B or A"),
    "price": (
        (*_NUMBERS, Float, Decimal),
        "an integer, a float or a rp.Decimal of up to 18 digits",
    ),
    "size": ((*_NUMBERS, Float, Decimal), "an integer, a float or a rp.Decimal of up to 18 digits"),
    "action": ((String,), "a text of one letter"),
    "order": (_NUMBERS, "an integer"),
    "sequence": (_NUMBERS, "an integer"),
    "previous": (_NUMBERS, "an integer"),
    "last": ((Bool,), "a boolean"),
    "checksum": (_NUMBERS, "an integer"),
}
_DROPPED = ("side", "price", "size", "action", "order")


@frozen
class OrderBook:
    """An order book of each key, from its messages in their order: the step of a ``.scan``.

    side, price, size: the fields of a message. action: the field with its kind, "A" (an order is
    added), "M" (its price and size are others), "C" (its size falls by ``size``, or to zero where
    that is null), "S" (the level's size is ``size``; 0 removes it), "R" (the book is empty), "B"
    and "E" (a snapshot begins and ends), "T", "F" and "U" (nothing changes). Without it, each
    message sets a level. order: the field with the order, for a book by order; else it is by level.
    sequence, rule: the field with the sequence number, and its rule: "dense" (each message has the
    number after the one before), "linked" (a message names the one before in ``previous``),
    "range" (a message has the numbers from ``previous`` to ``sequence``) or "channel" (other books
    have numbers, too: it does not fall). previous: the field for that. last: the field that is true
    in the last message of an event; else each message is one. A book is shown only there.
    show: "tops", a row for each change of the best ``depth`` levels, or "levels", a row for each of
    these levels that changes. depth: 1 by default, up to 100; of levels up to 1,000. begins:
    "unknown", until a snapshot, or "empty". strict: a message that cannot be applied makes the book
    unknown. checksum, checksum_rule: the field with the venue's checksum after an event, null where
    it sends none, and the venue's rule: "kraken", "okx" or "bitfinex", of a book by level with
    prices and sizes as integers or decimals. A mismatch makes the book unknown. venue_depth: the
    levels of a side that the venue publishes; further levels are dropped after each event.
    """

    side: Input
    price: Input
    size: Input
    action: Input
    order: Input
    sequence: Input
    rule: str | None
    previous: Input
    last: Input
    show: str
    depth: int
    begins: str
    strict: bool
    checksum: Input
    checksum_rule: str | None
    venue_depth: int | None

    def __init__(
        self,
        *,
        side: Input = "side",
        price: Input = "price",
        size: Input = "size",
        action: Input = None,
        order: Input = None,
        sequence: Input = None,
        rule: str | None = None,
        previous: Input = None,
        last: Input = None,
        show: str = "tops",
        depth: int = 1,
        begins: str = "unknown",
        strict: bool = False,
        checksum: Input = None,
        checksum_rule: str | None = None,
        venue_depth: int | None = None,
    ) -> None:
        _need_one("rule", rule, (None, *RULES))
        _need_one("show", show, ("tops", "levels"))
        _need_one("begins", begins, ("unknown", "empty"))
        need_bool("OrderBook: strict", strict)
        most = TOPS_DEPTH_MAX if show == "tops" else LEVELS_DEPTH_MAX
        levels = need_whole("OrderBook: depth", depth, 1, most=most)
        if (sequence is None) != (rule is None):
            missing = "sequence" if sequence is None else "rule"
            raise PlanError(
                f"OrderBook: {missing} is missing: sequence is the field with the sequence number, "
                f"and rule says how that grows, one of {', '.join(RULES)}"
            )
        for what, needed in (("side", side), ("price", price), ("size", size)):
            if needed is None:
                raise PlanError(
                    f"OrderBook: {what} is missing: name the field of a message with it"
                )
        names_before = rule in ("linked", "range")
        if (previous is not None) != names_before:
            state = "is missing" if names_before else f"is {shown(previous)}"
            raise PlanError(
                f"OrderBook: previous {state}, and is for rule='linked', where it is the number "
                "before, and for rule='range', where it is the first number of the message"
            )
        _check_venue(checksum, checksum_rule, venue_depth, order)
        told = None if venue_depth is None else int(venue_depth)
        if action is None and order is not None:
            raise PlanError(
                f"OrderBook: action is missing, and order, {shown(order)}, needs the field that "
                "says what happens to it"
            )
        if action is None and begins == "unknown":
            raise PlanError(
                "OrderBook: action is missing, and without snapshots the book would stay unknown: "
                "name the field, or say begins='empty'"
            )
        given = {
            "side": side, "price": price, "size": size, "action": action, "order": order,
            "sequence": sequence, "rule": rule, "previous": previous, "last": last, "show": show,
            "depth": levels, "begins": begins, "strict": strict, "checksum": checksum,
            "checksum_rule": checksum_rule, "venue_depth": told,
        }  # fmt: skip
        for name, value in given.items():
            object.__setattr__(self, name, value)

    @property
    def inputs(self) -> dict[str, Input]:
        """The fields that it reads, as given, by their roles."""
        found = {role: getattr(self, role) for role in _ROLES}
        return {role: given for role, given in found.items() if given is not None}

    def check_type(self, role: str, of: FieldType) -> None:
        """Raise PlanError for a field of a type that the role cannot have."""
        kinds, wanted = _ROLES[role]
        bare = bare_type(of)
        if not isinstance(bare, kinds):
            raise PlanError(
                f"OrderBook: {role} takes {wanted}, and {shown(getattr(self, role))} is "
                f"{type(bare).__name__.lower()}: derive one before it"
            )
        if role == "size" and isinstance(bare, Float) and self.order is not None:
            raise PlanError(
                "OrderBook: size holds floats, and the sizes of orders are added up, which drifts: "
                ".cast(rp.Decimal(18, 8)) in a .derive before it"
            )

        if role in ("price", "size") and isinstance(bare, Float) and self.checksum is not None:
            raise PlanError(
                f"OrderBook: {role} holds floats, and a checksum is of decimal digits: "
                f".cast(rp.Decimal(18, digits)) in a .derive before it, with the venue's digits"
            )

    def fields_out(self, roles: dict[str, Field]) -> tuple[Field, ...]:
        """Return the fields of a row beside its message's own. roles: the fields that are read."""
        price, size = (bare_type(roles[role].type) for role in ("price", "size"))
        if self.order is not None and isinstance(size, Decimal):
            size = Decimal(18, size.scale)  # of sums
        if self.show == "levels":
            orders = [] if self.order is None else [Field("orders", Int64())]
            side = [Field("side", String()), Field("price", price)]
            return (*side, Field("size", size), *orders)
        made = [Field("status", String()), Field("gaps", Int64())]
        for level in range(1, self.depth + 1):
            end = "" if level == 1 else f"_{level}"
            for side_name in ("bid", "ask"):
                made.append(Field(f"{side_name}{end}", Option(price)))
                made.append(Field(f"{side_name}_size{end}", Option(size)))
        return tuple(made)

    def kept(self, fields: Sequence[Field], roles: dict[str, Field]) -> tuple[Field, ...]:
        """Return the fields of a message that its rows have: without its effect on the book.

        A level has its own side, price and size.
        """
        gone = {roles[role].name for role in _DROPPED if role in roles}
        if self.show == "levels":
            gone |= {"side", "price", "size", "orders"}
        return tuple(field for field in fields if field.name not in gone)

    @property
    def parameters(self) -> Sexp:
        """The settings beside the fields."""
        said = [self.rule or "", self.show, str(self.depth), self.begins]
        checks = [] if self.checksum_rule is None else [f"checksum {self.checksum_rule}"]
        depth = [] if self.venue_depth is None else [f"venue_depth {self.venue_depth}"]
        return [*said, "strict" if self.strict else "", *checks, *depth]

    @property
    def text(self) -> str:
        """Return it in a line."""
        by = "level" if self.order is None else "order"
        rule = "no sequence numbers" if self.rule is None else f"sequence {self.rule}"
        strict = ", strict" if self.strict else ""
        checks = "" if self.checksum_rule is None else f", checksum {self.checksum_rule}"
        venue = "" if self.venue_depth is None else f", {self.venue_depth} levels of the venue"
        said = f"begins {self.begins}, {self.show} of {self.depth}{strict}{checks}{venue}"
        return f"book by {by}, {rule}, {said}"


def scale_of(of: FieldType) -> int:
    """Return the digits behind the point of integers and decimals."""
    bare = bare_type(of)
    return bare.scale if isinstance(bare, Decimal) else 0


def _check_venue(checksum: Input, rule: str | None, depth: int | None, order: Input) -> None:
    """Raise PlanError for what a venue's levels cannot be."""
    _need_one("checksum_rule", rule, (None, *CHECKSUMS))
    if (checksum is None) != (rule is None):
        raise PlanError(
            f"OrderBook: checksum is {shown(checksum)}, and checksum_rule {shown(rule)}: "
            "give both, the field with the venue's checksum, and whose it is, one of "
            f"{', '.join(CHECKSUMS)}, or none"
        )
    if depth is not None:
        need_whole("OrderBook: venue_depth", depth, 1)
    for what, given in (("checksum", checksum), ("venue_depth", depth)):
        if given is not None and order is not None:
            raise PlanError(
                f"OrderBook: {what} is {shown(given)}, and is of levels; with order, "
                f"{shown(order)}, the book is by order: leave out one of the two"
            )


def _need_one(what: str, given: Any, choices: Sequence[Any]) -> None:
    if not (given is None or isinstance(given, str)) or given not in choices:
        names = ", ".join(repr(one) for one in choices)
        raise PlanError(f"OrderBook: {what} is {shown(given)}, and takes one of {names}")
