"""An order book in plain Python, from its definition: levels and orders are dicts."""

from __future__ import annotations

import decimal
import math
import zlib
from dataclasses import dataclass, field
from itertools import chain, cycle, zip_longest
from typing import TYPE_CHECKING, Any

from ripple.model.pipeline.nodes import type_of
from ripple.model.pipeline.waiting_nodes import BookScan
from ripple.model.running.order_book import KEPT_MAX, REASONS, scale_of
from ripple.testing.reference.steps import RefusedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.model.running.order_book import OrderBook
    from ripple.testing.reference.steps import Row

_BIDS, _ASKS = ("B", "bid", "buy"), ("A", "ask", "sell")
_BY_ORDER, _BY_LEVEL, _OF_BOTH = ("A", "M", "C"), ("S",), ("R", "B", "E", "T", "F", "U")


class _Unfit(Exception):  # noqa: N818  # not an error of the program: the message's fate
    """A message cannot be applied, by the number of the reason."""


@dataclass
class ReferenceBook:
    """A book. orders: by order its side, price and size. sides: of a book by level, its sizes."""

    of: OrderBook
    status: str = "new"
    number: Any = None
    is_fresh: bool = False
    in_event: bool = False
    gaps: int = 0
    orders: dict[int, tuple[str, Any, Any]] = field(default_factory=dict)
    sizes: dict[tuple[str, Any], Any] = field(default_factory=dict)
    kept: list[dict[str, Any]] = field(default_factory=list)
    lost_to: int | None = None
    shown: Any = None
    failed: list[int] = field(default_factory=list)
    scales: tuple[int, int] = (0, 0)
    """The digits of prices and sizes behind the point, as declared."""

    def levels(self, side: str) -> list[tuple[Any, Any, int]]:
        """Return (price, size, orders) of the shown levels of a side, the best one first."""
        return self._best(side, self.of.depth) if self.status == "open" else []

    def _best(self, side: str, most: int | None) -> list[tuple[Any, Any, int]]:
        """Return so many of the best levels of a side."""
        found: dict[Any, tuple[Any, int]] = {}
        for of, price, size in self.orders.values():
            if of == side:
                total, count = found.get(price, (0, 0))
                found[price] = total + size, count + 1
        found |= {price: (size, 1) for (of, price), size in self.sizes.items() if of == side}
        prices = sorted(found, reverse=side == "B")[:most]
        return [(price, *found[price]) for price in prices]

    def apply(self, message: dict[str, Any]) -> None:
        """Take a message; ``failed`` has the reasons for its failed parts."""
        self.failed = []
        try:
            _check(self.of, message, self._reads_previous(message))
        except _Unfit as unfit:
            self._fail(unfit.args[0])
            message = {**message, "action": "U"}
            if unfit.args[0] in (6, 7):
                return
        if message.get("previous", 0) is None:
            message = {**message, "previous": math.inf}
        self._process(message)

    def _reads_previous(self, message: dict[str, Any]) -> bool:
        """Return whether a message is compared with the one before it: not in a snapshot."""
        action, number = message["action"], message.get("sequence")
        if self.of.rule not in ("linked", "range") or action in ("B", "E"):
            return False
        if self.status != "loading":
            return bool(action != "R")
        return bool(number is None or number > self.number)

    def _clear(self) -> None:
        self.orders, self.sizes = {}, {}

    def _lose(self) -> None:
        self.status, self.in_event = "gap", False
        self.gaps += 1
        self._clear()

    def _fail(self, reason: int) -> None:
        self.failed.append(reason)
        if self.of.strict and self.status in ("open", "loading"):
            self._lose()

    def _keep(self, message: dict[str, Any]) -> None:
        if self.of.rule is None:
            return
        self.kept.append(message)
        for gone in self.kept[:-KEPT_MAX]:
            self.lost_to = max(gone["sequence"], self.lost_to or gone["sequence"])
        self.kept = self.kept[-KEPT_MAX:]

    def _process(self, message: dict[str, Any]) -> None:
        action, number = message["action"], message.get("sequence", 0)
        if action == "B" or (action == "R" and self.status != "loading"):
            self._clear()
            self.status, self.number = "loading" if action == "B" else "open", number
            self.is_fresh, self.in_event = True, False
            if action == "R":
                self._replay()
        elif action == "E":
            if self.status != "loading":
                self._fail(11)
                return
            self.status = "open"
            self._end_event(message)
            if self.status == "open":
                self._replay()
        elif self.status == "open":
            self._increment(message, number)
        elif self.status == "loading" and number == self.number:
            self._change(message)
        elif self.status != "loading" or number > self.number:
            self._keep(message)

    def _increment(self, message: dict[str, Any], number: int) -> None:
        if self._follows(message):
            self.number, self.is_fresh, self.in_event = number, False, not message["last"]
            self._change(message)
            if message["last"]:
                self._end_event(message)
        elif self.of.rule == "channel" or number > self.number:
            self.failed.append(12)
            self._lose()
            self._keep(message)

    def _end_event(self, message: dict[str, Any]) -> None:
        if self.status != "open":
            return
        if self.of.venue_depth is not None:
            best = {
                (side, one[0]) for side in "BA" for one in self._best(side, self.of.venue_depth)
            }
            self.sizes = {at: size for at, size in self.sizes.items() if at in best}
        checksum = message.get("checksum")
        if checksum is not None and checksum not in self._checksums():
            self.failed.append(15)
            self._lose()

    def _checksums(self) -> tuple[int, int]:
        """Return the checksum of the book, without a sign and with one."""
        if self.of.checksum_rule == "kraken":
            levels = [*self._best("A", 10), *self._best("B", 10)]
            texts = [str(units).lstrip("0") for level in levels for units in level[:2]]
            found = zlib.crc32("".join(texts).encode())
        else:
            pairs = zip_longest(self._best("B", 25), self._best("A", 25))
            signs = {"A": (1, -1)} if self.of.checksum_rule == "bitfinex" else {}
            texts = [
                self._text(decimal.Decimal(units * sign).scaleb(-scale).normalize())
                for side, level in zip(cycle("BA"), chain(*pairs))
                if level is not None
                for units, scale, sign in zip(
                    level[:2], self.scales, signs.get(side, (1, 1)), strict=True
                )
            ]
            found = zlib.crc32(":".join(texts).encode())
        return found, found - (1 << 32) if found >> 31 else found

    def _text(self, number: decimal.Decimal) -> str:
        if self.of.checksum_rule == "bitfinex" and number and number.adjusted() < -6:
            return f"{number:e}"
        return f"{number:f}"

    def _follows(self, message: dict[str, Any]) -> bool:
        number, before = (message.get(role, 0) for role in ("sequence", "previous"))
        last = self.number
        if self.of.rule is None or last is None:
            return True
        if self.in_event and number == last:
            return True
        if self.of.rule == "dense":
            return bool(number == last + 1)
        if self.of.rule == "channel":
            return bool(number >= last)
        if self.of.rule == "linked":
            return bool(before == last or (self.is_fresh and before < last < number))
        first = before
        return bool(number > last and (first == last + 1 or (self.is_fresh and first <= last)))

    def _replay(self) -> None:
        if self.of.rule is None:
            return
        number = self.number
        assert number is not None, "a snapshot has a number"
        if self.lost_to is not None and self.lost_to > number:
            self.failed.append(13)
            self._lose()
            return
        kept, self.kept, self.lost_to = self.kept, [], None
        for message in kept:
            if message["sequence"] > number:
                self._process(message)

    def _change(self, message: dict[str, Any]) -> None:
        action, order = message["action"], message.get("order", 0)
        side, price, size = message["side"], message["price"], message["size"]
        if action == "R":
            self._clear()
        elif action == "S":
            self.sizes.pop((side, price), None)
            if size:
                self.sizes[side, price] = size
        elif action == "A":
            if order in self.orders:
                self._fail(8)
            else:
                self._put(order, (side, price, size))
        elif action in ("M", "C"):
            if order not in self.orders:
                self._fail(9)
            elif action == "M":
                self._put(order, (side, price, size))
            else:
                own_side, own_price, own_size = self.orders[order]
                if size is None or size >= own_size:
                    del self.orders[order]
                else:
                    self.orders[order] = own_side, own_price, own_size - size

    def _put(self, order: int, what: tuple[str, Any, Any]) -> None:
        before = self.orders.get(order)
        self.orders[order] = what
        if sum(one[2] for one in self.orders.values() if one[:2] == what[:2]) >= 1 << 63:
            if before is None:
                del self.orders[order]
            else:
                self.orders[order] = before
            self._fail(10)

    def rows(self) -> Iterator[Row]:
        """Yield the changes since the last rows."""
        sides = {side: self.levels(side) for side in "BA"}
        if self.of.show == "levels":
            old_sides = self.shown or {"B": [], "A": []}
            for side in "BA":
                old = {price: rest for price, *rest in old_sides[side]}
                new = {price: rest for price, *rest in sides[side]}
                for price in sorted(old | new, reverse=side == "A"):
                    if old.get(price) != new.get(price):
                        size, count = new.get(price) or (0 * old[price][0], 0)
                        orders = {} if self.of.order is None else {"orders": count}
                        yield {"side": side, "price": price, "size": size, **orders}
            self.shown = sides
            return
        bids, asks = sides["B"], sides["A"]
        status = self.status
        if bids and asks and bids[0][0] >= asks[0][0]:
            status = "locked" if bids[0][0] == asks[0][0] else "crossed"
        row = {"status": status, "gaps": self.gaps}
        for at in range(self.of.depth):
            end = f"_{at + 1}" if at else ""
            for name, levels in (("bid", bids), ("ask", asks)):
                price, size = levels[at][:2] if at < len(levels) else (None, None)
                row |= {f"{name}{end}": price, f"{name}_size{end}": size}
        if row != self.shown and not (self.shown is None and status == "new"):
            self.shown = row
            yield row


