"""A simulated cluster at work on a pipeline: its machines, and the commands to them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from coordinator.decisions import commands as cmd
from coordinator.decisions.limits import Limits
from coordinator.service.handlers import Handlers
from coordinator.service.shell import Shell
from ripple.core.row_ops import OP
from ripple.exchange.limits import ExchangeLimits
from ripple.model.batch import Batch
from ripple.storage.log import PartitionReader, Topic
from ripple.task.dead_letters.log import letters_in
from ripple.task.settings import Settings
from ripple.testing.cluster.invariants import hold
from ripple.testing.cluster.watch import Watch
from ripple.testing.cluster.worker import SimWorker, on_disk, topic_of
from ripple.testing.crash.source import TOPIC
from ripple.testing.reference.interpreter import same_row
from ripple.testing.sim.disk import CAPACITY_BYTES
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.world import sim_world
from ripple.world.control import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Assignment
    from ripple.testing.cluster.truth import Truth
    from ripple.testing.sim.cluster import SimCluster
    from ripple.testing.sim.world import SimWorld

SETTINGS = Settings(
    batch_rows=4,
    replay_rows=8,
    commit_batches=1,
    commit_interval_ns=200_000_000,
    checkpoint_batches=3,
    checkpoint_interval_ns=1_000_000_000,
    snapshot_rows=4,
    keep=2,
)
# So that much has been shown since a checkpoint.
RARELY = replace(SETTINGS, checkpoint_batches=0, checkpoint_interval_ns=20_000_000_000)
# So that credit and windows are used up.
TIGHT = ExchangeLimits(credit_rows=2, window_bytes=2000, bundle_rows=2, bundle_bytes=500)
# Failed moves are tried again after a minute, and a flapping worker waits up to five.
LIMIT_S = 600.0
PRODUCER = "producer"
# So that there is always something to do while things go wrong; and then an end.
PAUSE_MS_MAX = 600
PAUSE_HEALED_MS_MAX = 20


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a cluster is. partitions: of the first stage. slots: processes of a worker."""

    workers: int = 3
    coordinators: int = 2
    partitions: int = 4
    slots: int = 1
    alongside: bool = False  # whether the input is written while it is read
    limits: ExchangeLimits | None = None
    rarely: bool = False  # whether checkpoints are stored only when a coordinator asks for them


