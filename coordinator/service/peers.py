"""The other replicas: each is polled for its view, once a heartbeat interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from coordinator.decisions.events import Event, ViewHeard
from coordinator.service.messages import view_answer_from_bytes
from ripple.control.rpc import methods
from ripple.control.rpc.mapping import RpcError
from ripple.world.control import ControlError

if TYPE_CHECKING:
    from coordinator.decisions.limits import Limits
    from ripple.world.ports import World
    from ripple.world.tls import Tls


class Asker(Protocol):
    """Receives the answers of other replicas."""

    replica: str
    limits: Limits

    def handle(self, event: Event) -> None:
        """Take an event."""
        ...

    def known_elsewhere(self, version: int) -> None:
        """Note that a newer version is known elsewhere."""
        ...

    def trouble(self, what: str, problem: str | None) -> None:
        """Note that a task fails, or works again."""
        ...


class Peer:
    """Another replica, at ``address``."""

    def __init__(self, world: World, address: str, tls: Tls | None, asker: Asker) -> None:
        assert world.control is not None
        self._address = address
        self._clock = world.clock
        self._channel = world.control.channel(address, tls=tls)
        self._asker = asker

    async def ask(self) -> None:
        """Poll for ever."""
        limits, name = self._asker.limits, f"coordinator {self._address}"
        while True:
            try:
                data = await self._channel.call(
                    methods.VIEW, b"", deadline_s=limits.view_interval_ms / 1000
                )
                answer = view_answer_from_bytes(data)
            except (ControlError, RpcError) as error:
                self._asker.trouble(name, str(error))
            else:
                self._asker.trouble(name, None)
                # All replicas may be given the same list, or one name for all. A replica must not
                # count itself as another one.
                if answer.view.replica != self._asker.replica:
                    self._asker.handle(ViewHeard(answer.view))
                    self._asker.known_elsewhere(answer.version)
            await self._clock.sleep(limits.heartbeat_interval_ms / 1000)

    async def close(self) -> None:
        """Stop polling."""
        await self._channel.close()
