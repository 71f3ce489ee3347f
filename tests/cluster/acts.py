"""Random disturbances of a cluster of real processes."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Callable

from tests.cluster.cluster import Cluster, children_of, signalled
from tests.cluster.network import Network
from tests.cluster.small_disk import SmallDisk

FREEZES_S = (1.0, 4.0, 12.0)
CUTS_S = (0.5, 4.0, 12.0)
FULL_S = (0.5, 5.0)


class Acts:
    """Does one thing after the other to a cluster, and counts them in ``done``."""

    def __init__(
        self,
        up: Cluster,
        chance: random.Random,
        done: Counter[str],
        network: Network | None,
        disk: SmallDisk | None,
    ) -> None:
        self._up = up
        self.chance = chance
        self._done = done
        self._cuts: dict[str, asyncio.TimerHandle] = {}
        self._acts: list[tuple[str, Callable[[], bool]]] = [
            ("workers killed", lambda: self._to_one("worker", signal.SIGKILL)),
            ("engines killed", lambda: self._to_engine(signal.SIGKILL)),
            ("engines frozen", lambda: self._freeze(engine=True)),
            ("workers frozen", lambda: self._freeze(engine=False)),
            ("workers told to end", lambda: self._to_one("worker", signal.SIGTERM)),
            ("coordinators killed", lambda: self._to_one("coordinator", signal.SIGKILL)),
        ]
        if up.spare:
            self._acts += [("workers joined", self._join), ("workers left", self._leave)]
        if network is not None:
            self._acts += [
                ("hosts cut off", lambda: self._cut(network)),
                ("hosts that only hear", lambda: self._cut(network, hears=True)),
                ("hosts that only speak", lambda: self._cut(network, speaks=True)),
            ]
        if disk is not None:
            self._acts.append(("disks full", lambda: self._fill(disk)))

    def act(self) -> None:
        """Do something to whoever is there."""
        name, do = self.chance.choice(self._acts)
        if do():
            self._done[name] += 1

    def _pick(self, kind: str) -> int:
        names = [name for name in self._up.processes if name.startswith(kind)]
        return self._up.pid(self.chance.choice(names))

    def _to_one(self, kind: str, number: signal.Signals) -> bool:
        pid = self._pick(kind)
        return bool(pid) and signalled(pid, number)

    def _engine(self) -> int:
        pid = self._pick("worker")
        try:
            engines = children_of(pid) if pid else []
        except OSError:
            return 0
        return self.chance.choice(engines) if engines else 0

    def _to_engine(self, number: signal.Signals) -> bool:
        pid = self._engine()
        return bool(pid) and signalled(pid, number)

    def _freeze(self, *, engine: bool) -> bool:
        pid = self._engine() if engine else self._pick("worker")
        if not pid or not signalled(pid, signal.SIGSTOP):
            return False
        asyncio.get_running_loop().call_later(
            self.chance.choice(FREEZES_S), signalled, pid, signal.SIGCONT
        )
        return True

    def _join(self) -> bool:
        return self._up.join(self.chance.choice(self._up.spare))

    def _leave(self) -> bool:
        return self._up.leave(self.chance.choice(self._up.spare))

    def _cut(self, network: Network, *, hears: bool = False, speaks: bool = False) -> bool:
        host = self.chance.choice([*self._up.processes])
        if host in self._cuts:
            self._cuts.pop(host).cancel()
        network.cut(host, hears=hears, speaks=speaks)
        self._cuts[host] = asyncio.get_running_loop().call_later(
            self.chance.choice(CUTS_S), network.heal, host
        )
        return True

    def _fill(self, disk: SmallDisk) -> bool:
        disk.fill()
        asyncio.get_running_loop().call_later(self.chance.choice(FULL_S), disk.free)
        return True
