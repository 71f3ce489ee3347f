"""The log of this process: on its standard error, by its clock, without its secrets."""

from __future__ import annotations

import os

from ripple.control import daemon, process
from ripple.control.process_settings import LogSettings
from ripple.control.telemetry.log import Log
from ripple.world import LiveClock


def log_of(settings: LogSettings, **who: str) -> Log:
    """Return the log, which also takes the log of libraries. who: as of Log."""
    log = Log(
        settings,
        process.write,
        LiveClock().now_ns,
        environment=os.environ,
        is_terminal=daemon.is_terminal(),
        **who,
    )
    log.take_over()
    return log
