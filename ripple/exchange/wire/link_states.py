"""Every transition of a link, as two literal tables. Nothing else changes a state.

Two rules: all transitions are here, and the tables are the same for both parties. A link has two
parties and two halves. In each half one party is the producer, who offers outputs and sends their
changes, and the other is the consumer, who accepts the offer, grants credit and asks for snapshots;
both speakers move the one state of the half. A party that has sent Goodbye is silent but still
receives, so the other half drains: a half-close, like TCP's.

The messages allowed to a party in a half depend only on those that it sent and received before, so
messages that cross cannot violate the rules.
"""

from __future__ import annotations

from enum import Enum, auto

from ripple.exchange.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError


class Party(Enum):
    """The speaker."""

    LOCAL = auto()
    REMOTE = auto()

    @property
    def other(self) -> Party:
        """The party at the other end."""
        return Party.REMOTE if self is Party.LOCAL else Party.LOCAL


class Role(Enum):
    """The role of a speaker: in its own half, in the other's half, or for itself."""

    PRODUCER = auto()
    CONSUMER = auto()
    MEMBER = auto()


class State(Enum):
    """The state of a half (the first four), or of a party (the last two)."""

    QUIET = auto()  # nothing offered
    OFFERED = auto()  # handshake sent, no answer yet
    OPEN = auto()  # accepted: changes may flow
    REFUSED = auto()  # rejected, finally
    TALKING = auto()
    SILENT = auto()  # has sent a goodbye


class Act(Enum):
    """The kind of a message."""

    HANDSHAKE = auto()
    ACCEPT = auto()
    REFUSE = auto()
    DELTA = auto()
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
            Act.BUNDLE: State.OPEN,
            Act.TRACE: State.OPEN,
        },
        State.REFUSED: {},
    },
    Role.CONSUMER: {
        State.QUIET: {},
        State.OFFERED: {Act.ACCEPT: State.OPEN, Act.REFUSE: State.REFUSED},
        State.OPEN: {
            Act.FOLLOW: State.OPEN,
            Act.UNFOLLOW: State.OPEN,
            Act.GRANT: State.OPEN,
            Act.RELEASE: State.OPEN,
            Act.REFUSE: State.REFUSED,  # the goodbye of a peer without Goodbye
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
    answer; a silent party has sent nothing since.
    """

    def __init__(self) -> None:
        self.halves = {Party.LOCAL: State.QUIET, Party.REMOTE: State.QUIET}  # by producer
        self.parties = {Party.LOCAL: State.TALKING, Party.REMOTE: State.TALKING}

    def check(self, speaker: Party, act: Act) -> State:
        """Return the state after ``act``.

        Raises LocalProtocolError or RemoteProtocolError, by the speaker, if the tables forbid it.
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
        """Apply ``act`` of ``speaker``; raises as ``check`` does, and then changes nothing."""
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
