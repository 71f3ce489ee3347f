"""The command ripple cluster up, as a process."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.cluster import Job
from tests.patience import PATIENCE_S

NUMBERS = itertools.count()
PARTITIONS = 4


class Started:
    """A process with its output in a file, ``_said``."""

    process: subprocess.Popen[bytes]
    _said: Path

    @property
    def said(self) -> str:
        return self._said.read_text()

    def says(self, pattern: str) -> re.Match[str]:
        """Wait until it has said this."""
        until_s = time.monotonic() + PATIENCE_S
        while (match := re.search(pattern, self.said)) is None:
            assert self.process.poll() is None, self.said
            assert time.monotonic() < until_s, self.said
            time.sleep(0.05)
        return match


class Up(Started):
    """A cluster of two workers that people have started."""

    def __init__(self, job: Job, *more: object) -> None:
        self._said = job.source.parent / f"said-{next(NUMBERS)}"
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [
                    *(*RIPPLE, "cluster", "up", str(job.pipeline)),
                    *(*job.sources, "--free-ports"),
                    *(flag for sink in job.sinks(job.folder) for flag in ("--sink", sink)),
                    *("--dir", str(job.source.parent / "state")),
                    *("--workers", "2", *map(str, more)),
                ],
                cwd=ROOT,
                stderr=said,
            )

    def kill_worker(self) -> str:
        """Kill the process of a worker; return its number."""
        number = self.says(r"worker-1 +\| process (\d+)")[1]
        subprocess.run(["kill", "-9", number], check=True)
        return number

    def end_resumed(self) -> None:
        """Wait until partitions go on after a worker was killed, and end it in order."""
        self.says(r"(?s)was killed by SIGKILL.*partition \d+: (restored|replayed)")
        self.process.send_signal(signal.SIGTERM)
        assert self.ended() == 0, self.said

    def ended(self) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            pytest.fail(f"it goes on:\n{self.said}")
        finally:
            self.process.kill()
            self.process.wait()
