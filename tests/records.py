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
