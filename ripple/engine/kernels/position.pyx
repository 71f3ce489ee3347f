# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The position after each fill, in units: by average cost, or by lots."""

from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport int64_t, uint8_t

cdef extern from *:
    """
    typedef __int128 ripple_wide;
    """
    ctypedef long long wide "ripple_wide"

cdef int64_t MOST = 0x7fffffffffffffff


cdef inline bint within(wide amount, wide most) noexcept:
    return amount <= most and -amount <= most


cdef inline wide rounded(wide above, wide below) noexcept:
    """The same as half_even, of numbers of 128 bits whose double fits."""
    cdef wide whole, rest
    if below < 0:
        above, below = -above, -below
    whole, rest = above / below, above % below  # towards 0
    if rest < 0:
        whole, rest = whole - 1, rest + below
    if 2 * rest > below or (2 * rest == below and whole & 1):
        whole += 1
    return whole


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

    cdef bint by_lots, is_lifo, has_fee, has_busted, has_split
    cdef object factor, fee_factor, least_held, most_held, least_money, most_money
    cdef Py_ssize_t lots_max
    cdef readonly bint is_small
    """Whether all amounts have 64 bits."""
    cdef wide cost, gained
    cdef int64_t small_held, small_money, small_factor, small_fee_factor

    def __init__(
        self, str method not None, *, bint has_fee, bint has_busted, factor, fee_factor, limits,
        Py_ssize_t lots_max, bint reads_wide, bint has_split=False,
    ):
        """factor, fee_factor: of a product and of a fee, in money. limits: of quantity and money.

        reads_wide: a price or a fee may have over 64 bits.
        """
        self.by_lots, self.is_lifo = method != "average", method == "lifo"
        self.has_fee, self.has_busted, self.has_split = has_fee, has_busted, has_split
        self.factor, self.fee_factor, self.lots_max = factor, fee_factor, lots_max
        self.most_held, self.most_money = limits
        self.least_held, self.least_money = -self.most_held, -self.most_money
        most = max(self.most_held, self.most_money, factor, fee_factor)
        self.is_small = most <= MOST and not reads_wide
        if self.is_small:
            self.small_held, self.small_money = limits
            self.small_factor, self.small_fee_factor = factor, fee_factor

    def __call__(self, tuple before not None, tuple row not None):
        """Return the state after a fill, and the values of its row, None for a busted one.

        Raises ValueError for a null, for amounts beyond their types, and for too many lots.
        """
        cdef tuple after, made
        cdef int64_t out[6]
        if self.has_busted and row[2 + self.has_fee]:
            return before, None
        quantity, price = row[0], row[1]
        if self.has_split and row[len(row) - 2] is not None:
            return self.split(before, price, row[2] if self.has_fee else None, row[len(row) - 2:])
        if quantity is None or price is None:
            raise ValueError("a fill has no quantity" if quantity is None else "a fill has no price")
        fee = 0
        if self.has_fee:
            fee = row[2]
            if fee is None:
                raise ValueError("a fill has no fee: .derive 0 for it with .fill_null(0)")
        if self.is_small:
            after = self.small_of(before, quantity, price, fee, out, 1)
            if after is not None:
                made = (out[0], out[1], out[2], out[3], out[4])
                return after, made + (out[5],) if self.has_fee else made
        price = price * self.factor
        if self.by_lots:
            after = self.lots_after(before, quantity, price)
        else:
            after = self.average_after(before, quantity, price)
        return self.checked(before, after, before[3] - quantity * price, fee)

    cdef tuple checked(self, tuple before, tuple after, object cash, object fee):
        """Return the state after a row, and the values of its row, within their types."""
        held, cost, realized = after[0], after[1], after[2]
        fees = before[4] + fee * self.fee_factor
        if not self.least_held <= held <= self.most_held:
            raise ValueError("the quantity has more digits than its type")
        self.check("cost", cost)
        self.check("realized", realized)
        self.check("gain", realized - before[2])
        self.check("cash", cash)
        self.check("fees", fees)
        made = (held, cost, realized, realized - before[2], cash)
        if self.has_fee:
            made += (fees,)
        return (held, cost, realized, cash, fees) + after[3:], made

    cdef tuple split(self, tuple before, object price, object fee, tuple ratio):
        """Return the state after a split, and the values of its row.

        ratio: so many units for each so many. The part of a unit that remains is sold.
        """
        new, old = ratio
        if old is None or new <= 0 or old <= 0:
            raise ValueError(f"a split is of {new} for {old}: both must be whole numbers above 0")
        cdef tuple lots = ()
        sign = -1 if before[0] < 0 else 1
        whole, rest = divmod(sign * before[0] * new, old)
        lieu = part = 0
        if rest and price is None:
            raise ValueError("a split leaves a part of a unit, and the row has no price for it")
        if rest:
            lieu = sign * half_even(rest * price * self.factor, old)
            part = half_even(before[1] * rest, sign * before[0] * new)
        if self.by_lots:
            lots, part = self.split_lots(before[5], before[6], sign * new, old, rest)
        after = (sign * whole, before[1] - part, before[2] + lieu - part) + lots
        return self.checked(before, after, before[3] + lieu, 0 if fee is None else fee)

    cdef tuple split_lots(self, tuple lots, tuple costs, object new, object old, object rest):
        """Return (the lots and their costs after a split, the cost of what is sold).

        new: below 0 of lots below 0. rest: what is sold, times ``old``: of the oldest lots, or of
        the newest. Each lot then has whole units, which add up; one without any gives its cost to
        the next.
        """
        cdef list sizes = [lot * new for lot in lots], paid = list(costs), units = [], kept = []
        cdef Py_ssize_t i
        part, total, given, over = 0, 0, 0, 0
        sign = -1 if new < 0 else 1
        if not self.is_lifo:  # what is sold stands last
            sizes.reverse()
            paid.reverse()
        i = len(sizes)
        while rest:
            i -= 1
            sold = min(rest, sizes[i])
            share = half_even(paid[i] * sold, sizes[i])
            rest, sizes[i], paid[i], part = rest - sold, sizes[i] - sold, paid[i] - share, part + share
        for i in range(len(sizes)):
            total, over = total + sizes[i], over + paid[i]
            count = total // old - given
            if count:
                units.append(sign * count)
                kept.append(over)
                given, over = given + count, 0
        if not self.is_lifo:
            units.reverse()
            kept.reverse()
        return (tuple(units), tuple(kept)), part

    def run(
        self, list states not None, const int64_t[::1] slots not None,
        const uint8_t[::1] begins not None, tuple initial not None, given, fees, busted,
        int64_t[:, ::1] out not None, uint8_t[::1] kept not None,
    ):
        """Apply fills to the states of their slots; return the errors of those that fail, by row.

        given: their quantities and prices, int64[2, n]; fees: int64[n] or None. busted: bool[n] or
        None. out: the fields of their rows, where kept is true. All amounts have 64 bits.
        """
        cdef const int64_t[:, ::1] fills = given
        cdef const int64_t[::1] fee_of = fees
        cdef const uint8_t[::1] bust_of = busted
        cdef Py_ssize_t i, j, n = slots.shape[0]
        cdef int64_t fee = 0
        cdef tuple before, after, made
        cdef dict failed = {}
        for i in range(n):
            if busted is not None and bust_of[i]:
                kept[i] = False
                if begins[i]:
                    states[slots[i]] = initial
                continue
            before = initial if begins[i] else states[slots[i]]
            if fees is not None:
                fee = fee_of[i]
            kept[i] = True
            after = self.small_of(before, fills[0, i], fills[1, i], fee, &out[0, i], out.shape[1])
            if after is not None:
                states[slots[i]] = after
                continue
            row = (fills[0, i], fills[1, i])
            if self.has_fee:
                row += (fee,)
            if self.has_busted:
                row += (False,)
            try:
                after, made = self(before, row)
            except ValueError as error:
                states[slots[i]] = before
                kept[i] = False
                failed[i] = error
                continue
            states[slots[i]] = after
            for j in range(out.shape[0]):
                out[j, i] = made[j]
        return failed

    cdef tuple small_of(
        self, tuple before, int64_t quantity, int64_t price, int64_t fee, int64_t* out,
        Py_ssize_t step,
    ):
        """Return the state after a fill; None where an amount has over 64 bits, or lots are many.

        out: where the fields of its row begin, ``step`` apart.
        """
        cdef int64_t held = before[0], realized = before[2], cash = before[3], fees = before[4]
        cdef wide worth = <wide>price * self.small_factor
        cdef wide paid = fees + <wide>fee * self.small_fee_factor
        cdef wide now = <wide>held + quantity, closed, part
        cdef tuple lots = ()
        self.cost, self.gained = <int64_t>before[1], realized
        if not self.is_small or not within(worth, MOST):
            return None
        if self.by_lots:
            lots = self.small_lots(before[5], before[6], quantity, worth)
            if lots is None:
                return None
        elif held == 0 or (held > 0) == (quantity > 0):
            self.cost += worth * quantity
        else:
            closed = held
            if (now > 0) == (held > 0) or now == 0:
                closed = -<wide>quantity
            part = rounded(self.cost * closed, held)
            self.gained += closed * worth - part
            self.cost = self.cost - part if closed != held else now * worth
        worth = cash - worth * quantity
        if not (
            within(now, self.small_held)
            and within(self.cost, self.small_money)
            and within(self.gained, self.small_money)
            and within(self.gained - realized, self.small_money)
            and within(worth, self.small_money)
            and within(paid, self.small_money)
        ):
            return None
        out[0], out[step], out[2 * step] = <int64_t>now, <int64_t>self.cost, <int64_t>self.gained
        out[3 * step], out[4 * step] = <int64_t>(self.gained - realized), <int64_t>worth
        if self.has_fee:
            out[5 * step] = <int64_t>paid
        return (
            <int64_t>now, <int64_t>self.cost, <int64_t>self.gained, <int64_t>worth, <int64_t>paid,
        ) + lots

    cdef tuple small_lots(self, tuple lots, tuple costs, wide left, wide price):
        """Return the lots and their costs after a fill, whose cost and profit are added."""
        cdef Py_ssize_t count = len(lots), at = count - 1 if self.is_lifo else 0
        cdef int64_t lot, cost
        cdef wide part
        cdef tuple rest = (), rest_cost = ()
        while left != 0 and 0 <= at < count:
            lot, cost = lots[at], costs[at]
            if (lot > 0) == (left > 0):
                break
            if (lot + left > 0) == (lot > 0) and lot + left != 0:
                part = rounded(-left * cost, lot)
                self.gained -= left * price + part
                self.cost -= part
                rest, rest_cost = (<int64_t>(lot + left),), (<int64_t>(cost - part),)
                left = 0
                at += -1 if self.is_lifo else 1
                break
            self.gained += lot * price - cost
            self.cost -= cost
            left += lot
            at += -1 if self.is_lifo else 1
        if self.is_lifo:
            lots, costs = lots[: at + 1] + rest, costs[: at + 1] + rest_cost
        elif at or rest:
            lots, costs = rest + lots[at:], rest_cost + costs[at:]
        if left != 0:
            part = left * price
            if len(lots) >= self.lots_max or not within(part, MOST):
                return None
            self.cost += part
            lots, costs = lots + (<int64_t>left,), costs + (<int64_t>part,)
        return lots, costs

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
        cdef list lots, costs
        cdef Py_ssize_t at
        if quantity == 0:
            return held, cost, realized, before[5], before[6]
        lots, costs = list(before[5]), list(before[6])
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
        # The collector of garbage leaves tuples of numbers alone.
        return held, cost, realized, tuple(lots), tuple(costs)
