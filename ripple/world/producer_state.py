"""Which calls a producer of transactions takes, for any broker: see Producer."""

from __future__ import annotations

from ripple.world.broker import BrokerError, FencedError, UnknownOutcomeError


class ProducerState:
    """A producer's view of its transaction.

    over: why it takes no more; it is set during a request that may be cancelled. name: its id, None
    where records count at once and there are no transactions.
    """

    def __init__(self, name: str | None) -> None:
        self.over: BrokerError | None = None
        self._name = name
        self._is_open = name is None
        self._is_broken = False

    def begin(self) -> None:
        """Begin a transaction; raises as all calls do."""
        self.check(is_open=False)
        self._is_open, self._is_broken = True, False

    def begin_send(self) -> None:
        """Begin to send; until ``sent`` the transaction can only be aborted."""
        self.check_whole()
        self._is_broken = True

    def sent(self) -> None:
        """Note that all of it was sent."""
        self._is_broken = False

    def ended(self) -> None:
        """Note that the transaction is at its end."""
        self._is_open = False

    def close(self) -> None:
        """Take no more."""
        if self.over is None:
            self.over = BrokerError(f"{self._name}: this producer is closed", done=False)

    def check_whole(self) -> None:
        """Raise BrokerError unless all begun sends were completed."""
        self.check(is_open=True)
        if self._is_broken and self._name is not None:
            raise BrokerError(f"{self._name}: a send has failed: only abort", done=False)

    def check(self, *, is_open: bool) -> None:
        """Raise the error that ended it, and RuntimeError where this call is out of turn."""
        if isinstance(self.over, FencedError | UnknownOutcomeError):
            raise type(self.over)(str(self.over))
        if self.over is not None:
            raise BrokerError(str(self.over), done=self.over.done)
        if self._is_open != is_open:
            there = "no" if is_open else "already a"
            raise RuntimeError(f"{self._name}: there is {there} transaction")
