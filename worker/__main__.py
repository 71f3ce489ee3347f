"""``ripple-worker``: owns partitions of a pipeline, for as long as the cluster says so.

Exit codes: ``ripple.daemon``. After a second signal others recover what it had.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ripple.daemon import Daemon
from worker.settings import SETTINGS, Settings, flags_of, load

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    daemon = Daemon("ripple-worker", SETTINGS, load, _work, flags=flags_of)
    return daemon.main(sys.argv[1:] if given is None else given)


async def _work(settings: Settings, ending: asyncio.Event) -> None:
    # What went wrong before was said sooner.
    from ripple.observe.log import LogSettings  # noqa: PLC0415
    from ripple.observe.process_log import log_of  # noqa: PLC0415
    from worker.process import work  # noqa: PLC0415

    form = LogSettings(settings.log_format, settings.log_level)
    log = log_of(form, worker=settings.worker_id)
    await work(settings, log, ending)
    log.say("stopped")
    log.close()


if __name__ == "__main__":
    sys.exit(main())
