"""Where partitions live: tasks tell the driver in datagrams, and the next tasks begin there.

A datagram that is lost costs a take-over. One that is forged, or said again after the partition has
moved on to a higher epoch, is not heard.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.spark.driver import DATAGRAM_BYTES_MAX, Driver, told
from ripple.spark.sealed import sealed, unsealed

if TYPE_CHECKING:
    from ripple.spark.streaming.turn import Address

_ABOUT = b"hint"


@dataclass(frozen=True, slots=True)
class Hearer:
    """Whom to tell. token: of the query, which seals what its processes tell each other."""

    host: str
    port: int
    token: str

    def tell(self, partition: int, epoch: int, at: Address) -> None:
        """Say where a partition lives, and under which epoch."""
        told(self.host, self.port, sealed(self.token, _ABOUT, [partition, epoch, *at]))


class Hints:
    """What was heard, by partition."""

    def __init__(self, driver: Driver) -> None:
        """Listen, for as long as this process lives, for those of a query of its own."""
        self.known: dict[int, Address] = {}
        self._epochs: dict[int, int] = {}
        self._socket = driver.listening()
        port = self._socket.getsockname()[1]
        self.hearer = Hearer(driver.host, port, secrets.token_hex(16))
        threading.Thread(target=self._listen, name="ripple-hints", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                said = unsealed(self.hearer.token, _ABOUT, self._socket.recv(DATAGRAM_BYTES_MAX))
            except (OSError, ValueError):
                continue
            partition, epoch, host, port = said
            if epoch >= self._epochs.get(partition, 0):
                self._epochs[partition] = epoch
                self.known[partition] = (host, port)
