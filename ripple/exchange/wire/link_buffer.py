"""The send buffer of a link: frames that the transport has not yet taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.exchange.wire.errors import LocalProtocolError
from ripple.exchange.wire.link_limits import FRAME_OVERHEAD_BYTES
from ripple.exchange.wire.link_states import Act

if TYPE_CHECKING:
    from ripple.exchange.wire.link_limits import LinkLimits

# The caller's messages stop at send_buffer_bytes_max; replies may use control_bytes_max too. A
# ping and a goodbye or refusal, at most one of each waiting, always fit.
_BULK = frozenset({Act.DELTA, Act.BUNDLE})
_EXEMPT = frozenset({Act.PING, Act.GOODBYE, Act.REFUSE})


class SendBuffer:
    """Frames in the order of sending.

    Invariants: ``bytes`` is the length of all frames, and at most ``send_buffer_bytes_max``,
    ``control_bytes_max`` and one frame together.
    """

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self._frames: list[bytes] = []
        self._bytes = 0

    def put(self, frame: bytes) -> None:
        """Add a frame, for which :meth:`check_room` has found room."""
        self._frames.append(frame)
        self._bytes += len(frame)

    def take(self) -> bytes:
        """Return all bytes, and forget them."""
        data = b"".join(self._frames)
        self._frames.clear()
        self._bytes = 0
        return data

    def room_for(self, act: Act) -> int:
        """Return how many bytes of payload may still be sent; below 0 if none."""
        most = self._limits.send_buffer_bytes_max
        if act not in _BULK:
            most += self._limits.control_bytes_max
        return most - self._bytes - FRAME_OVERHEAD_BYTES

    def check_room(self, act: Act, size_bytes: int) -> None:
        """Raise :class:`LocalProtocolError` if a payload is too long, or too long for now."""
        if size_bytes > self._limits.frame_bytes_max:
            raise LocalProtocolError(
                f"{act.name} has {size_bytes} bytes; frame_bytes_max is "
                f"{self._limits.frame_bytes_max}"
            )
        if size_bytes > self.room_for(act) and act not in _EXEMPT:
            raise LocalProtocolError(
                f"{act.name} of {size_bytes} bytes on top of {self._bytes} not yet sent; "
                f"send_buffer_bytes_max is {self._limits.send_buffer_bytes_max}"
            )

    def check_invariants(self) -> None:
        """Raise AssertionError when the buffer contradicts itself."""
        limits = self._limits
        assert self._bytes == sum(map(len, self._frames))
        assert self._bytes <= (
            limits.send_buffer_bytes_max + limits.control_bytes_max + limits.frame_bytes_max
        )
