"""The records of the sources, by the names of the tables in ``data``."""

from __future__ import annotations

import ripple as rp

LATENESS = "6s"  # late events are up to five seconds late


@rp.record
class Trade:
    symbol: str
    price_ticks: int
    size: int
    side: int
    timestamp_ns: rp.Timestamp
    trade_id: int


@rp.record
class Quote:
    symbol: str
    bid_ticks: int
    bid_size: int
    ask_ticks: int
    ask_size: int
    timestamp_ns: rp.Timestamp


@rp.record
class Fill:
    account: str
    symbol: str
    quantity: int
    price_ticks: int
    fee_cents: int
    currency: str
    timestamp_ns: rp.Timestamp
    fill_id: int
    busts: int


@rp.record
class Rate:
    pair: str
    rate_micro: int
    timestamp_ns: rp.Timestamp


@rp.record
class Halt:
    symbol: str
    from_ns: rp.Timestamp
    to_ns: int


@rp.record
class Message:
    symbol: str
    action: str
    side: str
    order_id: int
    price_ticks: int
    size: int
    sequence: int
    timestamp_ns: rp.Timestamp
