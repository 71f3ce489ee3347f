"""Every transition of a link, as two literal tables. Nothing else changes a state.

Two rules: all transitions are here, and nothing here knows which party we are. A link has two
parties and two halves. In each half one party is the producer, who offers outputs and sends
their changes, and the other is the consumer, who accepts the offer, grants credit and asks for
snapshots; both speakers move the one state of the half. A party that has said Goodbye is silent
but still listens, so the other half drains: a half-close, as TCP has it.

What a party may say in a half depends only on what it said and heard before, so messages that
cross on the way cannot break the rules.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeAlias

from ripple.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from ripple.wire.position import Verdict


class Party(Enum):
    """Who speaks."""

    LOCAL = auto()
    REMOTE = auto()

    @property
    def other(self) -> Party:
        """The party at the other end."""
        return Party.REMOTE if self is Party.LOCAL else Party.LOCAL


class Role(Enum):
    """As what a party speaks: in its own half, in the other's half, or for itself."""

    PRODUCER = auto()
    CONSUMER = auto()
    MEMBER = auto()


class State(Enum):
    """Where a half stands (the first four), or a party (the last two)."""

    QUIET = auto()  # nothing offered
    OFFERED = auto()  # handshake sent, no answer yet
    OPEN = auto()  # accepted: changes may flow
    REFUSED = auto()  # not accepted, for good
    TALKING = auto()
    SILENT = auto()  # has said goodbye


class Act(Enum):
    """What is said."""

    HANDSHAKE = auto()
    ACCEPT = auto()
    REFUSE = auto()
    DELTA = auto()
    CHANGES = auto()
    SNAPSHOT_BEGIN = auto()
    SNAPSHOT_END = auto()
    SNAPSHOT_REQUEST = auto()
    CREDIT = auto()
    BUNDLE = auto()
    FOLLOW = auto()
    UNFOLLOW = auto()
    GRANT = auto()
    RELEASE = auto()
    TRACE = auto()
    PING = auto()
    PONG = auto()
    HEARTBEAT = auto()
    CHECKPOINT_REQUEST = auto()
    CHECKPOINT_ACK = auto()
    GOODBYE = auto()


TRANSITIONS: dict[Role, dict[State, dict[Act, State]]] = {
    Role.PRODUCER: {
        State.QUIET: {Act.HANDSHAKE: State.OFFERED},
        State.OFFERED: {},
        State.OPEN: {
            Act.DELTA: State.OPEN,
            Act.CHANGES: State.OPEN,
            Act.SNAPSHOT_BEGIN: State.OPEN,
            Act.SNAPSHOT_END: State.OPEN,
            Act.BUNDLE: State.OPEN,
            Act.TRACE: State.OPEN,
        },
        State.REFUSED: {},
    },
    Role.CONSUMER: {
        State.QUIET: {},
        State.OFFERED: {Act.ACCEPT: State.OPEN, Act.REFUSE: State.REFUSED},
        State.OPEN: {
            Act.CREDIT: State.OPEN,
            Act.SNAPSHOT_REQUEST: State.OPEN,
            Act.FOLLOW: State.OPEN,
            Act.UNFOLLOW: State.OPEN,
            Act.GRANT: State.OPEN,
            Act.RELEASE: State.OPEN,
        },
        State.REFUSED: {},
    },
    Role.MEMBER: {
        State.TALKING: {
            Act.PING: State.TALKING,
            Act.PONG: State.TALKING,
            Act.HEARTBEAT: State.TALKING,
            Act.CHECKPOINT_REQUEST: State.TALKING,
            Act.CHECKPOINT_ACK: State.TALKING,
            Act.GOODBYE: State.SILENT,
        },
        State.SILENT: {},
    },
}

ROLE_OF: dict[Act, Role] = {
    act: role for role, states in TRANSITIONS.items() for acts in states.values() for act in acts
}


