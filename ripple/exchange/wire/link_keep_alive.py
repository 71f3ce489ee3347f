"""Keep-alive: ping after a silence, timeout after a longer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.messages import Ping

if TYPE_CHECKING:
    from ripple.exchange.wire.link_limits import LinkLimits
    from ripple.exchange.wire.messages import Pong


class KeepAlive:
    """One Ping at a time, to be answered by the Pong of its nonce."""

    def __init__(self, limits: LinkLimits, now_ns: int) -> None:
        self._limits = limits
        self._received_ns = self._pinged_ns = now_ns
        self._nonce = 0
        self.is_asking = False

    @property
    def deadline_ns(self) -> int:
        """The time of the next ping; after one, the time of the timeout."""
        if not self.is_asking:
            return self._received_ns + self._limits.idle_ns
        # Counted from our ping, so that a pause of our own process kills no peer.
        pinged_ns = max(self._received_ns, self._pinged_ns)
        return pinged_ns + self._limits.timeout_ns - self._limits.idle_ns

    def silence_ns(self, now_ns: int) -> int:
        """Return the time since the peer's last bytes."""
        return now_ns - self._received_ns

    def received(self, now_ns: int) -> None:
        """Note that bytes of the peer have come."""
        self._received_ns = now_ns

    def question(self) -> Ping:
        """Return the next ping; raises :class:`LocalProtocolError` while a pong is due."""
        if self.is_asking:
            raise LocalProtocolError("a ping is already on its way; wait for its pong")
        return Ping(self._nonce)

    def asked(self, now_ns: int) -> None:
        """Note that the ping was sent."""
        self.is_asking, self._pinged_ns = True, now_ns

    def answered(self, pong: Pong) -> None:
        """Take a pong; raises :class:`RemoteProtocolError` unless it answers our ping."""
        if not self.is_asking or pong.nonce != self._nonce:
            expected = self._nonce if self.is_asking else "no pong"
            raise RemoteProtocolError(f"the peer sent PONG {pong.nonce}; expected {expected}")
        self.is_asking = False
        self._nonce += 1
