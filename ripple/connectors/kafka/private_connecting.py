"""Connections of aiokafka that are renewed before brokers end them, with reasons for failures.

When a session ends with its token, or after ``connections.max.reauth.ms`` (KIP-368), the broker
closes the connection at the next request, with an unknown outcome. aiokafka does not authenticate
again on a connection, so another one replaces it in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from math import inf
from typing import TYPE_CHECKING

from ripple.connectors.kafka.private import reason_of
from ripple.core.extras import needed

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors
    from aiokafka.client import AIOKafkaClient, ConnectionGroup
    from aiokafka.conn import AIOKafkaConnection
    from aiokafka.protocol.admin import SaslAuthenticateRequest

if TYPE_CHECKING:
    from typing import Any

USED_PART = 0.8  # of a session's time; the rest is for requests under way
AGAIN_S = 1.0  # between two tries to get another, while there is one that is good


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # it has no types
    """A connection that knows when its session ends.

    renews_at_s, ends_at_s: by the loop's clock.
    """

    def __init__(self, host: str, port: int, **arguments: Any) -> None:
        super().__init__(host, port, **arguments)
        self.renews_at_s = self.ends_at_s = inf

    def send(self, request: Any, expect_response: bool = True) -> Awaitable[Any]:
        """Send a request, as aiokafka has it; of a login, note how long it is good."""
        answer: Awaitable[Any] = super().send(request, expect_response)
        return self._noted(answer) if isinstance(request, SaslAuthenticateRequest) else answer

    async def _noted(self, answer: Awaitable[Any]) -> Any:
        began_s, found = _now_s(), await answer
        session_s = getattr(found, "session_lifetime_ms", 0) / 1000
        if session_s > 0:
            self.renews_at_s, self.ends_at_s = began_s + USED_PART * session_s, began_s + session_s
        return found

    def retire(self) -> None:
        """Close when all requests are answered."""
        if self._requests:
            self._requests[-1][2].add_done_callback(lambda _: self.close())
        else:
            self.close()


class Client(AIOKafkaClient):  # type: ignore[misc]  # likewise
    """A client with connections that are renewed in time."""

    def __init__(self, arguments: Mapping[str, Any], brokers: str) -> None:
        """Take the arguments of ``Connection``, and the brokers that are asked first."""
        super().__init__(
            bootstrap_servers=brokers.split(","), retry_backoff_ms=50, **dict(arguments)
        )
        self._arguments = arguments
        self._why: dict[Any, str] = {}

    async def ready(self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT) -> bool:
        """Return True, or raise NodeNotReadyError with the reason."""
        if await self._get_conn(node_id, group=group) is None:
            raise errors.NodeNotReadyError(self._why[node_id])
        return True

    async def _get_conn(self, node_id: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
        """Return a connection to a broker, a new one where there is none that lasts, or None."""
        key = node_id, group
        if not self._lasts(key):
            async with self._get_conn_lock:
                if not self._lasts(key):
                    await self._renew(key)
        return self._conns.get(key)

    def _lasts(self, key: Any) -> bool:
        held = self._conns.get(key)
        return (
            held is not None and held.connected() and getattr(held, "renews_at_s", inf) > _now_s()
        )

    async def _renew(self, key: Any) -> None:
        """Connect; a connection that is good for a while yet stays where that fails."""
        node = key[0]
        held = self._conns.get(key)
        if held is not None and not held.connected():
            # It has read the end of its stream, but may not have acted on it: what waits for its
            # answers would wait until it gives up, and the socket stay open.
            del self._conns[key]
            held.close()
            held = None
        broker = self.cluster.broker_metadata(node)
        where = f"node {node}" if broker is None else f"{broker.host}:{broker.port}"
        made = None
        try:
            if broker is None:
                raise errors.StaleMetadata("the brokers do not speak of it")
            made = Connection(
                broker.host,
                broker.port,
                **self._arguments,
                on_close=self._on_connection_closed,
                max_idle_ms=self._connections_max_idle_ms,
            )
            await made.connect()
        except (OSError, TimeoutError, errors.KafkaError) as error:
            spoken = self._arguments.get("security_protocol", "PLAINTEXT")
            self._why[node] = f"{where}: {reason_of(error, spoken)}"
            if held is not None and held.ends_at_s > _now_s():
                held.renews_at_s = _now_s() + AGAIN_S
                return
            self._conns.pop(key, None)
            # As in aiokafka: the metadata may be old.
            self.force_metadata_update()
        else:
            self._conns[key] = made
        if held is not None:
            held.retire()
