"""Hints about the processes of partitions: tasks send them to the driver for the next tasks.

A lost datagram costs a takeover. A forged one, or a replayed one of a lower epoch, is ignored.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.spark.driver import DATAGRAM_BYTES_MAX, Driver, send_datagram
from ripple.spark.sealed import sealed, unsealed

if TYPE_CHECKING:
    from ripple.spark.streaming.turn import Address

_ABOUT = b"hint"


@dataclass(frozen=True, slots=True)
class HintReceiver:
    """The receiver of hints. token: the query's key for messages between its processes."""

    host: str
    port: int
    token: str

    def send(self, partition: int, epoch: int, at: Address) -> None:
        """Send the address of a partition's process, and its epoch."""
        send_datagram(self.host, self.port, sealed(self.token, _ABOUT, [partition, epoch, *at]))


class Hints:
    """The received hints, by partition."""

    def __init__(self, driver: Driver) -> None:
        """Listen for hints of a new query until the process ends."""
        self.known: dict[int, Address] = {}
        self._epochs: dict[int, int] = {}
        self._socket = driver.listening()
        port = self._socket.getsockname()[1]
        self.hint_receiver = HintReceiver(driver.host, port, secrets.token_hex(16))
        threading.Thread(target=self._listen, name="ripple-hints", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                said = unsealed(
                    self.hint_receiver.token, _ABOUT, self._socket.recv(DATAGRAM_BYTES_MAX)
                )
            except (OSError, ValueError):
                continue
            partition, epoch, host, port = said
            if epoch >= self._epochs.get(partition, 0):
                self._epochs[partition] = epoch
                self.known[partition] = (host, port)
