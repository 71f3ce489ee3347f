"""How far tasks are: they tell the driver, once in a while, and nobody waits for it.

A datagram that is lost is one that the next makes up for.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ripple.spark.driver import DATAGRAM_BYTES_MAX, Driver, told
from ripple.spark.sealed import sealed, unsealed

INTERVAL_S = 0.5
_ABOUT = b"progress"


@dataclass(slots=True)
class Teller:
    """Tells from within a task how many records it has read. token: what seals it."""

    host: str
    port: int
    token: str
    share: int = 0
    _last_s: float = field(default=0.0, compare=False)

    def of(self, share: int) -> Teller:
        """Return the teller of a task."""
        return Teller(self.host, self.port, self.token, share)

    def tell(self, rows: int, fraction: float | None = None, *, last: bool = False) -> None:
        """Say how many records were read, and how much of the share that is, if anybody knows."""
        now_s = time.monotonic()
        if now_s - self._last_s < INTERVAL_S and not last:
            return
        self._last_s = now_s
        told(self.host, self.port, sealed(self.token, _ABOUT, [self.share, rows, fraction]))


def tell(
    teller: Teller | None, rows: int, fraction: float | None = None, *, last: bool = False
) -> None:
    """Say it as the teller does, if there is one."""
    if teller is not None:
        teller.tell(rows, fraction, last=last)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far all tasks are. total: of records, None where that is not known."""

    rows: int
    total: int | None
    fraction: float | None
    elapsed_s: float

    def text(self) -> str:
        """Return rows, percent, rate and the time that is left, as far as they are known."""
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
    spark: Any, shares: int, total: int | None, show: Callable[[Standing], None] | None
) -> AbstractContextManager[Listener | None]:
    """Hear the tasks of a session, if there is anybody to show it to; see ``Listener``."""
    if show is None:
        return nullcontext()
    return Listener(Driver.of(spark), shares, total, show)


class Listener:
    """Hears tellers, and shows where they stand. A context: it listens as long as it is open."""

    def __init__(
        self, driver: Driver, shares: int, total: int | None, show: Callable[[Standing], None]
    ) -> None:
        """Listen for ``shares`` tasks; show: called as often as something was heard."""
        self._socket = driver.listening()
        self._socket.settimeout(INTERVAL_S)
        port = self._socket.getsockname()[1]
        self.teller = Teller(driver.host, port, secrets.token_hex(16))
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

    def standing(self) -> Standing:
        """Return how far all are."""
        heard = list(self._heard.values())
        rows = sum(one for one, _ in heard)
        known = [fraction for _, fraction in heard if fraction is not None]
        fraction: float | None = None
        if self._total is not None:
            fraction = min(1.0, rows / self._total) if self._total else 1.0
        elif known:
            fraction = min(1.0, sum(known) / self._shares)
        return Standing(rows, self._total, fraction, time.monotonic() - self._started_s)

    def _listen(self) -> None:
        while True:
            # What was told before the end is heard.
            if not self._is_open:
                self._socket.setblocking(False)
            try:
                data = self._socket.recv(DATAGRAM_BYTES_MAX)
                share, rows, fraction = unsealed(self.teller.token, _ABOUT, data)
            except BlockingIOError:
                return
            except (TimeoutError, ValueError):
                continue
            self._heard[share] = (rows, fraction)
            self._show(self.standing())
