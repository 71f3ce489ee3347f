"""Errors of the wire protocol, by the party at fault."""

from __future__ import annotations

from ripple.core.errors import RippleError


class ProtocolError(RippleError):
    """Bytes, a value or an event that the protocol does not allow."""


class LocalProtocolError(ProtocolError, ValueError):
    """Our own caller's message is not allowed; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer violated the protocol; the connection must end."""
