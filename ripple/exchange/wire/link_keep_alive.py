"""Whether the peer is still there: asked after a silence, given up after a longer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.exchange.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.exchange.wire.messages import Ping

if TYPE_CHECKING:
    from ripple.exchange.wire.link_limits import LinkLimits
    from ripple.exchange.wire.messages import Pong


class KeepAlive:
    """One question at a time: a Ping, to be answered by the Pong of its nonce."""

    def __init__(self, limits: LinkLimits, now_ns: int) -> None:
        self._limits = limits
        self._heard_ns = self._asked_ns = now_ns
        self._nonce = 0
        self.is_asking = False

    @property
    def deadline_ns(self) -> int:
        """When to ask; once asked, when to give the peer up."""
        if not self.is_asking:
            return self._heard_ns + self._limits.idle_ns
        # Counted from our question, so that a pause of our own process kills no peer.
        asked_ns = max(self._heard_ns, self._asked_ns)
        return asked_ns + self._limits.timeout_ns - self._limits.idle_ns

    def silence_ns(self, now_ns: int) -> int:
        """Return for how long nothing was heard."""
        return now_ns - self._heard_ns

    def heard(self, now_ns: int) -> None:
        """Note that bytes of the peer have come, whatever they say."""
        self._heard_ns = now_ns

    def question(self) -> Ping:
        """Return what to ask next; raises :class:`LocalProtocolError` while an answer is due."""
        if self.is_asking:
            raise LocalProtocolError("a ping is already on its way; wait for its pong")
        return Ping(self._nonce)

    def asked(self, now_ns: int) -> None:
        """Note that the question was said."""
        self.is_asking, self._asked_ns = True, now_ns

    def answered(self, pong: Pong) -> None:
        """Take the answer; raises :class:`RemoteProtocolError` if it is one to nothing we asked."""
        if not self.is_asking or pong.nonce != self._nonce:
            expected = self._nonce if self.is_asking else "no pong"
            raise RemoteProtocolError(f"the peer sent PONG {pong.nonce}; expected {expected}")
        self.is_asking = False
        self._nonce += 1
