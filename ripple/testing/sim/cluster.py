"""Many simulated machines in one world, and the scenario that starts, kills and cuts them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from ripple.core.errors import RippleError
from ripple.testing.sim.broker import SimBroker
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.faults import CLUSTER_KINDS, Faults
from ripple.testing.sim.host import SimHost
from ripple.testing.sim.network import SimNetwork

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.run import Scenario
    from ripple.testing.sim.world import SimWorld


class ClusterScenario(Protocol):
    """A scenario from outside: it starts machines, disturbs them, and checks their results.

    It runs once. Any error of its own is the bug looked for.
    """

    async def __call__(self, cluster: SimCluster, seed: int, /) -> None:
        """Run it."""
        ...


class SimCluster:
    """Machines by name, the network between them, one store and one broker that all can reach.

    The effects of all machines are counted together: a fault strikes the n-th effect of the run, on
    any machine. The scenario itself belongs to no machine. Calls travel to the machines ``store``
    and ``broker`` of the network, which can be cut off.
    """

    def __init__(self, world: SimWorld, seed: int) -> None:
        """Make a cluster around the world of one run; see :func:`on_cluster`."""
        self.seed = seed
        self.loop = world.loop
        self.effects = world.effects
        self.trace = world.trace
        self.witness = world.witness
        self.removed = world.removed
        self.store = world.store
        self.network = SimNetwork(self.loop, Chance(seed, "network"), self.trace)
        self.broker = SimBroker(self.loop)
        self.hosts: dict[str, SimHost] = {}
        self._disturbances = 0

    def host(self, name: str) -> SimHost:
        """Return the machine of this name, made when it is first named."""
        if name not in self.hosts:
            self.hosts[name] = SimHost(self, name)
        return self.hosts[name]

    def always(self, invariant: Callable[[], None]) -> None:
        """Call ``invariant`` after every effect and every step; it raises when broken."""
        self.effects.invariants.append(invariant)

    def heal(self) -> None:
        """Undo all cuts, resume paused machines, and end random faults.

        Dead machines stay so: starting them is up to the scenario.
        """
        self.effects.heal()
        self.network.heal()
        for host in self.hosts.values():
            host.resume()

    @property
    def is_disturbed(self) -> bool:
        """Whether anything has gone wrong that may explain an error."""
        return bool(self._disturbances or self.effects.landed or self.network.cuts_made)

    def disturb(self) -> None:
        """Say that something has."""
        self._disturbances += 1

    def note(self, line: str) -> None:
        """Add a line to the trace."""
        self.trace.note(f"@{self.loop.time():.6f} {line}")

    def close(self) -> None:
        """Drop all running processes."""
        for host in self.hosts.values():
            host.close()


def on_cluster(scenario: ClusterScenario) -> Scenario:
    """Make a scenario for ``explore``, ``enumerate_crashes`` and ``repeat`` of a cluster's.

    Used as a decorator. By default it may suffer the faults of disks, stores and the network.
    """

    @wraps(scenario)
    async def run(world: SimWorld, seed: int) -> Any:
        cluster = SimCluster(world, seed)
        try:
            await scenario(cluster, seed)
        except (OSError, RippleError) as error:
            # Elsewhere these end an incarnation, and the next follows; here there is none.
            raise AssertionError(f"the scenario failed: {type(error).__name__}: {error}") from error
        finally:
            cluster.close()

    run.faults = Faults(kinds=CLUSTER_KINDS)  # type: ignore[attr-defined]
    return run
