"""Order books and positions: scans with a step of Ripple's own in place of a user's function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import blaming_field, check_new_field, field_of
from ripple.model.pipeline.nodes import type_of, types_of
from ripple.model.pipeline.waiting_nodes import BookScan, PositionScan
from ripple.model.running.order_book import OrderBook
from ripple.model.running.position import Position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.pipeline.draft import Draft
    from ripple.model.schema.types import Field


def need_none(step: OrderBook | Position, given: Sequence[str]) -> None:
    """Raise PlanError for arguments of a step of ours."""
    if given:
        of = "an order book" if isinstance(step, OrderBook) else "rp.Position"
        raise PlanError(f"{given[0]} is given, and {of} takes none: leave it out")


def book_scan(
    book: OrderBook, common: dict[str, Any], *, is_eager: bool, is_last: bool
) -> BookScan:
    """Return the node of an order book. Raises PlanError."""
    if common["finals"]:
        raise PlanError(
            f"an order book takes messages as records, and these are final rows of "
            f"{common['finals']!r}: put it before that fold"
        )
    if is_last:
        raise PlanError(
            "show is 'last', and an order book has a row for each change: say settled=True, and "
            ".partition('by-key', key=...).fold('last', of=rp.last_row([...])) behind it"
        )
    if is_eager and book.show == "levels":
        raise PlanError(
            "OrderBook: show is 'levels', with several rows of a message, which are given once, "
            "when no message can precede theirs any more: say settled=True"
        )
    fields = common["fields_in"]
    roles = {
        role: field_of(given, fields, f"OrderBook: {role}") for role, given in book.inputs.items()
    }
    for role, field in roles.items():
        book.check_type(role, type_of(field))
    kept = book.kept(fields, roles)
    missing = [one.name for one in common["key"] if one not in kept]
    if missing:
        raise PlanError(f"OrderBook: {missing[0]!r} is the key, and read as another field")
    added = book.fields_out(roles)
    for field in added:
        check_new_field(field.name, types_of(kept))
    return BookScan(
        **common,
        fields_out=(*kept, *added),
        book=book,
        roles=tuple(roles.items()),
        added=added,
        is_eager=is_eager,
    )


def position_scan(
    of: Position, draft: Draft, common: dict[str, Any], shows: dict[str, Any]
) -> PositionScan:
    """Return the node of positions. Raises PlanError."""

    def taken(given: Any, what: str) -> Field:
        with blaming_field(f"rp.Position: {what}"):
            return field_of(given, draft.fields, what)

    fee = None if of.fee is None else taken(of.fee, "fee")
    busted = None if of.busted is None else taken(of.busted, "busted")
    split = tuple(taken(given, "split") for given in of.split or ())
    quantity, price = taken(of.quantity, "quantity"), taken(of.price, "price")
    position = of.bind(quantity, price, fee, busted, split)
    schema = position.schema
    names = {field.name for field in schema.fields}
    for field in common["key"]:
        if field.name in names:
            raise PlanError(
                f"the key {field.name!r} has the name of a field of rp.Position: rename it with "
                ".derive(...) before it"
            )
    return PositionScan(
        **common,
        fields_out=(*common["key"], *schema.fields),
        function=cast("Any", of),
        state=Position,
        state_fields=position.state_fields,
        initial=position.initial,
        row=draft.row,
        into=None,
        schema=schema,
        **shows,
        position=position,
    )