class LinkStates:
    """The states of both halves and both parties.

    Invariant: a half is OPEN or REFUSED only after its producer's handshake and its consumer's
    answer; a silent party has said nothing since.
    """

    def __init__(self) -> None:
        self.halves = {Party.LOCAL: State.QUIET, Party.REMOTE: State.QUIET}  # by producer
        self.parties = {Party.LOCAL: State.TALKING, Party.REMOTE: State.TALKING}

    def check(self, speaker: Party, act: Act) -> State:
        """Return the state that ``act`` would lead to.

        Raises LocalProtocolError or RemoteProtocolError, by the speaker, when the tables do not
        have it.
        """
        role = ROLE_OF[act]
        if self.parties[speaker] is State.SILENT:
            raise _broken(speaker, Role.MEMBER, State.SILENT, act)
        where, key = self._place(speaker, role)
        after = TRANSITIONS[role][where[key]].get(act)
        if after is None:
            raise _broken(speaker, role, where[key], act)
        return after

    def say(self, speaker: Party, act: Act) -> None:
        """Let ``speaker`` say ``act``; raises as ``check`` does, and then changes nothing."""
        after = self.check(speaker, act)
        where, key = self._place(speaker, ROLE_OF[act])
        where[key] = after

    def _place(self, speaker: Party, role: Role) -> tuple[dict[Party, State], Party]:
        if role is Role.MEMBER:
            return self.parties, speaker
        return self.halves, speaker if role is Role.PRODUCER else speaker.other


def _broken(speaker: Party, role: Role, state: State, act: Act) -> ProtocolError:
    allowed = ", ".join(sorted(allowed.name for allowed in TRANSITIONS[role][state]))
    local = speaker is Party.LOCAL
    return (LocalProtocolError if local else RemoteProtocolError)(
        f"{'we' if local else 'the peer'}, as {role.name}, may not say {act.name} "
        f"in state {state.name}; expected {allowed or 'nothing more'}"
    )


class Sending(Enum):
    """How far a producer has come with one stream on one link."""

    CLOSED = auto()  # not begun on this link, or superseded: only a snapshot opens it
    FILLING = auto()  # between the begin and the end of a snapshot
    FLOWING = auto()  # each range starts where the last one ended


class Sent(Enum):
    """What a producer sends on a stream."""

    BEGIN = auto()
    ROWS = auto()
    END = auto()
    CHANGES = auto()
    SUPERSEDED = auto()  # heard, not sent: the peer follows a higher epoch


SENDING_TRANSITIONS: dict[Sending, dict[Sent, Sending]] = {
    Sending.CLOSED: {Sent.BEGIN: Sending.FILLING, Sent.SUPERSEDED: Sending.CLOSED},
    Sending.FILLING: {
        Sent.BEGIN: Sending.FILLING,
        Sent.ROWS: Sending.FILLING,
        Sent.END: Sending.FLOWING,
        Sent.SUPERSEDED: Sending.CLOSED,
    },
    Sending.FLOWING: {
        Sent.BEGIN: Sending.FILLING,
        Sent.CHANGES: Sending.FLOWING,
        Sent.SUPERSEDED: Sending.CLOSED,
    },
}


def lead(state: Sending, sent: Sent) -> Sending:
    """Return the next state of a stream that we send; LocalProtocolError when not allowed."""
    row = SENDING_TRANSITIONS[state]
    if sent not in row:
        expected = ", ".join(sorted(allowed.name for allowed in row if allowed is not _HEARD))
        raise LocalProtocolError(
            f"we may not send {sent.name} on a stream in state {state.name}; expected {expected}"
        )
    return row[sent]


_HEARD = Sent.SUPERSEDED


class StreamState(Enum):
    """How a consumer follows one stream on one link."""

    LIVE = auto()  # changes are applied when they start at our position
    WAITING = auto()  # a snapshot was asked for; changes mean nothing until it begins
    FILLING = auto()  # between the begin and the end of a snapshot
    BEHIND = auto()  # the peer's table is older than ours and will come up to our cut
    REFUSING = auto()  # within a snapshot of a superseded owner


class Begun(Enum):
    """What arrives around a snapshot, beside the verdicts on changes."""

    BEGIN = auto()
    BEGIN_STALE = auto()
    ROWS = auto()
    ROWS_STALE = auto()
    END_FORWARD = auto()  # the snapshot's cut is at or beyond our position
    END_BACKWARD = auto()  # it would take us back on some input
    END_STALE = auto()


