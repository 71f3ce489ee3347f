"""What is wrong with what Kafka's brokers sent."""

from __future__ import annotations

from ripple.world.broker import BrokerError


class DamagedError(BrokerError):
    """Record batches are not what Kafka writes; the message says which, and why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, done=False)
