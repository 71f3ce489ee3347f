"""What happens to machines that exchange rows, and how it ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

from ripple.exchange.limits import ExchangeLimits
from ripple.testing import SimCluster
from tests.exchange.hosts import SETTINGS, Hosts

SECONDS_MAX = 600


# So that much has been shown since a checkpoint.
RARELY = replace(SETTINGS, checkpoint_interval_ns=5_000_000_000)
TIGHT = ExchangeLimits(credit_rows=2, window_bytes=2000, bundle_rows=2, bundle_bytes=500)


async def finish(hosts: Hosts, seconds_max: int = SECONDS_MAX) -> None:
    """Write all input, wait until all is committed, and compare."""
    hosts.pipeline.write_all()
    for _ in range(seconds_max):
        if hosts.is_done:
            break
        await asyncio.sleep(1)
    assert hosts.is_done, (hosts.reached, hosts.failures)
    hosts.is_over = True
    assert hosts.pipeline.found() == hosts.pipeline.expected()


class Trouble:
    """What happens to machines and partitions from outside."""

    def __init__(self, cluster: SimCluster, hosts: Hosts, random: Random) -> None:
        self.cluster, self.hosts, self.random = cluster, hosts, random

    async def go_on(self, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(self.random.choice([0.05, 0.3, 1, 4]))
            for number in range(self.hosts.pipeline.counts[0]):
                self.hosts.pipeline.write(number, self.random.choice([0, 1, 2, 5]))
            self.step()

    def step(self) -> None:
        """Do one thing, whichever."""
        cluster, hosts, random = self.cluster, self.hosts, self.random
        name, other = random.choice(hosts.names), random.choice(hosts.names)
        host = cluster.host(name)
        match random.randrange(9):
            case 0:
                host.restart(hosts.main(name))
            case 1 | 2 | 3:
                hosts.assign(random.choice(hosts.pipeline.places), name)
            case 4:
                cluster.network.cut_for(name, other, random.choice([0.5, 5, 30]))
            case 5:
                host.pause()
                cluster.loop.call_later(random.choice([1, 5, 40]), host.resume)
            case 6:
                host.slow_down(random.choice([0, 0.001]))
            case 7:
                for place in hosts.pipeline.places:  # all that it has moves away
                    if hosts.owners[place][0] == name:
                        hosts.assign(place, other)
            case 8:
                host.kill()
                cluster.loop.call_later(1, lambda: self.start(name))

    def start(self, name: str) -> None:
        if not self.cluster.host(name).is_running:
            self.cluster.host(name).start(self.hosts.main(name))

    def heal(self) -> None:
        self.cluster.heal()
        for name in self.hosts.names:
            self.cluster.host(name).slow_down(0)
            self.start(name)
