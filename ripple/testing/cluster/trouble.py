"""Disturbances of a simulated cluster from outside; faults of single effects come extra."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.decisions import commands as cmd

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.cluster.scene import ClusterScene
    from ripple.testing.sim.chance import Chance

PAUSES_S = (5, 10, 60)
CUT_S_MAX = 40
WORKERS_MAX = 5
REASON = "by chance"


class Trouble:
    """Disturbs a cluster. A seed takes a part of ``KINDS``, so that some runs go far with few."""

    def __init__(self, scene: ClusterScene, chance: Chance) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._chance = chance
        self._does = [does for does in self.kinds() if chance.below(2)] or [self.kill]
        self.done: list[str] = []

    def kinds(self) -> list[Callable[[], None]]:
        """Return all possible events."""
        return [
            self.kill, self.switch_off, self.pause, self.pause_all, self.slow_down, self.jump,
            self.cut_one_way, self.cut, self.cut_off_coordinators, self.cut_off_store,
            self.split, self.heal_network, self.kill_child, self.stop, self.join,
            self.move, self.drain, self.pin, self.freeze, self.damage_checkpoint, self.blackout,
        ]  # fmt: skip

    def step(self) -> None:
        """Let any one event happen."""
        self._cluster.disturb()
        does = self._chance.pick(self._does)
        self.done.append(does.__name__)
        does()

    # Machines.

    def _machine(self) -> str:
        return self._chance.pick(self._scene.machines)

    def _worker(self) -> str:
        return self._chance.pick(list(self._scene.workers))

    def kill(self) -> None:
        """Kill a machine's process."""
        self._cluster.host(self._machine()).kill()

    def switch_off(self) -> None:
        """Let a machine lose its power."""
        self._cluster.host(self._machine()).switch_off()

    def pause(self) -> None:
        """Stop a machine's process for a while."""
        self._pause(self._machine(), self._chance.pick(PAUSES_S))

    def pause_all(self) -> None:
        """Stop all workers at once for a while."""
        seconds = self._chance.pick(PAUSES_S)
        for name in self._scene.workers:
            self._pause(name, seconds)

    def _pause(self, name: str, seconds: int) -> None:
        host = self._cluster.host(name)
        host.pause()
        self._cluster.loop.call_later(seconds, host.resume)

    def slow_down(self) -> None:
        """Let each step of a process take a millisecond for a while."""
        host = self._cluster.host(self._machine())
        if host.is_running:
            host.slow_down(0.001)
            world = host.world
            self._cluster.loop.call_later(5, lambda: setattr(world.loop, "step_ns", 0))

    def jump(self) -> None:
        """Let a machine's wall clock jump by up to an hour, to either side."""
        host = self._cluster.host(self._machine())
        if host.is_running:
            host.jump(self._chance.below(7200) - 3600)

    def blackout(self) -> None:
        """Let all machines lose their power, and the disk that they share."""
        for name in self._scene.machines:
            self._cluster.host(name).kill()
        self._scene.disk.lose_power(self._chance.below(1000))

    def kill_child(self) -> None:
        """Kill one engine process of a worker."""
        name = self._worker()
        children = self._scene.workers[name].children
        if children and self._cluster.host(name).is_running:
            self._chance.pick(children).kill()

    # The network.

    def cut_one_way(self) -> None:
        """Let one machine not hear another, or the store not hear it, for a while."""
        one, other = self._two()
        self._cluster.network.cut_for(one, other, 1 + self._chance.below(CUT_S_MAX))

    def cut(self) -> None:
        """Let two machines not hear each other."""
        self._cluster.network.cut(*self._two())

    def _two(self) -> tuple[str, str]:
        one = self._machine()
        others = [*(name for name in self._scene.machines if name != one), "store"]
        pair = one, self._chance.pick(others)
        return pair if self._chance.flip() else (pair[1], pair[0])

    def cut_off_coordinators(self) -> None:
        """Let a worker hear no coordinator, and all the others, for a while."""
        worker, seconds = self._worker(), 1 + self._chance.below(CUT_S_MAX)
        for name in self._scene.coordinators:
            self._cut_both_ways(worker, name, seconds)

    def cut_off_store(self) -> None:
        """Let a machine not reach the store for a while."""
        self._cut_both_ways(self._machine(), "store", 1 + self._chance.below(CUT_S_MAX))

    def _cut_both_ways(self, one: str, other: str, seconds: int) -> None:
        self._cluster.network.cut_for(one, other, seconds)
        self._cluster.network.cut_for(other, one, seconds)

    def split(self) -> None:
        """Cut the coordinators off each other, with some workers on either side."""
        names = list(self._scene.machines)
        ones = [name for name in names if self._chance.flip()]
        self._cluster.network.split(ones, [name for name in names if name not in ones])

    def heal_network(self) -> None:
        """Undo all cuts."""
        self._cluster.network.heal()

    # What people do.

    def stop(self) -> None:
        """Tell a worker to stop; it is started again after its end."""
        name = self._worker()
        stopping = self._scene.workers[name].stopping
        if stopping is not None and self._cluster.host(name).is_running:
            stopping.set()

    def join(self) -> None:
        """Let one more worker come."""
        if len(self._scene.workers) < WORKERS_MAX:
            self._scene.add_worker(f"w{len(self._scene.workers) + 1}")

    def _partition(self) -> int:
        return self._chance.below(len(self._scene.watch.partitions))

    def move(self) -> None:
        """Ask that a partition moves."""
        self._scene.command(cmd.Move(self._partition(), self._worker(), REASON))

    def drain(self) -> None:
        """Ask that a worker has nothing, or may have something again."""
        name = self._worker()
        kind = cmd.Drain if self._chance.flip() else cmd.Undrain
        self._scene.command(kind(name, REASON))

    def pin(self) -> None:
        """Ask that a partition stays with a worker."""
        self._scene.command(cmd.PinTo(self._partition(), self._worker(), REASON))

    def freeze(self) -> None:
        """Ask that nothing moves; after a while it may again."""
        self._scene.command(cmd.Freeze(REASON))
        self._cluster.loop.call_later(
            5 + self._chance.below(20), lambda: self._scene.command(cmd.Unfreeze(REASON))
        )

    # What storage does.

    def damage_checkpoint(self) -> None:
        """Flip a bit of one file of a checkpoint."""
        store = self._cluster.store
        names = [name for name in store.image() if "/manifest/" not in name and "/state/" in name]
        if names:
            name = self._chance.pick(names)
            store.flip_bit(name, self._chance.below(8 * len(store.image()[name])))
