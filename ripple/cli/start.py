"""Entry points of the installed commands: handle signals before the slow imports."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from ripple.control.environment import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Sequence


def ripple() -> NoReturn:
    """Run ``ripple``."""
    _run("ripple.cli.main", is_service=_is_service(sys.argv[1:]))


def vwap_demo() -> NoReturn:
    """Run ``ripple-vwap-demo``."""
    _run("ripple.cli.run.vwap_demo")


def coordinator() -> NoReturn:
    """Run ``ripple-coordinator``."""
    _run("coordinator.__main__", is_service=True)


def worker() -> NoReturn:
    """Run ``ripple-worker``."""
    _run("worker.__main__", is_service=True)


def gateway() -> NoReturn:
    """Run ``ripple-gateway``."""
    _run("ripple.client.flight.__main__", is_service=True)


def _is_service(arguments: Sequence[str]) -> bool:
    """Return whether a command runs until it is told to end, which is no failure then."""
    match arguments:
        case ["cluster", "up", *_]:
            return True
        case ["run", *rest]:
            shortest = "--checkpoint-dir"[:-2]  # no other option begins so
            return any(word.startswith(shortest) for word in rest)
        case _:
            return False


def _run(module: str, *, is_service: bool = False) -> NoReturn:
    """Run a program. is_service: SIGTERM and SIGHUP end it with exit code 0."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where it is ignored, as in nohup's children
        signal.signal(signal.SIGINT, _leave)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if is_service and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)  # until the program handles it
    main = import_module(module).main
    from ripple.control.process import leave  # noqa: PLC0415 - after the handler is set

    signal.signal(signal.SIGINT, before)
    leave(main())


def _leave(number: int, _: object) -> None:
    """Exit at once without a message: nothing has been done yet."""
    os._exit(128 + number if number == signal.SIGINT else 0)
