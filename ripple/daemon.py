"""A process that works until it is told to end: settings, signals, exit codes.

Exit codes: 0 ended by SIGTERM; 1 wrong settings, or it could not work, or not complete what it had;
130 ended by Ctrl+C. A second signal ends it at once. With ``--end-with-stdin`` it ends, too, with
who has started it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from ripple import event_loop
from ripple.errors import RippleError
from ripple.settings import (
    CONFIG_VARIABLE,
    Arguments,
    InForce,
    Setting,
    SettingsError,
    arguments,
    help_text,
    read_file,
)

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Settings(Protocol):
    """What a process runs with."""

    @property
    def end_with_stdin(self) -> bool:
        """Whether to end in good order once nobody holds the other end of standard input."""

    @property
    def origins(self) -> Mapping[str, InForce]:
        """Where each value came from."""

    @property
    def text(self) -> str:
        """What ``--check-config`` prints."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True)
class Daemon(Generic[S]):
    """A kind of process.

    work: runs until the event is set, and ends in good order. flags: of the arguments as given.
    """

    program: str
    settings: tuple[Setting, ...]
    load: Callable[[Arguments, Mapping[str, str], Mapping[str, object]], S]
    work: Callable[[S, asyncio.Event], Awaitable[None]]
    flags: Callable[[Sequence[str]], Sequence[str]] = list

    def main(self, given: Sequence[str]) -> int:
        """Run the process; return its exit code."""
        try:
            return self._main(given)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except (RippleError, ModuleNotFoundError) as error:  # of an extra, which says what to do
            write(f"{self.program}: {error}\n")
            return 1
        except OSError as error:
            named = f"{error.filename}: " if error.filename is not None else ""
            write(f"{self.program}: {named}{error.strerror or error}\n")
            return 1

    def _main(self, given: Sequence[str]) -> int:
        said = arguments(self.settings, self.flags(given))
        if said.is_help:
            sys.stdout.write(help_text(self.program, self.settings))
            return 0
        config = said.config or os.environ.get(CONFIG_VARIABLE)
        settings = self.load(said, os.environ, _file(config))
        if said.is_check:
            sys.stdout.write(settings.text)
            return 0
        return event_loop.run(self._run(settings))

    async def _run(self, settings: S) -> int:
        ending, code = asyncio.Event(), 0

        def end(number: signal.Signals) -> None:
            nonlocal code
            if ending.is_set():
                os._exit(128 + number)
            code = 128 + number if number == signal.SIGINT else 0
            ending.set()

        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, end, number)
        if settings.end_with_stdin:
            _watch_stdin(loop, partial(end, signal.SIGTERM))
        await self.work(settings, ending)
        return code


def _watch_stdin(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    def look() -> None:
        if not os.read(0, 1 << 16):
            loop.remove_reader(0)
            end()

    try:
        loop.add_reader(0, look)
    except OSError:
        raise SettingsError("end_with_stdin: standard input is no pipe") from None


def _file(path: str | None) -> Mapping[str, object]:
    if path is None:
        return {}
    with open(path, "rb") as file:
        return read_file(file.read(), path)


def is_terminal() -> bool:
    """Return whether people read what is said."""
    return os.isatty(2)


def write(text: str) -> None:
    """Write to standard error; that nobody can read it is no reason to fail."""
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))
