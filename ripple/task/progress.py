"""The progress of a run: a line on a terminal, or below the cell of a notebook."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.inputs import Inputs
    from ripple.engine.machine import Engine
    from ripple.task.report import Report

    OnBatch = Callable[[Engine, Report], None]

INTERVAL_S = 0.2
_WIDTH = 24
_ERASE = "\r\033[K"


class Display(Protocol):
    """A line that people see."""

    def show(self, line: str) -> None:
        """Replace the line; "" for none."""


class Progress:
    """Shows the number and rate of events, and a bar if the source knows its size.

    source: of the events, None if its size is unknown. display: None shows nothing.
    """

    def __init__(self, source: Inputs | None, display: Display | None) -> None:
        self._source, self._display = source, display
        self._started_s = self._last_s = time.perf_counter()

    def __call__(self, _engine: Engine, report: Report) -> None:
        """Show the number of records after a batch, as ``on_batch`` has it."""
        self.update(report.consumed)

    def update(self, events: int, waiting: int = 0) -> None:
        """Redraw the line if it is due. waiting: the rows that wait for answers."""
        if self._display is None:
            return
        now_s = time.perf_counter()
        if now_s - self._last_s < INTERVAL_S:
            return
        self._last_s = now_s
        rate = events / (now_s - self._started_s)
        rows = f"  {waiting:,} wait for answers" if waiting else ""
        self._display.show(f"{self._bar()}{events:,} events  {rate:,.0f}/s{rows}")

    def beside(self, on_batch: OnBatch | None) -> OnBatch | None:
        """Return the function to call after a batch, ``on_batch`` being called first."""
        if self._display is None:
            return on_batch
        if on_batch is None:
            return self

        def both(engine: Engine, report: Report) -> None:
            on_batch(engine, report)
            self(engine, report)

        return both

    def clear(self) -> None:
        """Remove the line."""
        if self._display is not None:
            self._display.show("")

    def _bar(self) -> str:
        fraction: float | None = getattr(self._source, "fraction_read", None)
        if fraction is None:
            return ""
        filled = int(fraction * _WIDTH)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {fraction:4.0%}  "


class Terminal:
    """Standard error, where it is a terminal."""

    def show(self, line: str) -> None:
        """Replace the line."""
        with suppress(OSError):
            os.write(2, f"{_ERASE}{line}".encode(errors="backslashreplace"))


class Cell:
    """The output of a notebook's cell."""

    def __init__(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - there in a notebook alone

        self._shown = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, line: str) -> None:
        """Replace the line."""
        self._shown.update({"text/plain": line}, raw=True)


def terminal(*, quiet: bool = False) -> Terminal | None:
    """Return the terminal, None if there is none or nothing shall be shown."""
    return None if quiet or not sys.stderr.isatty() else Terminal()


def here() -> Display | None:
    """Return the cell of a notebook, else the terminal, else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return terminal() if getattr(shell, "kernel", None) is None else Cell()
