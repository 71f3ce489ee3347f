"""Progress of tasks, sent to the driver in datagrams now and then.

A lost datagram is made up for by the next.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ripple.spark.driver import DATAGRAM_BYTES_MAX, Driver, send_datagram
from ripple.spark.sealed import sealed, unsealed

INTERVAL_S = 0.5
_ABOUT = b"progress"


@dataclass(slots=True)
class Reporter:
    """Reports a task's progress to the driver. token: the key that seals its messages."""

    host: str
    port: int
    token: str
    share: int = 0
    _last_s: float = field(default=0.0, compare=False)

    def of(self, share: int) -> Reporter:
        """Return the reporter of a task."""
        return Reporter(self.host, self.port, self.token, share)

    def send(self, rows: int, fraction: float | None = None, *, last: bool = False) -> None:
        """Report the records read, and their fraction of the share, if known."""
        now_s = time.monotonic()
        if now_s - self._last_s < INTERVAL_S and not last:
            return
        self._last_s = now_s
        send_datagram(
            self.host, self.port, sealed(self.token, _ABOUT, [self.share, rows, fraction])
        )


def report_progress(
    reporter: Reporter | None, rows: int, fraction: float | None = None, *, last: bool = False
) -> None:
    """Report progress, if there is a reporter."""
    if reporter is not None:
        reporter.send(rows, fraction, last=last)


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The progress of all tasks. total: of records, None if unknown."""

    rows: int
    total: int | None
    fraction: float | None
    elapsed_s: float

    def text(self) -> str:
        """Return rows, percent, rate and the remaining time, as far as known."""
        rate = self.rows / max(self.elapsed_s, 1e-9)
        parts = [f"{self.rows:,} rows"]
        if self.fraction is not None:
            parts.append(f"{self.fraction:.0%}")
        parts.append(f"{rate:,.0f}/s")
        if self.fraction:
            left_s = self.elapsed_s * (1 - self.fraction) / self.fraction
            parts.append(f"{_clock(left_s)} left")
        return "  ".join(parts)


def _clock(seconds: float) -> str:
    minutes, whole_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole_s:02}" if hours else f"{minutes}:{whole_s:02}"


def listening(
    spark: Any, shares: int, total: int | None, show: Callable[[TaskProgress], None] | None
) -> AbstractContextManager[Listener | None]:
    """Listen to the tasks of a session if progress is shown; see ``Listener``."""
    if show is None:
        return nullcontext()
    return Listener(Driver.of(spark), shares, total, show)


class Listener:
    """Receives and shows the progress of tasks. A context manager."""

    def __init__(
        self, driver: Driver, shares: int, total: int | None, show: Callable[[TaskProgress], None]
    ) -> None:
        """Listen to ``shares`` tasks; show: called after each message."""
        self._socket = driver.listening()
        self._socket.settimeout(INTERVAL_S)
        port = self._socket.getsockname()[1]
        self.reporter = Reporter(driver.host, port, secrets.token_hex(16))
        self._shares, self._total, self._show = shares, total, show
        self._heard: dict[int, tuple[int, float | None]] = {}
        self._started_s = time.monotonic()
        self._is_open = True
        self._thread = threading.Thread(target=self._listen, name="ripple-progress", daemon=True)

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_open = False
        self._thread.join()
        self._socket.close()

    def progress(self) -> TaskProgress:
        """Return the progress of all tasks."""
        heard = list(self._heard.values())
        rows = sum(one for one, _ in heard)
        known = [fraction for _, fraction in heard if fraction is not None]
        fraction: float | None = None
        if self._total is not None:
            fraction = min(1.0, rows / self._total) if self._total else 1.0
        elif known:
            fraction = min(1.0, sum(known) / self._shares)
        return TaskProgress(rows, self._total, fraction, time.monotonic() - self._started_s)

    def _listen(self) -> None:
        while True:
            # Messages sent before the end are received.
            if not self._is_open:
                self._socket.setblocking(False)
            try:
                data = self._socket.recv(DATAGRAM_BYTES_MAX)
                share, rows, fraction = unsealed(self.reporter.token, _ABOUT, data)
            except BlockingIOError:
                return
            except (TimeoutError, ValueError):
                continue
            self._heard[share] = (rows, fraction)
            self._show(self.progress())
