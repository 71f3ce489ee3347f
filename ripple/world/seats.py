"""Limits on a listener's connections, and eviction where there are too many. No I/O."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of connections: in all, of one address, and of unidentified ones."""

    most: int = 4096
    of_address: int = 2048
    silent: int = 128


@dataclass(slots=True, eq=False)
class Seat:
    """A connection's seat.

    end: called where another one takes its place. is_over: whether it has ended by itself, where
    its end is not reported.
    """

    address: str
    end: Callable[[], None] = field(default=lambda: None)
    is_over: Callable[[], bool] = field(default=lambda: False)


class Seats:
    """The connections of one listener; silent ones are evicted for new ones.

    An identified connection keeps its seat. Strangers cannot keep others out by their number: of
    the address that has the most silent connections, the oldest one goes.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._taken: dict[Seat, None] = {}
        self._silent: dict[Seat, None] = {}  # by when they came, or fell silent
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, address: str) -> Seat | None:
        """Return a seat for a new connection, None where identified ones have all."""
        bounds, silent = self._bounds, self._silent
        if self._is_full(address):
            for one in [one for one in self._taken if one.is_over()]:
                self.leave(one)
        if not self._is_full(address):
            return self._seated(address)
        if self._by_address.get(address, 0) >= bounds.of_address:
            given_up = next((one for one in silent if one.address == address), None)
        else:
            counts = Counter(one.address for one in silent)
            given_up = max(silent, key=lambda one: counts[one.address], default=None)
        if given_up is None:
            return None
        self.leave(given_up)
        given_up.end()
        return self._seated(address)

    def settle(self, seat: Seat) -> None:
        """Note that a connection has identified itself."""
        self._silent.pop(seat, None)

    def idle(self, seat: Seat) -> None:
        """Note that it was answered, and is silent for now."""
        if seat in self._taken:
            self._silent.pop(seat, None)
            self._silent[seat] = None

    def leave(self, seat: Seat) -> None:
        """Note that a connection has ended; again is allowed."""
        if seat in self._taken:
            del self._taken[seat]
            self._silent.pop(seat, None)
            self._by_address[seat.address] -= 1
            if not self._by_address[seat.address]:
                del self._by_address[seat.address]

    def _is_full(self, address: str) -> bool:
        bounds = self._bounds
        return (
            self._by_address.get(address, 0) >= bounds.of_address
            or len(self._taken) >= bounds.most
            or len(self._silent) >= bounds.silent
        )

    def _seated(self, address: str) -> Seat:
        seat = Seat(address)
        self._taken[seat] = self._silent[seat] = None
        self._by_address[address] += 1
        return seat
