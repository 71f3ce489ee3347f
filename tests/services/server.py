"""A real service as a process of a test: started, killed, frozen, started again on its data."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from ripple.cli.cluster.starting.plan import FREE_PORTS
from tests.patience import PATIENCE_S

POLL_S = 0.05


class Server:
    """A process in a folder of its own, with a log file there that stays.

    ``with`` starts and stops it. It dies with the process that started it, however that ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: subprocess.Popen[bytes] | None = None

    # What each kind of server says.

    def command(self) -> list[str]:
        """Return what to run, in the server's folder."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether the server does what it is for; an OSError is a no."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Do what must be done once, before the first start."""

    @property
    def variables(self) -> dict[str, str]:
        """Return variables of its environment beside those of the test."""
        return {}

    # What all of them do.

    def start(self) -> None:
        """Start the process, on the data that it left, and wait until it answers."""
        assert self._process is None, "it runs"
        if not self.folder.is_dir():
            self.folder.mkdir(parents=True)
        if not self.log.exists():
            self.prepare()
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the process and do not wait."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env={**os.environ, **self.variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl+C is for who started it, who then stops it
            )
        leash = ["sh", "-c", 'cat; kill -9 "$0"', str(self.pid)]
        self._leash = subprocess.Popen(leash, stdin=subprocess.PIPE, start_new_session=True)

    def wait(self) -> None:
        """Wait until it answers."""
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                if self.answers():
                    return
            except OSError:
                pass
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > ends:
                said = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
                self.kill()
                raise AssertionError(f"{self.command()} does not answer:\n{said}")
            time.sleep(POLL_S)

    @property
    def pid(self) -> int:
        """Return the process's id."""
        assert self._process is not None, "it does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Kill it as a machine that loses its power does, but for what the system's cache holds."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Tell it to end and wait until it has; one that is frozen goes on for that."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Freeze it: its connections stay, nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let one that is frozen go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        leash, self._leash = self._leash, None
        if leash is not None:
            leash.kill()
            leash.communicate()
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def free_port() -> int:
    """Return a port that nobody listens at, and none gets while its server is down."""
    chance = random.SystemRandom()
    while True:
        port = chance.choice(FREE_PORTS)
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
