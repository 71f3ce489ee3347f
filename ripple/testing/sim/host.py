"""A simulated machine: its disk, its clock, and the incarnations of its process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.testing.sim.broker_port import SimBrokerPort
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.disk import SimDisk
from ripple.testing.sim.effects import Crash, Effects
from ripple.testing.sim.faults import Fault, Planned, is_expected
from ripple.testing.sim.remote_store import SimRemoteStore
from ripple.testing.sim.service import SimService
from ripple.testing.sim.world import Machine, make_world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.testing.sim.cluster import SimCluster
    from ripple.testing.sim.loop import SimLoop
    from ripple.testing.sim.network import SimPort
    from ripple.testing.sim.world import SimWorld

DRIFT_PPM_MAX = 200


class HostEffects(Effects):
    """The effects of one incarnation on one machine, counted among those of the whole run."""

    def __init__(self, cluster: SimCluster, name: str, life: int, died: Callable[[], None]) -> None:
        super().__init__(life, Planned(()), cluster.trace)
        self.invariants = cluster.effects.invariants
        self.landed = cluster.effects.landed
        self._cluster = cluster
        self._name = name
        self._died = died

    def arrive(self, name: str, subject: str) -> Fault | None:
        if self.crash is not None:
            raise Crash
        at = f"@{self._cluster.loop.time():.6f} {self._name}.{self.life}"
        return self._cluster.effects.arrive(name, f"{at} {subject}")

    def die(self, fault: Fault) -> None:
        self.crash = fault
        self._died()
        raise Crash


class SimHost:
    """One machine of a :class:`~ripple.testing.SimCluster`, which runs one process at a time.

    ``world`` is that of its present or last process, ``error`` the error that ended the process. A
    killed process leaves its unsynced writes to the operating system; a machine switched off loses
    unsynced bytes, and its peers are not notified.
    """

    def __init__(self, cluster: SimCluster, name: str) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.world: SimWorld = None  # type: ignore[assignment]  # set by the first start
        self._cluster = cluster
        self._chance = Chance(cluster.seed, name, "machine")
        self._drift_ppm = self._chance.below(2 * DRIFT_PPM_MAX + 1) - DRIFT_PPM_MAX
        self._wall_skew_ns = (self._chance.below(2001) - 1000) * 1_000_000
        self._incarnations = 0
        self._disk = SimDisk()
        self._is_off = False
        self._running: asyncio.Task[Any] | None = None
        self._main: Callable[[SimWorld], Awaitable[Any]] | None = None
        self._bug: BaseException | None = None
        self._ended = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether its process runs, paused or not."""
        return self._running is not None

    @property
    def disk(self) -> SimDisk:
        """Its disk as its process sees it, or as the next one will find it."""
        return self._disk

    # What a scenario does.

    def start(self, main: Callable[[SimWorld], Awaitable[Any]]) -> SimWorld:
        """Start a process, which ends when ``main`` returns; switch the machine on if it is off."""
        assert self._running is None, f"{self.name} runs already"
        cluster = self._cluster
        if self._is_off:
            self._is_off = False
            cluster.network.switch_on(self.name)
        effects = HostEffects(cluster, self.name, self._incarnations, self._died)
        self._incarnations += 1
        self._disk = self._disk.after_exit(effects)
        self._disk.removed = cluster.removed
        self.world = make_world(
            cluster.seed,
            effects,
            self._disk,
            SimRemoteStore(cluster.network, self.name, effects, cluster.store),
            cluster.witness,
            machine=Machine(
                self.name, cluster.loop.timeline, self._drift_ppm, self._network, self._broker
            ),
        )
        self.world.clock.jump(self._wall_skew_ns / 1e9)
        self.world.loop.after_step = self._after_step
        self._main, self.error, self._bug = main, None, None
        self._ended.clear()
        self._note("starts")
        self._running = self.world.loop.create_task(_live(main, self.world))
        return self.world

    def kill(self) -> None:
        """End the process at once; its machine closes its connections."""
        self._crash("killed", "kill_now", 0)

    def switch_off(self, salt: int | None = None) -> None:
        """Let the machine lose its power; ``salt`` decides which unsynced data survive."""
        self._crash("off", "power_now", self._chance.below(1000) if salt is None else salt)

    def restart(self, main: Callable[[SimWorld], Awaitable[Any]] | None = None) -> SimWorld:
        """Kill the process, and start the same or another program."""
        self.kill()
        main = main or self._main
        assert main is not None, f"{self.name} was never started"
        return self.start(main)

    def pause(self) -> None:
        """Let the process do nothing; its machine still receives for it."""
        if self._running is not None and not self.world.loop.paused:
            self._note("paused")
            self.world.loop.paused = True

    def resume(self) -> None:
        """Let it continue; timers that came due meanwhile fire."""
        if self._running is not None and self.world.loop.paused:
            self._note("resumed")
            self.world.loop.resume()

    def slow_down(self, step_seconds: float) -> None:
        """Let each step of the process take this long; 0 takes no time again."""
        self.world.loop.step_ns = round(step_seconds * 1e9)

    def jump(self, seconds: float) -> None:
        """Move the wall clock, to either side."""
        self._note(f"clock jumps {seconds}")
        self.world.clock.jump(seconds)

    async def ended(self) -> None:
        """Wait until the process has ended, however."""
        while self._running is not None:
            await self._ended.wait()

    def close(self) -> None:
        """Drop running processes, when the whole world ends."""
        if self._running is not None:
            self.world.effects.crash = Fault(0, 0, "kill_now")
            self.world.loop.close()

    # The end of a process.

    def _crash(self, word: str, kind: str, salt: int) -> None:
        if self._running is None:
            if kind == "power_now" and not self._is_off:
                self._vanish(salt)
            return
        self._cluster.disturb()
        self._note(word)
        self.world.effects.crash = Fault(0, 0, kind, salt)
        self._died()

    def _died(self) -> None:
        # One that dies within a step of its own ends with that step.
        if self._cluster.loop.timeline.current is not self.world.loop:
            self._bury()

    def _network(self, effects: Effects, loop: SimLoop, disk: SimDisk) -> SimPort:
        return self._cluster.network.of(
            self.name, effects=effects, loop=loop, disk=disk, failed=self._failed
        )

    def _after_step(self) -> None:
        if self.world.effects.crash is not None:
            self._bury()
        elif self._bug is not None:
            raise self._bug
        elif self._running is not None and self._running.done():
            self._exit(self._running)
        for invariant in self._cluster.effects.invariants:
            invariant()

    def _exit(self, running: asyncio.Task[Any]) -> None:
        error = running.exception() if not running.cancelled() else asyncio.CancelledError()
        if error is not None:
            self._judge(error)
        self.error = error
        self._note("ends" if error is None else f"ends with {type(error).__name__}: {error}")
        self.world.effects.crash = Fault(0, 0, "kill_now")
        self._bury()

    def _failed(self, error: Exception) -> None:
        """Note an error in a background task."""
        try:
            self._judge(error)
        except Exception as bug:  # raised where the whole run hears it
            self._bug = bug
        self._note(f"serving: {type(error).__name__}: {error}")

    def _judge(self, error: BaseException) -> None:
        """Raise an error that is a bug."""
        if not (is_expected(error) and self._cluster.is_disturbed):
            raise error

    def _bury(self) -> None:
        crash = self.world.effects.crash
        assert crash is not None
        self._running = None
        self.world.loop.close()
        vanishes = crash.kind.startswith("power")
        assert self.world.network is not None
        self.world.network.die(vanishes=vanishes)
        if vanishes:
            self._vanish(crash.salt)
        self._ended.set()

    def _vanish(self, salt: int) -> None:
        self._is_off = True
        self._disk = self._disk.after_power_cut(self._disk.effects, salt)
        self._cluster.network.switch_off(self.name)

    def _broker(self, effects: Effects) -> SimBrokerPort:
        service = SimService(self._cluster.network, self.name, "broker")
        return SimBrokerPort(service, self._cluster.broker, effects, self._cluster.removed)

    def _note(self, line: str) -> None:
        self._cluster.note(f"{self.name}.{self._incarnations - 1} {line}")


async def _live(main: Callable[[SimWorld], Awaitable[Any]], world: SimWorld) -> Any:
    return await main(world)
