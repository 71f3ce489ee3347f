"""HTTP pages of a host: its workers' pages together, by pipeline."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Protocol

from ripple.control.probes import Page, json_page, page_of
from ripple.control.telemetry.by_pipeline import labelled, together
from ripple.control.telemetry.exposition import CONTENT_TYPE, exposition
from ripple.control.telemetry.metrics import OF_WORKERS
from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.control.assignment.pipelines import Pipelines
    from ripple.control.probes import Shows
    from ripple.world.ports import Network
    from worker.host.child import Child

PAGE_S = 2.0


class Hosts(Protocol):
    """The parts of a host that its pages show."""

    children: dict[str, Child]
    pages: dict[str, tuple[str, str]]

    @property
    def record(self) -> Pipelines | None:
        """The record of pipelines, None before its first reading."""


class Pages:
    """The pages of a host."""

    def __init__(self, host: Hosts, network: Network) -> None:
        self._host = host
        self._network = network

    @property
    def of_health(self) -> Mapping[str, Shows]:
        """The pages of the health port."""
        return {
            "/health": lambda: Page("OK\n"),
            "/ready": self._ready,
            "/alerts": self._alerts,
            "/pipelines": self._pipelines,
        }

    @property
    def of_metrics(self) -> Mapping[str, Shows]:
        """The page of the metrics port."""
        return {"/metrics": self._metrics}

    async def _ready(self) -> Page:
        """Ready: the record was read, and each worker that has not failed is ready."""
        if self._host.record is None:
            return Page("NOT READY: the record of pipelines has not been read yet\n", 503)
        shown = await self._each(0, "/ready")
        running = [name for name, one in self._host.children.items() if self._runs(one)]
        waiting = [
            name for name in running if name not in shown and not self._host.children[name].problem
        ]
        if waiting:
            return Page(f"NOT READY: {', '.join(sorted(waiting))}\n", 503)
        return Page("READY\n")

    async def _alerts(self) -> Page:
        shown = await self._each(0, "/alerts")
        return json_page(
            [
                {"pipeline": name} | one
                for name, page in sorted(shown.items())
                for one in json.loads(page)
            ]
        )

    def _pipelines(self) -> Page:
        found = []
        for name, child in sorted(self._host.children.items()):
            health, metrics = self._host.pages.get(name, ("", ""))
            hosted = child.hosted
            about = {"name": name, "revision": 0 if hosted is None else hosted.revision}
            standing = "ends" if hosted is None else "stopped" if hosted.is_stopped else "runs"
            about |= {"standing": standing, "process": child.pid, "starts": child.starts}
            found.append(about | {"problem": child.problem, "health": health, "metrics": metrics})
        return json_page(found)

    async def _metrics(self) -> Page:
        shown = await self._each(1, "/numbers")
        samples = {name: Samples.from_values(json.loads(page)) for name, page in shown.items()}
        text = exposition(labelled(OF_WORKERS), together(samples))
        return Page(text, content_type=CONTENT_TYPE)

    async def _each(self, which: int, path: str) -> dict[str, bytes]:
        """Return a page of each running worker that answers, by pipeline."""
        names = [name for name, one in self._host.children.items() if one.pid]
        answers = await asyncio.gather(
            *(page_of(self._network, self._host.pages[n][which], path, PAGE_S) for n in names),
            return_exceptions=True,
        )
        found = {}
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, bytes):
                found[name] = answer
            elif not isinstance(answer, OSError):  # a starting or hanging worker
                raise answer
        return found

    @staticmethod
    def _runs(child: Child) -> bool:
        return child.hosted is not None and not child.hosted.is_stopped
