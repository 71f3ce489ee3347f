"""Every limit of the exchange, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from ripple.core.errors import LimitError
from ripple.exchange.wire.link_limits import LinkLimits


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """Sizes in bytes or rows.

    A batch is taken from an engine while there is credit for one row, and a frame is sent while the
    window has room for one byte: each limit may be exceeded by one of them.
    """

    credit_rows: int = 1 << 16  # per stream, taken by its sender and not yet applied
    window_bytes: int = 64 << 20  # per connection, sent and not yet applied
    bundle_rows: int = 1 << 14  # per frame, about
    bundle_bytes: int = 1 << 20  # per frame, about
    table_bytes_max: int = 1 << 30  # per table that arrives in parts
    streams_max: int = 1 << 16  # requested of partitions that are not here, or not yet
    single_peers_max: int = 16  # peers of types 0 to 5 only
    single_keys_max: int = 1 << 20  # remembered for all of these, about 100 bytes each
    absent_offers: int = 64  # commits for which changes are retained for a lost subscriber
    newest_rows: int = 10_000  # of each output of events, for clients, by partition
    newest_bytes: int = 4 << 20  # likewise; rows take twice this at most, or one batch
    link: LinkLimits = field(default_factory=LinkLimits)

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.name != "link" and getattr(self, one.name) <= 0:
                raise LimitError(f"{one.name} is {getattr(self, one.name)}; set it above 0")
        if self.bundle_bytes * 2 > self.link.frame_bytes_max:
            raise LimitError(
                f"bundle_bytes is {self.bundle_bytes}; set it to half of frame_bytes_max "
                f"({self.link.frame_bytes_max}) or less"
            )
