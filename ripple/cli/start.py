"""Entry points of the installed commands: handle Ctrl+C before the slow imports."""

from __future__ import annotations

import os
import signal
from importlib import import_module
from typing import NoReturn

from ripple.control.environment import ENVIRONMENT


def ripple() -> NoReturn:
    """Run ``ripple``."""
    _run("ripple.cli.main")


def vwap_demo() -> NoReturn:
    """Run ``ripple-vwap-demo``."""
    _run("ripple.cli.run.vwap_demo")


def coordinator() -> NoReturn:
    """Run ``ripple-coordinator``."""
    _run("coordinator.__main__")


def worker() -> NoReturn:
    """Run ``ripple-worker``."""
    _run("worker.__main__")


def gateway() -> NoReturn:
    """Run ``ripple-gateway``."""
    _run("ripple.client.flight.__main__")


def _run(module: str) -> NoReturn:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where it is ignored, as in nohup's children
        signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    from ripple.control.process import leave  # noqa: PLC0415 - after the handler is set

    signal.signal(signal.SIGINT, before)
    leave(main())


def _leave(*_: object) -> None:
    """Exit at once without a message: nothing has been done yet."""
    os._exit(128 + signal.SIGINT)
