"""Errors of requests, as gRPC status codes."""

from __future__ import annotations

from enum import Enum

from ripple.core.errors import RippleError


class Why(Enum):
    """The cause; names are those of gRPC's status codes."""

    WRONG = "INVALID_ARGUMENT"
    UNKNOWN = "NOT_FOUND"
    AWAY = "UNAVAILABLE"
    TOO_MUCH = "RESOURCE_EXHAUSTED"
    NOT_OFFERED = "UNIMPLEMENTED"
    STRANGER = "UNAUTHENTICATED"
    FORBIDDEN = "PERMISSION_DENIED"
    TOO_SLOW = "DEADLINE_EXCEEDED"
    INTERNAL = "INTERNAL"  # where a protocol requires it


class FlightError(RippleError):
    """A failed request; ``why`` tells clients whether to retry."""

    def __init__(self, why: Why, message: str) -> None:
        self.why = why
        # Parts of it may come from a client, and a lone surrogate cannot be sent.
        super().__init__(message.encode(errors="backslashreplace").decode())
