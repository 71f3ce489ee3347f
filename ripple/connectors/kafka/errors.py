"""Errors of records from Kafka's brokers."""

from __future__ import annotations

from ripple.world.broker import BrokerError


class DamagedError(BrokerError):
    """Record batches do not follow Kafka's format; the message says which, and why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)


class UnreadableError(DamagedError):
    """A batch is as its producer has sent it, and its records cannot be had.

    reason: one of a few phrases.
    """

    def __init__(self, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class OldFormatError(DamagedError):
    """Records are in a form that Kafka has not written since version 0.11."""
