"""Calls between the Python processes of a query, since Spark gives a task to any free one.

Both sides prove in each message that they know the token of the query, which is never sent::

    asker  -> nonce                                   32 bytes
    owner  -> nonce                                   32 bytes
    asker  -> {"partition": 3, "stop": {...}}         length, then sealed JSON
    owner  -> {"working": true}                       at once, and every BEAT_S
    owner  -> {"report": {...}}, {"failed": "why"} or {"absent": true}

A message is sealed with both nonces and its number, so replays are detected. Every wait has a
timeout: a silent owner counts as dead, and its partition is taken over. Only whole messages of its
own count as a sign of life.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from functools import cache
from typing import TYPE_CHECKING, Any

from ripple.core.errors import RippleError
from ripple.spark.sealed import ForgedError, sealed, unsealed
from ripple.spark.streaming.resident import here
from ripple.world import addresses, live_world

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.spark.streaming.turn import Address
    from ripple.world.ports import Network, Stream

PROOF_S = 10.0
"""The time within which a client must send its request."""

SILENCE_S = 10.0
"""The silence after which a peer counts as dead, also while it is connected to."""

BEAT_S = 2.0
STRANGERS_MAX = 32
"""The limit of unauthenticated connections; beyond it the oldest are closed."""

MESSAGE_BYTES_MAX = 4 << 20
_NONCE_BYTES, _LENGTH_BYTES = 32, 4
_WORKING = {"working": True}


class ElsewhereError(RippleError):
    """A partition has failed in its owner's process; the text is the error."""


@cache
def served(token: str, driver: str) -> Address:
    """Start serving turns for other processes; return the address.

    driver: its host, for finding this machine's own address.
    """
    return here().run(_served(token, _host(driver)))


def asked(address: Address, token: str, partition: int, stop: Cut) -> dict[str, Any] | None:
    """Ask a process to advance a partition to a cut; return its report.

    None if it does not have the partition, or does not answer. Raises ElsewhereError.
    """
    return here().run(_asked(address, token, {"partition": partition, "stop": stop}))


async def _served(token: str, host: str) -> Address:
    listener = await _network().listen(addresses.joined(host, 0), _Server(token).serve)
    return addresses.parts(listener.address)


async def _asked(address: Address, token: str, question: Any) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(SILENCE_S) as patience:
            stream = await _network().connect(addresses.joined(*address))
            try:
                return await _answer(stream, token, question, patience)
            finally:
                stream.close()
    except (OSError, EOFError, ForgedError):
        return None


async def _answer(
    stream: Stream, token: str, question: Any, patience: asyncio.Timeout
) -> dict[str, Any] | None:
    channel = await _Channel.between(stream, token, asks=True)
    await channel.send(question)
    while (said := await channel.receive()) == _WORKING:
        patience.reschedule(asyncio.get_running_loop().time() + SILENCE_S)
    if "failed" in said:
        raise ElsewhereError(said["failed"])
    report: dict[str, Any] | None = said.get("report")
    return report


class _Server:
    """The server of a process."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._strangers: dict[Stream, None] = {}  # in order of arrival

    async def serve(self, stream: Stream) -> None:
        """Answer one authenticated request."""
        while len(self._strangers) >= STRANGERS_MAX:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close()
        self._strangers[stream] = None
        try:
            async with asyncio.timeout(PROOF_S):
                channel = await _Channel.between(stream, self._token, asks=False)
                question = await channel.receive()
        except (OSError, EOFError, ForgedError):
            return  # an unauthenticated client, or one that left
        finally:
            self._strangers.pop(stream, None)
        await self._do(channel, question)

    async def _do(self, channel: _Channel, question: Any) -> None:
        turn = here().advance(self._token, question["partition"], question["stop"])
        work = asyncio.ensure_future(turn)
        try:
            done: set[Any] = set()
            while not done:
                await channel.send(_WORKING)
                done, _ = await asyncio.wait([work], timeout=BEAT_S)
            await channel.send(_outcome(work))
        except OSError:
            await asyncio.wait([work])  # the client left; the work is still completed
            _outcome(work)


def _outcome(work: asyncio.Future[dict[str, Any] | None]) -> dict[str, Any]:
    if work.cancelled():
        return {"absent": True}
    error = work.exception()
    if isinstance(error, RippleError):
        return {"failed": str(error)}
    if error is not None:
        return {"failed": f"{type(error).__name__}: {error}"}
    found = work.result()
    return {"absent": True} if found is None else {"report": found}


class _Channel:
    """One connection after the exchange of nonces. Raises ForgedError, OSError, EOFError."""

    def __init__(self, stream: Stream, token: str, nonces: bytes, *, asks: bool) -> None:
        self._stream = stream
        self._token = token
        self._nonces = nonces
        self._asks = asks
        self._said = self._heard = 0
        self._rest = b""

    @classmethod
    async def between(cls, stream: Stream, token: str, *, asks: bool) -> _Channel:
        """Exchange nonces. asks: whether this side is the client."""
        own = secrets.token_bytes(_NONCE_BYTES)
        channel = cls(stream, token, b"", asks=asks)
        await stream.write(own)
        other = await channel._exactly(_NONCE_BYTES)
        channel._nonces = own + other if asks else other + own
        return channel

    async def send(self, value: Any) -> None:
        """Send a message within SILENCE_S."""
        data = sealed(self._token, self._about(self._said, asks=self._asks), value)
        if len(data) > MESSAGE_BYTES_MAX:
            raise ConnectionAbortedError(f"a message of {len(data)} bytes")
        self._said += 1
        async with asyncio.timeout(SILENCE_S):
            await self._stream.write(len(data).to_bytes(_LENGTH_BYTES, "big") + data)

    async def receive(self) -> Any:
        """Return the next authenticated message."""
        length = int.from_bytes(await self._exactly(_LENGTH_BYTES), "big")
        if length > MESSAGE_BYTES_MAX:
            raise ForgedError(f"a message of {length} bytes")
        data = await self._exactly(length)
        found = unsealed(self._token, self._about(self._heard, asks=not self._asks), data)
        self._heard += 1
        return found

    def _about(self, number: int, *, asks: bool) -> bytes:
        return self._nonces + bytes([asks]) + number.to_bytes(8, "big")

    async def _exactly(self, length: int) -> bytes:
        pieces, there = [self._rest], len(self._rest)
        while there < length:
            piece = await self._stream.read(1 << 16)
            if not piece:
                raise EOFError
            pieces.append(piece)
            there += len(piece)
        whole = b"".join(pieces)
        self._rest = whole[length:]
        return whole[:length]


def _network() -> Network:
    network = live_world(".").network
    assert network is not None
    return network


def _host(driver: str) -> str:
    """Return this machine's address toward the driver."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((driver, 9))  # nothing is sent
        host: str = probe.getsockname()[0]
    return host
