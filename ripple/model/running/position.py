"""Positions of fills: quantity, cost, profit and cash, by average cost or by lots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.running.functions import Input
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.notation import type_to_sexp
from ripple.model.schema.types import (
    Bool,
    Decimal,
    Field,
    Int,
    Int64,
    List,
    Schema,
    WideDecimal,
    bare_type,
)

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp
    from ripple.model.schema.types import FieldType

METHODS = ("average", "fifo", "lifo")
LOTS_MAX = 1000
_INT64_MAX = (1 << 63) - 1
_NUMBERS = (Int, Int64, Decimal, WideDecimal)


class Position:
    """Positions of fills, as ``step=`` of a ``.scan(...)``.

    A row has ``quantity``, its ``cost``, the ``realized`` profit so far and the ``gain`` of this
    fill, the ``cash`` paid and received, and with ``fee=`` the ``fees``, which are in no other one.
    After each fill cash and cost together are the realized profit, to the last digit.

    quantity: bought, or below 0 sold. price: of one. Integers or decimals. method: which cost a
    reduction takes out: "average", its share of the cost, rounded half to even; "fifo", that of the
    oldest lots; "lifo", of the newest. fee: of the fill, below 0 a rebate. busted: a field that is
    true for a fill that does not count. money: the type of amounts of money; by default it has the
    digits of quantity and price behind the point, and 18 or 38 in all. lots: how many a key may
    have, at most 1,000; a fill beyond cannot be computed. split: two fields of integers, new and
    old; where both are there, a row is no fill: it makes new units of each old ones, at the same
    cost. The part of a unit that remains is sold at the price of the row, per new unit.
    """

    __slots__ = ("busted", "fee", "lots", "method", "money", "price", "quantity", "split")

    @called("rp.Position", '"quantity"', '"price"')
    def __init__(
        self,
        quantity: Input,
        price: Input,
        *,
        method: str,
        fee: Input | None = None,
        busted: Input | None = None,
        money: Decimal | None = None,
        lots: int = LOTS_MAX,
        split: tuple[Input, Input] | None = None,
    ) -> None:
        if not isinstance(method, str) or method not in METHODS:
            raise PlanError(
                f"rp.Position: method is {shown(method)}: it must be 'average', 'fifo' or 'lifo'"
            )
        if money is not None and not isinstance(money, (Decimal, WideDecimal)):
            raise PlanError(
                f"rp.Position: money takes a type such as rp.Decimal(38, 6), not {shown(money)}"
            )
        self.quantity, self.price, self.fee, self.busted = quantity, price, fee, busted
        if split is not None and (not isinstance(split, tuple | list) or len(split) != 2):
            raise PlanError(
                "rp.Position: split takes two fields, of the units after and before it, as "
                f"('new', 'old'), not {shown(split)}"
            )
        self.split = split
        self.method, self.money = method, money
        self.lots = need_whole("rp.Position: lots", lots, 1, most=LOTS_MAX)

    def __repr__(self) -> str:
        """Return its text in a plan."""
        named = ((name, getattr(self, name)) for name in ("fee", "busted", "money", "split"))
        more = "".join(f", {name}={value!r}" for name, value in named if value is not None)
        if self.lots != LOTS_MAX:
            more += f", lots={self.lots}"
        return f"Position({self.quantity!r}, {self.price!r}, method={self.method!r}{more})"

    def bind(
        self,
        quantity: Field,
        price: Field,
        fee: Field | None,
        busted: Field | None,
        split: tuple[Field, ...] = (),
    ) -> BoundPosition:
        """Return the positions of rows with these fields. Raises PlanError."""
        numbers = {"quantity": quantity, "price": price, "fee": fee}
        for what, field in numbers.items():
            if field is not None and not isinstance(bare_type(field.type), _NUMBERS):
                kind = type(bare_type(field.type)).__name__.lower()
                raise PlanError(
                    f"rp.Position: {what}: {field.name!r} is {kind}, and positions are exact: "
                    "declare it as an integer or a decimal, or .derive one before it, with "
                    ".cast(rp.Decimal(18, 4))"
                )
        if busted is not None and not isinstance(bare_type(busted.type), Bool):
            raise PlanError(f"rp.Position: busted: {busted.name!r} is no bool")
        for field in split:
            if not isinstance(bare_type(field.type), (Int, Int64)):
                raise PlanError(f"rp.Position: split: {field.name!r} is no integer")
        scale = _scale(quantity) + _scale(price)
        given = [one for one in numbers.values() if one is not None]
        money = _money(given, scale) if self.money is None else self.money
        of_fee = 0 if fee is None else _scale(fee)
        if _scale_of(money) < max(scale, of_fee):
            raise PlanError(
                f"rp.Position: money is {shown(money)}, and quantities times prices, and fees, "
                f"have up to {max(scale, of_fee)} digits behind the point: name a type with as "
                "many, as money=rp.Decimal(38, 8)"
            )
        return BoundPosition(
            self.method,
            quantity,
            price,
            fee,
            busted,
            money,
            10 ** (_scale_of(money) - scale),
            10 ** (_scale_of(money) - of_fee),
            self.lots,
            split,
        )


# Invariants: a product of a quantity and a price, times ``factor``, is an amount of money, and so
# is a fee times ``fee_factor``, in units.
@frozen
class BoundPosition:
    """Positions bound to the fields of rows. money: the type of amounts."""

    method: str
    quantity: Field
    price: Field
    fee: Field | None
    busted: Field | None
    money: FieldType
    factor: int
    fee_factor: int
    lots: int
    split: tuple[Field, ...] = ()

    @property
    def parameters(self) -> list[Sexp]:
        """The parameters of its rows, for node keys."""
        named = [self.quantity, self.price, self.fee, self.busted]
        names: list[Sexp] = ["" if one is None else one.name for one in named]
        split: list[Sexp] = [["split", *(one.name for one in self.split)]] if self.split else []
        return ["position", self.method, names, type_to_sexp(self.money), str(self.lots), *split]

    @property
    def reads(self) -> tuple[Field, ...]:
        """The fields that it reads, in the order of its arguments."""
        named = (self.quantity, self.price, self.fee, self.busted, *self.split)
        return tuple(one for one in named if one is not None)

    @property
    def schema(self) -> Schema:
        """The fields of a row."""
        names = ["cost", "realized", "gain", "cash", *(["fees"] if self.fee is not None else [])]
        held = Field("quantity", _widest(bare_type(self.quantity.type)))
        return Schema("Position", (held, *(Field(name, self.money) for name in names)))

    @property
    def state_fields(self) -> tuple[Field, ...]:
        """The fields of a state, in units: of money, of the quantity, and lots of both."""
        held, money = _units(self.quantity.type), _units(self.money)
        names = ("cost", "realized", "cash", "fees")
        own = (Field("quantity", held), *(Field(name, money) for name in names))
        if self.method == "average":
            return own
        return (*own, Field("lots", List(held)), Field("costs", List(money)))

    @property
    def initial(self) -> tuple[Any, ...]:
        """The state of a new key, as columns store it."""
        return tuple(map(_nothing, (one.type for one in self.state_fields)))

    @property
    def limits(self) -> tuple[int, int]:
        """The largest number of units of a quantity, and of an amount of money."""
        return _most(bare_type(self.quantity.type)), _most(self.money)


def _nothing(of: FieldType) -> Any:
    if isinstance(of, List):
        return []
    return rule_of(of).number(0) if isinstance(of, WideDecimal) else 0


def _scale(field: Field) -> int:
    return _scale_of(bare_type(field.type))


def _scale_of(of: FieldType) -> int:
    return of.scale if isinstance(of, (Decimal, WideDecimal)) else 0


def _money(numbers: list[Field], scale: int) -> FieldType:
    """Return the type of amounts of money for quantities, prices and fees."""
    kinds = [bare_type(one.type) for one in numbers]
    if all(isinstance(one, (Int, Int64)) for one in kinds):
        return Int64()
    is_wide = any(isinstance(one, WideDecimal) for one in kinds)
    return Decimal(38 if is_wide or scale > 12 else 18, scale)


def _widest(of: FieldType) -> FieldType:
    """Return the type of sums of a type."""
    if isinstance(of, (Decimal, WideDecimal)):
        return Decimal(38 if isinstance(of, WideDecimal) else 18, of.scale)
    return Int64()


def _units(of: FieldType) -> FieldType:
    """Return the type that stores the units of a type."""
    return Decimal(38, 0) if isinstance(bare_type(of), WideDecimal) else Int64()


def _most(of: FieldType) -> int:
    if isinstance(of, WideDecimal):
        return 10**38 - 1
    return 10**18 - 1 if isinstance(of, Decimal) else _INT64_MAX