class ClusterScene:
    """Coordinators c1, c2; workers w1, w2 ...; their input, outputs, and the watch over them."""

    def __init__(self, cluster: SimCluster, truth: Truth, shape: Shape) -> None:
        self.cluster, self.truth, self.shape = cluster, truth.of_run(), shape
        self.coordinators = tuple(f"c{n + 1}" for n in range(shape.coordinators))
        self.watch = Watch(cluster, self.truth, shape.partitions)
        self.shells: dict[str, Shell] = {}
        self.workers: dict[str, SimWorker] = {}
        self._is_healed = False
        world = sim_world()
        truth.source.install(world, whole=not shape.alongside)
        self.disk = world.disk
        # After a failed sync a writer removes records that a reader may have used already.
        self.disk.sound = TOPIC
        for number in range(shape.workers):
            self.add_worker(f"w{number + 1}")

    @property
    def machines(self) -> tuple[str, ...]:
        """The names of all machines that should run."""
        producer = (PRODUCER,) if self.shape.alongside else ()
        return (*self.coordinators, *self.workers, *producer)

    @property
    def newest(self) -> Assignment | None:
        """The newest version of the assignment that a worker has heard of."""
        return self.watch.chain.newest

    # Machines.

    def add_worker(self, name: str) -> None:
        """Let there be one more worker, which does not run yet."""
        self.workers[name] = SimWorker(
            name,
            self.disk,
            [_address_of(one) for one in self.coordinators],
            self.truth,
            settings=RARELY if self.shape.rarely else SETTINGS,
            on_event=self.watch.on_event,
            on_version=self.watch.on_version,
            connected=self.watch.connected,
            slots=self.shape.slots,
            limits=self.shape.limits,
        )

    def start(self, *names: str) -> None:
        """Start machines, by default all stopped ones."""
        for name in names or self.machines:
            host = self.cluster.host(name)
            if host.is_running or (name == PRODUCER and self._is_produced(name)):
                continue
            if name in self.coordinators:
                host.start(self._coordinator(name))
            elif name == PRODUCER:
                host.start(self._produce)
            else:
                host.start(self.workers[name].main)

    def _is_produced(self, name: str) -> bool:
        return name in self.cluster.hosts and self.cluster.witness.get(name, False)

    def _coordinator(self, name: str) -> Callable[[SimWorld], Any]:
        async def main(world: SimWorld) -> None:
            peers = [_address_of(one) for one in self.coordinators if one != name]
            limits = Limits(partitions=self.shape.partitions)
            assert world.control is not None
            shell = self.shells[name] = Shell(world, limits, peers=peers)
            await world.control.serve(_address_of(name), Handlers(shell).service)
            await shell.run()

        return main

    async def _produce(self, world: SimWorld) -> None:
        own = on_disk(world, self.disk)
        await self.truth.source.produce(
            own, pause_ms_max=lambda: PAUSE_HEALED_MS_MAX if self._is_healed else PAUSE_MS_MAX
        )
        self.cluster.witness[PRODUCER] = True

    # Commands.

    def command(self, command: cmd.Command) -> None:
        """Send a command to a running coordinator; a refusal is accepted."""
        for name in self.coordinators:
            host = self.cluster.host(name)
            if host.is_running and name in self.shells:
                host.world.loop.create_task(_ask(self.shells[name], command))
                return

    async def stop(self, name: str) -> None:
        """Tell a worker to stop, and wait until it has."""
        stopping = self.workers[name].stopping
        assert stopping is not None
        stopping.set()
        await self.cluster.host(name).ended()

    def heal(self) -> None:
        """End all faults, start all machines, and write the rest of the input soon."""
        self._is_healed = True
        self.cluster.heal()
        for name in self.machines:
            if name in self.cluster.hosts and self.cluster.host(name).is_running:
                self.cluster.host(name).slow_down(0)
        for worker in self.workers.values():
            for disk in worker.disks:
                disk.capacity_bytes = CAPACITY_BYTES
        self.start()

    async def at_work(self, within_s: float) -> None:
        """Wait until something was committed, or for so long."""
        until_s = self.cluster.loop.time() + within_s
        while self.cluster.loop.time() < until_s and not self.watch.has_begun:
            await asyncio.sleep(0.1)

    async def come_to_rest(self) -> None:
        """Wait until all is owned, balanced and written; raise AssertionError where it is not."""
        began = self.cluster.loop.time()
        while (problem := self.problem) is not None:
            took = self.cluster.loop.time() - began
            assert took < LIMIT_S, f"J10: {took:.0f} s after everything was well: {problem}"
            self._undo_commands()
            self.start()
            await asyncio.sleep(1)
            self.watch.chain.look()
        self.watch.settle()

    def _undo_commands(self) -> None:
        now = self.newest
        if now is None:
            return
        if now.frozen is not None:
            self.command(cmd.Unfreeze("all is well"))
        for pin in now.pins:
            self.command(cmd.Unpin(pin.partition, "all is well"))
        for member in now.members:
            # A stopping worker announces its leave again after each cancellation of it.
            if member.is_leaving and not self.workers[member.id].is_stopping:
                self.command(cmd.Undrain(member.id, "all is well"))

    @property
    def problem(self) -> str | None:
        """Why the cluster is not at rest, None if it is."""
        now = self.newest
        if now is None:
            return "no worker has read a version of the assignment"
        owned = dict.fromkeys((process for one in self.workers for process in self._slots(one)), 0)
        live: set[tuple[int, int]] = set()
        for worker in self.workers.values():
            if worker.supervisor is not None and self.cluster.host(worker.name).is_running:
                live |= worker.supervisor.report().live
        for partition, share in enumerate(now.shares):
            if share.owner not in owned:
                return f"partition {partition} is of {share.owner}"
            if share.next or share.former:
                return f"partition {partition} moves"
            if (partition, share.since) not in live:
                failed = self.watch.failed.get(partition)
                why = "" if failed is None else f": {failed}"
                return f"partition {partition} is not live at {share.owner}{why}"
            owned[share.owner] += 1
        if max(owned.values()) - min(owned.values()) > 1:
            return f"partitions are not spread: {owned}"
        if self.watch.lagging:
            return f"partitions {self.watch.lagging} have not committed everything"
        return None

    def _slots(self, worker: str) -> list[str]:
        return [f"{worker}/{slot}" for slot in range(self.shape.slots)]

    # What they have written.

    def tables(self, output: str) -> dict[Any, Any]:
        """Return the rows of an output that a reader of all its partitions has, by key.

        Raises AssertionError where a change is none, or two partitions have the same key.
        """
        found: dict[Any, Any] = {}
        topic = Topic.open(self.disk, topic_of(output))
        for number in range(topic.partitions):
            own: dict[Any, Any] = {}
            with PartitionReader(topic, number) as reader:
                for entry in reader.read():
                    if isinstance(entry, Batch):
                        self._follow(own, output, entry)
            twice = own.keys() & found.keys()
            assert not twice, f"output {output!r}: {min(twice)} is in two partitions"
            found |= own
        return found

    def events(self, output: str) -> list[list[Any]]:
        """Return an output's events, partition by partition, in order."""
        topic, found = Topic.open(self.disk, topic_of(output)), []
        for number in range(topic.partitions):
            with PartitionReader(topic, number) as reader:
                batches = [entry for entry in reader.read() if isinstance(entry, Batch)]
            found.append([row for batch in batches for row in batch.records.to_pylist()])
        return found

    def _follow(self, table: dict[Any, Any], output: str, entry: Batch) -> None:
        """I16, I17: no row is written twice, and each removed row was there."""
        for row in entry.records.to_pylist():
            op = row.pop(OP)
            key = tuple(row[name] for name in self.truth.identity[output])
            if op == "remove":
                hold(key in table, "I16", f"output {output!r}: {key} was removed and not there")
                del table[key]
            else:
                again = key in table and same_row(table[key], row)
                hold(not again, "I16", f"output {output!r}: {key} was written again as it was")
                table[key] = row

    async def dead_letters(self) -> set[tuple[str, int]]:
        """Return the dead letters of all partitions by input and offset, each once."""
        store = self.cluster.store.copy(Effects(0, Planned(()), Trace()))
        found: list[tuple[str, int]] = []
        for number in range(len(self.watch.partitions)):
            dead_letters, damage = await letters_in(store, self.truth.plan.name, number)
            assert not damage, damage
            found += [(one.input, one.offset) for one in dead_letters]
        assert len(set(found)) == len(found), f"a dead letter is there twice: {sorted(found)}"
        return set(found)


async def _ask(shell: Shell, command: cmd.Command) -> None:
    with suppress(RefusedError):  # as people are
        await shell.command(command)


def _address_of(coordinator: str) -> str:
    return f"{coordinator}:9200"
