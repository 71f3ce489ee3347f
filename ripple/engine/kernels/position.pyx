# cython: language_level=3, boundscheck=False, wraparound=False
"""The position after each fill, in units: by average cost, or by lots."""

from cpython.list cimport PyList_GET_SIZE


cdef inline object half_even(object above, object below):
    """Return a quotient of integers, rounded to the nearest one, ties to the even one."""
    if below < 0:
        above, below = -above, -below
    whole, rest = divmod(above, below)
    rest = 2 * rest - below
    if rest > 0 or (rest == 0 and whole & 1):
        whole += 1
    return whole


cdef class PositionCall:
    """Applies a fill to a state, as a StateCall does.

    A state is (quantity, cost, realized, cash, fees) in units, and by lots (their quantities, their
    costs), the oldest first. Invariants: cash + cost = realized; lots have the sign of the quantity
    and add up to it, as their costs do to the cost.
    """

    cdef bint by_lots, is_lifo, has_fee, has_busted
    cdef object factor, fee_factor, least_held, most_held, least_money, most_money
    cdef Py_ssize_t lots_max

    def __init__(
        self, str method not None, *, bint has_fee, bint has_busted, factor, fee_factor, limits,
        Py_ssize_t lots_max,
    ):
        """factor, fee_factor: of a product and of a fee, in money. limits: of quantity and money."""
        self.by_lots, self.is_lifo = method != "average", method == "lifo"
        self.has_fee, self.has_busted = has_fee, has_busted
        self.factor, self.fee_factor, self.lots_max = factor, fee_factor, lots_max
        self.most_held, self.most_money = limits
        self.least_held, self.least_money = -self.most_held, -self.most_money

    def __call__(self, tuple before not None, tuple row not None):
        """Return the state after a fill, and the values of its row, None for a busted one.

        Raises ValueError for a null, for amounts beyond their types, and for too many lots.
        """
        cdef tuple after
        if self.has_busted and row[len(row) - 1]:
            return before, None
        quantity, price = row[0], row[1]
        if quantity is None or price is None:
            raise ValueError("a fill has no quantity" if quantity is None else "a fill has no price")
        fee = 0
        if self.has_fee:
            fee = row[2]
            if fee is None:
                raise ValueError("a fill has no fee: .derive 0 for it with .fill_null(0)")
        price = price * self.factor
        if self.by_lots:
            after = self.lots_after(before, quantity, price)
        else:
            after = self.average_after(before, quantity, price)
        held, cost, realized = after[0], after[1], after[2]
        cash, fees = before[3] - quantity * price, before[4] + fee * self.fee_factor
        if not self.least_held <= held <= self.most_held:
            raise ValueError("the quantity has more digits than its type")
        self.check("cost", cost)
        self.check("realized", realized)
        self.check("cash", cash)
        self.check("fees", fees)
        made = (held, cost, realized, realized - before[2], cash)
        if self.has_fee:
            made += (fees,)
        return (held, cost, realized, cash, fees) + after[3:], made

    cdef int check(self, str what, object amount) except -1:
        if not self.least_money <= amount <= self.most_money:
            raise ValueError(f"{what} has more digits than its type: name a wider one as money=")
        return 0

    cdef tuple average_after(self, tuple before, object quantity, object price):
        """Return (quantity, cost, realized) after a fill."""
        held, cost, realized = before[0], before[1], before[2]
        if held == 0 or (held > 0) == (quantity > 0):
            return held + quantity, cost + quantity * price, realized
        closed = -quantity if abs(quantity) <= abs(held) else held
        part = half_even(cost * closed, held)
        realized += closed * price - part
        if closed != held:
            return held - closed, cost - part, realized
        left = quantity + held
        return left, left * price, realized

    cdef tuple lots_after(self, tuple before, object quantity, object price):
        """Return (quantity, cost, realized, lots, their costs) after a fill."""
        held, cost, realized = before[0], before[1], before[2]
        cdef list lots = before[5], costs = before[6]
        cdef Py_ssize_t at
        if quantity == 0:
            return held, cost, realized, lots, costs
        lots, costs = list(lots), list(costs)
        held += quantity
        at = PyList_GET_SIZE(lots) - 1 if self.is_lifo else 0
        while quantity and 0 <= at < PyList_GET_SIZE(lots) and (lots[at] > 0) != (quantity > 0):
            lot = lots[at]
            if abs(lot) > abs(quantity):
                part = half_even(costs[at] * -quantity, lot)
                realized += -quantity * price - part
                cost -= part
                lots[at], costs[at] = lot + quantity, costs[at] - part
                quantity = 0
                break
            realized += lot * price - costs[at]
            cost -= costs[at]
            quantity += lot
            at += -1 if self.is_lifo else 1
        if self.is_lifo:
            del lots[at + 1 :], costs[at + 1 :]
        else:
            del lots[:at], costs[:at]
        if quantity:
            if PyList_GET_SIZE(lots) >= self.lots_max:
                raise ValueError(f"there would be more than {self.lots_max} lots")
            lots.append(quantity)
            costs.append(quantity * price)
            cost += quantity * price
        return held, cost, realized, lots, costs
