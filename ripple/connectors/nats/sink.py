"""Changes as messages of a stream, each once, by the expected sequence.

A message is a row, as JSON: a change with its operation, an event alone. Its headers name its
output, its cut and how many of the cut's rows are stored with it, so that the stream's last message
says where to resume, even if all else was lost. A message names its predecessor: the server rejects
it if another is the last, so that a message that was sent twice is stored once, and a replaced
writer cannot write any more. Its id, of writer, cut and row, lets servers drop it even earlier,
within the stream's duplicate window.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.background import Background
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import from_json, to_json
from ripple.connectors.files.text.sink import TextLines, json_of
from ripple.connectors.nats.session import ASK_S, FAILURES, connected, error_of, left, stream_info
from ripple.core.errors import OutputAwayError, OutputError
from ripple.core.extras import needed
from ripple.world.pauses import BRIEF_DELAYS_S

with needed("nats", "a stream of NATS"):
    from nats.js.api import StreamConfig
    from nats.js.errors import APIError, NotFoundError
    from nats.nuid import NUID

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from nats.aio.client import Client
    from nats.js import JetStreamContext

    from ripple.connectors.connector import Writing
    from ripple.connectors.nats.uri import NatsUri

ONCE = "each cut once, in order: the server takes a message only after its predecessor"
AT_ONCE = 200
WRONG_LAST = 10071  # the server's code: another message is the last
# The buffer of changes before they are sent.
PENDING_BYTES_MAX = 64 << 20
OWNER, CUT, SINCE, ROWS, EPOCH, WRITER = (
    "Ripple-Output",
    "Ripple-Cut",
    "Ripple-Since",
    "Ripple-Rows",
    "Ripple-Epoch",
    "Ripple-Writer",
)
ID, LAST = "Nats-Msg-Id", "Nats-Expected-Last-Sequence"


class _State(NamedTuple):
    """The stream's last message: with it, ``done`` of ``rows`` rows of a cut are there."""

    sequence: int
    owner: str
    reached: Commit | None
    since: Commit | None
    done: int
    rows: int
    epoch: int
    writer: str = ""