class Effect(Enum):
    """What the link does about it."""

    DELIVER = auto()  # hand the changes over and move the position
    DROP = auto()  # count it, give its credit back
    REFUSE = auto()  # drop it, and tell the peer which epoch we follow
    REQUEST = auto()  # drop it, fence its epoch and ask for a snapshot
    START = auto()  # a snapshot begins; one that was being filled is dropped
    FILL = auto()  # hand over rows of the snapshot
    ADOPT = auto()  # the snapshot becomes the table, its cut the position
    ABANDON = auto()  # the snapshot is not taken; the table stays


_V, _B, _S, _E = Verdict, Begun, StreamState, Effect

STREAM_TRANSITIONS: dict[StreamState, dict[Verdict | Begun, tuple[StreamState, Effect]]] = {
    # A stream starts LIVE at the position that outlived the last connection, if there is one.
    _S.LIVE: {
        _V.NEXT: (_S.LIVE, _E.DELIVER),
        _V.REPEAT: (_S.LIVE, _E.DROP),
        _V.STALE: (_S.LIVE, _E.REFUSE),
        _V.NEWER: (_S.WAITING, _E.REQUEST),
        _V.SHORT: (_S.WAITING, _E.REQUEST),
        _V.GAP: (_S.WAITING, _E.REQUEST),
        _B.BEGIN: (_S.FILLING, _E.START),
        _B.BEGIN_STALE: (_S.REFUSING, _E.REFUSE),
    },
    _S.WAITING: {
        _V.NEXT: (_S.WAITING, _E.DROP),
        _V.REPEAT: (_S.WAITING, _E.DROP),
        _V.STALE: (_S.WAITING, _E.REFUSE),
        _V.NEWER: (_S.WAITING, _E.DROP),
        _V.SHORT: (_S.WAITING, _E.DROP),
        _V.GAP: (_S.WAITING, _E.DROP),
        _B.BEGIN: (_S.FILLING, _E.START),
        _B.BEGIN_STALE: (_S.REFUSING, _E.REFUSE),
    },
    _S.FILLING: {
        _B.ROWS: (_S.FILLING, _E.FILL),
        _B.ROWS_STALE: (_S.REFUSING, _E.ABANDON),
        _B.BEGIN: (_S.FILLING, _E.START),
        _B.BEGIN_STALE: (_S.REFUSING, _E.ABANDON),
        _B.END_FORWARD: (_S.LIVE, _E.ADOPT),
        _B.END_BACKWARD: (_S.BEHIND, _E.ABANDON),
        _B.END_STALE: (_S.WAITING, _E.ABANDON),
    },
    # The table at a cut is always the same, so we keep ours and wait for the peer to reach it.
    _S.BEHIND: {
        _V.NEXT: (_S.LIVE, _E.DELIVER),
        _V.REPEAT: (_S.BEHIND, _E.DROP),
        _V.STALE: (_S.BEHIND, _E.REFUSE),
        _V.NEWER: (_S.WAITING, _E.REQUEST),
        _V.SHORT: (_S.BEHIND, _E.DROP),
        _V.GAP: (_S.WAITING, _E.REQUEST),
        _B.BEGIN: (_S.FILLING, _E.START),
        _B.BEGIN_STALE: (_S.REFUSING, _E.REFUSE),
    },
    # Its end leads to WAITING: a peer that rejoins with a higher epoch begins with a snapshot.
    _S.REFUSING: {
        _B.ROWS_STALE: (_S.REFUSING, _E.DROP),
        _B.BEGIN: (_S.FILLING, _E.START),
        _B.BEGIN_STALE: (_S.REFUSING, _E.REFUSE),
        _B.END_STALE: (_S.WAITING, _E.DROP),
    },
}

StreamEvent: TypeAlias = Verdict | Begun


def follow(state: StreamState, event: StreamEvent) -> tuple[StreamState, Effect]:
    """Return the next state of a stream and what to do; RemoteProtocolError when not allowed."""
    row = STREAM_TRANSITIONS[state]
    if event not in row:
        expected = ", ".join(sorted(allowed.name for allowed in row))
        raise RemoteProtocolError(
            f"the peer sent {event.name} on a stream in state {state.name}; expected {expected}"
        )
    return row[event]
