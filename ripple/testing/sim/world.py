"""A world that is a function of a seed and a plan of faults."""

from __future__ import annotations

import asyncio
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, TypeVarTuple

from ripple.core.frozen import frozen
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.control import SimControl
from ripple.testing.sim.disk import SimDisk
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.loop import SimLoop
from ripple.testing.sim.store import SimStore
from ripple.world.ports import World
from ripple.world.together import to_its_end

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.broker_port import SimBrokerPort
    from ripple.testing.sim.network import SimPort
    from ripple.testing.sim.time import Timeline

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH_NS = 1_700_000_000_000_000_000


class SimClock:
    """The loop's virtual time. Each incarnation has another wall clock, which may jump."""

    def __init__(self, loop: SimLoop, chance: Chance) -> None:
        self._loop = loop
        self._wall_ns = EPOCH_NS + chance.below(3600) * 1_000_000_000

    def now_ns(self) -> int:
        return self._wall_ns + self._loop.time_ns()

    def monotonic_ns(self) -> int:
        return self._loop.time_ns()

    def jump(self, seconds: float) -> None:
        """Move the wall clock, to either side; no effect."""
        self._wall_ns += round(seconds * 1e9)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SimExecutor:
    """Work as a step of its own: a thread that is not interrupted."""

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        doing = asyncio.get_running_loop().run_in_executor(None, work, *args)
        return await to_its_end(doing)


class Machine(NamedTuple):
    """The view of a process that is one of many.

    network: makes its view of the network, of its effects, its loop and its disk; broker: of the
    broker, of its effects.
    """

    name: str
    timeline: Timeline
    drift_ppm: int
    network: Callable[[Effects, SimLoop, SimDisk], SimPort]
    broker: Callable[[Effects], SimBrokerPort]


@frozen(kw_only=True)
class SimWorld(World):
    """The world of one incarnation.

    ``witness`` holds the observations of an outside user: it outlives crashes, and the code under
    test must not read it. A scenario notes there each promise made to a user.
    """

    clock: SimClock
    disk: SimDisk
    network: SimPort | None = None
    control: SimControl | None = None
    broker: SimBrokerPort | None = None
    store: SimStore
    loop: SimLoop
    effects: Effects
    trace: Trace
    witness: dict[str, Any] = field(default_factory=dict)

    def without(self, *safeguards: str) -> Self:
        removed = self.removed.union(safeguards)
        self.store.removed = removed
        return replace(self, removed=removed, disk=self.disk.without(removed))

    def always(self, invariant: Callable[[], None]) -> None:
        """Call ``invariant`` after every effect and every step of a task; it raises when broken."""
        self.effects.invariants.append(invariant)


def sim_world(seed: int = 0) -> SimWorld:
    """Return a world without faults, with an empty disk: a place for ordinary tests."""
    effects = Effects(0, Planned(()), Trace())
    return make_world(seed, effects, SimDisk(effects), SimStore(effects, seed), {})


def make_world(
    seed: int,
    effects: Effects,
    disk: SimDisk,
    store: SimStore,
    witness: dict[str, Any],
    *,
    machine: Machine | None = None,
) -> SimWorld:
    """Return the world of one incarnation over the remains; ``machine`` if there are several."""
    labels = (seed, effects.life) if machine is None else (seed, machine.name, effects.life)
    loop = SimLoop(  # type: ignore[abstract]  # it has no sockets, signals and processes
        Chance(*labels, "schedule"),
        effects.after_step,
        None if machine is None else machine.timeline,
        0 if machine is None else machine.drift_ppm,
    )
    network = None if machine is None else machine.network(effects, loop, disk)
    return SimWorld(
        clock=SimClock(loop, Chance(*labels, "clock")),
        random=Chance(*labels, "random"),
        disk=disk,
        network=network,
        control=None if network is None else SimControl(network, network.failed),
        broker=None if machine is None else machine.broker(effects),
        store=store,
        executor=SimExecutor(),
        loop=loop,
        effects=effects,
        trace=effects.trace,
        witness=witness,
        removed=disk.removed,
    )
