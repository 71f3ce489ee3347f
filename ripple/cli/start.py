"""What the installed commands call; importing the rest takes long enough to press Ctrl+C."""

from __future__ import annotations

import os
import signal
from importlib import import_module

from ripple.environment import ENVIRONMENT


def ripple() -> int:
    """Run ``ripple``; return its exit code."""
    return _run("ripple.cli.main")


def vwap_demo() -> int:
    """Run ``ripple-vwap-demo``; return its exit code."""
    return _run("ripple.cli.vwap_demo")


def coordinator() -> int:
    """Run ``ripple-coordinator``; return its exit code."""
    return _run("coordinator.__main__")


def worker() -> int:
    """Run ``ripple-worker``; return its exit code."""
    return _run("worker.__main__")


def gateway() -> int:
    """Run ``ripple-gateway``; return its exit code."""
    return _run("ripple.flight.__main__")


def _run(module: str) -> int:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where it is ignored, as in nohup's children
        signal.signal(signal.SIGINT, _leave)
    main = import_module(module).main
    signal.signal(signal.SIGINT, before)
    code: int = main()
    return code


def _leave(*_: object) -> None:
    """End at once and in silence: nothing has been done yet."""
    os._exit(128 + signal.SIGINT)
