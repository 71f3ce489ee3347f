"""The command line of a pipeline's worker, from the settings of its host and the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment.pipelines import PORTS_APART, place_of

if TYPE_CHECKING:
    from ripple.control.assignment.pipelines import Hosted
    from worker.settings import Settings

KAFKA = "kafka:"
# Whole folders, separate for each pipeline: workers of different pipelines must not share them.
_FOLDERS = ("lanes", "cache")


def arguments_of(
    settings: Settings, hosted: Hosted, *, rpc_port: int, health_port: int, metrics_port: int
) -> list[str]:
    """Return the arguments: the pipeline's own, and the others as the host has them."""
    given = {name: one.value for name, one in settings.origins.items() if one.origin != "default"}
    given.setdefault("processes", 1)
    for name in _FOLDERS:
        folder = str(given.get(name, ""))
        if folder and not folder.startswith(KAFKA):
            given[name] = f"{folder}/{hosted.name}"
    given |= {
        "pipelines": "",
        "pipeline": f"{settings.pipelines}/{hosted.file}",
        "pipeline_name": hosted.name,
        "store": place_of(settings.store, hosted.name),
        "source": hosted.source,
        "sink": ",".join(hosted.sinks),
        "partitions": 1 if hosted.needs_one else 0,
        "rpc_port": rpc_port,
        "health_port": health_port,
        "metrics_port": metrics_port,
        "end_with_stdin": True,
    }
    return [f"--{name.replace('_', '-')}={_text(value)}" for name, value in sorted(given.items())]


def data_port(settings: Settings, hosted: Hosted) -> int:
    """Return the first data port of a pipeline's worker, 0 for any free one."""
    return settings.rpc_port and settings.rpc_port + PORTS_APART * hosted.number


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
