"""The address of the driver for datagrams of executors, which may be lost."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any, Self

DATAGRAM_BYTES_MAX = 512


@dataclass(frozen=True, slots=True)
class Driver:
    """host: for executors. bind: the only address at which the driver listens."""

    host: str
    bind: str

    @classmethod
    def of(cls, spark: Any) -> Self:
        """Return that of a session; bound like Spark's own ports."""
        if spark.conf.get("spark.master", "").startswith("local"):
            return cls("127.0.0.1", "127.0.0.1")
        host = spark.conf.get("spark.driver.host", "localhost")
        return cls(host, spark.conf.get("spark.driver.bindAddress", host))

    def listening(self) -> socket.socket:
        """Return a socket for datagrams at a free port. Raises OSError."""
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        found.bind((self.bind, 0))
        return found


def send_datagram(host: str, port: int, data: bytes) -> None:
    """Send a datagram, ignoring failures."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.sendto(data, (host, port))
    except OSError:
        return
