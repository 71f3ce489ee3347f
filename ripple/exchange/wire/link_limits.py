"""Every limit of a link, with its default; nothing in a link grows beyond one of these."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ripple.core.errors import LimitError
from ripple.exchange.wire.envelope import CRC_BYTES, HEADER_BYTES

FRAME_OVERHEAD_BYTES = HEADER_BYTES + CRC_BYTES

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Sizes in bytes or counts, times in nanoseconds.

    Invariants, checked here: every limit is positive; a peer is pinged before it times out.
    """

    frame_bytes_max: int = 4 << 20  # one payload; a longer one is rejected by its header
    send_buffer_bytes_max: int = 32 << 20  # bytes not yet taken by the transport
    control_bytes_max: int = 1 << 20  # beyond that, for replies to the peer
    outputs_max: int = 1_024  # outputs that one handshake may offer
    errors_max: int = 64  # incompatibilities sent to a peer, or taken from one
    reason_chars_max: int = 1_024  # text quoted to a peer or in an error
    handshake_timeout_ns: int = 10 * _SECOND_NS
    idle_ns: int = 5 * _SECOND_NS  # silence after which we ping
    timeout_ns: int = 15 * _SECOND_NS  # silence after which the peer is dead
    goodbye_timeout_ns: int = 5 * _SECOND_NS  # from our goodbye until we stop receiving

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) <= 0:
                raise LimitError(f"{field.name} is {getattr(self, field.name)}; set it above 0")
        if self.frame_bytes_max < 4 * self.reason_chars_max + 64:
            raise LimitError(
                f"frame_bytes_max is {self.frame_bytes_max}; a goodbye with "
                f"reason_chars_max={self.reason_chars_max} characters must fit"
            )
        if self.send_buffer_bytes_max < self.frame_bytes_max + FRAME_OVERHEAD_BYTES:
            raise LimitError(
                f"send_buffer_bytes_max is {self.send_buffer_bytes_max}; one frame of "
                f"frame_bytes_max ({self.frame_bytes_max}) and its envelope must fit"
            )
        if self.idle_ns >= self.timeout_ns:
            raise LimitError(
                f"idle_ns is {self.idle_ns}; set it below timeout_ns ({self.timeout_ns})"
            )
