"""A daemon: a process that works until it is told to end. Settings, signals, exit codes.

Exit codes: 0 ended by SIGTERM; 1 wrong settings, or it could not work, or not complete its work;
3 a schema does not fit; 130 ended by Ctrl+C. A second signal ends it at once. With
``--end-with-stdin`` it also ends together with the process that started it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from ripple.control import event_loop, process
from ripple.control.secrets import without_secrets
from ripple.control.signals import Debounce
from ripple.core.errors import RippleError, SchemaError
from ripple.core.setting import InForce, Setting, SettingsError
from ripple.core.settings import CONFIG_VARIABLE, Arguments, arguments, help_text, mistyped
from ripple.core.settings_file import read_file

EXIT_SCHEMA = 3  # as of ripple.cli.lib.exits
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Settings(Protocol):
    """The settings of a process."""

    @property
    def end_with_stdin(self) -> bool:
        """Whether to stop gracefully when the other end of standard input is closed."""

    @property
    def origins(self) -> Mapping[str, InForce]:
        """The origin of each value."""

    @property
    def text(self) -> str:
        """The output of ``--check-config``, secrets in URIs included: they are shown as ***."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True)
class Daemon(Generic[S]):
    """A kind of process.

    ready: runs before there is an event loop, for example to load user code; returns the coroutine
    function that runs until the event is set, and stops gracefully. flags: of the arguments as
    given.
    """

    program: str
    settings: tuple[Setting, ...]
    load: Callable[[Arguments, Mapping[str, str], Mapping[str, object]], S]
    ready: Callable[[S], Callable[[asyncio.Event], Awaitable[None]]]
    flags: Callable[[Sequence[str]], Sequence[str]] = list

    def main(self, given: Sequence[str]) -> int:
        """Run the process; return its exit code."""
        process.begin()
        try:
            return self._main(given)
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
        except OSError as error:  # some are RippleErrors, too: a lock that is held
            named = f"{error.filename}: " if error.filename is not None else ""
            process.write(without_secrets(f"{self.program}: {named}{error.strerror or error}\n"))
            return 1
        except (RippleError, ModuleNotFoundError) as error:  # of a missing extra: names it
            process.write(without_secrets(f"{self.program}: {error}\n"))
            return EXIT_SCHEMA if isinstance(error, SchemaError) else 1
        finally:
            process.standard_error.flush()

    def check(self, given: Sequence[str]) -> None:
        """Raise the error with which a start with these arguments would refuse its settings."""
        self._in_force(arguments(self.settings, self.flags(given)))

    def _in_force(self, said: Arguments) -> S:
        config = said.config or os.environ.get(CONFIG_VARIABLE)
        return self.load(said, os.environ, _file(config))

    def _main(self, given: Sequence[str]) -> int:
        said = arguments(self.settings, self.flags(given))
        if said.is_help:
            sys.stdout.write(help_text(self.program, self.settings))
            sys.stdout.flush()
            return 0
        for line in mistyped(self.settings, os.environ):
            process.write(f"{self.program}: {line}\n")
        settings = self._in_force(said)
        if said.is_check:
            sys.stdout.write(without_secrets(settings.text))
            sys.stdout.flush()
            return 0
        numbers = [number for number in SIGNALS if not _is_of_nohup(number)]
        for number in numbers:
            signal.signal(number, _end_at_once)  # nothing has been done yet
        work = self.ready(settings)
        return event_loop.run(self._run(work, numbers, settings))

    async def _run(
        self,
        work: Callable[[asyncio.Event], Awaitable[None]],
        numbers: Sequence[signal.Signals],
        settings: S,
    ) -> int:
        ending, code = asyncio.Event(), 0

        def end(number: signal.Signals) -> None:
            nonlocal code
            if not debounce.is_new(number):
                return
            if ending.is_set():
                os._exit(128 + number)
            code = _code_of(number)
            ending.set()

        loop = asyncio.get_running_loop()
        debounce = Debounce(loop.time)
        for number in numbers:
            loop.add_signal_handler(number, end, number)
        if settings.end_with_stdin:
            _watch_stdin(loop, partial(end, signal.SIGTERM))
        await work(ending)
        for number in numbers:
            # Closed by itself, the loop would let a late signal end the process by its number.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        return code


def _is_of_nohup(number: signal.Signals) -> bool:
    """Return whether the process shall outlast its terminal (nohup)."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def _code_of(number: int) -> int:
    return 128 + number if number == signal.SIGINT else 0


def _end_at_once(number: int, _: object) -> None:
    os._exit(_code_of(number))


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
    """Return whether standard error is read by people."""
    return os.isatty(2)
