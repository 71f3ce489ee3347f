"""The records of the topics, with the fields that most queries read, and all of a bid."""

from __future__ import annotations

import ripple as rp


@rp.record
class Bid:
    """A person's bid for an auction, in cents."""

    auction: int
    bidder: int
    price: int
    date_time: rp.Timestamp
    extra: str


@rp.record
class Addressed:
    """A bid with its channel and address."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: rp.Timestamp


@rp.record
class WholeBid:
    """A bid with all its fields."""

    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: rp.Timestamp
    extra: str
