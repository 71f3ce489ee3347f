"""A cluster of real processes for tests, and the output of a single process for comparison."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ripple.cli.cluster.starting.plan import Asked, Planned, coordinators_of, processes
from ripple.cli.cluster.starting.process import Process
from ripple.cli.cluster.starting.reach import Reach
from ripple.core.row_ops import OP
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import Topic
from ripple.world import LiveDisk
from tests.cli.processes import ripple as command
from tests.patience import PATIENCE_S


def ripple(*arguments: object) -> str:
    """Run a command that must succeed; return what it printed."""
    ended = command(*arguments)
    assert ended.code == 0, ended.err
    return ended.out


class Table(NamedTuple):
    """The rows that an output's changes make, as JSON lines, and their digest."""

    rows: list[str]
    digest: str


def table(topic: Path) -> Table:
    """Return the rows of ``ripple log table``; of events, all of them."""
    opened = Topic.open(LiveDisk(str(topic.parent)), topic.name)
    if opened.schema.fields[0].name != OP:
        tails = [ripple("log", "tail", topic, "--partition", n) for n in range(opened.partitions)]
        return Table(sorted(row for tail in tails for row in tail.splitlines()), "")
    ended = command("log", "table", topic)
    assert ended.code == 0, ended.err
    return Table(ended.rows, ended.err.split()[-1])


@dataclass(frozen=True, slots=True)
class Job:
    """A pipeline over a topic, and the topics that its outputs make in a cluster.

    Of the outputs the first is of the first stage, so each of its partitions is what one process
    makes of the partition of the source, unless that ``is_divided`` anew. Of the others, tables are
    the same. named: several sources as SOURCE=URI, instead of the topic.
    """

    pipeline: Path
    source: Path
    folder: Path
    outputs: tuple[str, ...]
    partitions: int
    is_divided: bool = False
    named: tuple[str, ...] = ()

    @property
    def sources(self) -> list[str]:
        """Return what ``--source`` takes: the topic, or each of several by name."""
        places = self.named or (f"log:{self.source}",)
        return [flag for place in places for flag in ("--source", place)]

    def sinks(self, folder: Path) -> list[str]:
        """Return where all outputs go."""
        return [f"{name}=log:{folder / name}" for name in self.outputs]

    def alone(self, folder: Path) -> list[list[str]]:
        """Return each partition's output as one process makes it, as JSON lines."""
        found: list[list[str]] = []
        for partition in range(0 if self.is_divided else self.partitions):
            sink = folder / f"alone-{partition}"
            given = ["run", self.pipeline, "--source", f"log:{self.source}/{partition}"]
            kept = ["--checkpoint-dir", folder / f"state-{partition}"]
            ripple(*given, "--sink", f"{self.outputs[0]}=log:{sink}", *kept)
            found.append(ripple("log", "tail", sink).splitlines())
        return found

    def tables_alone(self, folder: Path) -> list[Table]:
        """Return the table of each output as one process makes it of the whole source."""
        sinks = [flag for sink in self.sinks(folder / "whole") for flag in ("--sink", sink)]
        given = ["run", self.pipeline, *self.sources, *sinks]
        ripple(*given, "--checkpoint-dir", folder / "state-whole")
        return [table(folder / "whole" / name) for name in self.outputs]

    def tables_made(self) -> list[Table]:
        """Return the table of each output as the cluster has made it."""
        return [table(self.folder / name) for name in self.outputs]

    def made(self) -> list[list[str]]:
        """Return each partition's output as the cluster has made it."""
        return [
            ripple(
                "log", "tail", self.folder / self.outputs[0], "--partition", partition
            ).splitlines()
            for partition in range(0 if self.is_divided else self.partitions)
        ]


class Cluster:
    """The processes of a cluster that is up. said: all their lines.

    spare: the names of workers that join when they are told to.
    """

    def __init__(self, planned: Sequence[Planned], reach: Reach, spare: Sequence[str] = ()) -> None:
        self.said: list[str] = []
        self.coordinators = coordinators_of(planned)
        self.spare = spare
        self._reach = reach
        self._planned = {one.name: one for one in planned}
        self.processes: dict[str, Process] = {}
        self._lives: dict[str, asyncio.Future[None]] = {}
        for name in self._planned:
            if name not in spare:
                self.join(name)

    def join(self, name: str) -> bool:
        """Start a process, unless it is there."""
        if name in self._lives and not self._lives[name].done():
            return False
        one = Process(self._planned[name], lambda who, line: self.said.append(f"{who} | {line}"))
        self.processes[name] = one
        self._lives[name] = asyncio.ensure_future(one.live())
        return True

    def leave(self, name: str) -> bool:
        """Tell a process to end, for good."""
        if name not in self.processes or not self.processes[name].pid:
            return False
        self.processes[name].end()
        return True

    async def caught_up(self, within_s: float) -> float:
        """Wait until all that is in the source is in the output; return for how long."""
        began_s = time.monotonic()
        while True:
            reached = await asyncio.to_thread(self._reach.look)
            if reached.is_all:
                return time.monotonic() - began_s
            for name, life in self._lives.items():
                assert name in self.spare or not life.done(), f"{name} has given up: {self.tail()}"
            assert time.monotonic() - began_s < within_s, f"{reached}\n{self.tail()}"
            await asyncio.sleep(0.05)

    def tail(self, lines: int = 400) -> str:
        """Return what was said last."""
        return "\n".join(self.said[-lines:])

    def pid(self, name: str) -> int:
        """Return which process has a name now, 0 while it is down."""
        return self.processes[name].pid

    async def end(self) -> None:
        """End all in good order."""
        for is_worker in (True, False):
            some = [one for one in self.processes.values() if one.is_worker == is_worker]
            for one in some:
                one.end()
            _, late = await asyncio.wait(
                [self._lives[one.name] for one in some], timeout=PATIENCE_S
            )
            for one in some:
                if self._lives[one.name] in late:
                    one.end(signal.SIGKILL)
            assert not late, f"not ended within {PATIENCE_S} s: {self.tail()}"


@asynccontextmanager
async def cluster(
    job: Job,
    folder: Path,
    *,
    workers: int,
    coordinators: int = 1,
    processes_each: int = 1,
    spare: int = 0,
    store: str = "",
    network: Callable[[Sequence[Planned]], Sequence[Planned]] = list,
) -> AsyncIterator[Cluster]:
    """Start a cluster on free ports, with state in ``folder``; end it behind the block.

    spare: so many more workers may join. store: where it is not in ``folder``. network: says
    how processes start, and where.
    """
    asked = Asked(
        pipeline=str(job.pipeline),
        source=f"log:{job.source}",
        sinks=tuple(job.sinks(job.folder)),
        folder=str(folder),
        workers=workers + spare,
        processes=processes_each,
        coordinators=coordinators,
        partitions=job.partitions,
        store=store,
        free_ports=True,
    )
    folder.mkdir(exist_ok=True)
    up = Cluster(
        network(processes(asked)),
        Reach(
            load_plan(str(job.pipeline)),
            {"trades": f"log:{job.source}"},
            {name: f"log:{job.folder / name}" for name in job.outputs},
        ),
        [f"worker-{workers + number}" for number in range(1, spare + 1)],
    )
    try:
        yield up
        await up.end()
    finally:
        for one in up.processes.values():
            one.end(signal.SIGKILL)
        await asyncio.wait(up._lives.values())


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            found += map(int, (task / "children").read_text().split())
    return found


def signalled(pid: int, number: signal.Signals) -> bool:
    """Send a signal; return whether anybody was there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
