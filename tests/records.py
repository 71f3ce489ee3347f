"""Record classes that many tests share."""

from __future__ import annotations

import ripple as rp


@rp.record(version=1)
class Trade:
    """A trade, without checks."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str


@rp.record(version=1, name="trade")
class SizedTrade:
    """A trade that is refused unless its size is positive."""

    symbol: str
    price: float
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp
    venue: str


@rp.record(version=1, name="trade")
class Fill:
    """A trade without its venue."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
