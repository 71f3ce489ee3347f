"""Where partitions live: tasks tell the driver in datagrams, and the next tasks begin there.

A datagram that is lost costs a take-over.
"""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.spark.streaming.turn import Address

_DATAGRAM_BYTES_MAX = 512


@dataclass(frozen=True, slots=True)
class Hearer:
    """Whom to tell."""

    host: str
    port: int
    token: str

    def tell(self, partition: int, at: Address) -> None:
        """Say where a partition lives."""
        said = json.dumps([self.token, partition, *at]).encode()
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
                way.sendto(said, (self.host, self.port))
        except OSError:
            return  # nobody hears it; the work goes on


class Hints:
    """What was heard, by partition."""

    def __init__(self, host: str, token: str) -> None:
        """Listen, for as long as this process lives. host: of the driver, for executors."""
        self.known: dict[int, Address] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1" if host in ("127.0.0.1", "localhost") else "", 0))
        self.hearer = Hearer(host, self._socket.getsockname()[1], token)
        threading.Thread(target=self._listen, name="ripple-hints", daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                token, partition, host, port = json.loads(self._socket.recv(_DATAGRAM_BYTES_MAX))
            except (OSError, ValueError, TypeError):
                continue
            if token == self.hearer.token:
                self.known[partition] = (host, port)
