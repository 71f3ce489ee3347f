"""Exit codes and error lines of the commands.

0 success; 1 wrong arguments, or a failure; 2 no answer from an address; 3 schemas do not match;
128 + n ended by signal n, as in shells (130 Ctrl+C, 141 the output's reader went away, 143
SIGTERM). An expected failure is one line on standard error.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import Any, NoReturn

from ripple.connectors.target import ClosedPipeError
from ripple.control import process
from ripple.core.errors import RippleError, SchemaError

EXIT_FAILURE = 1
EXIT_UNREACHABLE = 2
EXIT_SCHEMA = 3

# The first matching type decides.
_CODES: tuple[tuple[type[Exception], int], ...] = (
    (SchemaError, EXIT_SCHEMA),
    (RippleError, EXIT_FAILURE),
    (ConnectionError, EXIT_UNREACHABLE),
    (OSError, EXIT_FAILURE),
    (ModuleNotFoundError, EXIT_FAILURE),  # of an extra; the message says how to install it
)
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class SignalledError(BaseException):
    """A signal asked the process to end; like KeyboardInterrupt, not an error to be handled."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Parser(argparse.ArgumentParser):
    """An argument parser that exits with code 1 on wrong usage, and suggests corrections."""

    _given: Sequence[str] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register("action", "parsers", _DescribedParsers)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and keep the arguments for suggestions."""
        self._given = tuple(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the error of the arguments in a line, and exit."""
        if message.startswith("the following arguments are required"):
            # A missing argument is often present, mistyped.
            flags = _flags(self)
            words = [word.partition("=")[0] for word in self._given if word.startswith("--")]
            unknown = [word for word in words if not any(flag.startswith(word) for flag in flags)]
            if unknown:
                message = f"unrecognized arguments: {unknown[0]}"
        _, is_unknown, listed = message.partition("unrecognized arguments: ")
        if is_unknown:
            given = listed.split()[0].partition("=")[0]
            owners = _owners(self, given)
            if owners:
                message += f": {given} goes with {', '.join(owners)}"
            elif os.path.exists(given):
                message += ": a pattern of files is put in quotes, so that the shell leaves it"
            else:
                message += _meant(given, [flag for flag in _flags(self) if flag.startswith("--")])
        self.exit(EXIT_FAILURE, f"{self.prog}: {_shown(message)} (see {self.prog} --help)\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse would ignore that it cannot be written."""
        if message:
            (file or sys.stderr).write(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            named = action._choices_actions if isinstance(action, _SubParsers) else ()
            known = [one.dest for one in named] or [str(choice) for choice in action.choices]
            every = map(str, action.choices)
            hint = _meant(str(value), every) or f" (choose from {', '.join(known)})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")


_SubParsers = argparse._SubParsersAction
_LIKE = 0.65  # `read` is no misspelling of `repair`


class _DescribedParsers(_SubParsers):  # type: ignore[type-arg]
    """The actions of a command; the help of each begins with its line in the list of actions."""

    def add_parser(self, name: str, **options: Any) -> Any:
        purpose = options.get("help")
        if purpose:
            options.setdefault("description", f"{purpose[0].upper()}{purpose[1:]}.")
        return super().add_parser(name, **options)


def show_examples(parser: argparse.ArgumentParser, examples: Iterable[str]) -> None:
    """Put examples below the help of a command, and of each action below its own."""
    lines = [f"  {one}" for one in examples if f"{parser.prog} " in f"{one} "]
    if lines:
        parser.epilog = "\n".join(["examples:", *lines])
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for action in parser._actions:
        if isinstance(action, _SubParsers):
            for below in action.choices.values():
                show_examples(below, examples)


def _flags(parser: argparse.ArgumentParser) -> list[str]:
    """Return the flags of a parser and its subparsers."""
    found: list[str] = []
    for action in parser._actions:
        found += action.option_strings
        if isinstance(action, _SubParsers):
            found += [flag for below in action.choices.values() for flag in _flags(below)]
    return found


def _owners(parser: argparse.ArgumentParser, flag: str) -> list[str]:
    """Return the actions of a parser that have a flag."""
    below = [one for one in parser._actions if isinstance(one, _SubParsers)]
    choices = [each for one in below for each in one.choices.items()]
    return [name for name, action in choices if flag in _flags(action)]


def _meant(given: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only on errors

    close = get_close_matches(given, list(known), n=1, cutoff=_LIKE)
    return f": did you mean {close[0]}?" if close else ""


def exit_code(program: str, work: Callable[[], int]) -> int:
    """Run ``work`` and return the process's exit code; expected failures become one line.

    SIGTERM and SIGHUP unwind the stack, so that no half-written file stays.
    """
    process.begin()
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # Undecodable names, and characters that the terminal lacks, are no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    for number in _ENDING_SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, unwind)
    try:
        return _flushed(work)
    except (ClosedPipeError, BrokenPipeError):
        # Not an error: the output's reader closed the pipe.
        _drop_output()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        _say_last(f"{program}: interrupted")
        return 128 + signal.SIGINT
    except SignalledError as ending:
        signal.signal(ending.number, unwind)
        _say_last(f"{program}: ended by {signal.Signals(ending.number).name}")
        return 128 + ending.number
    except tuple(kind for kind, _ in _CODES) as error:
        _say_last(f"{program}: {_line(error)}")
        _drop_output()
        return _code_of(error)


def _code_of(error: Exception) -> int:
    from ripple.cli.lib.silence import is_silence  # noqa: PLC0415 - only on errors

    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return EXIT_UNREACHABLE if code == EXIT_FAILURE and is_silence(error) else code


def finished() -> None:
    """Ignore signals from here on: the work is done, and is not undone."""
    for number in (signal.SIGINT, *_ENDING_SIGNALS):
        signal.signal(number, signal.SIG_IGN)


def _line(error: Exception) -> str:
    from ripple.core.arguments import plain  # noqa: PLC0415 - only on errors

    return plain(" ".join(_text(error).split()))


def _text(error: Exception) -> str:
    """Return an error's message, without the system's error number."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename is not None else ""
        found = process.files() if error.errno == errno.EMFILE else None
        limit = "" if found is None else f" (it may have {found[1]}: raise it by ulimit -n)"
        return f"{named}{error.strerror}{limit}"
    return str(error)


def _shown(text: str) -> str:
    from ripple.control.secrets import without_secrets  # noqa: PLC0415 - not needed for help

    return without_secrets(text)


def say(text: str) -> None:
    """Write a line to standard error; failing to is ignored."""
    say_inline(f"{text}\n")


def say_meanwhile(text: str) -> None:
    """Write a line to standard error without waiting for its reader.

    Lines of ``say`` may overtake it: ``process.standard_error.flush`` waits for it.
    """
    process.write(_shown(f"{text}\n"))


def say_inline(text: str) -> None:
    """Write ``text`` to standard error as ``say`` does, without ending the line."""
    with suppress(OSError):
        os.write(2, _shown(text).encode(errors="backslashreplace"))


def _say_last(text: str) -> None:
    """Write the last line; a signal ends the process at once, if the reader is stuck."""
    with _signals_end():
        say(text)


@contextmanager
def _signals_end() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, *_ENDING_SIGNALS)}
    handled = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handled:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)


def _flushed(work: Callable[[], int]) -> int:
    """Run ``work``, and flush its output: failing to write it is a failure."""
    try:
        code = work()
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def unwind(number: int, _: object) -> NoReturn:
    """Raise :class:`SignalledError`, as the handler of a signal."""
    signal.signal(number, signal.SIG_IGN)  # a second one must not disturb the unwinding
    raise SignalledError(number)


def _drop_output() -> None:
    """Discard the rest of the output, whose flush at exit could only fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
