"""Why a request is not answered, in the words of gRPC's codes."""

from __future__ import annotations

from enum import Enum

from ripple.core.errors import RippleError


class Why(Enum):
    """What is the matter; the names are those of gRPC's status codes."""

    WRONG = "INVALID_ARGUMENT"
    UNKNOWN = "NOT_FOUND"
    AWAY = "UNAVAILABLE"
    TOO_MUCH = "RESOURCE_EXHAUSTED"
    NOT_OFFERED = "UNIMPLEMENTED"
    STRANGER = "UNAUTHENTICATED"
    FORBIDDEN = "PERMISSION_DENIED"
    TOO_SLOW = "DEADLINE_EXCEEDED"
    INTERNAL = "INTERNAL"  # where a protocol asks for that word


class FlightError(RippleError):
    """A request that is not answered; ``why`` tells clients whether to ask again."""

    def __init__(self, why: Why, message: str) -> None:
        self.why = why
        # Parts of it may come from a client, and half a character does not travel.
        super().__init__(message.encode(errors="backslashreplace").decode())
