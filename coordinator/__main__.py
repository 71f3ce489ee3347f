"""``ripple-coordinator``: one of the coordinators of a cluster.

Exit codes: 0 ended by SIGTERM; 1 wrong settings, or it could not work; 130 ended by Ctrl+C. A
second signal ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from coordinator.settings import SETTINGS, Settings, load
from ripple.errors import RippleError
from ripple.settings import CONFIG_VARIABLE, SettingsError, arguments, help_text, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.world.ports import World

PROGRAM = "ripple-coordinator"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    try:
        return _main(sys.argv[1:] if given is None else given)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (RippleError, ModuleNotFoundError) as error:
        _write(f"{PROGRAM}: {error}\n")
        return 1
    except OSError as error:
        named = f"{error.filename}: " if error.filename is not None else ""
        _write(f"{PROGRAM}: {named}{error.strerror or error}\n")
        return 1


def _main(given: Sequence[str]) -> int:
    said = arguments(SETTINGS, given)
    if said.is_help:
        sys.stdout.write(help_text(PROGRAM, SETTINGS))
        return 0
    config = said.config or os.environ.get(CONFIG_VARIABLE)
    settings = load(said, os.environ, _file(config))
    if said.is_check:
        sys.stdout.write(settings.text)
        return 0
    world = _world(settings)
    return asyncio.run(_run(world, settings))


def _file(path: str | None) -> Mapping[str, object]:
    if path is None:
        return {}
    with open(path, "rb") as file:
        return read_file(file.read(), path)


def _world(settings: Settings) -> World:
    """Return the live world. gRPC is loaded here: what went wrong before was said sooner."""
    from ripple.store import DiskStore  # noqa: PLC0415
    from ripple.world import LiveDisk, LiveRandom, live_world  # noqa: PLC0415
    from ripple.world.live_control import LiveControl  # noqa: PLC0415

    if "://" in settings.store:
        raise SettingsError(
            f"store is {settings.store} (from {settings.origins['store'].origin}): a coordinator "
            "keeps its store in a folder for now; S3 comes later"
        )
    disk = LiveDisk(settings.store)
    return live_world(settings.store, store=DiskStore(disk, LiveRandom()), control=LiveControl())


async def _run(world: World, settings: Settings) -> int:
    from coordinator.process import coordinate  # noqa: PLC0415

    ended, code = asyncio.Event(), 0

    def end(number: signal.Signals) -> None:
        nonlocal code
        if ended.is_set():
            os._exit(128 + number)
        code = 128 + number if number == signal.SIGINT else 0
        ended.set()

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end, number)

    async def until_told() -> None:
        await ended.wait()

    def say(line: str) -> None:
        now = datetime.fromtimestamp(world.clock.now_ns() / 1e9, UTC)
        at = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        _write(f"{at} {' '.join(line.split())}\n")

    await coordinate(world, settings, say, until_told)
    say("ended")
    return code


def _write(text: str) -> None:
    """Write to standard error; that nobody can read it is no reason to fail."""
    with suppress(OSError):
        os.write(2, text.encode(errors="backslashreplace"))


if __name__ == "__main__":
    sys.exit(main())
