"""Opens streams of NATS, for the connector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.background import Background
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.nats.inputs import NatsInputs, check_kept
from ripple.connectors.nats.liftbridge import LiftbridgeSink
from ripple.connectors.nats.session import ASK_S, FAILURES, connected, error_of
from ripple.connectors.nats.sink import NatsSink
from ripple.connectors.nats.subject import SubjectSource
from ripple.connectors.nats.uri import LIFTBRIDGE, PREFIX, SUBJECT, NatsUri
from ripple.connectors.settings import Stream
from ripple.core.errors import InputError, OutputError

if TYPE_CHECKING:
    from nats.js.api import StreamInfo

    from ripple.connectors.connector import Reading, Writing


def open_inputs(path: str, reading: Reading) -> NatsInputs:
    """Return the stream; raises InputError."""
    return NatsInputs(NatsUri.parse(path), reading)


def open_subject(path: str, reading: Reading) -> SubjectSource:
    """Return the messages of a subject from the subscription on; raises InputError."""
    place = NatsUri.parse(path, SUBJECT)
    return SubjectSource(
        place,
        JsonValues(reading.shape),
        name=reading.name,
        batch_rows=reading.batch_rows,
        quiet_s=place.settings.quiet_s,
    )


def continue_sink(path: str, writing: Writing) -> NatsSink:
    """Return the sink that continues the stream; raises OutputError."""
    try:
        place = NatsUri.parse(path)
    except InputError as error:
        raise OutputError(str(error)) from error
    return NatsSink(place, writing)


def liftbridge_sink(path: str, writing: Writing) -> LiftbridgeSink:
    """Return the sink that publishes to a subject; raises OutputError."""
    try:
        return LiftbridgeSink(NatsUri.parse(path, LIFTBRIDGE), writing)
    except InputError as error:
        raise OutputError(str(error)) from error


def check(path: str) -> str:
    """Connect, and describe the stream; raises InputError."""
    place = NatsUri.parse(path)
    for info in _streams(place):
        if info.config.name == place.stream:
            last = f"the last number {info.state.last_seq}"
            found = f"a stream of {info.state.messages} messages, {last}"
            try:
                check_kept(place, info)
            except InputError as error:
                return f"{found}; it can be written, and not be read. {error}"
            return found
    return f"a server of NATS answers at {place.server}; there is no stream {place.stream} yet"


def identity(path: str) -> str:
    """Return a stream's identity."""
    return str(NatsUri.parse(path))


def check_subject(path: str) -> str:
    """Connect; raises InputError."""
    place = _answered(NatsUri.parse(path, SUBJECT))
    return f"a server of NATS answers; whether there are publishers to {place.stream} is unknown"


def check_liftbridge(path: str) -> str:
    """Connect; raises InputError."""
    place = _answered(NatsUri.parse(path, LIFTBRIDGE))
    return f"a server of NATS answers; a stream of {place.stream} shows by acknowledgements"


def discover(path: str) -> list[Stream]:
    """Return the streams of a server; raises InputError."""
    place = NatsUri.parse(path)
    return [
        Stream(f"{PREFIX}//{place.server}/{info.config.name}", replayable=True)
        for info in _streams(place)
    ]


def _answered(place: NatsUri) -> NatsUri:
    async def asked() -> None:
        await (await connected(place, InputError)).close()

    with Background() as loop:
        loop.call(asked())
    return place


def _streams(place: NatsUri) -> list[StreamInfo]:
    async def asked() -> list[StreamInfo]:
        client = await connected(place, InputError)
        try:
            return await client.jetstream(timeout=ASK_S).streams_info()
        except FAILURES as error:
            raise error_of(place, error, InputError) from error
        finally:
            await client.close()

    with Background() as loop:
        return loop.call(asked())
