"""A real server of Redis, of Debian's packages, which are not installed."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from tests.deploy.tools import unpacked
from tests.services.cache import kept
from tests.services.server import Server, free_port

# The server, and what it is linked with.
PACKAGES = (
    "redis-tools",
    "redis-server",
    "libjemalloc2",
    "liblua5.1-0",
    "liblzf1",
    "lua-bitop",
    "lua-cjson",
)


def installed() -> Path:
    """Return the folder under which the packages are. Raises MissingError."""

    def unpack(folder: Path) -> None:
        for package in PACKAGES:
            unpacked(package, folder)

    return kept("redis-of-debian", unpack)


class RedisServer(Server):
    """A server that writes each entry to disk before it answers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._root = installed()
        self.port = free_port()
        self.password = ""

    def prepare(self) -> None:
        """Begin with nothing."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        (self.folder / "data").mkdir(parents=True)

    def command(self) -> list[str]:
        """Return what to run, on this machine alone."""
        said = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", "data"]
        kept_at_once = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        secret = ["--requirepass", self.password] if self.password else []
        return [str(self._root / "usr/bin/redis-server"), *said, *kept_at_once, *secret]

    @property
    def variables(self) -> dict[str, str]:
        """Return where the libraries are."""
        (libraries,) = self._root.glob("usr/lib/*-linux-gnu")
        return {"LD_LIBRARY_PATH": str(libraries)}

    @property
    def address(self) -> str:
        """Return where it is."""
        return f"127.0.0.1:{self.port}"

    def answers(self) -> bool:
        """Ask whether it has loaded what it has."""
        with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(8)[:5] in (b"+PONG", b"-NOAU")
