"""The wire's errors say who broke the rules: we, or the peer."""

from __future__ import annotations

from ripple.core.errors import RippleError


class ProtocolError(RippleError):
    """Bytes, a value or an event that the protocol does not allow."""


class LocalProtocolError(ProtocolError, ValueError):
    """Our own caller asked for something that cannot be said; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer said something that the protocol does not allow; the connection must end."""
