"""The control port: calls and conversations between processes, in messages that only they read.

Calls are answered or they fail; a conversation is messages in order, both ways, until one side
ends it. The live form is gRPC (:mod:`ripple.world.live_control`, with the extra ``cluster``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ripple.core.access import Caller
from ripple.core.errors import LimitError, RippleError

if TYPE_CHECKING:
    from ripple.world.tls import Tls

MESSAGE_BYTES_MAX = 4 << 20
CALLS_MAX = 256
CONVERSATIONS_MAX = 1024
REASON_CHARACTERS_MAX = 1000
# A peer that is silent for as long as both together is gone.
KEEPALIVE_S = 10.0
KEEPALIVE_TIMEOUT_S = 5.0

NO_METHOD = "it has no such method"
BUSY = "it does too much at once"
FAILED = "it has failed in an unexpected way"
# Metadata of a call: its pipeline, one of several.
PIPELINE = "ripple-pipeline"
NO_PIPELINES = "it serves one pipeline, which has no name here: leave --pipeline out"
UNKNOWN_CALLER = "the caller is unknown: show a certificate or a token that its roles name"


class ControlError(RippleError):
    """A call or a conversation has failed."""


class UnreachableError(ControlError):
    """No answer, or the connection broke; whether a call was carried out is unknown."""


class DeadlineError(ControlError):
    """There was no answer in time; whether the call was carried out is unknown."""


class RefusedError(ControlError):
    """The other side has answered that it will not; a handler raises it to say so."""

    def __init__(self, reason: str) -> None:
        self.reason = reason[:REASON_CHARACTERS_MAX]
        super().__init__(self.reason)


class Conversation(Protocol):
    """Messages both ways, in order. Ends on the serving side when the handler returns."""

    @property
    def peer(self) -> str:
        """The other side's address, for people."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next message, None when the other side has said that there are no more.

        Raises ControlError once it is broken or refused.
        """
        ...

    async def send(self, message: bytes) -> None:
        """Hand a message over; wait while the other side lags far.

        Raises ControlError, and LimitError for one longer than ``MESSAGE_BYTES_MAX``.
        """
        ...


class OpenConversation(Conversation, Protocol):
    """A conversation as seen by its opener."""

    async def finish(self) -> None:
        """Say that there are no more messages from this side."""
        ...

    def close(self) -> None:
        """End it now: the other side's handler is cancelled. Closing twice is allowed."""
        ...


# Why a caller may not do something, None if they may: by method and request.
Allows: TypeAlias = Callable[[str, Caller, bytes], str | None]
Answers: TypeAlias = Callable[[bytes], Awaitable[bytes]]
Converses: TypeAlias = Callable[[Conversation], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Service:
    """The service of a process, by method, such as ``ripple.rpc.Coordinator/Register``.

    A handler refuses by raising RefusedError; any other error of its own goes to the event loop's
    handler of exceptions. It is cancelled when the caller is gone or waits no longer. More than
    ``calls_max`` calls or ``conversations_max`` conversations at once are refused. allows: the
    access check, None for no check; it sees no message of a conversation. named: returns the
    service of a pipeline that a call names, or raises RefusedError; its methods are among ``calls``
    and ``conversations``.
    """

    calls: Mapping[str, Answers] = field(default_factory=dict)
    conversations: Mapping[str, Converses] = field(default_factory=dict)
    calls_max: int = CALLS_MAX
    conversations_max: int = CONVERSATIONS_MAX
    allows: Allows | None = None
    named: Callable[[str], Service] | None = None

    def of(self, pipeline: str) -> Service:
        """Return the service of the pipeline that a call names, "" for none.

        Raises RefusedError.
        """
        if not pipeline:
            return self
        if self.named is None:
            raise RefusedError(NO_PIPELINES)
        return self.named(pipeline)


class ControlServer(Protocol):
    """A service at an address."""

    @property
    def address(self) -> str:
        """``host:port`` as bound: port 0 was replaced by the one that was given."""
        ...

    async def close(self, grace_s: float = 0.0) -> None:
        """Take no more calls; after ``grace_s`` end the unanswered ones."""
        ...


class Channel(Protocol):
    """A connection to a service: made at first use, and again after it broke."""

    async def call(self, method: str, request: bytes, *, deadline_s: float) -> bytes:
        """Return the answer.

        Raises UnreachableError, DeadlineError, RefusedError, and LimitError for a request longer
        than ``MESSAGE_BYTES_MAX``.
        """
        ...

    async def open(self, method: str, *, deadline_s: float) -> OpenConversation:
        """Begin a conversation; the deadline is for its beginning. Raises as ``call`` does.

        A refusal may come as late as with the first ``receive``.
        """
        ...

    async def close(self) -> None:
        """End all calls and conversations; closing twice is allowed."""
        ...


class Control(Protocol):
    """Services of other processes, and of this one."""

    async def serve(
        self, address: str, service: Service, *, tls: Tls | None = None
    ) -> ControlServer:
        """Offer a service. Raises OSError, of which TlsError names a file that does not fit."""
        ...

    def channel(self, address: str, *, tls: Tls | None = None) -> Channel:
        """Return a way to the service at ``address``. Raises TlsError."""
        ...


def check_length(message: bytes) -> None:
    """Raise LimitError for a message that is too long to be sent."""
    if len(message) > MESSAGE_BYTES_MAX:
        raise LimitError(
            f"a control message of {len(message)} bytes: more than {MESSAGE_BYTES_MAX} are not sent"
        )