class NatsSink:
    """A Sink that continues after the stream's last message; see the module.

    Invariant: ``_state`` is the state in the stream's last message, unless a call has failed.
    """

    records_cut = True
    cut_off_bytes = 0
    promise = ONCE

    def __init__(self, place: NatsUri, writing: Writing) -> None:
        """Become the writer of the stream, which is made if there is none. Raises OutputError."""
        self.name = str(place)
        self.epoch = writing.epoch
        self._place = place
        self._owner = f"{writing.plan.name}/{writing.output.name}"
        self._pending: list[tuple[list[bytes], Commit]] = []
        self._pending_bytes = 0
        self._writer = NUID().next().decode()  # of this run alone
        self._lines = TextLines(json_of(writing.output), self.name)
        self._client: Client | None = None
        self._loop: Background | None = Background()
        try:
            self._state = self._loop.call(self._claimed())
        except BaseException:
            self.close()
            raise
        is_part = self._state.done < self._state.rows
        self.committed = self._state.since if is_part else self._state.reached

    @property
    def unfinished(self) -> Mapping[str, int] | None:
        """A cut of which some rows are there; see Sink."""
        state = self._state
        return state.reached.cut if state.reached and state.done < state.rows else None

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Hold the changes that are not yet in the stream for the commit; see Sink."""
        rows = [row.as_py() for row in self._lines.values(changes)]
        if self.unfinished is not None and not self._pending:  # else the first of these complete it
            self._check_completes(self.unfinished, reached, len(rows))
        if rows:
            self._pending.append((rows, reached))
            self._pending_bytes += sum(map(len, rows))
        if self._pending_bytes > PENDING_BYTES_MAX:
            self._send_pending()

    def commit(self, reached: Commit) -> None:
        """Send the changes, and that the cut is reached where its rows do not say it; see Sink."""
        self._send_pending()
        if not _is_same(self._state.reached, reached):
            self._send([b""], reached)
        self.committed = reached

    def close(self) -> None:
        """Close the connection; written messages stay, and readers have them."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                if self._client is not None:
                    loop.call(self._client.close())
            finally:
                loop.close()

    def _check_completes(self, unfinished: Mapping[str, int], reached: Commit, rows: int) -> None:
        """Raise OutputError unless these are the rows of the unfinished cut."""
        if dict(unfinished) != dict(reached.cut):
            raise OutputError(
                f"{self.name} holds a part of the changes up to {dict(unfinished)}: they must "
                f"be completed before those up to {dict(reached.cut)}"
            )
        if self._state.rows != rows:
            raise OutputError(
                f"{self.name} holds {self._state.done} of {self._state.rows} changes up to "
                f"{dict(reached.cut)}, and now they are {rows}: the pipeline was changed, or is "
                "not a function of its input"
            )

    def _send_pending(self) -> None:
        while self._pending:
            self._send(*self._pending[0])
            del self._pending[0]
        self._pending_bytes = 0

    def _send(self, rows: list[bytes], reached: Commit) -> None:
        if self._loop is None:
            raise OutputError(f"cannot write {self.name}: it is closed")
        self._loop.call(self._sent(rows, reached))

    async def _sent(self, rows: list[bytes], reached: Commit) -> None:
        is_new = not _is_same(self._state.reached, reached)
        since = self._state.reached if is_new else self._state.since
        before, done = self._state.sequence, 0 if is_new else self._state.done
        delays = iter(BRIEF_DELAYS_S)
        while done < len(rows):
            try:
                js = await self._stream()
                await self._last(js)  # it must be there: the next opening asks for it
                for first in range(done, len(rows), AT_ONCE):
                    end = min(first + AT_ONCE, len(rows))
                    waited = [
                        await js.publish_async(
                            self._place.stream,
                            rows[row],
                            wait_stall=ASK_S,
                            headers=self._headers(
                                reached, since, row, len(rows), before + row - done
                            ),
                        )
                        for row in range(first, end)
                    ]
                    async with asyncio.timeout(ASK_S):
                        await asyncio.gather(*waited)
                self._state = await self._last(js)
                if self._state.sequence == before:
                    raise OutputError(f"{self.name} takes new rows for repeats, and lacks them")
            except (*FAILURES, APIError, OutputAwayError) as error:
                is_wrong = isinstance(error, APIError) and error.err_code == WRONG_LAST
                if isinstance(error, APIError) and not is_wrong and (error.code or 0) < 500:
                    raise error_of(self._place, error, OutputError) from error
                why = await left(self._client, error)
                delay_s = next(delays, None)
                if delay_s is None:
                    raise error_of(self._place, why, OutputAwayError) from error
                await asyncio.sleep(delay_s)
                try:
                    self._state = await self._last(await self._stream())
                except (*FAILURES, APIError, OutputError):
                    continue
            self._check_ours(reached, before)
            if self._state.sequence != before:
                before, done = self._state.sequence, self._state.done

    def _check_ours(self, reached: Commit, before: int) -> None:
        """Raise OutputError if another writer has written meanwhile."""
        state = self._state
        is_ours = state.writer == self._writer and _is_same(state.reached, reached)
        if state.sequence != before and not is_ours:
            raise OutputError(f"cannot write {self.name}: another run has written it meanwhile")

    def _headers(
        self, reached: Commit, since: Commit | None, row: int, rows: int, last: int
    ) -> dict[str, str]:
        cut = _text(reached)
        return {
            OWNER: self._owner,
            CUT: cut,
            SINCE: _text(since),
            ROWS: f"{row + 1}/{rows}",
            EPOCH: str(self.epoch or 0),
            WRITER: self._writer,
            # The writer's own: what a writer before has sent that is not there must not make a
            # repeat of the row when this one sends it.
            ID: f"{self._owner} {cut} {row} {self._writer}",
            LAST: str(last),
        }

    async def _stream(self) -> JetStreamContext:
        if self._client is None or self._client.is_closed:
            self._client = await connected(self._place, OutputAwayError)
        return self._client.jetstream(timeout=ASK_S)

    async def _claimed(self) -> _State:
        """Return the end of the stream, as its writer. Raises OutputError."""
        try:
            js = await self._stream()
            info = await stream_info(js, self._place)
            if info is None:
                stream = self._place.stream
                await js.add_stream(StreamConfig(name=stream, subjects=[stream]))
            elif info.config.subjects != [self._place.stream]:
                raise OutputError(
                    f"cannot write {self.name}: the stream has the subjects "
                    f"{', '.join(info.config.subjects or ())}, and not its own name alone"
                )
            state = await self._last(js)
            if state.sequence and state.owner != self._owner:
                raise OutputError(
                    f"cannot write {self.name}: it is of {state.owner or 'somebody else'}. Name "
                    "another stream"
                )
            if self.epoch is None or state.epoch == self.epoch:
                return state
            if state.epoch > self.epoch:
                raise OutputError(
                    f"cannot write {self.name}: it has a newer owner than this one, of epoch "
                    f"{self.epoch}"
                )
            # From here on the server refuses what the owner before sends.
            headers = {
                OWNER: self._owner,
                CUT: _text(state.reached),
                SINCE: _text(state.since),
                ROWS: f"{state.done}/{state.rows}",
                EPOCH: str(self.epoch),
                LAST: str(state.sequence),
            }
            await js.publish(self._place.stream, b"", headers=headers)
            return await self._last(js)
        except (*FAILURES, APIError) as error:
            raise error_of(self._place, error, OutputError) from error

    async def _last(self, js: JetStreamContext) -> _State:
        """Parse the stream's last message. Raises as the server does, OutputError."""
        info = await js.stream_info(self._place.stream)
        sequence = info.state.last_seq
        if not sequence:
            return _State(0, self._owner, None, None, 0, 0, 0)
        try:
            found = await js.get_msg(self._place.stream, sequence)
        except NotFoundError as error:
            raise OutputError(
                f"cannot write {self.name}: its last message was removed, and with it how far it is"
            ) from error
        said = found.headers or {}
        if CUT not in said:
            return _State(sequence, "", None, None, 0, 0, 0)
        done, _, rows = said[ROWS].partition("/")
        return _State(
            sequence,
            said[OWNER],
            _commit(said[CUT]),
            _commit(said[SINCE]),
            int(done),
            int(rows),
            int(said[EPOCH]),
            said.get(WRITER, ""),
        )


def _text(commit: Commit | None) -> str:
    if commit is None:
        return "{}"
    return json.dumps(to_json(commit), sort_keys=True)


def _commit(text: str) -> Commit | None:
    return from_json(json.loads(text) or None)


def _is_same(one: Commit | None, other: Commit | None) -> bool:
    if one is None or other is None:
        return one is other
    return (dict(one.cut), one.digest) == (dict(other.cut), other.digest)
