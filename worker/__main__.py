"""``ripple-worker``: owns partitions of a pipeline, for as long as the cluster says so.

Exit codes: 0 ended in good order by SIGTERM; 1 wrong settings, or it could not work; 130 ended by
Ctrl+C. A second signal ends it at once, and others recover what it had.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ripple.errors import RippleError
from ripple.settings import CONFIG_VARIABLE, SettingsError, arguments, help_text, read_file
from worker.settings import SETTINGS, Settings, flags_of, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROGRAM = "ripple-worker"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    try:
        return _main(sys.argv[1:] if given is None else given)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except RippleError as error:
        _write(f"{PROGRAM}: {error}\n")
        return 1
    except OSError as error:
        named = f"{error.filename}: " if error.filename is not None else ""
        _write(f"{PROGRAM}: {named}{error.strerror or error}\n")
        return 1


def _main(given: Sequence[str]) -> int:
    said = arguments(SETTINGS, flags_of(given))
    if said.is_help:
        sys.stdout.write(help_text(PROGRAM, SETTINGS))
        return 0
    config = said.config or os.environ.get(CONFIG_VARIABLE)
    settings = load(said, os.environ, _file(config))
    if said.is_check:
        sys.stdout.write(settings.text)
        return 0
    if "://" in settings.store:
        raise SettingsError(
            f"store is {settings.store} (from {settings.origins['store'].origin}): a worker keeps "
            "its store in a folder for now; S3 comes later"
        )
    return asyncio.run(_run(settings))


def _file(path: str | None) -> Mapping[str, object]:
    if path is None:
        return {}
    with open(path, "rb") as file:
        return read_file(file.read(), path)


async def _run(settings: Settings) -> int:
    from worker.process import work  # noqa: PLC0415 - what went wrong before was said sooner

    stopping, code = asyncio.Event(), 0

    def end(number: signal.Signals) -> None:
        nonlocal code
        if stopping.is_set():
            os._exit(128 + number)  # the children see the end of their pipes
        code = 128 + number if number == signal.SIGINT else 0
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end, number)
    await work(settings, _say, stopping)
    _say("stopped")
    return code


def _say(line: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    _write(f"{now} {' '.join(line.split())}\n")


def _write(text: str) -> None:
    """Write to standard error; that nobody can read it is no reason to fail."""
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))


if __name__ == "__main__":
    sys.exit(main())