def _check(of: OrderBook, message: dict[str, Any], reads_previous: bool) -> None:
    """Raise _Unfit for a message that no book can apply."""
    action, order, size = message["action"], message.get("order"), message["size"]
    own = _BY_LEVEL if of.order is None else _BY_ORDER
    is_change, is_whole = action in own, action in ("A", "M", "S")
    wanted = (
        (of.rule is None or message["sequence"] is not None, 6),
        (not reads_previous or message["previous"] is not None, 7),
        (is_change or action in _OF_BOTH, 1),
        (action != "C" or order is not None, 5),
        (not (is_change and is_whole) or message["side"] is not None, 2),
        (not (is_change and is_whole) or message["price"] is not None, 3),
        (not is_change or (size is None and action == "C") or _is_size(size, action), 4),
        (not (is_change and of.order is not None) or order is not None, 5),
    )
    for holds, reason in wanted:
        if not holds:
            raise _Unfit(reason)


def _is_size(size: Any, action: str) -> bool:
    return size is not None and (size > 0 or (size == 0 and action == "S"))


def with_book(
    node: BookScan, book: ReferenceBook | None, row: Row
) -> tuple[ReferenceBook, list[RefusedRow], list[Row]]:
    """Return the book after a message, why the message failed, and the rows that it makes."""
    if book is None:
        status = "open" if node.book.begins == "empty" else "new"
        roles = dict(node.roles)
        scales = scale_of(type_of(roles["price"])), scale_of(type_of(roles["size"]))
        book = ReferenceBook(node.book, status, scales=scales)
    message = {role: _plain(row[field.name]) for role, field in node.roles}
    message.setdefault("action", "S")
    message["last"] = bool(message.get("last", True))
    side = message["side"]
    message["side"] = "B" if side in _BIDS else "A" if side in _ASKS else None
    book.apply(message)
    lost = [RefusedRow(node.name, REASONS[reason]) for reason in book.failed]
    carried = [one.name for one in node.fields_out[: -len(node.added)]]
    made = []
    if message["last"] or book.status != "open":
        made = [{**{name: row[name] for name in carried}, **one} for one in book.rows()]
    return book, lost, made


def _plain(value: Any) -> Any:
    """Return a value, None for a float that is not finite, and zero without a sign."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None
    return value
