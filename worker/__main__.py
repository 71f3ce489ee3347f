"""``ripple-worker``: owns and computes partitions of a pipeline.

Exit codes: ``ripple.control.daemon``. After a second signal other workers recover its partitions.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from ripple.control.daemon import Daemon
from ripple.control.process import leave
from ripple.core.setting import SettingsError
from worker.settings import SETTINGS, Settings, flags_of, load

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Sequence

    from ripple.model.pipeline.plan import Plan


def main(given: Sequence[str] | None = None) -> int:
    """Run the process; return its exit code."""
    return DAEMON.main(sys.argv[1:] if given is None else given)


def _ready(settings: Settings) -> Callable[[asyncio.Event], Awaitable[None]]:
    """Load the pipeline, which may be slow, and return the worker's coroutine."""
    if settings.pipelines:
        return partial(_host, settings)
    from ripple.model.pipeline.division import need_one_division  # noqa: PLC0415 - slow
    from ripple.model.pipeline.file import load_plan  # noqa: PLC0415 - slow

    plan = load_plan(settings.pipeline)
    if settings.pipeline_name not in ("", plan.name):
        raise SettingsError(
            f"{settings.pipeline} has the pipeline {plan.name}, not {settings.pipeline_name}: "
            "ripple pipeline change gives it another file"
        )
    need_one_division(plan, "a cluster", is_one=True)
    return partial(_work, settings, plan)


async def _work(settings: Settings, plan: Plan, ending: asyncio.Event) -> None:
    # Imported here: errors of settings and pipeline are reported before these slow imports.
    from ripple.control.telemetry.process_log import log_of  # noqa: PLC0415
    from worker.process import work  # noqa: PLC0415

    log = log_of(settings.log, **settings.who)
    await work(settings, plan, log, ending)
    log.say("stopped")
    log.close()


async def _host(settings: Settings, ending: asyncio.Event) -> None:
    from ripple.control.telemetry.process_log import log_of  # noqa: PLC0415
    from worker.host.host import host  # noqa: PLC0415

    log = log_of(settings.log, worker=settings.worker_id)
    await host(settings, log, ending)
    log.say("stopped")
    log.close()


DAEMON = Daemon("ripple-worker", SETTINGS, load, _ready, flags=flags_of)

if __name__ == "__main__":
    leave(main())
