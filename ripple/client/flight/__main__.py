"""``ripple-gateway``: outputs of a cluster over Arrow Flight.

Exit codes: ``ripple.control.daemon``.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from ripple.client.flight.settings import SETTINGS, Settings, load
from ripple.control.daemon import Daemon
from ripple.control.process import leave
from ripple.core.extras import needed

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    daemon = Daemon("ripple-gateway", SETTINGS, load, lambda settings: partial(_work, settings))
    return daemon.main(sys.argv[1:] if given is None else given)


async def _work(settings: Settings, ending: asyncio.Event) -> None:
    # gRPC is imported here: earlier errors are reported sooner.
    with needed("cluster", "Arrow Flight"):
        from ripple.client.flight.process import serve  # noqa: PLC0415
    from ripple.control.telemetry.process_log import log_of  # noqa: PLC0415
    from ripple.world import live_world  # noqa: PLC0415
    from ripple.world.live_control import LiveControl  # noqa: PLC0415

    log = log_of(settings.log, component="gateway")
    world = live_world(".", control=LiveControl(settings.token))
    await serve(world, settings, log.say, ending)
    log.say("ended")
    log.close()


if __name__ == "__main__":
    leave(main())
