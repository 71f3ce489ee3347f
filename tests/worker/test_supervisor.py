"""A worker's real processes, killed, frozen, hung and stopped: outputs are unaffected."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ripple.control.assignment import Share
from ripple.core.settings import Arguments
from ripple.model.batch import Batch
from ripple.model.pipeline.file import load_plan
from ripple.model.schema.columns import records_of
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.cluster.cluster import children_of
from tests.patience import PATIENCE_S
from tests.worker.processes import given
from worker.engine.identity import code_of
from worker.messages import TO_ENGINE, Begin
from worker.settings import load
from worker.supervisor.spawning import Process, Spawner
from worker.supervisor.state import State
from worker.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ripple.model.pipeline.plan import Plan

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).parent / "pipeline_counts.py"
# A process that waits this long for a processor, or for a disk, is killed as if it were frozen.
HUNG_S = 10.0
PATIENCE_MS = str(round(1000 * PATIENCE_S))
ROWS = 4000


def append(folder: Path, plan: Plan, first: int) -> None:
    """Append ticks to both partitions of the input, each at its own keys."""
    disk = LiveDisk(folder)
    if not disk.exists("ticks/topic"):
        settings = LogSettings(sync_appends=0)
        Topic.create(disk, "ticks", plan.source.schema, partitions=2, settings=settings)
    for part in range(2):
        rows = [
            {"symbol": f"{part}-{at % 7}", "size": at % 5, "at_ns": at * 1_000_000}
            for at in range(first, first + ROWS)
        ]
        with PartitionWriter(Topic.open(disk, "ticks"), part, LiveClock()) as writer:
            writer.append(records_of(rows, plan.source.fields))


def counted(folder: Path) -> dict[tuple[int, str], int]:
    """Return what the outputs say: the ticks of each symbol, as they were last."""
    found: dict[tuple[int, str], int] = {}
    for part in range(2):
        with PartitionReader(Topic.open(LiveDisk(folder), "counts"), part) as reader:
            for entry in reader.read():
                if isinstance(entry, Batch):
                    found |= {(part, row["symbol"]): row["n"] for row in entry.records.to_pylist()}
    return found


def expected(ticks: int) -> dict[tuple[int, str], int]:
    return dict(Counter((part, f"{part}-{at % 7}") for part in range(2) for at in range(ticks)))


class Script:
    """A membership that says what a test wants said."""

    def __init__(self, worker: Supervisor) -> None:
        self.worker = worker
        self.exits: list[tuple[int, int]] = []
        self.version = 0
        self.starts = [0, 0]
        self.has_left = self.is_draining = False
        self.checkpoints = 0

    async def run(self) -> None:
        await asyncio.Event().wait()

    def say(self, *owners: str) -> None:
        """Say in a new version who owns both partitions since then."""
        self.version += 1
        shares = [Share(owner, self.version) for owner in owners]
        version = given(self.version, *shares, slots={"a": tuple(self.starts)})
        self.worker.heard(version, 1)

    def leave_or_stay(self, *, is_leaving: bool) -> None:
        """Say whether it is being drained; nothing has moved yet."""
        before = self.worker.assignment
        assert before is not None
        members = [replace(one, is_leaving=is_leaving) for one in before.members]
        self.worker.heard(replace(before, members=tuple(members)), 1)

    def exited(self, slot: int, start: int) -> None:
        self.exits.append((slot, start))
        self.starts[slot] = start + 1

    def checkpointed(self) -> None:
        self.checkpoints += 1

    async def drain(self, _reason: str) -> None:
        self.is_draining = True

    async def abandoned(self) -> None:
        await asyncio.Event().wait()

    async def leave(self) -> None:
        self.has_left = True


class Spawned:
    """Starts children, and knows them."""

    def __init__(self, folder: Path) -> None:
        self.children: dict[int, Process] = {}
        self._spawn = Spawner(partial(self._begin, folder), spares=1, spares_after_s=0.0)

    async def __call__(self, slot: int) -> Process:
        self.children[slot] = await self._spawn(slot)
        return self.children[slot]

    @property
    def spares(self) -> tuple[int, ...]:
        return self._spawn.spares

    async def close(self) -> None:
        await self._spawn.close()

    def kill(self, slot: int, number: signal.Signals) -> None:
        os.kill(self.children[slot].pid, number)

    @staticmethod
    def _begin(folder: Path, slot: int) -> bytes:
        code = code_of(load_plan(str(FILE)))
        settings = load(
            Arguments(
                {
                    "pipeline": str(FILE),
                    "coordinator": "127.0.0.1:9200",
                    "store": str(folder / "state"),
                    "source": f"log:{folder}/ticks",
                    "sink": f"log:{folder}/counts",
                    "worker_id": "a",
                    "batch_rows": "100",
                    "commit_interval_ms": "50",
                }
            ),
            {},
            {},
        )
        begin = Begin(f"a/{slot}", "127.0.0.1:0", code.plan_hash, code.topology_hash, settings)
        return TO_ENGINE.to_bytes(begin)


async def until(is_so: Callable[[], bool], why: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.02)
    assert is_so(), why


@asynccontextmanager
async def worker(
    folder: Path, said: list[str]
) -> AsyncIterator[tuple[Supervisor, Script, Spawned]]:
    spawned = Spawned(folder)
    one = Supervisor("a", 2, spawned, LiveClock(), hung_after_s=HUNG_S, say=said.append)
    script, stopping = Script(one), asyncio.Event()
    running = asyncio.ensure_future(one.run(script, stopping))  # type: ignore[arg-type]
    try:
        yield one, script, spawned
        stopping.set()
        await running
        assert await one.stop(move_away_s=1, stop_s=PATIENCE_S, reason="the test ends")
        assert one.lifecycle.state is State.STOPPED
        assert script.has_left
    finally:
        running.cancel()
        for slot in one.slots:
            slot.kill()
        await spawned.close()
        assert not spawned.spares


@pytest.mark.services
async def test_processes_may_be_killed_and_frozen_at_any_moment(tmp_path: Path) -> None:
    from tests.worker.pipeline_counts import PLAN

    said: list[str] = []

    append(tmp_path, PLAN, 0)
    async with worker(tmp_path, said) as (one, script, spawned):
        assert one.lifecycle.ready_answer == (503, "NOT READY")
        script.say("a/0", "a/1")
        await until(lambda: one.report().live == {(0, 1), (1, 1)}, "both are live")
        assert one.lifecycle.ready_answer == (200, "READY")
        one.store()
        await until(lambda: script.checkpoints == 1, "both have stored, which is said")
        script.leave_or_stay(is_leaving=True)
        assert (one.lifecycle.state, one.lifecycle.is_ready) == (State.DRAINING, False)
        script.leave_or_stay(is_leaving=False)
        assert one.lifecycle.state is State.ACTIVE
        assert said[-2:] == ["is Draining now", "is Active now"]

        await until(lambda: bool(spawned.spares), "a process waits for one that dies")
        spares = spawned.spares
        spawned.kill(0, signal.SIGKILL)
        await until(lambda: bool(script.exits), "the end of a process is known")
        assert script.exits[0] == (0, 0)
        assert not any("has been hung for" in line for line in said), "it is seen at once"
        assert "process 0 has ended: by SIGKILL; it is restarted" in said
        assert one.report().live == {(1, 1)}, "its neighbour goes on"
        script.say("a/1", "a/1")
        await until(lambda: one.report().live == {(0, 2), (1, 2)}, "the neighbour has both")

        append(tmp_path, PLAN, ROWS)
        spawned.kill(1, signal.SIGSTOP)
        await until(lambda: len(script.exits) == 2, "a frozen process is killed")
        assert any("has been hung for" in line for line in said), said
        await until(lambda: one.slots[0].report is not None, "the other one has begun anew")
        script.say("a/0", "a/0")
        await until(lambda: one.report().live == {(0, 3), (1, 3)}, "the other one has both")
        assert one.report().starts[0] == 1
        assert (spawned.children[0].pid,) == spares, "and is the one that has waited"
        await until(lambda: counted(tmp_path) == expected(2 * ROWS), "it goes on")
    assert counted(tmp_path) == expected(2 * ROWS)


def command(folder: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "worker", str(FILE), "--coordinator", "127.0.0.1:1"),
            *("--store", f"{folder}/state", "--source", f"log:{folder}/ticks"),
            *("--sink", f"log:{folder}/counts", "--processes", "1"),
            *("--health-port", "0", "--metrics-port", "0", "--log-format", "text"),
            *("--stop-ms", PATIENCE_MS, "--hung-after-ms", PATIENCE_MS, *more),
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )


def heading(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return next(line for line in process.stderr if "/ready at" in line)


def test_first_signal_ends_it_in_good_order_and_a_second_one_at_once(tmp_path: Path) -> None:
    from tests.worker.pipeline_counts import PLAN

    append(tmp_path, PLAN, 0)
    first, second = command(tmp_path), command(tmp_path)
    try:
        for process in (first, second):
            assert "worker w0 of 1 processes" in heading(process)
        first.send_signal(signal.SIGTERM)
        _, rest = first.communicate(timeout=PATIENCE_S)
        assert (first.returncode, rest.splitlines()[-1].split()[-1]) == (0, "stopped")
        asyncio.run(until(lambda: bool(children_of(second.pid)), "it has begun"))
        children = children_of(second.pid)
        for child in children:
            os.kill(child, signal.SIGSTOP)  # so that it cannot be completed
        second.send_signal(signal.SIGTERM)
        assert second.stderr is not None
        next(line for line in second.stderr if "is told to stop" in line)
        second.send_signal(signal.SIGINT)
        assert second.wait(timeout=PATIENCE_S) == 128 + signal.SIGINT
        for child in children:
            with suppress(ProcessLookupError):  # of who was continued by the end of the second
                os.kill(child, signal.SIGCONT)
            place = Path(f"/proc/{child}")
            asyncio.run(until(lambda place=place: not place.exists(), "it outlives nobody"))
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "coordinator is missing: give --coordinator or RIPPLE_COORDINATOR"),
        (["--sink", "out.csv"], "cannot write to 'out.csv' in a cluster"),
        (["--source", "in.csv"], "resuming after a crash"),
        (["--pipeline", "none.py"], "cannot read none.py"),
        (["--health-port", "9", "--metrics-port", "9"], "metrics_port and health_port are both 9"),
    ],
)
def test_impossible_configuration_is_rejected_at_once(
    arguments: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from tests.worker.pipeline_counts import PLAN
    from worker.__main__ import main

    append(tmp_path, PLAN, 0)
    given = {
        "--pipeline": str(FILE),
        "--coordinator": "127.0.0.1:1",
        "--store": f"{tmp_path}/state",
        "--source": f"log:{tmp_path}/ticks",
        "--sink": f"log:{tmp_path}/counts",
        "--health-port": "0",
        "--metrics-port": "0",
    }
    if not arguments:
        del given["--coordinator"]
    given |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    assert main([word for pair in given.items() for word in pair]) == 1
    assert said in capfd.readouterr().err


def test_port_that_is_taken_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import socket

    from tests.worker.pipeline_counts import PLAN
    from worker.__main__ import main

    append(tmp_path, PLAN, 0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code = main(
            [
                *(str(FILE), "--coordinator", "127.0.0.1:1", "--store", f"{tmp_path}/state"),
                *("--source", f"log:{tmp_path}/ticks", "--sink", f"log:{tmp_path}/counts"),
                *("--health-port", port, "--metrics-port", "0"),
            ]
        )
    assert code == 1
    assert port in capfd.readouterr().err


def test_a_schema_that_does_not_fit_has_an_exit_code_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from tests.worker.pipeline_counts import PLAN
    from worker.__main__ import main

    append(tmp_path, PLAN, 0)
    other = tmp_path / "other.py"
    other.write_text(FILE.read_text().replace("size: int", "size: str"))
    code = main(
        [
            *(str(other), "--coordinator", "127.0.0.1:1", "--store", f"{tmp_path}/state"),
            *("--source", f"log:{tmp_path}/ticks", "--sink", f"log:{tmp_path}/counts"),
            *("--health-port", "0", "--metrics-port", "0"),
        ]
    )
    said = capfd.readouterr().err
    assert (code, "the schema declares string" in said) == (3, True), said
