"""Shared parts of the commands on Spark: options, a session, signals, a progress line."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from ripple.cli.lib.exits import SignalledError, say, say_inline
from ripple.core.errors import OutputError, RippleError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.spark.progress import TaskProgress

PROGRAM = "ripple"
_ERASE = "\r\033[K"
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class MissingError(RippleError):
    """A package or a program that Spark needs is missing."""


def configure_header(parser: argparse.ArgumentParser) -> None:
    """Add --header."""
    parser.add_argument(
        "--header", action="store_true", help="the first line of CSV files names their columns"
    )


def configure_session(parser: argparse.ArgumentParser) -> None:
    """Add the options of a Spark session."""
    parser.add_argument(
        "--master", metavar="URL", help="Spark master (default: local[*], or of spark-submit)"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )


@contextmanager
def opened(options: argparse.Namespace, *, is_brief: bool = False) -> Iterator[Any]:
    """Open a Spark session for a command; see ``session``.

    Raises MissingError if Spark or Java is missing.
    """
    settings = {}
    for text in options.conf:
        name, equals, value = text.partition("=")
        if not equals:
            raise OutputError(f"--conf takes KEY=VALUE, not {text!r}")
        settings[name] = value
    try:
        from ripple.spark.jvm import hush  # noqa: PLC0415 - imports pyspark
        from ripple.spark.session import session  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        raise MissingError(str(error)) from error
    # Where py4j is interrupted, it logs at length.
    logging.getLogger().addHandler(logging.NullHandler())
    with _held():
        spark = session(options.master, is_brief=is_brief, **settings)
        _silence(spark)
    heard = _Heard()
    try:
        yield spark
    except BaseException as error:
        heard.raise_instead(error)
        raise
    finally:
        hush()
        with suppress(Exception):  # a JVM that died was already reported
            spark.stop()
        heard.end()


def _silence(spark: Any) -> None:
    """Silence PySpark's accumulator server, which prints a traceback when the JVM ends."""
    server = getattr(getattr(spark, "_sc", None), "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


@contextmanager
def _held() -> Iterator[None]:
    """Delay signals until the session exists; a second one ends the process at once.

    If the parent unwinds while a JVM starts, the JVM fails at length and stays for ever; if the
    parent is gone, the JVM ends. And Spark leaves a handler of its own, which calls the JVM from
    within, while the answer to another call is read.
    """
    waiting: list[int] = []

    def note(number: int, _: object) -> None:
        if waiting:
            os._exit(128 + number)
        waiting.append(number)

    before = {one: signal.getsignal(one) for one in _NUMBERS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for waited in waiting:
            signal.raise_signal(waited)


class _Heard:
    """Signals that end a command, each first raised as an interrupt.

    After any other exception py4j does not know that an answer is unread: the next call on the way
    out would wait for a job to end. Even so that call may fail, and its error is not reported.
    """

    def __init__(self) -> None:
        self._before = {one: signal.getsignal(one) for one in _NUMBERS}
        self._numbers: list[int] = []
        for number, handler in self._before.items():
            if callable(handler):
                signal.signal(number, self._hear)

    def raise_instead(self, error: BaseException) -> None:
        """Raise the first signal's exception instead of an error, if a signal came first."""
        if self._numbers and self._numbers[0] != signal.SIGINT:
            raise SignalledError(self._numbers[0]) from error
        if self._numbers:
            raise KeyboardInterrupt from error

    def end(self) -> None:
        """Restore the handlers."""
        for number, handler in self._before.items():
            if callable(handler):
                signal.signal(number, handler)

    def _hear(self, number: int, _: object) -> None:
        if number != signal.SIGINT:
            signal.signal(number, signal.SIG_IGN)  # the unwinding must not be disturbed
        self._numbers.append(number)
        raise KeyboardInterrupt


class Stopping:
    """Whether a signal asked for a graceful end; a second one ends at once."""

    def __init__(self, spark: Any | None = None) -> None:
        """Handle the signals, and SIGHUP. spark: a session; its jobs are cancelled then."""
        from ripple.spark.jvm import hush  # noqa: PLC0415 - imports pyspark

        self._spark, self._hush = spark, hush
        self._asked = threading.Event()
        self.number: int | None = None
        for number in _NUMBERS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._ask)  # unless ignored, as under nohup

    def __bool__(self) -> bool:
        return self._asked.is_set()

    def wait(self, span_s: float) -> None:
        """Wait for a span, or until a signal."""
        self._asked.wait(span_s)

    def say(self) -> None:
        """Print the signal, if one came."""
        if self.number is not None:
            say(f"{PROGRAM}: stopped by {signal.Signals(self.number).name}")

    @property
    def code(self) -> int:
        """The exit code after a graceful end: 130 after Ctrl+C."""
        return 128 + signal.SIGINT if self.number == signal.SIGINT else 0

    def _ask(self, number: int, _: object) -> None:
        if self:
            os._exit(128 + number)
        self.number = number
        self._asked.set()
        self._hush()
        if self._spark is not None:
            threading.Thread(target=self._give_up, daemon=True).start()

    def _give_up(self) -> None:
        assert self._spark is not None
        with suppress(Exception):  # between two rounds the session is stopped at once
            self._spark.sparkContext.cancelAllJobs()


class Progress:
    """A line on standard error, on terminals only, removed at the end."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, progress: TaskProgress) -> None:
        """Redraw the line."""
        if self._shown:
            say_inline(f"{_ERASE}{progress.text()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            say_inline(_ERASE)
